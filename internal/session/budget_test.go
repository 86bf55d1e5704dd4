package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

// A spender is a model that makes calls of a tool that does not exist, and then answers. Each
// request is billed with 1,000 tokens of input and 100 of output.
type spender struct {
	mu    sync.Mutex
	calls int // number of calls before the answer, in each turn
	asked int // number of requests

	usage *model.Usage // what the provider says instead
}

func (m *spender) Ask(_ context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	made := 0
	for _, said := range q.Messages {
		if said.Role == model.User {
			made = 0
		}
		made += len(said.Calls)
	}
	usage := model.Usage{Input: 1000, Output: 100}
	if m.usage != nil {
		usage = *m.usage
	}
	if made < m.calls {
		return &model.Reply{Usage: usage, Calls: []model.Call{{ID: fmt.Sprint("c", m.asked), Name: "nothing", Arguments: json.RawMessage(`{}`)}}}, nil
	}
	return &model.Reply{Text: "done", Usage: usage, Cost: new(0.003)}, nil
}

func (m *spender) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// A budgetFixture is a host whose sessions have limits.
type budgetFixture struct {
	*sessiontest.Fixture
	price *model.Price
}

func withBudget(t *testing.T, m model.Model) *budgetFixture {
	return withBudgetOn(t, eventlog.NewMemory(), m)
}

func withBudgetOn(t *testing.T, store eventlog.Store, m model.Model) *budgetFixture {
	b := &budgetFixture{price: &model.Price{Input: 2, Output: 10}} // $0.003 for a request of the spender
	b.Fixture = sessiontest.On(t, store, session.Options{
		ToolsOf: func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) },
		Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: priced{m, b.price}, Name: "m", Price: b.price}, nil
		},
	})
	b.Start()
	return b
}

// A priced model says what its answers cost.
type priced struct {
	model.Model
	price *model.Price
}

func (p priced) Ask(ctx context.Context, q *model.Request, on func(model.Delta)) (*model.Reply, error) {
	reply, err := p.Model.Ask(ctx, q, on)
	if err == nil {
		reply.Cost = nil
		if p.price != nil {
			reply.Cost = new(p.price.Cost(reply.Usage))
		}
	}
	return reply, err
}

func (b *budgetFixture) begin(id event.SessionID, rules event.BudgetRules, in event.InputAcceptedData) {
	b.T.Helper()
	if _, err := b.Host.Create(b.T.Context(), id, session.Spec{Config: event.SessionConfiguredData{Model: "m", Budget: rules}}, nil); err != nil {
		b.T.Fatal(err)
	}
	b.Send(id, in)
	synctest.Wait()
}

// question returns the open question of a session; nil if there is none.
func (b *budgetFixture) question(id event.SessionID) *event.ElicitationAskedData {
	b.T.Helper()
	open, err := b.Host.Questions.Open(b.T.Context(), id, func(event.Type) bool { return true })
	if err != nil || len(open) > 1 {
		b.T.Fatalf("%d questions are open, %v", len(open), err)
	}
	if len(open) == 0 {
		return nil
	}
	d, err := event.As[event.ElicitationAskedData](open[0].Asked)
	if err != nil || d.Budget == nil {
		b.T.Fatalf("%s is asked, %v", open[0].Asked.Bytes, err)
	}
	return &d
}

// answer answers the open question of a session.
func (b *budgetFixture) answer(id event.SessionID, action string) *event.ElicitationAskedData {
	b.T.Helper()
	q := b.question(id)
	if q == nil {
		b.T.Fatalf("%s asks nothing: %v", id, kindsOf(b.Verify(id)))
	}
	if won, err := b.Host.Questions.FillIn(b.T.Context(), id, q.RequestID, "", turn.Filled{Action: action}); err != nil || !won {
		b.T.Fatalf("the answer counts: %v, %v", won, err)
	}
	synctest.Wait()
	return q
}

// ending returns how the last turn of a session ended.
func (b *budgetFixture) ending(id event.SessionID) string {
	b.T.Helper()
	events := b.Verify(id)
	if last := events[len(events)-1].Type; last != event.SessionIdle {
		return "unfinished: " + string(last)
	}
	if d, err := event.As[event.SessionErrorData](events[len(events)-2]); events[len(events)-2].Type == event.SessionError && err == nil {
		return d.ErrorType
	}
	return lastAnswer(b.T, events)
}

var hello = event.InputAcceptedData{Prompt: "hello"}

func TestATurnAsksBeforeTheRequestThatWouldExceedItsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		rules    event.BudgetRules
		requests int    // before the question
		raised   string // the limits after a yes
	}{
		"tokens of the session": {event.BudgetRules{SessionTokens: new(int64(2500))}, 2, `{"sessionTokens":5000}`},
		"money of the session":  {event.BudgetRules{SessionUSD: new(0.0065)}, 2, `{"sessionCostUsd":0.013}`},
		"tokens of the day":     {event.BudgetRules{DayTokens: new(int64(2500))}, 2, `{"dayTokens":5000}`},
		"money of the day":      {event.BudgetRules{DayUSD: new(0.0065)}, 2, `{"dayCostUsd":0.013}`},
		"two limits":            {event.BudgetRules{SessionUSD: new(0.0065), DayTokens: new(int64(2500))}, 2, `{"sessionCostUsd":0.013,"dayTokens":5000}`},
		"less than a request":   {event.BudgetRules{SessionTokens: new(int64(100))}, 0, ""},
		"nothing":               {event.BudgetRules{SessionTokens: new(int64(0))}, 0, ""},
		"no money":              {event.BudgetRules{SessionUSD: new(0.0)}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &spender{calls: 3}
				b := withBudget(t, m)
				b.begin("s", c.rules, hello)
				for range 3 { // the question stays, whatever becomes of the engine
					if n := m.requests(); n != c.requests {
						t.Fatalf("%d requests were made before the question, want %d", n, c.requests)
					}
					if q := b.question("s"); q == nil {
						t.Fatalf("nothing is asked: %v", kindsOf(b.Verify("s")))
					} else if raised, _ := json.Marshal(q.Budget.Raised); c.raised != "" && string(raised) != c.raised {
						t.Errorf("the question offers %s, want %s", raised, c.raised)
					}
					b.Restart()
					time.Sleep(time.Hour)
				}
				asked := 0
				for ; b.question("s") != nil; asked++ {
					if asked > 20 {
						t.Fatal("the question is asked again and again")
					}
					before := m.requests()
					b.answer("s", turn.Accept)
					if m.requests() == before {
						t.Fatal("no request was made after a yes")
					}
				}
				if got := b.ending("s"); got != "done" || m.requests() != 4 {
					t.Errorf("the turn ended with %q after %d requests", got, m.requests())
				}
				if c.requests == 0 && c.rules.SessionTokens != nil && *c.rules.SessionTokens == 0 && asked != 4 {
					t.Errorf("a budget of nothing asked %d times for 4 requests", asked)
				}
				b.Host.Close()
			})
		})
	}
}

func TestATurnEndsIfTheAnswerIsNo(t *testing.T) {
	for _, action := range []string{turn.Dismiss, turn.Cancel} {
		synctest.Test(t, func(t *testing.T) {
			m := &spender{calls: 3}
			b := withBudget(t, m)
			b.begin("s", event.BudgetRules{SessionTokens: new(int64(2500))}, hello)
			b.answer("s", action)
			if got := b.ending("s"); got != turn.ErrorBudget || m.requests() != 2 {
				t.Errorf("%s: the turn ended with %q after %d requests", action, got, m.requests())
			}
			b.Restart()
			b.Send("s", hello)
			synctest.Wait()
			if m.requests() != 2 || b.question("s") == nil {
				t.Errorf("%s: the next turn has made %d requests and asks nothing", action, m.requests()-2)
			}
			b.Host.Close()
		})
	}
}

func TestAStopClosesTheQuestionOfABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &spender{calls: 3}
		b := withBudget(t, m)
		b.begin("s", event.BudgetRules{SessionTokens: new(int64(2500))}, hello)
		if err := b.Host.Abort(t.Context(), "s", "user_initiated"); err != nil {
			t.Fatal(err)
		}
		b.Restart()
		synctest.Wait()
		if q := b.question("s"); q != nil || m.requests() != 2 {
			t.Errorf("%+v is asked after the stop, and %d requests were made", q, m.requests())
		}
		b.Host.Close()
	})
}

// A budget in money cannot be held for a model without a price. That is asked about, once for
// the model.
func TestAnUnknownPriceIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &spender{calls: 3}
		b := withBudget(t, m)
		b.price = nil
		b.begin("s", event.BudgetRules{SessionUSD: new(1.0)}, hello)
		if q := b.question("s"); m.requests() != 0 || q == nil || q.Budget.Unpriced != "m" || !strings.Contains(q.Message, "price of the model m is not known") {
			t.Fatalf("after %d requests %+v is asked", m.requests(), q)
		}
		b.answer("s", turn.Accept)
		b.Restart()
		synctest.Wait()
		if got := b.ending("s"); got != "done" {
			t.Errorf("the turn ended with %q", got)
		}
		b.begin("t", event.BudgetRules{SessionTokens: new(int64(10_000))}, hello)
		if got := b.ending("t"); got != "done" {
			t.Errorf("a budget in tokens asked about the price: %q", got)
		}
		b.Host.Close()
	})
}

// All sessions of a day are counted together, also those that have no limit. A yes holds for
// the session that has asked, until the day is over.
func TestABudgetOfADayCountsAllSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &spender{}
		b := withBudget(t, m)
		rules := event.BudgetRules{DayTokens: new(int64(2500))}
		b.begin("free", event.BudgetRules{}, hello)
		b.begin("a", rules, hello)
		b.begin("b", rules, hello)
		b.begin("c", rules, hello)
		if m.requests() != 2 || b.ending("a") != "done" || b.question("b") == nil || b.question("c") == nil {
			t.Fatalf("%d requests were made; a ended with %q", m.requests(), b.ending("a"))
		}
		b.answer("b", turn.Accept)
		if b.ending("b") != "done" || b.question("c") == nil {
			t.Errorf("b ended with %q; c asks %+v", b.ending("b"), b.question("c"))
		}
		time.Sleep(24 * time.Hour)
		b.Send("b", hello)
		synctest.Wait()
		b.Send("b", hello)
		synctest.Wait()
		b.Send("b", hello)
		synctest.Wait()
		if m.requests() != 5 || b.question("b") == nil {
			t.Errorf("%d requests were made, and the next day has the limit of the day before", m.requests())
		}
		b.Host.Close()
	})
}

// A provider that does not say what requests use, or something that cannot be, does not
// make them free.
func TestRequestsThatNoProviderCountsAreHeldByTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		usage model.Usage
		rules event.BudgetRules
	}{
		"tokens":              {model.Usage{}, event.BudgetRules{SessionTokens: new(int64(2500))}},
		"tokens of a day":     {model.Usage{}, event.BudgetRules{DayTokens: new(int64(2500))}},
		"money":               {model.Usage{}, event.BudgetRules{SessionUSD: new(0.005)}},
		"money of a day":      {model.Usage{}, event.BudgetRules{DayUSD: new(0.005)}},
		"a price that cannot": {model.Usage{Input: 1 << 50}, event.BudgetRules{SessionUSD: new(0.005)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &spender{calls: 100, usage: &c.usage}
				b := withBudget(t, m)
				b.begin("a", c.rules, hello)
				if n := m.requests(); b.question("a") == nil || n < 1 || n > 10 { // a turn that does always the same is ended after more
					t.Fatalf("%d requests were made, and the question is %v", n, b.question("a"))
				}
				b.Host.Close()
			})
		})
	}
}

// What is spent by agents is counted with the session, which asks once for all of them.
func TestAgentsShareTheBudgetOfTheirSession(t *testing.T) {
	for _, action := range []string{turn.Accept, turn.Dismiss} {
		synctest.Test(t, func(t *testing.T) {
			m := &countingModel{Model: offline.Model{}}
			b := withBudget(t, m)
			b.begin("s", event.BudgetRules{SessionTokens: new(int64(1))}, delegate("general-purpose", "Reply with exactly: CHILD"))
			b.answer("s", turn.Accept) // the first request is that of the session, the second that of the agent
			for range 2 {
				if n := m.count(); n != 1 {
					t.Fatalf("%d requests were made before the question about the agent", n)
				}
				b.Restart()
				time.Sleep(time.Hour)
			}
			for i := 0; b.question("s") != nil; i++ {
				if i > 5 {
					t.Fatal("the question is asked again and again")
				}
				b.answer("s", action)
			}
			for _, e := range b.Verify(child(t, b.Verify("s"))) {
				if e.Type == event.ElicitationAsked {
					t.Error("the agent asks by itself")
				}
			}
			switch got := b.ending("s"); {
			case action == turn.Accept && !strings.Contains(got, "CHILD"):
				t.Errorf("the turn ended with %q", got)
			case action == turn.Dismiss && (got != turn.ErrorBudget || m.count() != 1):
				t.Errorf("after a no the turn ended with %q and %d requests", got, m.count())
			}
			b.Host.Close()
		})
	}
}

// A countingModel counts the requests to another one.
type countingModel struct {
	model.Model
	mu sync.Mutex
	n  int
}

func (m *countingModel) Ask(ctx context.Context, q *model.Request, on func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	m.n++
	m.mu.Unlock()
	return m.Model.Ask(ctx, q, on)
}

func (m *countingModel) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// A summary is asked for only if the budget lets it, and is counted.
func TestSummariesAreHeldByTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scriptedModel{
			lines:     []scriptedReply{{text: "one", usage: 5000}, {text: "two", usage: 6000}},
			summaries: []scriptedReply{{text: "They said hello.", write: true, usage: 5000}},
		}
		b := withBudget(t, m)
		config := eager()
		config.Model, config.Budget.SessionTokens = "m", new(int64(1))
		if _, err := b.Host.Create(t.Context(), "s", session.Spec{Config: config}, nil); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, text := range []string{"first", "second"} {
			b.Send("s", event.InputAcceptedData{Prompt: text})
			synctest.Wait()
			for ; b.question("s") != nil; asked++ {
				before := len(m.asked) + len(m.summed)
				b.Restart()
				b.answer("s", turn.Accept)
				if n := len(m.asked) + len(m.summed) - before; n > 1 {
					t.Errorf("%d requests were made after one answer", n)
				}
				if asked > 20 {
					t.Fatal("the question is asked again and again")
				}
			}
		}
		if got := b.ending("s"); got != "two" || len(m.summed) != 1 || asked != 3 {
			t.Errorf("the turn ended with %q, with %d summaries and %d questions", got, len(m.summed), asked)
		}
		b.Host.Close()
	})
}

// Requests at the same time do not exceed a limit together: the second one waits until the
// first is counted, and asks only if there is nothing left.
func TestRequestsAtTheSameTimeDoNotExceedABudgetTogether(t *testing.T) {
	for _, used := range []int64{1, math.MaxInt32} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			m := &scriptedModel{lines: []scriptedReply{{text: "one", usage: used, wait: free}, {text: "two", usage: 1}}}
			b := withBudget(t, m)
			b.begin("sample", event.BudgetRules{DayTokens: new(int64(1))}, hello)
			size := *b.answer("sample", turn.Dismiss).Budget.Raised.DayTokens
			rules := event.BudgetRules{DayTokens: new(size * 3 / 2)}
			b.begin("a", rules, hello)
			b.begin("b", rules, hello)
			if q := b.question("b"); len(m.asked) != 1 || q != nil {
				t.Errorf("%d requests are under way, and %+v is asked", len(m.asked), q)
			}
			close(free)
			synctest.Wait()
			if q := b.question("b"); (q != nil) != (used > size) || b.ending("a") != "one" {
				t.Errorf("%+v is asked, and a ended with %q", q, b.ending("a"))
			}
			b.Host.Close()
		})
	}
}

// A billStore stores what a session was billed when it is let to.
type billStore struct {
	eventlog.Store
	slow event.SessionID
	free chan struct{}
}

func (s *billStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	if id == s.slow && slices.ContainsFunc(batch.Events, func(e event.Event) bool { return e.Type == event.AssistantUsage }) {
		<-s.free
	}
	return s.Store.Append(ctx, id, batch)
}

// What a request has cost counts before it is in the ledger: while it is being stored, neither
// the next request of its own turn nor one of another session is made.
func TestABudgetCountsWhatIsBeingStored(t *testing.T) {
	for name, test := range map[string]struct {
		first scriptedReply
		other bool // another session asks meanwhile
	}{
		"the next request of the turn": {first: scriptedReply{call: "nothing", usage: math.MaxInt32}},
		"another session":              {first: scriptedReply{text: "one", usage: math.MaxInt32}, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &scriptedModel{lines: []scriptedReply{test.first, {text: "two", usage: 1}}}
				store := &billStore{Store: eventlog.NewMemory(), slow: "a", free: make(chan struct{})}
				b := withBudgetOn(t, store, m)
				b.begin("sample", event.BudgetRules{DayTokens: new(int64(1))}, hello)
				size := *b.answer("sample", turn.Dismiss).Budget.Raised.DayTokens
				rules := event.BudgetRules{DayTokens: new(size * 3 / 2)}
				b.begin("a", rules, hello)
				asks := event.SessionID("a")
				if test.other {
					asks = "b"
					b.begin(asks, rules, hello)
				}
				if n := len(m.asked); n != 1 {
					t.Errorf("%d requests were made while the cost of the first was being stored", n)
				}
				close(store.free)
				synctest.Wait()
				if q := b.question(asks); len(m.asked) != 1 || q == nil || *q.Budget.Spent.DayTokens != math.MaxInt32+1 {
					t.Errorf("%d requests were made, and %+v is asked", len(m.asked), q)
				}
				b.Host.Close()
			})
		})
	}
}

// A countingStore takes long to sum up what was spent.
type countingStore struct {
	eventlog.Store
	slow atomic.Bool
	free chan struct{}
}

func (s *countingStore) Costs(ctx context.Context, q eventlog.CostQuery) ([]eventlog.Cost, error) {
	if s.slow.Load() {
		<-s.free
	}
	return s.Store.Costs(ctx, q)
}

// Sessions go on while the store sums up what another one may spend.
func TestABudgetThatIsCountedHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: eventlog.NewMemory(), free: make(chan struct{})}
		m := &scriptedModel{lines: []scriptedReply{{text: "free", usage: 1}, {text: "counted", usage: 1}}}
		b := withBudgetOn(t, store, m)
		store.slow.Store(true)
		b.begin("counted", event.BudgetRules{DayTokens: new(int64(1 << 30))}, hello)
		b.begin("free", event.BudgetRules{}, hello)
		if got := b.ending("free"); got != "free" {
			t.Errorf("the turn without a budget ended with %q", got)
		}
		close(store.free)
		synctest.Wait()
		if got := b.ending("counted"); got != "counted" {
			t.Errorf("the turn with a budget ended with %q", got)
		}
		b.Host.Close()
	})
}

// A brokenStore stores and reads nothing of a session while it is broken.
type brokenStore struct {
	eventlog.Store
	id     event.SessionID
	broken atomic.Bool
}

var errBroken = errors.New("the disk is broken")

func (s *brokenStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	if id == s.id && s.broken.Load() {
		return eventlog.End{}, errBroken
	}
	return s.Store.Append(ctx, id, batch)
}

func (s *brokenStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	if id == s.id && s.broken.Load() {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, errBroken) }
	}
	return s.Store.Read(ctx, id, after)
}

// A request whose session cannot be read any more does not hold the budget of others.
func TestARequestOfASessionThatCannotBeReadHoldsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scriptedModel{lines: []scriptedReply{{text: "one", wait: make(chan struct{})}, {text: "two", usage: 1}}}
		store := &brokenStore{Store: eventlog.NewMemory(), id: "a"}
		b := withBudgetOn(t, store, m)
		b.begin("sample", event.BudgetRules{DayTokens: new(int64(1))}, hello)
		rules := event.BudgetRules{DayTokens: new(*b.answer("sample", turn.Dismiss).Budget.Raised.DayTokens * 3 / 2)}
		b.begin("a", rules, hello)
		store.broken.Store(true)
		if _, err := b.Host.Send(t.Context(), "a", hello); !errors.Is(err, errBroken) {
			t.Fatalf("a message was stored: %v", err)
		}
		synctest.Wait()
		b.begin("b", rules, hello)
		if got := b.ending("b"); got != "two" {
			t.Errorf("the turn of the other session ended with %q", got)
		}
		b.Host.Close()
		store.broken.Store(false)
	})
}

// A request that ends without an answer gives its place in the budget back.
func TestARequestThatIsStoppedHoldsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scriptedModel{lines: []scriptedReply{{text: "one", wait: make(chan struct{})}, {err: &model.Error{Kind: model.KindRequest, Message: "no"}}, {text: "three", usage: 1}}}
		b := withBudget(t, m)
		b.begin("sample", event.BudgetRules{DayTokens: new(int64(1))}, hello)
		rules := event.BudgetRules{DayTokens: new(*b.answer("sample", turn.Dismiss).Budget.Raised.DayTokens * 3 / 2)}
		b.begin("a", rules, hello)
		if err := b.Host.Abort(t.Context(), "a", "user_initiated"); err != nil {
			t.Fatal(err)
		}
		b.begin("b", rules, hello)
		b.begin("c", rules, hello)
		if got := b.ending("c"); got != "three" {
			t.Errorf("the turn ended with %q", got)
		}
		b.Host.Close()
	})
}
