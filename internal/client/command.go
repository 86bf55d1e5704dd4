package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// Commands that people write with a slash.

// Commands lists the commands of a session.
func (c *Client) Commands(ctx context.Context, id event.SessionID) (api.CommandsResult, error) {
	return call[api.CommandsResult](ctx, c, api.CommandsList, api.CommandsParams{SessionID: id})
}

// Invoke carries out a command. The client sends the prompt of the result, if it has one.
func (c *Client) Invoke(ctx context.Context, p api.InvokeParams) (api.InvokeResult, error) {
	return call[api.InvokeResult](ctx, c, api.CommandsInvoke, p)
}
