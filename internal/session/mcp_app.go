package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
)

// errCalledBefore means that a request to call a tool was made before.
var errCalledBefore = errors.New("the same request has called the tool before, and its result is not known any more: the call may have happened")

// CallForPage calls a tool of a server for a page that the server has brought and a client
// shows (MCP Apps). It is a call of the client, as a command that a client runs is: the model
// hears nothing of it, and no permission is asked for, but rules that deny it hold. It ends with
// the engine. The key is that of a request that may be repeated, and empty if there is none: the
// call is made once.
func (m MCP) CallForPage(ctx context.Context, id event.SessionID, key string, q mcp.Request) (*sdk.CallToolResult, error) {
	var denied []string
	err := m.host.inspect(ctx, id, func(tx *txn) error {
		denied = tx.State.DeniedMCP(q.Server, q.Tool)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(denied) > 0 {
		return nil, fmt.Errorf("the rules of the session deny calls of %s of the MCP server %s (%s)", q.Tool, q.Server, strings.Join(denied, ", "))
	}
	set, err := m.set(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, mcpWait)
	set.Wait(waiting)
	cancel()
	state, err := set.Get(q.Server)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(state.Tools, func(t *sdk.Tool) bool { return t.Name == q.Tool }); i < 0 || !state.Server.Uses(q.Tool) || !mcp.ForPages(state.Tools[i]) {
		return nil, fmt.Errorf("the MCP server %s offers its pages no tool %q", q.Server, q.Tool)
	}
	err = m.host.maintain(ctx, id, func(tx *txn) error {
		if tx.State.Sent(key) != "" {
			return errCalledBefore
		}
		return tx.record(event.MCPCalledData{CallID: event.NewID(), Server: q.Server, Tool: q.Tool, Key: key})
	})
	if err != nil {
		return nil, err
	}
	return set.CallRaw(ctx, q)
}
