package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/seal"
)

// mcpOptions returns where MCP servers run.
func (n *Node) mcpOptions(t *toolbox) *mcp.Options {
	o := &mcp.Options{Logs: mcp.OpenLogs(n.folder.MCPLogs()), Version: n.config.Version, Lists: n.folder.MCPTools(), Shared: &mcp.Pool{}, Known: &mcp.Known{}}
	if t.processes != nil {
		o.Processes = routedProcesses{t.workspaces}
		o.State = func(id event.SessionID) string { return n.folder.MCPState(string(id)) }
	}
	key, err := seal.OpenFile(KeyFile(n.config.KeyFile, n.folder.Dir()))
	if err != nil {
		n.log.Warn("logins to MCP servers cannot be kept", "err", err)
		return o
	}
	o.Logins = mcp.OpenLogins(n.folder.MCPLogins(), key, nil)
	return o
}

// sessionOf returns the session of the owner of a process: the owner itself, or the session
// that an MCP server was started for.
func sessionOf(owner process.Owner) event.SessionID {
	return event.SessionID(strings.TrimPrefix(string(owner), mcp.OwnerPrefix))
}

// isShared reports whether a process is an MCP server that sessions share, and which runs on
// this machine.
func isShared(owner process.Owner) bool {
	return strings.HasPrefix(string(owner), mcp.OwnerPrefix+mcp.SharedSession)
}

// mcpEndTime is how long an MCP server that an earlier engine has left may take to end.
const mcpEndTime = 10 * time.Second

// endMCPServers ends the MCP servers that an earlier engine has left, except those that are
// busy with a call of an unfinished turn: that goes on with them. It is called when an engine
// begins, and when it ends: a turn may have ended without its server meanwhile.
func (t *toolbox) endMCPServers(ctx context.Context, store eventlog.Store) {
	if t.processes == nil {
		return
	}
	busy := make(map[process.Owner][]string)
	for _, p := range t.processes.All() {
		if !strings.HasPrefix(string(p.Owner), mcp.OwnerPrefix) || p.Seen {
			continue
		}
		if _, known := busy[p.Owner]; !known {
			s, err := store.Session(ctx, sessionOf(p.Owner))
			if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
				return // nothing is known of what goes on, and another engine may have the log by now
			}
			active := err == nil && (s.Info.Active || s.Info.Tasks > 0) // an agent in the background has the servers of its session
			keys, err := mcp.Unfinished(t.folder.MCPState(string(sessionOf(p.Owner))), active)
			if err != nil {
				t.log.Warn("what is known of the MCP servers of a session cannot be read", "session", sessionOf(p.Owner), "err", err)
			}
			busy[p.Owner] = append(keys, "")
		}
		if slices.Contains(busy[p.Owner], p.Key) && !p.State.Ended() {
			continue
		}
		t.later.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpEndTime) // also if the engine ends at once
			defer cancel()
			_, err := t.processes.Stop(ctx, p.Owner, p.ID)
			if err == nil {
				err = t.processes.MarkSeen(p.Owner, p.ID)
			}
			if err != nil && !errors.Is(err, process.ErrNotFound) { // it may have been deleted with its session
				t.log.Warn("an MCP server of an earlier engine could not be ended", "server", p.Title, "err", err)
			}
		})
	}
}
