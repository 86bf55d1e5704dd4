package eventlog

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A Ledger sums up what the model requests of sessions have cost. It is computed from the
// events alone: an append adds what its events say in its own transaction, so that the
// sums are never more or less than the log, and asking for them reads no log.
//
// What the log of a deleted session said stays in the sums, without the name of the
// session: the money is spent. The events that a fork shares count once, with the parent.
type Ledger interface {
	// Costs returns the sums that a query asks for, ordered by their keys. The error is
	// ErrUncounted if the sums were damaged and have to be counted again.
	Costs(ctx context.Context, q CostQuery) ([]Cost, error)
	// Uncounted returns the sessions whose events are not in the sums, because an older
	// version wrote them or because the sums were damaged.
	Uncounted(ctx context.Context) ([]event.SessionID, error)
	// Recount replaces what is in the sums of a session that ends at the given end by what
	// its own events say, without those that it shares with its parent. If the session has
	// another end by now, nothing changes.
	Recount(ctx context.Context, id event.SessionID, at End, own []event.Event) error
}

// ErrUncounted means that the sums of costs were damaged and are empty now. Uncounted returns
// the sessions that have to be counted again.
var ErrUncounted = errors.New("the sums of costs were damaged: the sessions have to be counted again")

// A CostKey says which requests a sum is about. In a sum, a field that the query does not
// group by is empty.
type CostKey struct {
	Session event.SessionID // session that the requests are counted with; empty for deleted sessions
	Day     string          // local date, such as "2026-02-28"
	Model   string
	Purpose string // one of the Purpose constants of package event
}

// A Cost is the sum of what some model requests have cost.
type Cost struct {
	CostKey
	Requests     int64
	Failed       int64 // number of the requests that gave no answer
	Unpriced     int64 // number of the requests whose price is not known; they are not in NanoUSD
	Unreported   int64 // number of the requests that the provider has not counted; they are among Unpriced
	Input        int64 // tokens that did not come from the cache
	Output       int64
	CacheRead    int64
	CacheWrite   int64
	CacheWrite1h int64 // part of CacheWrite
	Reasoning    int64 // part of Output
	NanoUSD      int64 // price in billionths of a US dollar
}

// A CostQuery selects requests, and says by what their costs are summed up. Its zero value
// is one sum of everything.
type CostQuery struct {
	Session event.SessionID // only requests that are counted with this session; all if empty
	Since   string          // only requests of this day or later, like CostKey.Day; all if empty

	BySession, ByDay, ByModel, ByPurpose bool
}

// key returns the key of the sum that a request belongs to.
func (q CostQuery) key(k CostKey) (sum CostKey) {
	if q.BySession {
		sum.Session = k.Session
	}
	if q.ByDay {
		sum.Day = k.Day
	}
	if q.ByModel {
		sum.Model = k.Model
	}
	if q.ByPurpose {
		sum.Purpose = k.Purpose
	}
	return sum
}

// add adds another sum.
func (c *Cost) add(d Cost) {
	c.Requests += d.Requests
	c.Failed += d.Failed
	c.Unpriced += d.Unpriced
	c.Unreported += d.Unreported
	c.Input += d.Input
	c.Output += d.Output
	c.CacheRead += d.CacheRead
	c.CacheWrite += d.CacheWrite
	c.CacheWrite1h += d.CacheWrite1h
	c.Reasoning += d.Reasoning
	c.NanoUSD += d.NanoUSD
}

// SumCosts sums costs up as a query asks for.
func SumCosts(all []Cost, q CostQuery) []Cost {
	sums := make(map[CostKey]*Cost)
	for _, c := range all {
		if q.Session != "" && c.Session != q.Session || c.Day < q.Since {
			continue
		}
		key := q.key(c.CostKey)
		if sums[key] == nil {
			sums[key] = &Cost{CostKey: key}
		}
		sums[key].add(c)
	}
	list := make([]Cost, 0, len(sums))
	for _, c := range sums {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Cost) int { return compareKeys(a.CostKey, b.CostKey) })
	return list
}

func compareKeys(a, b CostKey) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Purpose, b.Purpose))
}

// CostsIn returns what events of a session say of the costs of model requests, summed up
// by all keys. An event that cannot be decoded costs nothing: reading the log reports it.
func CostsIn(id event.SessionID, events []event.Event) []Cost {
	var all []Cost
	for _, e := range events {
		if c, ok := costOf(id, e); ok {
			all = append(all, c)
		}
	}
	if len(all) < 2 {
		return all
	}
	return SumCosts(all, CostQuery{BySession: true, ByDay: true, ByModel: true, ByPurpose: true})
}

// costOf returns what an event says of the cost of model requests.
func costOf(id event.SessionID, e event.Event) (Cost, bool) {
	switch e.Type {
	case event.AssistantUsage, event.LedgerRequest, event.CompactionComplete, event.MemoryExtracted:
	default:
		return Cost{}, false
	}
	body, err := e.Body()
	if err != nil {
		return Cost{}, false
	}
	c, counts := costIn(body)
	head, err := e.Head()
	if !counts || err != nil {
		return Cost{}, false
	}
	if c.Session == "" {
		c.Session = id
	}
	c.Day = head.Time.In(time.Local).Format(time.DateOnly)
	return c, true
}

// costIn returns what the body of an event says of the cost of model requests.
func costIn(body event.Payload) (c Cost, counts bool) {
	switch d := body.(type) {
	case event.AssistantUsageData:
		c = Cost{
			CostKey: CostKey{Session: d.AgentOf, Model: d.Model, Purpose: event.PurposeTurn}, Requests: 1,
			Input: d.InputTokens, Output: d.OutputTokens, CacheRead: d.CacheReadTokens, CacheWrite: d.CacheWriteTokens,
			CacheWrite1h: d.CacheWrite1h, Reasoning: d.ReasoningTokens,
		}
		if d.AgentOf != "" {
			c.Purpose = event.PurposeAgent
		}
		c.price(d.CostUSD)
		return c, true
	case event.LedgerRequestData:
		c = Cost{
			CostKey: CostKey{Session: d.AgentOf, Model: d.Model, Purpose: d.Purpose}, Requests: 1,
			Input: d.InputTokens, Output: d.OutputTokens, CacheRead: d.CacheReadTokens, CacheWrite: d.CacheWriteTokens,
			CacheWrite1h: d.CacheWrite1hTokens, Reasoning: d.ReasoningTokens,
		}
		if d.Failed {
			c.Failed = 1
		}
		c.price(d.CostUSD)
		return c, true
	case event.CompactionCompleteData: // logs of older versions have no ledger.request
		u := d.CompactionTokensUsed
		if u == nil || u.Counted {
			return c, false
		}
		c = Cost{
			CostKey: CostKey{Model: u.Model, Purpose: event.PurposeCompaction}, Requests: 1,
			Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens,
		}
		c.price(u.CostUSD)
		return c, true
	case event.MemoryExtractedData:
		u := d.Usage
		if u.Requests == 0 || u.Counted {
			return c, false
		}
		c = Cost{CostKey: CostKey{Model: d.Model, Purpose: event.PurposeMemory}, Requests: int64(u.Requests), Input: u.Input, Output: u.Output}
		c.Unpriced = c.Requests
		return c, true
	}
	return c, false
}

// price adds the price of a request. Tokens that no provider has counted have none.
func (c *Cost) price(usd *float64) {
	if c.Input+c.Output+c.CacheRead+c.CacheWrite == 0 {
		c.Unreported = c.Requests
	}
	if usd == nil || c.Unreported > 0 && *usd == 0 || !(*usd >= 0 && *usd < mostUSD) {
		c.Unpriced = c.Requests
		return
	}
	c.NanoUSD = int64(math.Round(*usd * nanos))
}

const (
	nanos   = 1e9 // billionths of a dollar in a dollar
	mostUSD = 1e6 // more than any request costs
)

// USD returns the price in US dollars, of those requests whose price is known.
func (c Cost) USD() float64 { return float64(c.NanoUSD) / nanos }
