package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// A witness knows what the runtime has promised: what it acknowledged and what
// it showed. It lives outside, so that nothing of it is lost.
type witness struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	opened   bool          // that the session exists was acknowledged
	sent     map[string]string
	answered map[string]bool
	shown    [][]event.Event // by connection, in order
	asking   int             // requests that were not answered yet
	reports  []report        // of the present victim
	each     func()          // called for every event that is shown
}

func newWitness() *witness {
	return &witness{changed: make(chan struct{}), sent: make(map[string]string), answered: make(map[string]bool), each: func() {}}
}

// note changes what the witness knows.
func (w *witness) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

var errDied = errors.New("the victim is dead")

// until waits until something is true of what the witness knows.
func (w *witness) until(ctx context.Context, dead <-chan struct{}, is func() bool) error {
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

// connected begins a new list of what is shown, and returns its number.
func (w *witness) connected() (n int) {
	w.note(func() { w.shown, n = append(w.shown, nil), len(w.shown) })
	return n
}

// reported takes in what the victim tells of its writes.
func (w *witness) reported(r report) {
	w.note(func() { w.reports = append(w.reports, r) })
}

// showed takes in a session.event notification.
func (w *witness) showed(connection int, params json.RawMessage) error {
	var p api.EventParams
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	e, err := event.Parse(p.Seq, p.Event)
	w.note(func() { w.shown[connection] = append(w.shown[connection], e) })
	w.each()
	return err
}

// hasSeen reports whether all these events were shown. The witness is locked.
func (w *witness) hasSeen(ids []string) bool {
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

// count counts the events of some kinds that a connection was shown. The witness
// is locked.
func (w *witness) count(connection int, kinds ...event.Type) (n int) {
	for _, e := range w.shown[connection] {
		for _, kind := range kinds {
			if e.Type == kind {
				n++
			}
		}
	}
	return n
}
