package session_test

import (
	"context"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A functionModel answers with a function, and keeps what it was asked.
type functionModel struct {
	mu     sync.Mutex
	asked  []bool // for each request, true if the model was asked to forget
	answer func(n int, req *model.Request) (*model.Reply, error)
}

func (m *functionModel) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, req.Forget)
	return m.answer(len(m.asked), req)
}

func TestReasoningThatIsNotTakenBackIsForgottenOnce(t *testing.T) {
	rejected := &model.Error{Kind: model.KindReasoning, Status: 400, Message: "it does not take that"}
	for name, test := range map[string]struct {
		answer func(n int, req *model.Request) (*model.Reply, error)
		asked  int
		fails  bool
	}{
		"it helps": {func(_ int, req *model.Request) (*model.Reply, error) {
			if !req.Forget {
				return nil, rejected
			}
			return &model.Reply{Text: "ok"}, nil
		}, 2, false},
		"it does not": {func(int, *model.Request) (*model.Reply, error) { return nil, rejected }, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &functionModel{answer: test.answer}
			b := sessiontest.New(t, m)
			v := b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "hello"})
			v.Await(t, 0, event.SessionIdle)
			events := b.Verify("s")
			if len(m.asked) != test.asked || m.asked[0] || !m.asked[1] {
				t.Errorf("asked %v", m.asked)
			}
			failed := false
			for _, e := range events {
				failed = failed || e.Type == event.SessionError
			}
			if failed != test.fails || !test.fails && lastAnswer(t, events) != "ok" {
				t.Errorf("failed: %v, %v", failed, kindsOf(events))
			}
		})
	}
}

func TestCallIDsThatWeMakeFitEveryProvider(t *testing.T) {
	m := &functionModel{answer: func(n int, _ *model.Request) (*model.Reply, error) {
		if n > 1 {
			return &model.Reply{Text: "ok"}, nil
		}
		return &model.Reply{Calls: []model.Call{{Name: "x"}, {Name: "x"}, {ID: "same", Name: "x"}, {ID: "same", Name: "x"}}}, nil
	}}
	b := sessiontest.New(t, m)
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "hello"})
	e, _ := v.Await(t, 0, event.AssistantMessage)
	v.Await(t, 0, event.SessionIdle)
	d, err := event.As[event.AssistantMessageData](e)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, r := range d.ToolRequests {
		if len(r.ToolCallID) > 40 || r.ToolCallID == "" || seen[r.ToolCallID] {
			t.Errorf("a call has the id %q", r.ToolCallID)
		}
		seen[r.ToolCallID] = true
	}
	if len(seen) != 4 || !seen["same"] {
		t.Errorf("ids: %v", seen)
	}
}

func TestTheCostOfARequestIsRecordedIfItIsKnown(t *testing.T) {
	cost := 0.25
	for _, want := range []*float64{nil, &cost} {
		b := sessiontest.New(t, &functionModel{answer: func(int, *model.Request) (*model.Reply, error) {
			return &model.Reply{Text: "ok", Cost: want}, nil
		}})
		v := b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		e, _ := v.Await(t, 0, event.AssistantUsage)
		v.Await(t, 0, event.SessionIdle)
		d, err := event.As[event.AssistantUsageData](e)
		if err != nil || (d.CostUSD == nil) != (want == nil) || want != nil && *d.CostUSD != *want {
			t.Errorf("cost %v, want %v (%v)", d.CostUSD, want, err)
		}
	}
}
