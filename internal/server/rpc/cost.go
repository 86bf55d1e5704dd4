package rpc

import (
	"context"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
)

// This method sums up what model requests have cost.
var _ = register(map[string]method{api.Cost: on((*conn).cost)})

func (c *conn) cost(ctx context.Context, p api.CostParams) (api.CostResult, error) {
	q := eventlog.CostQuery{Session: p.SessionID, Since: p.Since}
	if _, err := time.Parse(time.DateOnly, p.Since); p.Since != "" && err != nil {
		return api.CostResult{}, errBadParams{fmt.Errorf("since: %q is not a date like 2026-01-31", p.Since)}
	}
	for _, by := range p.By {
		switch by {
		case "session":
			q.BySession = true
		case "day":
			q.ByDay = true
		case "model":
			q.ByModel = true
		case "purpose":
			q.ByPurpose = true
		default:
			return api.CostResult{}, errBadParams{fmt.Errorf("by: %q is unknown; use session, day, model or purpose", by)}
		}
	}
	costs, unread, err := c.server.host.Ledger.Costs(ctx, q)
	r := api.CostResult{Costs: make([]api.CostSum, len(costs)), Unread: unread}
	for i, s := range costs {
		r.Costs[i] = api.CostSum{
			SessionID: s.Session, Day: s.Day, Model: s.Model, Purpose: s.Purpose,
			Requests: s.Requests, Failed: s.Failed, Unpriced: s.Unpriced, Unreported: s.Unreported,
			InputTokens: s.Input, OutputTokens: s.Output, CacheReadTokens: s.CacheRead, CacheWriteTokens: s.CacheWrite,
			CacheWrite1hTokens: s.CacheWrite1h, ReasoningTokens: s.Reasoning,
		}
		if s.Unpriced < s.Requests {
			r.Costs[i].CostUSD = new(s.USD())
		}
	}
	return r, err
}
