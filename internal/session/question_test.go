package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

func anything(event.Type) bool { return true }

func TestTheAttemptsOfAQuestionOutliveTheRuntime(t *testing.T) {
	b := sessiontest.New(t, offline.Model{}, &countingTool{name: "act", ask: true})
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	asked, _ := v.Await(t, 0, event.PermissionAsked)
	d, _ := event.As[event.PermissionAskedData](asked)
	for want := 2; want <= 4; want++ {
		open, err := b.Host.Questions.Open(t.Context(), "s", anything)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Host.Questions.Redeliver(t.Context(), "s", open)
		if err != nil || len(again) != 1 || again[0].RequestID != d.RequestID || again[0].Attempt != want {
			t.Fatalf("put again is %+v, %v; want %s with attempt %d", again, err, d.RequestID, want)
		}
		b.Restart()
	}
	open, err := b.Host.Questions.Open(t.Context(), "s", anything)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}); err != nil {
		t.Fatal(err)
	}
	if again, err := b.Host.Questions.Redeliver(t.Context(), "s", open); err != nil || len(again) > 0 {
		t.Errorf("what is closed is put again: %+v, %v", again, err)
	}
	awaitIdle(t, b, "s")
	b.Verify("s")
}

func TestACallIsJudgedByWhatIsAllowedThereNow(t *testing.T) {
	tool := &countingTool{name: "act", ask: true}
	b := sessiontest.New(t, offline.Model{}, tool)
	var mu sync.Mutex
	var rules []event.Rule
	var fault error
	b.Options.Standing = func(string) (string, []event.Rule, error) {
		mu.Lock()
		defer mu.Unlock()
		return "there", rules, fault
	}
	b.Restart()
	v := b.Create("s", &session.Client{Permission: true})
	at := 0
	allow := []event.Rule{{Kind: "shell"}}
	for _, test := range []struct {
		name  string
		rules []event.Rule
		fault error
		runs  bool
	}{
		{"nothing is allowed", nil, nil, false},
		{"it is allowed", allow, nil, true},
		{"it is still allowed", allow, nil, true},
		{"that was taken back", nil, nil, false},
		{"it is allowed again", allow, nil, true},
		{"nobody knows what is allowed", nil, errors.New("damaged"), false},
	} {
		mu.Lock()
		rules, fault = test.rules, test.fault
		mu.Unlock()
		before := tool.runs
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
		kind := event.PermissionAsked
		if test.runs {
			kind = event.SessionIdle
		}
		var e event.Event
		if e, at = v.Await(t, at, kind); !test.runs {
			d, _ := event.As[event.PermissionAskedData](e)
			if _, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.UserNotAvailable}}); err != nil {
				t.Fatal(err)
			}
			_, at = v.Await(t, at, event.SessionIdle)
		}
		if ran := tool.runs > before; ran != test.runs {
			t.Errorf("%s: the tool ran is %v", test.name, ran)
		}
	}
	b.Verify("s")
}

// A failingAnswerStore cannot store the first event of a kind.
type failingAnswerStore struct {
	eventlog.Store
	kind     event.Type
	stumbled bool
}

func (s *failingAnswerStore) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	if !s.stumbled && slices.ContainsFunc(b.Events, func(e event.Event) bool { return e.Type == s.kind }) {
		s.stumbled = true
		return eventlog.End{}, errors.New("the disk is full")
	}
	return s.Store.Append(ctx, id, b)
}

// TestAQuestionIsPutAgainIfItsAnswerCouldNotBeStored: the client has answered, and the log
// does not know it.
func TestAQuestionIsPutAgainIfItsAnswerCouldNotBeStored(t *testing.T) {
	for _, kind := range []event.Type{event.UserInputDone, event.ExitPlanDone} {
		synctest.Test(t, func(t *testing.T) {
			b := sessiontest.New(t, offline.Model{})
			b.Host.Close()
			b.Store = &failingAnswerStore{Store: b.Store, kind: kind}
			b.Options.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
			b.Start()
			defer b.Host.Close()
			asked := 0
			v := b.Create("s", &session.Client{
				AskUser: func(context.Context, event.SessionID, event.UserInputAskedData) (turn.UserReply, error) {
					asked++
					return turn.UserReply{Answer: "blue"}, nil
				},
				ExitPlan: func(context.Context, event.SessionID, event.ExitPlanAskedData) (turn.PlanReply, error) {
					asked++
					return turn.PlanReply{Approved: true}, nil
				},
			})
			input := event.InputAcceptedData{Prompt: "Ask me: which colour?"}
			if kind == event.ExitPlanDone {
				input = event.InputAcceptedData{Prompt: `Use exit_plan_mode with {"summary":"dig"}, then reply with the result`, AgentMode: event.ModePlan}
			}
			b.Send("s", input)
			v.Await(t, 0, event.SessionIdle)
			if asked != 2 {
				t.Errorf("%s: the client was asked %d times, want once more after its answer was lost", kind, asked)
			}
			b.Verify("s")
		})
	}
}
