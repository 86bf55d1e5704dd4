package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// form is a schema, stored as it is sent.
const form = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`

func TestAnswersThatMustMatchASchema(t *testing.T) {
	calls := &model.Reply{Text: "I look.", Calls: []model.Call{{ID: "c", Name: "nothing", Arguments: json.RawMessage(`{}`)}}, Finish: "tool_calls"}
	say := func(text, finish string) *model.Reply { return &model.Reply{Text: text, Finish: finish} }
	for name, test := range map[string]struct {
		replies []*model.Reply // the last one is given again and again
		asked   int
		answer  string
		fails   string // type of the error that ends the turn
		says    string // part of its message
	}{
		"right":                 {[]*model.Reply{say(`{"n":1}`, "stop")}, 1, `{"n":1}`, "", ""},
		"right after calls":     {[]*model.Reply{calls, say(`{"n":1}`, "stop")}, 2, `{"n":1}`, "", ""},
		"in parts":              {[]*model.Reply{say(`{"n"`, "length"), say(`:1}`, "stop")}, 2, `{"n":1}`, "", ""},
		"right the second time": {[]*model.Reply{say("One.", "stop"), say(`{"n":1}`, "stop")}, 2, `{"n":1}`, "", ""},
		"then it calls":         {[]*model.Reply{say("One.", "stop"), calls, say(`{"n":1}`, "stop")}, 3, `{"n":1}`, "", ""},
		"wrong parts":           {[]*model.Reply{say(`{"n"`, "length"), say(`:"1"}`, "stop"), say(`{"n":1}`, "stop")}, 3, `{"n":1}`, "", ""},
		"wrong twice":           {[]*model.Reply{say("One.", "stop"), say(`{"n":"1"}`, "stop")}, 2, `{"n":"1"}`, "invalid_output", `at /properties/n of the schema: type: 1 has type "string", want "integer"`},
		"wrong, calls, wrong":   {[]*model.Reply{say("One.", "stop"), calls, say("Two.", "stop")}, 3, "Two.", "invalid_output", "it is not JSON alone"},
		"a refusal":             {[]*model.Reply{say("No.", "refusal")}, 1, "No.", "refusal", "refused"},
		"empty":                 {[]*model.Reply{say("", "stop")}, 2, "", "empty_answer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &functionModel{answer: func(n int, req *model.Request) (*model.Reply, error) {
				if req.Schema == nil || string(req.Schema.JSON) != form || !req.Schema.Strict {
					t.Errorf("request %d wants the form %+v", n, req.Schema)
				}
				return test.replies[min(n, len(test.replies))-1], nil
			}}
			b := sessiontest.New(t, m)
			v := b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "hello", OutputSchema: json.RawMessage(form)})
			v.Await(t, 0, event.SessionIdle)
			events := b.Verify("s")
			var failure event.SessionErrorData
			for _, e := range events {
				if e.Type == event.SessionError {
					failure, _ = event.As[event.SessionErrorData](e)
				}
			}
			if len(m.asked) != test.asked || lastAnswer(t, events) != test.answer {
				t.Errorf("asked %d times, answer %q", len(m.asked), lastAnswer(t, events))
			}
			if failure.ErrorType != test.fails || !strings.Contains(failure.Message, test.says) || failure.EndsTurn != (test.fails != "") {
				t.Errorf("the turn ended with %+v", failure)
			}
		})
	}
}

// The model is shown its wrong answer, the reason and the schema. The next turn is free.
func TestTheModelIsToldWhatIsWrongWithTheFormOfItsAnswer(t *testing.T) {
	m := &functionModel{answer: func(n int, req *model.Request) (*model.Reply, error) {
		switch n {
		case 1:
			return &model.Reply{Text: "One.", Finish: "stop"}, nil
		case 2:
			last := len(req.Messages) - 1
			if said := req.Messages[last-1]; said.Role != model.Assistant || said.Text != "One." {
				t.Errorf("the model is shown %+v", said)
			}
			if told := req.Messages[last].Text; !strings.Contains(told, "it is not JSON alone") || !strings.Contains(told, form) {
				t.Errorf("the model is told %q", told)
			}
			return &model.Reply{Text: `{"n":1}`, Finish: "stop"}, nil
		}
		if req.Schema != nil {
			t.Errorf("the next turn wants the form %s", req.Schema.JSON)
		}
		return &model.Reply{Text: "Free.", Finish: "stop"}, nil
	}}
	b := sessiontest.New(t, m)
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "hello", OutputSchema: json.RawMessage(form)})
	_, at := v.Await(t, 0, event.SessionIdle)
	b.Send("s", event.InputAcceptedData{Prompt: "and now"})
	v.Await(t, at, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "Free." || len(m.asked) != 3 {
		t.Errorf("asked %d times, answer %q", len(m.asked), got)
	}
}

// A formlessModel answers in words. The process ends while it does so for the second time.
type formlessModel struct {
	asked chan *model.Request
	n     atomic.Int32
}

func (m *formlessModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.asked <- req
	if m.n.Add(1) == 2 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &model.Reply{Text: "In words.", Finish: "stop"}, nil
}

// After a crash the schema still holds, and so does the count of attempts.
func TestAnOutputSchemaOutlivesACrash(t *testing.T) {
	m := &formlessModel{asked: make(chan *model.Request, 10)}
	b := sessiontest.New(t, m)
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "hello", OutputSchema: json.RawMessage(form)})
	<-m.asked
	before := <-m.asked
	b.Host.Close()
	b.Start()
	v := b.Resume("s", session.Resume{After: new(event.Seq)}, &session.Client{})
	v.Await(t, 0, event.SessionIdle)
	after := <-m.asked
	if after.Schema == nil || string(after.Schema.JSON) != form || len(after.Messages) != len(before.Messages) {
		t.Errorf("asked for %+v with %d messages", after.Schema, len(after.Messages))
	}
	if len(m.asked) > 0 {
		t.Error("the model was asked once more")
	}
	events := b.Verify("s")
	var failure event.SessionErrorData
	for _, e := range events {
		if e.Type == event.SessionError {
			failure, _ = event.As[event.SessionErrorData](e)
		}
	}
	if lastAnswer(t, events) != "In words." || failure.ErrorType != event.CauseOutput {
		t.Errorf("answer %q, the turn ended with %+v", lastAnswer(t, events), failure)
	}
}
