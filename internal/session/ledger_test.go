package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// byPurpose returns the sums of the ledger.
func (s *compactedSession) byPurpose() map[string]eventlog.Cost {
	costs, unread, err := s.Host.Ledger.Costs(s.T.Context(), eventlog.CostQuery{ByPurpose: true})
	if err != nil || unread > 0 {
		s.T.Fatalf("%d not read, %v", unread, err)
	}
	sums := make(map[string]eventlog.Cost)
	for _, c := range costs {
		sums[c.Purpose] = c
	}
	return sums
}

// A provider that breaks off after it has counted bills the request: the failed attempt and
// the answer after it are two requests.
func TestAFailedRequestThatWasCountedIsInTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &model.BilledError{Usage: model.Usage{Input: 40, Output: 2}, RequestID: "r1", Err: &model.Error{Kind: model.KindStream, Message: "it broke off"}}
		refused := &model.Error{Kind: model.KindOverloaded, Message: "busy"}
		m := &scriptedModel{lines: []scriptedReply{{err: broken}, {err: refused}, {text: "hello", usage: 50}}}
		s := squeeze(t, m, event.SessionConfiguredData{})
		s.say("hi")
		got := s.byPurpose()[event.PurposeTurn]
		if got.Requests != 2 || got.Failed != 1 || got.Input != 90 || got.Output != 3 {
			t.Errorf("the turn is in the ledger as %+v", got)
		}
	})
}

// Each request for a summary is in the ledger once, whatever becomes of the compaction.
func TestRequestsForSummariesAreInTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scriptedModel{
			lines:     []scriptedReply{{text: "one", usage: 5000}, {text: "two", usage: 6000}},
			summaries: []scriptedReply{{text: "", usage: 70}, {text: "They said hello.", write: true, usage: 80}},
		}
		s := squeeze(t, m, eager())
		s.say("first")
		s.say("second")
		got := s.byPurpose()
		if c := got[event.PurposeCompaction]; c.Requests != 2 || c.Input != 150 || len(m.summed) != 2 {
			t.Errorf("%d requests for summaries are in the ledger as %+v", len(m.summed), c)
		}
		if c := got[event.PurposeTurn]; c.Requests != 2 || c.Input != 11_000 {
			t.Errorf("the turns are in the ledger as %+v", c)
		}
	})
}

// What agents cost is counted with the session that a person has started, and is not counted
// a second time with the agents' own sessions.
func TestAgentsAreCountedWithTheSessionThatStartedThem(t *testing.T) {
	b := withAgents(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
	v.Await(t, 0, event.SessionIdle)
	var want eventlog.Cost
	sessions := []event.SessionID{"s", child(t, b.Verify("s"))}
	for _, id := range sessions {
		for _, e := range b.Verify(id) {
			if d, err := event.As[event.AssistantUsageData](e); e.Type == event.AssistantUsage && err == nil {
				want.Requests, want.Input, want.Output = want.Requests+1, want.Input+d.InputTokens, want.Output+d.OutputTokens
			}
		}
	}
	check := func(q eventlog.CostQuery, list ...eventlog.CostKey) (sum eventlog.Cost) {
		t.Helper()
		costs, unread, err := b.Host.Ledger.Costs(t.Context(), q)
		var keys []eventlog.CostKey
		for _, c := range costs {
			keys = append(keys, c.CostKey)
			sum.Requests, sum.Input, sum.Output = sum.Requests+c.Requests, sum.Input+c.Input, sum.Output+c.Output
		}
		if err != nil || unread > 0 || !slices.Equal(keys, list) {
			t.Errorf("%+v gives the sums %+v, %d not read, %v", q, costs, unread, err)
		}
		return sum
	}
	all := []eventlog.CostKey{{Session: "s", Purpose: event.PurposeAgent}, {Session: "s", Purpose: event.PurposeTurn}}
	if got := check(eventlog.CostQuery{BySession: true, ByPurpose: true}, all...); got != want || want.Requests < 3 {
		t.Errorf("the sums are %+v, the logs say %+v", got, want)
	}
	for _, id := range sessions[1:] {
		check(eventlog.CostQuery{Session: id})
	}
	if err := b.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := check(eventlog.CostQuery{}, eventlog.CostKey{}); got != want {
		t.Errorf("after the deletion the sums are %+v, want %+v", got, want)
	}
	if got := check(eventlog.CostQuery{BySession: true}, eventlog.CostKey{}); got != want {
		t.Errorf("after the deletion the sums by session are %+v, want %+v", got, want)
	}
}

// A lateModel answers when it is let, also if nobody waits for the answer any more.
type lateModel struct{ asked, free chan struct{} }

func (m *lateModel) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	close(m.asked)
	<-m.free
	return &model.Reply{Text: "too late", Finish: model.FinishStop, Usage: model.Usage{Input: 30, Output: 3}}, nil
}

// An answer that arrives after its turn was stopped is dropped, and billed all the same.
func TestAnAnswerThatIsDroppedIsInTheLedger(t *testing.T) {
	m := &lateModel{make(chan struct{}), make(chan struct{})}
	b := sessiontest.New(t, m)
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "hi"})
	<-m.asked
	done := make(chan error, 1)
	go func() { done <- b.Host.Abort(t.Context(), "s", "test") }()
	b.AwaitStored("s", eventlog.End{}, event.Abort)
	close(m.free)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.AwaitStored("s", eventlog.End{}, event.LedgerRequest)
	costs, _, err := b.Host.Ledger.Costs(t.Context(), eventlog.CostQuery{ByPurpose: true})
	if err != nil || len(costs) != 1 || costs[0].Purpose != event.PurposeTurn || costs[0].Requests != 1 || costs[0].Input != 30 || costs[0].Output != 3 {
		t.Errorf("the ledger says %+v, %v", costs, err)
	}
}
