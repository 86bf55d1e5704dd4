package turn_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
)

// FuzzLoad feeds logs that nobody wrote, one event a line. A log that is taken
// can be decided on, and loading it is folding it, also in the process that recorded
// the events from bodies whose texts are not valid UTF-8.
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
		f.Add(bytes.ReplaceAll(text, []byte("c1"), []byte("c\xff")))
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
		foldMade(t, events)
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

// foldMade records the bodies of the events again, with an invalid byte in the place of
// every replacement character, and holds the state of the process that records them
// against the state of one that loads them.
func foldMade(t *testing.T, events []event.Event) {
	w := newWriter(t)
	for _, e := range events {
		body, err := e.Body()
		if err != nil {
			return // an unknown kind, or a body that no fold reads
		}
		spoiled := reflect.New(reflect.TypeOf(body)).Elem()
		spoiled.Set(reflect.ValueOf(body))
		spoil(spoiled)
		w.add(spoiled.Interface().(event.Payload))
	}
	if len(w.events) > 0 {
		turntest.LoadedEqualsFolded(t, w.events, w.state)
	}
}

// spoil replaces every replacement character in the texts of a value by a byte that is
// not valid UTF-8.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ReplaceAll(v.String(), "\uFFFD", "\xff"))
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes(bytes.ReplaceAll(v.Bytes(), []byte("\uFFFD"), []byte("\xff")))
			return
		}
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	}
}
