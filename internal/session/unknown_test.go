package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A newerEvent is an event that only a newer version knows.
type newerEvent struct {
	Says string `json:"says"`
}

func (newerEvent) Type() event.Type { return "future.thing" }

// TestAKindOfANewerVersionIsKeptAndShown: a log in which a newer version has recorded
// something that this one does not know can be resumed, gone on with, rewound, forked
// and shown. What the newer version marked as ephemeral is kept and not part of the
// history. Nothing of it is taken for damage.
func TestAKindOfANewerVersionIsKeptAndShown(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "ONE", Mode: event.ModeQueue})
	v.Await(t, 0, event.SessionIdle)
	b.Host.Close()

	info, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	newer := func(ephemeral bool) event.Event {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Ephemeral: ephemeral}, newerEvent{"hello"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	thing := newer(false)
	if _, err := b.Store.Append(t.Context(), "s", eventlog.Batch{After: info.End, Events: []event.Event{newer(true), thing, newer(true)}}); err != nil {
		t.Fatal(err)
	}

	b.Start()
	v = b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "TWO", Mode: event.ModeQueue})
	v.Await(t, 0, event.SessionIdle)
	fork, err := b.Host.Fork(t.Context(), "", "s", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []event.SessionID{"s", fork} {
		shown, err := b.Host.Log.Messages(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		shown = slices.DeleteFunc(shown, func(e event.Event) bool { return e.Type != newerEvent{}.Type() })
		if len(shown) != 1 || string(shown[0].Bytes) != string(thing.Bytes) {
			t.Errorf("%s shows %s, want the %s that is not ephemeral, as it was stored", id, kindsOf(shown), newerEvent{}.Type())
		}
		kept := b.Verify(id)
		if !slices.ContainsFunc(kept, func(e event.Event) bool { return e.Type == newerEvent{}.Type() && !e.Kind().Listed() }) {
			t.Errorf("%s has lost the ephemeral ones: %v", id, kindsOf(kept))
		}
		next, _ := kept[info.End.Seq+3].Head()
		if was, err := thing.Head(); err != nil || next.Parent != was.ID {
			t.Errorf("%s: the event after them names %s as the one before it, want %s", id, next.Parent, was.ID)
		}
		if info, err := b.Store.Session(t.Context(), id); err != nil || info.Damage != nil {
			t.Errorf("%s is taken for damaged: %+v, %v", id, info.Damage, err)
		}
	}
}
