package session_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
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

// An outageModel does not answer before a time. It keeps when it was asked.
type outageModel struct {
	mu    sync.Mutex
	back  time.Time
	err   model.Error
	asked []time.Time
}

func (m *outageModel) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.asked = append(m.asked, now)
	if now.Before(m.back) {
		err := m.err
		return nil, &err
	}
	return &model.Reply{Text: "ok"}, nil
}

// count counts the requests in a time.
func (m *outageModel) count(from, to time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.asked {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// requests counts all requests.
func (m *outageModel) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

var down = model.Error{Kind: model.KindOverloaded, Status: 503, Message: "it is down."}

// withOutage starts a host with the given models, by name; the first is that of sessions.
func withOutage(t *testing.T, rules event.OutageRules, models map[string]model.Model) (*sessiontest.Fixture, func(id event.SessionID)) {
	f := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
		return session.Endpoint{Model: models[as.Model], Name: as.Model}, nil
	}})
	f.Start()
	return f, func(id event.SessionID) {
		t.Helper()
		if _, err := f.Host.Create(t.Context(), id, session.Spec{Config: event.SessionConfiguredData{Model: "first", Outage: rules}}, nil); err != nil {
			t.Fatal(err)
		}
		f.Send(id, event.InputAcceptedData{Prompt: "hello"})
	}
}

func TestAnOutageIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(40 * time.Minute), err: down}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		const turns = 50
		for i := range turns {
			start(event.SessionID(fmt.Sprint(i)))
		}
		for range 2 {
			time.Sleep(10 * time.Minute)
			if n := f.Host.Resident(); n > 5 { // those that asked a moment ago
				t.Errorf("%d sessions are in memory while they wait", n)
			}
			f.Restart()
		}
		time.Sleep(time.Until(m.back) - time.Second)
		if n := m.count(m.back.Add(-10*time.Minute), m.back); n > 200 {
			t.Errorf("%d requests were made in ten minutes of the outage", n)
		}
		time.Sleep(5 * time.Minute)
		for i := range turns {
			if events := f.Verify(event.SessionID(fmt.Sprint(i))); lastAnswer(t, events) != "ok" || events[len(events)-1].Type != event.SessionIdle {
				t.Errorf("turn %d ended with %v", i, kindsOf(events))
			}
		}
		if n := m.count(m.back, time.Now()); n != turns {
			t.Errorf("%d requests were made after the outage, want %d", n, turns)
		}
		f.Host.Close()
	})
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(24 * time.Hour), err: down}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		start("b")
		time.Sleep(59 * time.Minute)
		if s, err := f.Host.Status(t.Context(), "a"); err != nil || !s.Active {
			t.Errorf("the turn ended before its patience: %v", err)
		}
		time.Sleep(2 * time.Minute)
		for _, id := range []event.SessionID{"a", "b"} {
			events := f.Verify(id)
			failed, err := event.As[event.SessionErrorData](events[len(events)-2])
			if err != nil || failed.ErrorType != "overloaded" || !strings.Contains(failed.Message, "waited 1h0m0s for it (model.patience)") {
				t.Errorf("%s: the turn ended with %+v, %v", id, failed, kindsOf(events))
			}
		}
		f.Host.Close()
	})
}

// An answer that no model can have given is more likely to come from the wrong server than
// from one that will be right in an hour.
func TestAnAnswerThatIsNoneIsNotWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garbled := model.Error{Kind: model.KindStream, Message: "the reply was not understood", Garbled: true}
		m := &outageModel{back: time.Now().Add(24 * time.Hour), err: garbled}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		time.Sleep(10 * time.Minute)
		events := f.Verify("a")
		failed, err := event.As[event.SessionErrorData](events[len(events)-2])
		if n := m.requests(); err != nil || n != 5 || failed.Message != garbled.Message {
			t.Errorf("%d requests were made, and the turn ended with %+v, %v", n, failed, err)
		}
		f.Host.Close()
	})
}

// A substitute is a model for which another one answers.
type substitute struct{}

func (substitute) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return &model.Reply{Text: "ok", Model: "cheaper", Another: true}, nil
}

func TestPeopleAreToldOnceThatAnotherModelAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": substitute{}})
		start("a")
		synctest.Wait()
		v := f.Resume("a", session.Resume{}, &session.Client{})
		for range 2 {
			f.Send("a", event.InputAcceptedData{Prompt: "again"})
			synctest.Wait()
		}
		warned := 0
		for _, e := range v.Events() {
			if d, err := event.As[event.SessionWarningData](e); e.Type == event.SessionWarning && err == nil && strings.Contains(d.Message, "answered with the model cheaper, although first was asked") {
				warned++
			}
			if d, err := event.As[event.AssistantUsageData](e); e.Type == event.AssistantUsage && (err != nil || d.Model != "first" || d.AnsweredBy != "cheaper") {
				t.Errorf("the answer is recorded as %s", e.Bytes)
			}
		}
		if warned != 1 {
			t.Errorf("people were warned %d times", warned)
		}
		f.Host.Close()
	})
}

func TestRetryAfterIsHonouredHoweverLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := model.Error{Kind: model.KindRateLimit, Status: 429, Message: "too many", RetryAfter: 3 * time.Hour}
		m := &outageModel{back: time.Now().Add(2 * time.Hour), err: limited}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		time.Sleep(time.Hour)
		f.Restart()
		time.Sleep(119 * time.Minute)
		if n := m.requests(); n != 1 {
			t.Errorf("the model was asked %d times before it wanted to be", n)
		}
		time.Sleep(2 * time.Minute)
		if events := f.Verify("a"); lastAnswer(t, events) != "ok" {
			t.Errorf("the turn ended with %v", kindsOf(events))
		}
		f.Host.Close()
	})
}

func TestAFallbackAnswersTheRestOfTheTurn(t *testing.T) {
	for name, failure := range map[string]model.Error{"passing": down, "lasting": {Kind: model.KindNotFound, Message: "no such model"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &outageModel{back: time.Now().Add(2 * time.Hour), err: failure}, &outageModel{}
				f, start := withOutage(t, event.OutageRules{Fallback: []string{"second"}}, map[string]model.Model{"first": first, "second": second})
				start("a")
				time.Sleep(61 * time.Minute)
				events := f.Verify("a")
				fell := 0
				for _, e := range events {
					if d, err := event.As[event.TurnFallbackData](e); e.Type == event.TurnFallback && err == nil && d.Model == "second" && d.From == "first" {
						fell++
					}
				}
				if fell != 1 || second.requests() != 1 || lastAnswer(t, events) != "ok" {
					t.Fatalf("the fallback was recorded %d times and asked %d times: %v", fell, second.requests(), kindsOf(events))
				}
				time.Sleep(time.Until(first.back))
				before := first.requests()
				f.Send("a", event.InputAcceptedData{Prompt: "again"})
				synctest.Wait()
				if first.requests() != before+1 || second.requests() != 1 {
					t.Error("the next turn did not ask the first model again")
				}
				f.Host.Close()
			})
		})
	}
}

func TestAParkedTurnThatIsStoppedStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(24 * time.Hour), err: down}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		time.Sleep(5 * time.Minute)
		if err := f.Host.Abort(t.Context(), "a", "user_initiated"); err != nil {
			t.Fatal(err)
		}
		before := m.requests()
		f.Restart()
		time.Sleep(2 * time.Hour)
		if m.requests() != before {
			t.Error("the model was asked after the turn was stopped")
		}
		f.Host.Close()
	})
}

// A choosyModel does not take the requests of agents. Another model answers those of the
// session that starts them.
type choosyModel struct{ model.Model }

func (m choosyModel) Ask(ctx context.Context, r *model.Request, on func(model.Delta)) (*model.Reply, error) {
	for _, said := range r.Messages {
		if strings.Contains(said.Text, "Use task with ") {
			return m.Model.Ask(ctx, r, on)
		}
	}
	return nil, &model.Error{Kind: model.KindNotFound, Message: "not for agents"}
}

func TestAnAgentHasTheOutageRulesOfItsSession(t *testing.T) {
	models := map[string]model.Model{"first": choosyModel{offline.Model{}}, "second": offline.Model{}}
	rules := event.OutageRules{PatienceMs: new(int64(7)), Fallback: []string{"second"}}
	f := sessiontest.On(t, eventlog.NewMemory(), session.Options{
		ToolsOf: func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) },
		Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: models[as.Model], Name: as.Model}, nil
		},
	})
	f.Start()
	if _, err := f.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Model: "first", Outage: rules}}, nil); err != nil {
		t.Fatal(err)
	}
	f.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
	f.AwaitStored("s", eventlog.End{}, event.SessionIdle)
	events := f.Verify("s")
	if got := lastAnswer(t, events); !strings.Contains(got, "CHILD") {
		t.Errorf("the answer is %q", got)
	}
	var fell, configured bool
	for _, e := range f.Verify(child(t, events)) {
		switch e.Type {
		case event.TurnFallback:
			fell = true
		case event.SessionConfigured:
			d, err := event.As[event.SessionConfiguredData](e)
			configured = err == nil && reflect.DeepEqual(d.Outage, rules)
		}
	}
	if !fell || !configured {
		t.Errorf("the agent fell back: %v; it has the rules of its session: %v", fell, configured)
	}
}

// The clock says that the patience was over long ago, and the provider recovers a moment
// after the engine has started.
func TestAnEngineThatStartsLateTriesForHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(24*time.Hour + 10*time.Second), err: down}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		start("b")
		synctest.Wait()
		f.Host.Close()
		time.Sleep(24 * time.Hour)
		f.Start()
		time.Sleep(2 * time.Minute)
		for _, id := range []event.SessionID{"a", "b"} {
			if events := f.Verify(id); events[len(events)-1].Type != event.SessionIdle || lastAnswer(t, events) != "ok" {
				t.Errorf("%s: the turn ended with %v", id, kindsOf(events))
			}
		}
		f.Host.Close()
	})
}

func TestAClientThatComesWhileATurnIsParkedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(24 * time.Hour), err: down}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		time.Sleep(5 * time.Minute)
		came := time.Now()
		v := f.Resume("a", session.Resume{Continue: new(true)}, &session.Client{})
		e, _ := v.Await(t, 0, event.SessionInfo)
		if time.Since(came) > 0 {
			t.Error("the client was told nothing before the next attempt")
		}
		if d, err := event.As[event.SessionInfoData](e); err != nil || d.InfoType != "model_retry" || !strings.Contains(d.Message, "giving up at") {
			t.Errorf("the client was told %s", e.Bytes)
		}
		f.Host.Close()
	})
}

// A session that somebody has suspended waits for that person, not for its model: it does not
// keep an engine alive that is there for one command, and its patience does not end.
func TestASuspendedTurnDoesNotWaitForItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(3 * time.Hour), err: down}
		f := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: sessiontest.Always(session.Endpoint{Model: m, Name: "m"}), OnlyAttended: true})
		f.Open()
		v := f.Create("a", &session.Client{})
		f.Send("a", event.InputAcceptedData{Prompt: "hello"})
		time.Sleep(5 * time.Minute)
		if !f.Host.Work.Busy() {
			t.Fatal("the engine would leave its parked turn")
		}
		if err := f.Host.Suspend(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if f.Host.Work.Busy() {
			t.Error("a suspended turn keeps the engine alive")
		}
		asked := m.requests()
		time.Sleep(4 * time.Hour)
		if m.requests() != asked || f.Host.Work.Busy() {
			t.Errorf("%d requests were made for a suspended turn", m.requests()-asked)
		}
		_ = v
		f.Resume("a", session.Resume{Continue: new(true)}, &session.Client{})
		time.Sleep(time.Minute)
		if events := f.Verify("a"); lastAnswer(t, events) != "ok" {
			t.Errorf("the turn ended with %v", kindsOf(events))
		}
		f.Host.Close()
	})
}

// The engine is told to go on with everything while it is at work: the index may be older
// than what the sessions in memory have recorded since.
func TestAnEngineThatIsStartedAgainKeepsItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(24 * time.Hour), err: model.Error{Kind: model.KindRateLimit, Message: "busy", RetryAfter: 10 * time.Minute}}
		f, start := withOutage(t, event.OutageRules{PatienceMs: new((48 * time.Hour).Milliseconds())}, map[string]model.Model{"first": m})
		start("a")
		for range 20 {
			time.Sleep(time.Minute)
			if err := f.Host.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := m.requests(); n > 3 {
			t.Errorf("%d requests were made in 20 minutes, and the provider wants one in ten", n)
		}
		f.Host.Close()
	})
}

func TestPatienceOfAnyLength(t *testing.T) {
	for name, ms := range map[string]int64{"as long as a duration": math.MaxInt64 / 1_000_000, "as long as a number": math.MaxInt64, "a year": 365 * 24 * 60 * 60 * 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &outageModel{back: time.Now().Add(90 * time.Minute), err: down}
				f, start := withOutage(t, event.OutageRules{PatienceMs: &ms}, map[string]model.Model{"first": m})
				start("a")
				time.Sleep(45 * time.Minute)
				f.Restart()
				time.Sleep(time.Hour)
				if events := f.Verify("a"); events[len(events)-1].Type != event.SessionIdle || lastAnswer(t, events) != "ok" {
					t.Errorf("the turn ended with %v", kindsOf(events))
				}
				f.Host.Close()
			})
		})
	}
}

// A provider that wants not to be asked for longer than any clock runs is not asked; a stop
// ends the wait.
func TestAWaitWithoutEndIsEndedByAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &outageModel{back: time.Now().Add(time.Hour), err: model.Error{Kind: model.KindRateLimit, Message: "never", RetryAfter: math.MaxInt64}}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("a")
		time.Sleep(1000 * time.Hour)
		f.Restart()
		time.Sleep(1000 * time.Hour)
		if n := m.requests(); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		if err := f.Host.Abort(t.Context(), "a", "user_initiated"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if events := f.Verify("a"); events[len(events)-1].Type != event.SessionIdle {
			t.Errorf("the turn ended with %v", kindsOf(events))
		}
		f.Host.Close()
	})
}

// A turn that was told when to come back does not come sooner because the model answers others.
func TestATurnThatWasToldWhenToComeBackDoesNotComeSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []time.Time
		m := &functionModel{answer: func(_ int, req *model.Request) (*model.Reply, error) {
			if req.Session == "other" {
				return &model.Reply{Text: "ok", Finish: model.FinishStop}, nil
			}
			if late = append(late, time.Now()); len(late) == 1 {
				return nil, &model.Error{Kind: model.KindRateLimit, Status: 429, Message: "later.", RetryAfter: time.Hour}
			}
			return &model.Reply{Text: "ok", Finish: model.FinishStop}, nil
		}}
		f, start := withOutage(t, event.OutageRules{}, map[string]model.Model{"first": m})
		start("told")
		time.Sleep(time.Minute)
		start("other")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(late) != 2 || late[1].Sub(late[0]) < time.Hour {
			t.Errorf("the model was asked at %v", late)
		}
		f.Host.Close()
	})
}

// A hangingModel is down, and the second attempt of one session hangs for an hour.
type hangingModel struct{ asked atomic.Int32 }

func (m *hangingModel) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if req.Session == "hangs" && m.asked.Add(1) == 2 {
		time.Sleep(time.Hour)
	}
	err := down
	return nil, &err
}

// A turn that is never let to its endpoint, because the attempt of another one hangs, is given
// up when its patience is over all the same.
func TestATurnThatIsNotLetThroughIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, start := withOutage(t, event.OutageRules{PatienceMs: new(int64(120_000))}, map[string]model.Model{"first": &hangingModel{}})
		start("hangs")
		time.Sleep(time.Minute)
		start("waits")
		time.Sleep(10 * time.Minute)
		if events := f.Verify("waits"); events[len(events)-1].Type != event.SessionIdle {
			t.Errorf("the turn goes on after %v", kindsOf(events))
		}
		time.Sleep(2 * time.Hour)
		f.Host.Close()
	})
}
