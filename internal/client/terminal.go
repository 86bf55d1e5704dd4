package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// What a person at a terminal changes.

// SwitchModel changes the model of a session.
func (c *Client) SwitchModel(ctx context.Context, p api.SwitchParams) error {
	return c.rpc.Call(ctx, api.ModelSwitchTo, p, nil)
}

// Models lists the models that a session can name.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	r, err := call[api.ModelsResult](ctx, c, api.ModelsList, struct{}{})
	return r.Models, err
}

// Mode returns the mode of a session.
func (c *Client) Mode(ctx context.Context, id event.SessionID) (string, error) {
	return call[string](ctx, c, api.ModeGet, api.SessionParams{SessionID: id})
}

// SetMode changes the mode of a session.
func (c *Client) SetMode(ctx context.Context, id event.SessionID, mode string) error {
	return c.rpc.Call(ctx, api.ModeSet, api.ModeParams{SessionID: id, Mode: mode}, nil)
}

// Queue lists the inputs that wait.
func (c *Client) Queue(ctx context.Context, id event.SessionID) (api.QueueResult, error) {
	return call[api.QueueResult](ctx, c, api.QueuePending, api.SessionParams{SessionID: id})
}

// Exec runs a command of a person for a session, and returns the id of its task.
func (c *Client) Exec(ctx context.Context, p api.ShellExecParams) (string, error) {
	r, err := call[api.ShellExecResult](ctx, c, api.ShellExec, p)
	return r.ProcessID, err
}
