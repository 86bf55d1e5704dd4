package session

import (
	"context"
	"errors"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
)

// Ledger records what model requests cost, and sums it up.
type Ledger struct{ host *Host }

// A cost is the price of several requests in US dollars.
type cost struct {
	usd     float64
	known   int  // number of requests whose price is known
	unknown bool // true if the price of one is not known
}

func (c *cost) add(usd *float64) {
	if usd == nil {
		c.unknown = true
		return
	}
	c.usd += *usd
	c.known++
}

// total returns the price; nil if that of one request is not known.
func (c cost) total() *float64 {
	if c.unknown || c.known == 0 {
		return nil
	}
	return &c.usd
}

// answered returns what the ledger says of a request that was answered.
func answered(purpose string, to Endpoint, reply *model.Reply) event.LedgerRequestData {
	d := counted(purpose, to, reply.Usage)
	d.CostUSD, d.RequestID = reply.Cost, reply.RequestID
	return d
}

// failed returns what the ledger says of a request that failed; false if that is nothing,
// because the provider has not said that it counts.
func failed(purpose string, to Endpoint, err error) (event.LedgerRequestData, bool) {
	billed := model.BilledIn(err)
	if billed == nil {
		return event.LedgerRequestData{}, false
	}
	d := counted(purpose, to, billed.Usage)
	d.Failed, d.RequestID = true, billed.RequestID
	if to.Price != nil {
		usd := to.Price.Cost(billed.Usage)
		d.CostUSD = &usd
	}
	return d, true
}

func counted(purpose string, to Endpoint, u model.Usage) event.LedgerRequestData {
	return event.LedgerRequestData{
		Purpose: purpose, Model: to.Name, InputTokens: u.Input, OutputTokens: u.Output,
		CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, CacheWrite1hTokens: u.CacheWrite1h, ReasoningTokens: u.Reasoning,
	}
}

// recordRequests records requests in the ledger. Those of an agent are counted with the
// session that started it.
func (tx *txn) recordRequests(list ...event.LedgerRequestData) error {
	if tx.State.Seq == 0 {
		return nil // the session was deleted meanwhile
	}
	of := tx.State.Setup.Config.Agent.Counted()
	for _, d := range list {
		if d.AgentOf = of; of != "" && d.Purpose == event.PurposeTurn {
			d.Purpose = event.PurposeAgent
		}
		if err := tx.record(d); err != nil {
			return err
		}
	}
	return nil
}

// recordFailed records a request that failed if the provider has counted it. Nothing waits
// for it: the next attempt is made meanwhile.
func (s *Session) recordFailed(purpose string, to Endpoint, err error) {
	if d, counts := failed(purpose, to, err); counts {
		s.post(func(tx *txn) error { return tx.recordRequests(d) })
	}
}

// recordDropped records what an answer has cost that nobody waits for any more. It is nil if
// there was none.
func (tx *txn) recordDropped(from Endpoint, reply *model.Reply) error {
	if reply == nil {
		return nil
	}
	return tx.recordRequests(answered(event.PurposeTurn, from, reply))
}

// recordAsked takes in that a request for a summary was answered. It is recorded with what
// follows from the answer; what the requests before it have cost is recorded at once. If the
// session has a budget, the request is recorded at once too, so that the next one is compared
// with it.
func (s *Session) recordAsked(c *compaction, to Endpoint, reply *model.Reply, in *claim) {
	if reply == nil {
		in.release()
		return
	}
	if in != nil {
		d := answered(c.purpose, to, reply)
		c.cost.add(d.CostUSD)
		s.postReleasing(in, func(tx *txn) error { return tx.recordRequests(d) })
		return
	}
	if before := c.asked; len(before) > 0 {
		s.post(func(tx *txn) error { return tx.recordRequests(before...) })
	}
	d := answered(c.purpose, to, reply)
	c.asked = []event.LedgerRequestData{d}
	c.cost.add(d.CostUSD)
}

// Record records a request that a job has made for a session, and returns when it is
// stored. A request that no provider has counted is not recorded.
func (l Ledger) Record(ctx context.Context, id event.SessionID, purpose string, to Endpoint, reply *model.Reply, err error) error {
	d, counts := failed(purpose, to, err)
	if reply != nil {
		d, counts = answered(purpose, to, reply), true
	}
	if !counts {
		return nil
	}
	return l.host.maintain(context.WithoutCancel(ctx), id, func(tx *txn) error { return tx.recordRequests(d) })
}

// Costs returns the sums that a query asks for. Sessions of older versions are counted
// first, once; the number of those that cannot be read is returned, too.
func (l Ledger) Costs(ctx context.Context, q eventlog.CostQuery) (costs []eventlog.Cost, unread int, err error) {
	for range 2 { // once more if the sums turn out to be damaged
		if unread, err = l.countAll(ctx); err != nil {
			return nil, 0, err
		}
		if costs, err = l.host.store.Costs(ctx, q); !errors.Is(err, eventlog.ErrUncounted) {
			break
		}
	}
	return costs, unread, err
}

// countAll counts the sessions that are not in the sums, and returns the number of those
// that cannot be read.
func (l Ledger) countAll(ctx context.Context) (unread int, err error) {
	left, err := l.host.store.Uncounted(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range left {
		switch err := l.recount(ctx, id); {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case errors.Is(err, eventlog.ErrNotFound): // it was deleted meanwhile
		case err != nil:
			unread++
		}
	}
	return unread, nil
}

// recount counts a session by its log.
func (l Ledger) recount(ctx context.Context, id event.SessionID) error {
	index, err := l.host.store.Session(ctx, id)
	if err != nil {
		return err
	}
	var own []event.Event
	end, err := l.host.store.EndAt(ctx, id, index.Shared)
	if err != nil {
		return err
	}
	for e, err := range l.host.store.ReadFrom(ctx, id, end) {
		if err != nil {
			return err
		}
		end = end.Next(e.Bytes)
		switch e.Type {
		case event.AssistantUsage, event.LedgerRequest, event.CompactionComplete, event.MemoryExtracted:
			own = append(own, e)
		}
	}
	return l.host.store.Recount(ctx, id, end, own)
}
