package session_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
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
