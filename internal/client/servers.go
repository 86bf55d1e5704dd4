package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
)

// Servers lists the servers that share the log of the engine.
func (c *Client) Servers(ctx context.Context) ([]api.Server, error) {
	list, err := call[api.ServersResult](ctx, c, api.ServersList, struct{}{})
	return list.Servers, err
}

// Drain makes a server hand over what it works on.
func (c *Client) Drain(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, api.ServersDrain, api.DrainParams{ID: id})
	return err
}
