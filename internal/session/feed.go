package session

import (
	"context"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
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
	end   eventlog.End // the end of what was passed on
	views []*View
}

// A View is one viewer's place in a session's events.
type View struct {
	feed   *feed
	viewer Viewer

	// Guarded by feed.mu.
	at      eventlog.End // the end after the last stored event that was shown or skipped
	unsure  bool         // true if only the position of at is known
	live    bool         // true while the view gets events as they happen
	reading bool         // true while somebody is in CatchUp
	closed  bool
	pieces  bool          // true if the view shows answers in pieces
	news    []event.Event // events that are not stored, and are shown when the view has caught up
}

// open adds a view that is to be shown what comes after the given position. It
// shows nothing before CatchUp is called.
func (f *feed) open(viewer Viewer, at event.Seq) *View {
	v := &View{feed: f, viewer: viewer, at: eventlog.End{Seq: at}, unsure: at > 0}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at > 0 && at == f.end.Seq {
		v.at, v.unsure = f.end, false
	}
	f.views = append(f.views, v)
	return v
}

// skipTo lets a view that was shown nothing yet begin after a position. The view may be nil.
func (v *View) skipTo(at event.Seq) {
	if v == nil {
		return
	}
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	v.at, v.unsure = eventlog.End{Seq: at}, true
}

// Position returns the position that the view has come to.
func (v *View) Position() event.Seq {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	return v.at.Seq
}

// Reached returns where the view has come to. It reports false if only the
// position is known.
func (v *View) Reached() (eventlog.End, bool) {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	return v.at, !v.unsure
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

// reached sets the end of the log.
func (f *feed) reached(end eventlog.End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = end
}

// publish passes events on to everyone who keeps up. The log now ends at end.
func (f *feed) publish(end eventlog.End, events []event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = end
	for _, v := range f.views {
		v.follow(end, events)
	}
}

// send passes on an event that is not stored.
func (f *feed) send(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.views {
		if v.live {
			v.show(e)
		}
	}
}

// follow shows events to a view that keeps up. If it does no longer, only the
// position that it reached is known, not the link.
func (v *View) follow(end eventlog.End, events []event.Event) {
	for _, e := range events {
		if !v.live {
			return
		}
		if e.Seq > 0 && e.Seq <= v.at.Seq {
			continue
		}
		if v.show(e) && e.Seq > 0 {
			v.at, v.unsure = eventlog.End{Seq: e.Seq}, true
		}
	}
	if v.live {
		v.at, v.unsure = end, false
	}
}

// show passes one event on. If there is no room for it the view is no longer
// live. The feed's mutex is held.
func (v *View) show(e event.Event) bool {
	if e.Type.Hidden() || (!v.pieces && e.Type.Piece()) {
		return true
	}
	if v.viewer.Event(v.feed.session.id, e) {
		return true
	}
	v.live = false
	return false
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
		if v.at.Seq >= f.end.Seq { // nothing is missing: follow
			v.live = true
			v.showNews()
			return nil
		}
		more, err := v.readOn(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// tell shows an event that is not stored as soon as the view has caught up. It is for a view
// that nobody has called CatchUp for yet.
func (v *View) tell(e event.Event) {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	v.news = append(v.news, e)
}

// showNews shows what the view is to be told when it has caught up. The feed's mutex is
// held.
func (v *View) showNews() {
	for len(v.news) > 0 && v.live && v.show(v.news[0]) {
		v.news = v.news[1:]
	}
}

// readOn shows what the log has after the view's position. It is called with
// the feed's mutex held and gives it up while it reads.
func (v *View) readOn(ctx context.Context) (more bool, err error) {
	f := v.feed
	at, unsure := v.at, v.unsure
	f.mu.Unlock()
	defer f.mu.Lock()
	if unsure {
		if at, err = f.session.host.store.EndAt(ctx, f.session.id, at.Seq); err != nil {
			return false, err
		}
	}
	for e, err := range f.session.host.store.ReadFrom(ctx, f.session.id, at) {
		if err != nil {
			return false, err
		}
		at = at.Next(e.Bytes)
		if !v.caughtUp(e, at) {
			return false, nil
		}
	}
	return true, nil
}

// caughtUp shows an event that was read from the log, and moves the view on. It
// reports false if reading is to stop.
func (v *View) caughtUp(e event.Event, at eventlog.End) bool {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	if v.closed || !v.show(e) {
		return false
	}
	v.at, v.unsure = at, false
	return true
}
