package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
)

// ListPage lists one page of the sessions that a filter selects.
func (c *Client) ListPage(ctx context.Context, p api.ListParams) (api.ListResult, error) {
	return call[api.ListResult](ctx, c, api.SessionList, p)
}
