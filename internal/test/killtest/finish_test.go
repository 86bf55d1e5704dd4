package killtest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// A cutModel is cut off twice before it comes to the end of an answer or a call. What it
// says depends on the request alone, so that a request which is made again has the same
// answer.
type cutModel struct{ calls bool }

func (m cutModel) Ask(_ context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	turn := local.Read(req.Messages)
	r := &model.Reply{Usage: model.Usage{Input: 10, Output: int64(max(100, req.MaxOutput))}, Model: req.Model, Finish: model.FinishLength}
	switch {
	case m.calls && turn.Results > 0:
		r.Text, r.Finish = "The call was made.", model.FinishStop
	case m.calls:
		r.Calls = []model.Call{{ID: "c", Name: "once", Arguments: json.RawMessage(`{"value":"c"}`)}}
		if req.MaxOutput > 4096 {
			r.Finish = model.FinishCalls
		}
	case turn.Step == 1:
		r.Text = "one, "
	case turn.Step == 2:
		r.Text = "two, "
	default:
		r.Text, r.Finish = "three", model.FinishStop
	}
	if on != nil && r.Text != "" {
		on(model.Delta{Text: r.Text})
	}
	for _, c := range r.Calls {
		if on != nil {
			on(model.Delta{CallID: c.ID, CallName: c.Name, Arguments: string(c.Arguments)})
		}
	}
	return r, nil
}

// The parts of an answer that was cut off are joined once, and a call that was cut off is
// made once, when it is whole.
func TestKilledWhileAnAnswerIsNotWholeNothingIsLostOrRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		wire   *wire
		model  cutModel
		answer string
		made   int // calls that are made
	}{
		"text":  {anthropic, cutModel{}, "one, two, three", 0},
		"calls": {chat, cutModel{calls: true}, "The call was made.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario{name: name, prompt: "Do it."}
			play := func(t *testing.T, stops ...stop) (*modelSource, outcome) {
				t.Helper()
				w := test.wire.to(t, test.model, func(int) remotetest.Fault { return nil })
				return w, newRun(t, s.conversation(w)).play(stops...)
			}
			w, calm := play(t)
			calm.history = w.history()
			judgeRun(t, w, calm, calm.expected())
			judgeWhole(t, calm, test.answer)
			if len(calm.effects) != test.made {
				t.Errorf("the effects are %+v", calm.effects)
			}
			for _, at := range stops(calm.writes, true, 0) {
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
					w, got := play(t, at)
					judgeRun(t, w, got, calm.expected())
					judgeWhole(t, got, test.answer)
					if len(got.effects) > test.made {
						t.Errorf("the effects are %+v", got.effects)
					}
				})
			}
		})
	}
}

// judgeWhole checks that there is one answer, made of two parts or attempts that were cut
// off and a last one.
func judgeWhole(t *testing.T, got outcome, answer string) {
	t.Helper()
	cut := 0
	for _, e := range got.log {
		if e.Type == event.AssistantUnfinished {
			cut++
		}
	}
	if answers := got.answers(); len(answers) != 1 || answers[0] != answer || cut != 2 {
		t.Errorf("the answers are %q after %d that were cut off, want %q after 2", answers, cut, answer)
	}
}
