package turn_test

import (
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// TestAQuestionIsKeptAndCanBeAnswered: a kind that is a question is kept by the state
// under its requestId, and an answer to it is taken.
func TestAQuestionIsKeptAndCanBeAnswered(t *testing.T) {
	for _, k := range event.Kinds() {
		if !k.Question {
			continue
		}
		bodies := bodiesOf(k.Type)
		w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), bodies[len(bodies)-1]) // all its texts are c1
		call := w.state.Question("c1")
		if call == nil && len(w.state.Exchanges.Open) == 0 {
			t.Errorf("%s is a question, and no part of the state keeps it open: give a fold in internal/turn a case for its body, or do not make it a Question in its row in internal/event", k.Type)
			continue
		}
		if call == nil {
			continue
		}
		answer := turn.Answer{RequestID: "c1", Permission: &turn.Decision{Kind: turn.ApproveOnce}, External: &turn.ExternalResult{}, User: &turn.UserReply{}, Plan: &turn.PlanReply{}}
		if _, ok, err := answer.Give(w.state); !ok || err != nil {
			t.Errorf("%s: no answer is taken (%v): give turn.Answer a field for it, and fits and Give in internal/turn/answer.go a case", k.Type, err)
		}
	}
}
