package turn_test

import (
	"bytes"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
)

// FuzzLoad feeds logs that nobody wrote, one event a line. A log that is taken
// can be decided on, and loading it is folding it.
func FuzzLoad(f *testing.F) {
	for _, log := range [][]event.Payload{
		{start, accepted, message, asked, words, ended, idle},
		{start, accepted, message, asked, calls, intended("c1"), intended("c2"), asks("c1"), begun("c2"), finished("c2")},
		{start, accepted, message, steer, event.AbortData{}, idle, event.HistoryHiddenData{From: 2, To: 3}},
		{start, entry(1, "a", event.TodoPending), entry(2, "b", event.TodoPending), idle, entry(1, "a", event.TodoCompleted), hidden(3, 3)},
		samples(),
	} {
		var text []byte
		for _, e := range newWriter(f).add(log...).events {
			text = append(append(text, e.Bytes...), '\n')
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var events []event.Event
		for line := range bytes.Lines(text) {
			e, err := event.Parse(event.Seq(len(events)+1), bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				return
			}
			events = append(events, e)
		}
		s, folded := turn.New("s"), turn.New("s")
		for _, e := range events {
			if folded.Fold(e) != nil {
				return
			}
		}
		if err := s.Load(events); err != nil {
			t.Fatalf("a log that is folded is not loaded: %v", err)
		}
		if d := turntest.Diff(t, events, folded); d != "" {
			t.Fatal(d)
		}
		turn.Next(s, nothing)
		s.Questions()
		s.OpenTodos()
		if _, err := s.History.Messages(); err != nil {
			return
		}
		turn.Interrupt(s, "stop", func(*turn.Call) bool { return true })
		turn.Decline(s)
	})
}
