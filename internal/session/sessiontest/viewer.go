package sessiontest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/event"
)

// A Viewer collects what a client is shown.
type Viewer struct {
	mu     sync.Mutex
	events []event.Event
	notify chan struct{}
	room   int // number of further events that fit; negative for any number
}

// NewViewer returns a viewer that has room for any number of events.
func NewViewer() *Viewer { return &Viewer{notify: make(chan struct{}, 1), room: -1} }

// SetRoom says how many more events fit; negative is any number.
func (v *Viewer) SetRoom(events int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.room = events
}

// Event takes an event in. One that typed clients could not read is a defect.
func (v *Viewer) Event(_ event.SessionID, e event.Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.room == 0 {
		return false
	}
	if faults := shapetest.Event(e.Bytes); len(faults) > 0 {
		panic(fmt.Sprintf("typed clients cannot read %s: %q", e.Bytes, faults))
	}
	v.room--
	v.events = append(v.events, e)
	select {
	case v.notify <- struct{}{}:
	default:
	}
	return true
}

// Await waits until an event of a kind was shown, at a place from the given one on. It
// returns the event and the place after it.
func (v *Viewer) Await(t testing.TB, from int, kind event.Type) (event.Event, int) {
	t.Helper()
	deadline := time.After(time.Minute) // it only ends tests that hang
	for {
		shown := v.Events()
		for i := from; i < len(shown); i++ {
			if shown[i].Type == kind {
				return shown[i], i + 1
			}
		}
		select {
		case <-v.notify:
		case <-deadline:
			t.Fatalf("no %s after %d events: %v", kind, from, v.Kinds())
		}
	}
}

// Events returns what was shown so far.
func (v *Viewer) Events() []event.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.events)
}

// Kinds returns the kinds of what was shown so far.
func (v *Viewer) Kinds() []event.Type {
	var list []event.Type
	for _, e := range v.Events() {
		list = append(list, e.Type)
	}
	return list
}
