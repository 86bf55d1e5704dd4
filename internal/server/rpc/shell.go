package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// A Run is a command that a client wants to be run for a session.
type Run struct {
	Session event.SessionID
	Key     string // the same for a request that is made again
	Command string
	Dir     string
	Env     []string
	Limit   time.Duration // none if zero
	Sealed  bool          // true if the commands of the session are sealed
}

// Shell runs commands for clients. They are commands of their session like those
// of the model, and outlive the client and the engine.
type Shell interface {
	Exec(ctx context.Context, r Run) (api.Task, error)
	// Await waits for the end of a command, and returns its exit status: 128 and
	// the signal if that ended it.
	Await(ctx context.Context, id event.SessionID, task string) (int, error)
	// Kill sends a signal. It reports false if there is nothing to be killed.
	Kill(ctx context.Context, id event.SessionID, task string, signal int) (bool, error)
}

// These methods run commands of clients.
var _ = register(map[string]method{
	api.ShellExec: on((*conn).exec),
	api.ShellKill: on((*conn).kill),
})

// exec starts a command. The client is told when it ends, if it is still there.
func (c *conn) exec(ctx context.Context, p api.ShellExecParams) (any, error) {
	switch {
	case c.server.opts.Shell == nil:
		return nil, jsonrpc.MethodNotFound(api.ShellExec)
	case strings.TrimSpace(p.Command) == "":
		return nil, errBadParams{errors.New("command: it is empty")}
	case p.Cwd != "" && !filepath.IsAbs(p.Cwd):
		return nil, errBadParams{errors.New("cwd: want an absolute path")}
	case p.Timeout < 0:
		return nil, errBadParams{errors.New("timeout: it is negative")}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return nil, noSession(p.SessionID, err)
	}
	env, err := c.server.host.Settings.Environment(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	task, err := c.server.opts.Shell.Exec(ctx, Run{
		Session: p.SessionID, Key: cmp.Or(p.Key, event.NewID()), Command: p.Command, Dir: cmp.Or(p.Cwd, st.Config.WorkingDirectory),
		Env: env, Limit: time.Duration(p.Timeout) * time.Millisecond, Sealed: st.Config.Sealed,
	})
	if err != nil {
		return nil, err
	}
	return jsonrpc.Answer{Result: api.ShellExecResult{ProcessID: task.TaskID}, After: func() { c.tellExit(ctx, p.SessionID, task.TaskID) }}, nil
}

// tellExit waits for the end of a command and tells the client.
func (c *conn) tellExit(ctx context.Context, id event.SessionID, task string) {
	code, err := c.server.opts.Shell.Await(ctx, id, task)
	if err != nil {
		return // the client is gone, or it will be told by whoever comes next
	}
	b, err := json.Marshal(api.ShellExitParams{ProcessID: task, ExitCode: code})
	if err == nil {
		_ = c.rpc.Notify(api.ShellExit, json.RawMessage(b)) // the connection may be over
	}
}

// signals are those that a client may send.
var signals = map[string]int{"SIGINT": 2, "SIGKILL": 9, "SIGTERM": 15}

func (c *conn) kill(ctx context.Context, p api.ShellKillParams) (api.ShellKillResult, error) {
	if c.server.opts.Shell == nil {
		return api.ShellKillResult{}, jsonrpc.MethodNotFound(api.ShellKill)
	}
	number, known := signals[cmp.Or(p.Signal, "SIGTERM")]
	if !known {
		return api.ShellKillResult{}, errBadParams{fmt.Errorf("signal: %q is unknown; use %s", p.Signal, strings.Join(slices.Sorted(maps.Keys(signals)), ", "))}
	}
	if p.ProcessID == "" {
		return api.ShellKillResult{}, missing("processId")
	}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return api.ShellKillResult{}, noSession(p.SessionID, err)
	}
	killed, err := c.server.opts.Shell.Kill(ctx, p.SessionID, p.ProcessID, number)
	return api.ShellKillResult{Killed: killed}, err
}
