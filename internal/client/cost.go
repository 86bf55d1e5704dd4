package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
)

// Cost sums up what model requests have cost.
func (c *Client) Cost(ctx context.Context, p api.CostParams) (api.CostResult, error) {
	return call[api.CostResult](ctx, c, api.Cost, p)
}
