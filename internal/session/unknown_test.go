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
// and shown. Nothing of it is taken for damage.
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
	thing, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, newerEvent{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	thing.Seq = info.End.Seq + 1
	if _, err := b.Store.Append(t.Context(), "s", eventlog.Batch{After: info.End, Events: []event.Event{thing}}); err != nil {
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
		at := slices.Index(kindsOf(shown), newerEvent{}.Type())
		if at < 0 || string(shown[at].Bytes) != string(thing.Bytes) {
			t.Errorf("%s shows %v, want the %s as it was stored", id, kindsOf(shown), newerEvent{}.Type())
		}
		if info, err := b.Store.Session(t.Context(), id); err != nil || info.Damage != nil {
			t.Errorf("%s is taken for damaged: %+v, %v", id, info.Damage, err)
		}
		b.Verify(id)
	}
}
