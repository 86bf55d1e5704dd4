package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// Commands lists the commands that skills, MCP servers and other clients bring to a session.
func (c *Client) Commands(ctx context.Context, id event.SessionID) ([]api.CommandInfo, error) {
	no := false
	r, err := call[api.CommandsResult](ctx, c, api.CommandsList, api.CommandsParams{SessionID: id, Builtins: &no})
	return r.Commands, err
}

// InvokeCommand carries out a command of a session.
func (c *Client) InvokeCommand(ctx context.Context, p api.InvokeParams) (api.InvokeResult, error) {
	return call[api.InvokeResult](ctx, c, api.CommandsInvoke, p)
}
