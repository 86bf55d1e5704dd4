package eventlogtest

import (
	"reflect"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// at is when the events of the ledger's tests happen.
var at = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// recorded appends events to a session, and returns them and its new end.
func (f *fixture) recorded(id event.SessionID, after eventlog.End, payloads ...event.Payload) ([]event.Event, eventlog.End) {
	f.Helper()
	var events []event.Event
	for _, p := range payloads {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: at}, p)
		if err != nil {
			f.Fatal(err)
		}
		events = append(events, e)
	}
	end, err := f.Append(f.Context(), id, eventlog.Batch{After: after, Events: events})
	if err != nil {
		f.Fatal(err)
	}
	return events, end
}

// costs asks for sums.
func (f *fixture) costs(q eventlog.CostQuery, want ...eventlog.Cost) {
	f.Helper()
	got, err := f.Costs(f.Context(), q)
	if err != nil {
		f.Fatal(err)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%+v gives\n%+v; want\n%+v", q, got, want)
	}
}

func dollars(d float64) *float64 { return &d }

// usage is an answer that cost a dollar; request one that cost half of one.
var (
	usage   = event.AssistantUsageData{Model: "m", InputTokens: 10, OutputTokens: 5, CacheReadTokens: 3, CacheWriteTokens: 2, CacheWrite1h: 1, ReasoningTokens: 4, CostUSD: dollars(1)}
	summary = event.LedgerRequestData{Purpose: event.PurposeCompaction, Model: "n", InputTokens: 7, OutputTokens: 1, CostUSD: dollars(0.5)}
)

func ledger(t *testing.T, f *fixture) {
	agent, failed, silent, older := usage, summary, summary, usage
	agent.AgentOf = "s"
	failed.Failed, failed.CostUSD = true, nil
	silent.InputTokens, silent.OutputTokens, silent.CostUSD = 0, 0, dollars(0)
	older.Model = "old"
	_, end := f.recorded("s", eventlog.End{}, usage, usage, summary)
	f.recorded("s", end, event.CompactionCompleteData{CompactionTokensUsed: &event.CompactionUsage{InputTokens: 9, Counted: true}}, failed, silent)
	f.recorded("agent", eventlog.End{}, agent)
	f.recorded("t", eventlog.End{}, older)

	one := eventlog.Cost{Requests: 1, Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, CacheWrite1h: 1, Reasoning: 4, NanoUSD: 1e9}
	day := at.Format(time.DateOnly)
	key := func(c eventlog.Cost, k eventlog.CostKey) eventlog.Cost { c.CostKey = k; return c }
	two := eventlog.Cost{Requests: 2, Input: 20, Output: 10, CacheRead: 6, CacheWrite: 4, CacheWrite1h: 2, Reasoning: 8, NanoUSD: 2e9}
	summaries := eventlog.Cost{Requests: 3, Failed: 1, Unpriced: 2, Unreported: 1, Input: 14, Output: 2, NanoUSD: 5e8}
	f.costs(eventlog.CostQuery{Session: "s", BySession: true, ByDay: true, ByModel: true, ByPurpose: true},
		key(one, eventlog.CostKey{Session: "s", Day: day, Model: "m", Purpose: event.PurposeAgent}),
		key(two, eventlog.CostKey{Session: "s", Day: day, Model: "m", Purpose: event.PurposeTurn}),
		key(summaries, eventlog.CostKey{Session: "s", Day: day, Model: "n", Purpose: event.PurposeCompaction}))
	f.costs(eventlog.CostQuery{Session: "agent"})
	f.costs(eventlog.CostQuery{Session: "t", ByModel: true}, key(one, eventlog.CostKey{Model: "old"}))
	f.costs(eventlog.CostQuery{Since: day, Session: "t"}, one)
	f.costs(eventlog.CostQuery{Since: "2026-03-05"})
}

func ledgerRefused(t *testing.T, f *fixture) {
	_, end := f.recorded("s", eventlog.End{}, usage)
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: at}, usage)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []eventlog.End{{}, {Seq: end.Seq + 1}} {
		if _, err := f.Append(f.Context(), "s", eventlog.Batch{After: after, Events: []event.Event{e}}); err == nil {
			t.Error("an append after another end was stored")
		}
	}
	f.costs(eventlog.CostQuery{BySession: true}, eventlog.Cost{
		CostKey: eventlog.CostKey{Session: "s"}, Requests: 1, Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, CacheWrite1h: 1, Reasoning: 4, NanoUSD: 1e9,
	})
}

func ledgerDeleted(t *testing.T, f *fixture) {
	events, end := f.recorded("s", eventlog.End{}, usage)
	if _, err := f.Fork(f.Context(), "fork", "s", eventlog.Batch{After: end, Events: events}); err != nil {
		t.Fatal(err)
	}
	one := eventlog.Cost{Requests: 1, Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, CacheWrite1h: 1, Reasoning: 4, NanoUSD: 1e9}
	gone, kept := one, one
	kept.Session = "fork"
	for range 2 { // a session with the same name begins anew
		if err := f.Delete(f.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		f.costs(eventlog.CostQuery{BySession: true}, gone, kept)
		if err := f.Delete(f.Context(), "fork"); err != nil {
			t.Fatal(err)
		}
		gone = eventlog.SumCosts([]eventlog.Cost{gone, one}, eventlog.CostQuery{})[0]
		f.costs(eventlog.CostQuery{BySession: true}, gone)
		_, end = f.recorded("s", eventlog.End{}, usage)
		if _, err := f.Fork(f.Context(), "fork", "s", eventlog.Batch{After: end, Events: events}); err != nil {
			t.Fatal(err)
		}
		gone = eventlog.SumCosts([]eventlog.Cost{gone, one}, eventlog.CostQuery{})[0]
	}
}

func ledgerDeletedAgent(t *testing.T, f *fixture) {
	agent := usage
	agent.AgentOf = "s"
	one := eventlog.Cost{Requests: 1, Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, CacheWrite1h: 1, Reasoning: 4, NanoUSD: 1e9}
	two := eventlog.SumCosts([]eventlog.Cost{one, one}, eventlog.CostQuery{})[0]
	gone, sum := []eventlog.Cost{}, eventlog.Cost{}
	for _, order := range [][]event.SessionID{{"agent", "s"}, {"s", "agent"}} {
		f.recorded("s", eventlog.End{}, usage)
		f.recorded("agent", eventlog.End{}, agent)
		kept := two
		kept.Session = "s"
		f.costs(eventlog.CostQuery{BySession: true}, append(gone, kept)...)
		for _, id := range order {
			if err := f.Delete(f.Context(), id); err != nil {
				t.Fatal(err)
			}
			if id == "agent" && order[0] == id {
				f.costs(eventlog.CostQuery{BySession: true}, append(gone, kept)...) // it still belongs to the session
			}
		}
		sum = eventlog.SumCosts([]eventlog.Cost{sum, two}, eventlog.CostQuery{})[0]
		gone = []eventlog.Cost{sum}
		f.costs(eventlog.CostQuery{BySession: true}, gone...)
	}
}

func ledgerRecounted(t *testing.T, f *fixture) {
	events, end := f.recorded("s", eventlog.End{}, usage, summary)
	before, err := f.Costs(f.Context(), eventlog.CostQuery{BySession: true, ByModel: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Recount(f.Context(), "s", end, events); err != nil {
			t.Fatal(err)
		}
		f.costs(eventlog.CostQuery{BySession: true, ByModel: true}, before...)
	}
	if err := f.Recount(f.Context(), "s", eventlog.End{Seq: 1}, nil); err != nil {
		t.Fatal(err)
	}
	f.costs(eventlog.CostQuery{BySession: true, ByModel: true}, before...)
	f.fails("recount", f.Recount(f.Context(), "none", end, nil), eventlog.ErrNotFound)
	if left, err := f.Uncounted(f.Context()); err != nil || len(left) > 0 {
		t.Errorf("not counted: %q, %v", left, err)
	}
}
