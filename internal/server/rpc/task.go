package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// Tasks are the commands of sessions. If a request names a task of another session, the
// error is the same as for a task that does not exist.
type Tasks interface {
	List(ctx context.Context, id event.SessionID) ([]api.Task, error)
	Output(ctx context.Context, p api.TaskOutputParams) (api.TaskOutputResult, error)
	Stop(ctx context.Context, p api.TaskParams) (api.Task, error)
	// Input types into a command that has a terminal or an open input.
	Input(ctx context.Context, p api.TaskInputParams) (api.Task, error)
	// Resize changes the size of a command's terminal.
	Resize(ctx context.Context, p api.TaskResizeParams) (api.Task, error)
	// Of returns the commands that calls with the given keys have started.
	Of(ctx context.Context, id event.SessionID, keys []string) ([]api.Task, error)
}

// These methods look at commands, type into them and stop them.
var _ = register(map[string]method{
	api.Tasks:      on((*conn).tasks),
	api.TaskOutput: on((*conn).taskOutput),
	api.TaskStop:   on((*conn).taskStop),
	api.TaskInput:  on((*conn).taskInput),
	api.TaskResize: on((*conn).taskResize),
})

func (c *conn) tasks(ctx context.Context, p api.TasksParams) (api.TasksResult, error) {
	r := api.TasksResult{Tasks: []api.Task{}}
	if c.server.opts.Tasks == nil {
		return r, nil
	}
	if p.SessionID != "" {
		if _, err := c.server.host.Info(ctx, p.SessionID); err != nil {
			return r, noSession(p.SessionID, err)
		}
	}
	list, err := c.server.opts.Tasks.List(ctx, p.SessionID)
	if err == nil && p.Agents && p.SessionID != "" {
		list, err = c.withAgents(ctx, p.SessionID, list)
	}
	for _, t := range list {
		if p.All || t.Ended == "" || t.Lingering {
			r.Tasks = append(r.Tasks, t)
		}
	}
	return r, err
}

// withAgents adds the commands of the agents of a session to its own, the oldest first. The
// commands of an agent are those of its own session.
func (c *conn) withAgents(ctx context.Context, id event.SessionID, list []api.Task) ([]api.Task, error) {
	all, err := c.server.opts.Tasks.List(ctx, "")
	for _, t := range all {
		if t.SessionID != id && c.server.host.Agents.WorksFor(ctx, t.SessionID, id) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b api.Task) int { return strings.Compare(a.Started, b.Started) })
	return list, err
}

// whose checks that a request names the session of a command, and that this session exists.
func (c *conn) whose(ctx context.Context, id event.SessionID, method string) error {
	switch {
	case c.server.opts.Tasks == nil:
		return jsonrpc.MethodNotFound(method)
	case id == "":
		return errBadParams{fmt.Errorf("sessionId: it is empty; a command belongs to a session")}
	}
	_, err := c.server.host.Info(ctx, id)
	return noSession(id, err)
}

func (c *conn) taskOutput(ctx context.Context, p api.TaskOutputParams) (api.TaskOutputResult, error) {
	if err := c.whose(ctx, p.SessionID, api.TaskOutput); err != nil {
		return api.TaskOutputResult{}, err
	}
	switch {
	case p.Offset < 0 || p.Tail < 0:
		return api.TaskOutputResult{}, errBadParams{fmt.Errorf("offset, tail: they cannot be negative")}
	case p.Stream != "" && p.Stream != "stdout" && p.Stream != "stderr":
		return api.TaskOutputResult{}, errBadParams{fmt.Errorf("stream: %q is unknown; use stdout or stderr, or leave it out", p.Stream)}
	}
	return c.server.opts.Tasks.Output(ctx, p)
}

func (c *conn) taskStop(ctx context.Context, p api.TaskParams) (api.Task, error) {
	if err := c.whose(ctx, p.SessionID, api.TaskStop); err != nil {
		return api.Task{}, err
	}
	return c.server.opts.Tasks.Stop(ctx, p)
}

// maxTaskInput is the number of bytes that can be typed into a command at once.
const maxTaskInput = 1 << 20

func (c *conn) taskInput(ctx context.Context, p api.TaskInputParams) (api.Task, error) {
	if err := c.whose(ctx, p.SessionID, api.TaskInput); err != nil {
		return api.Task{}, err
	}
	switch {
	case len(p.Data) == 0 && !p.Close:
		return api.Task{}, missing("data")
	case len(p.Data) > maxTaskInput:
		return api.Task{}, errBadParams{fmt.Errorf("data: %d bytes are more than the %d that can be typed at once", len(p.Data), maxTaskInput)}
	}
	return c.server.opts.Tasks.Input(ctx, p)
}

// maxRows and maxCols are the size of the largest terminal of a command.
const (
	maxRows = 200
	maxCols = 400
)

func (c *conn) taskResize(ctx context.Context, p api.TaskResizeParams) (api.Task, error) {
	if err := c.whose(ctx, p.SessionID, api.TaskResize); err != nil {
		return api.Task{}, err
	}
	if p.Rows < 1 || p.Rows > maxRows || p.Cols < 1 || p.Cols > maxCols {
		return api.Task{}, errBadParams{fmt.Errorf("rows, cols: %d and %d are no size of a terminal: it has 1 to %d rows and 1 to %d columns", p.Rows, p.Cols, maxRows, maxCols)}
	}
	return c.server.opts.Tasks.Resize(ctx, p)
}
