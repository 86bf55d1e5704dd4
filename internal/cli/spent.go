package cli

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// spent is what the ledger says of a session. Its events do not tell what its agents and the
// requests that failed have cost.
type spent struct{ all, agents api.CostSum }

// An agentCost is what the agents of a run have cost, in JSON output.
type agentCost struct {
	Requests int64    `json:"requests"`
	Usage    usage    `json:"usage"`
	Cost     *float64 `json:"cost_usd,omitempty"` // nil if a price is not known
}

// ledger reads what the session of the run has spent. It reports false if that is not known.
func (r *runner) ledger(ctx context.Context) (s spent, ok bool) {
	found, err := r.client.Cost(ctx, api.CostParams{SessionID: r.id, By: []string{"model", "purpose"}})
	if err != nil || found.Unread > 0 {
		return s, false
	}
	for _, c := range sumUp(found.Costs, []string{"purpose"}) {
		addSum(&s.all, c)
		if c.Purpose == event.PurposeAgent {
			addSum(&s.agents, c)
		}
	}
	return s, true
}

// settle takes in what the agents and the failed requests of the run have cost, as soon as its
// turn is over or waits.
func (r *runner) settle(ctx context.Context) {
	if !r.seen.spentMore {
		return
	}
	after, ok := r.ledger(ctx)
	if !ok {
		return
	}
	agents := minus(after.agents, r.before.agents)
	if agents.Requests > 0 {
		r.seen.agents = &agentCost{Requests: agents.Requests, Cost: known(agents),
			Usage: usage{agents.InputTokens, agents.OutputTokens, agents.CacheReadTokens, agents.CacheWriteTokens}}
	}
	switch {
	case !r.flags.resumes():
		r.seen.cost = cost{}
		r.seen.cost.add(known(after.all))
	case r.seen.agents != nil:
		r.seen.cost.add(r.seen.agents.Cost)
	}
}

// known returns the price of requests; nil if that of one is not known.
func known(c api.CostSum) *float64 {
	if c.Unpriced > 0 {
		return nil
	}
	return c.CostUSD
}

// minus returns what was added to a sum since it was another one.
func minus(c, before api.CostSum) api.CostSum {
	c.Requests -= before.Requests
	c.Unpriced -= before.Unpriced
	c.InputTokens -= before.InputTokens
	c.OutputTokens -= before.OutputTokens
	c.CacheReadTokens -= before.CacheReadTokens
	c.CacheWriteTokens -= before.CacheWriteTokens
	if c.CostUSD != nil && before.CostUSD != nil {
		c.CostUSD = new(*c.CostUSD - *before.CostUSD)
	}
	return c
}
