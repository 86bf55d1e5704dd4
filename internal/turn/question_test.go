package turn_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// TestAQuestionIsKeptAndCanBeAnswered: a kind that is a question is kept by the state
// under its requestId, an answer to it is taken, and what is recorded then is the kind that
// its row has as Answer, which closes the question.
func TestAQuestionIsKeptAndCanBeAnswered(t *testing.T) {
	for _, k := range event.Kinds() {
		if !k.Question {
			continue
		}
		bodies := bodiesOf(k.Type)
		w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), bodies[len(bodies)-1]) // all its texts are c1
		if !isOpen(w.state) {
			t.Errorf("%s is a question, and no part of the state keeps it open: give a fold in internal/turn a case for its body, or do not make it a Question in its row in internal/event", k.Type)
			continue
		}
		record, err := answerTo(w.state, k.Type)
		if err != nil || len(record) == 0 {
			t.Errorf("%s: no answer is taken (%v): give turn.Answer a field for it, and fits and Give in internal/turn/answer.go a case, or answer it as a form or a command in internal/turn/exchange.go", k.Type, err)
			continue
		}
		if !slices.ContainsFunc(record, func(p event.Payload) bool { return p.Type() == k.Answer }) {
			t.Errorf("%s: an answer is recorded as %s, and its row in internal/event says %s: correct the one or the other", k.Type, record[0].Type(), k.Answer)
			continue
		}
		if w.add(record...); isOpen(w.state) {
			t.Errorf("%s is still open after %s: give the fold that keeps it a case for the answer", k.Type, k.Answer)
		}
	}
}

// isOpen reports whether the question c1 is open.
func isOpen(s *turn.State) bool { return s.Question("c1") != nil || s.Exchanges.Find("c1") != nil }

// answerTo returns what is recorded when the question c1 is answered: of a call, of a form, or
// of a command.
func answerTo(s *turn.State, kind event.Type) ([]event.Payload, error) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[turn.Answer]()) {
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		answer := turn.Answer{RequestID: "c1"} // exactly one of its pointers is set
		reflect.ValueOf(&answer).Elem().FieldByIndex(field.Index).Set(reflect.New(field.Type.Elem()))
		if answer.Permission != nil {
			answer.Permission.Kind = turn.ApproveOnce
		}
		if record, ok, err := answer.Give(s); ok || err != nil {
			return record, err
		}
	}
	if record, ok, err := s.FillIn("c1", "", turn.Filled{Action: turn.Cancel}); ok || err != nil {
		return record, err
	}
	record, _ := s.CarryOut(kind, "c1", "", turn.Carried{})
	return record, nil
}
