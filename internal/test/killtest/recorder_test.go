package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// A recorder keeps what the runtime has promised: what it acknowledged and what it
// showed. It is in the parent, so that a kill does not lose it.
type recorder struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	opened   bool          // true when the session was acknowledged
	sent     map[string]string
	answered map[string]bool
	shown    [][]event.Event // the events that each connection was shown, in order
	pending  int             // number of requests without an answer yet
	reports  []report        // reports of the present victim
	onEvent  func()          // called for every event that is shown
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}), sent: make(map[string]string), answered: make(map[string]bool), onEvent: func() {}}
}

// update changes the recorder under its lock, and wakes those who wait for a change.
func (w *recorder) update(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

var errDied = errors.New("the victim is dead")

// waitUntil waits until a condition on the recorder is true, or the victim is dead. The
// condition is called under the lock.
func (w *recorder) waitUntil(ctx context.Context, dead <-chan struct{}, is func() bool) error {
	for {
		w.mu.Lock()
		done, changed := is(), w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-dead:
			return errDied
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addConnection begins the list of events of a new connection, and returns its number.
func (w *recorder) addConnection() (n int) {
	w.update(func() { w.shown, n = append(w.shown, nil), len(w.shown) })
	return n
}

// recordReport records a report of the victim.
func (w *recorder) recordReport(r report) {
	w.update(func() { w.reports = append(w.reports, r) })
}

// recordEvent records a session.event notification.
func (w *recorder) recordEvent(connection int, params json.RawMessage) error {
	var p api.EventParams
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	e, err := event.Parse(p.Seq, p.Event)
	w.update(func() { w.shown[connection] = append(w.shown[connection], e) })
	w.onEvent()
	return err
}

// wasShown reports whether all these events were shown. The recorder is locked.
func (w *recorder) wasShown(ids []string) bool {
	missing := make(map[string]bool)
	for _, id := range ids {
		missing[id] = true
	}
	for _, events := range w.shown {
		for _, e := range events {
			if head, err := e.Head(); err == nil {
				delete(missing, head.ID)
			}
		}
	}
	return len(missing) == 0
}

// count counts the events of some kinds that a connection was shown. The recorder
// is locked.
func (w *recorder) count(connection int, kinds ...event.Type) (n int) {
	for _, e := range w.shown[connection] {
		for _, kind := range kinds {
			if e.Type == kind {
				n++
			}
		}
	}
	return n
}
