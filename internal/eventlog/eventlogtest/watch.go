package eventlogtest

import (
	"context"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Watched store lets tests wait for what somebody else appends.
type Watched struct {
	eventlog.Store
	mu      sync.Mutex
	changed chan struct{}
}

// Watch puts a Watched around a store.
func Watch(store eventlog.Store) *Watched {
	return &Watched{Store: store, changed: make(chan struct{})}
}

// Append appends, and wakes those who wait.
func (w *Watched) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	end, err := w.Store.Append(ctx, id, b)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return end, err
}

// Changed returns a channel that is closed at the next append to any session.
func (w *Watched) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Await returns the first event of a session after an end that is wanted. It waits
// until there is one.
func (w *Watched) Await(t testing.TB, id event.SessionID, after eventlog.End, wanted func(event.Event) bool) event.Event {
	t.Helper()
	for {
		changed := w.Changed() // before looking: nothing that happens in between is missed
		for e, err := range w.ReadFrom(t.Context(), id, after) {
			if err != nil {
				t.Fatal(err)
			}
			if wanted(e) {
				return e
			}
			after = after.Next(e.Bytes)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
