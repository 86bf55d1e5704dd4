package session

import (
	"context"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// A Viewer is shown the events of sessions, in order.
type Viewer interface {
	// Event shows one event. It must not block: if there is no room it reports
	// false, and calls View.CatchUp when there is.
	Event(id event.SessionID, e event.Event) bool
}

// A feed passes on what happens in a session. A viewer that cannot keep up
// loses what is not stored, and reads the rest from the log.
type feed struct {
	session *Session

	mu    sync.Mutex
	last  event.Seq // the last stored event that was passed on
	views []*View
}

// A View is one viewer's place in a session's events.
type View struct {
	feed   *feed
	viewer Viewer
	hidden bool // show all kinds

	// Guarded by feed.mu.
	at      event.Seq // the last stored event that was shown or passed over
	live    bool      // gets events as they happen
	reading bool      // somebody is catching up
	closed  bool
}

// open adds a view that is to be shown what comes after the given position. It
// shows nothing before CatchUp is called.
func (f *feed) open(viewer Viewer, at event.Seq, hidden bool) *View {
	v := &View{feed: f, viewer: viewer, at: at, hidden: hidden}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views = append(f.views, v)
	return v
}

// Close ends a view.
func (v *View) Close() {
	f := v.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	v.closed, v.live = true, false
	for i, other := range f.views {
		if other == v {
			f.views = append(f.views[:i:i], f.views[i+1:]...)
			return
		}
	}
}

func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.views) > 0
}

// reached tells the feed how long the log is.
func (f *feed) reached(seq event.Seq) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, seq)
}

// publish passes events on to everyone who keeps up.
func (f *feed) publish(events ...event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if e.Seq > 0 {
			f.last = e.Seq
		}
		for _, v := range f.views {
			if v.live && (e.Seq == 0 || e.Seq > v.at) {
				v.show(e)
			}
		}
	}
}

// show passes one event on. The feed's mutex is held.
func (v *View) show(e event.Event) {
	if v.hidden || !e.Type.Hidden() {
		if !v.viewer.Event(v.feed.session.id, e) {
			v.live = false
			return
		}
	}
	if e.Seq > 0 {
		v.at = e.Seq
	}
}

// CatchUp shows what is stored and was not shown yet, and then lets the view
// follow what happens. If the viewer has no room it stops, and is to be called
// again.
func (v *View) CatchUp(ctx context.Context) error {
	f := v.feed
	f.mu.Lock()
	if v.reading || v.live || v.closed {
		f.mu.Unlock()
		return nil
	}
	v.reading = true
	defer func() { v.reading = false; f.mu.Unlock() }()
	for {
		if v.at >= f.last { // nothing is missing: follow
			v.live = true
			return nil
		}
		more, err := v.readOn(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// readOn shows what the log has after the view's position. It is called with
// the feed's mutex held and gives it up while it reads.
func (v *View) readOn(ctx context.Context) (more bool, err error) {
	f := v.feed
	after := v.at
	f.mu.Unlock()
	defer f.mu.Lock()
	for e, err := range f.session.host.store.Read(ctx, f.session.id, after) {
		if err != nil {
			return false, err
		}
		f.mu.Lock()
		if v.closed {
			f.mu.Unlock()
			return false, nil
		}
		v.show(e)
		stuck := v.at != e.Seq
		f.mu.Unlock()
		if stuck {
			return false, nil
		}
	}
	return true, nil
}
