package rest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// A hub passes on what changes in the list of sessions. The host has one watcher for all
// streams, so that a change of one session costs nothing for the readers of the others.
type hub struct {
	mu      sync.Mutex
	gone    map[event.SessionID][]*follower // followers to be told that a session was deleted
	lists   map[*follower]bool              // followers of the whole list
	asking  map[event.SessionID]bool        // sessions that had open questions when they last changed, or were listed
	changed chan struct{}                   // closed and replaced when the open questions may have changed
}

func (h *hub) open() {
	h.gone = make(map[event.SessionID][]*follower)
	h.lists = make(map[*follower]bool)
	h.asking = make(map[event.SessionID]bool)
	h.changed = make(chan struct{})
}

// tell takes a change in. It does not block.
func (h *hub) tell(n session.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := n.Session.ID
	asks := n.Kind != session.Deleted && n.Session.Info.Questions > 0
	if asks || h.asking[id] {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	if asks {
		h.asking[id] = true
	} else {
		delete(h.asking, id)
	}
	if n.Kind == session.Deleted {
		for _, f := range h.gone[id] {
			f.deleted(id)
		}
	}
	for f := range h.lists {
		f.listed(n)
	}
}

// questions returns a channel that is closed when the open questions may have changed.
func (h *hub) questions() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// expect takes in that sessions have open questions, so that a change of them is told to those
// who wait. It reports whether it did not know that of one of them: then a change since the
// list was read was told to nobody.
func (h *hub) expect(list []Question) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range list {
		news = news || !h.asking[q.AskedBy]
		h.asking[q.AskedBy] = true
	}
	return news
}

// follow has a follower told of the deletion of a session, until the returned function
// is called.
func (h *hub) follow(id event.SessionID, f *follower) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[id] = append(h.gone[id], f)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, other := range h.gone[id] {
			if other == f {
				h.gone[id] = append(h.gone[id][:i:i], h.gone[id][i+1:]...)
				break
			}
		}
		if len(h.gone[id]) == 0 {
			delete(h.gone, id)
		}
	}
}

// followList has a follower told of all changes, until the returned function is called.
func (h *hub) followList(f *follower) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists[f] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.lists, f)
	}
}

// maxBehind is how many bytes of events wait for a reader. Beyond it, what is stored is
// read from the log when the reader has room, and what is not stored is dropped.
const maxBehind = 256 << 10

// A follower collects what a reader is to be sent: events of sessions, and changes in the
// list of sessions.
type follower struct {
	ready chan struct{} // holds a token if there may be something to take or to do
	ended atomic.Bool   // true if the reader has left, or the server is about to stop
	beats atomic.Bool   // true if the reader is to be told that the stream is alive

	mu      sync.Mutex
	queue   []shown
	size    int
	full    bool // true if a stored event had no room
	removed []event.SessionID
	notices map[event.SessionID]session.Notice // the last change of each session
	order   []event.SessionID                  // the sessions of notices, in order
}

// shown is an event of a session.
type shown struct {
	session event.SessionID
	event   event.Event
}

func newFollower() *follower {
	return &follower{ready: make(chan struct{}, 1), notices: make(map[event.SessionID]session.Notice)}
}

// hint wakes the goroutine that waits.
func (f *follower) hint() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// endWith ends the follower when a request is over, or when the server is about to stop. The
// returned function forgets both.
func (f *follower) endWith(ctx context.Context) (forget func()) {
	end := func() { f.ended.Store(true); f.hint() }
	over := context.AfterFunc(ctx, end)
	server, ok := ctx.Value(leavingKey{}).(context.Context)
	if !ok {
		return func() { over() }
	}
	stops := context.AfterFunc(server, end)
	return func() { over(); stops() }
}

// Lost implements session.Loser: the reader comes back, and is shown the session by the server that
// works on it.
func (f *follower) Lost(event.SessionID) {
	f.ended.Store(true)
	f.hint()
}

// Event takes an event. It is called with locks of the session held.
func (f *follower) Event(id event.SessionID, e event.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full || f.size > 0 && f.size+len(e.Bytes) > maxBehind {
		if e.Seq == 0 {
			return true // it is dropped
		}
		f.full = true
		f.hint()
		return false
	}
	f.queue, f.size = append(f.queue, shown{id, e}), f.size+len(e.Bytes)
	f.hint()
	return true
}

func (f *follower) deleted(id event.SessionID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, id)
	f.hint()
}

func (f *follower) listed(n session.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.notices[n.Session.ID]
	if !known {
		f.order = append(f.order, n.Session.ID)
	}
	if known && before.Kind == session.Created && n.Kind == session.Updated {
		n.Kind = session.Created
	}
	f.notices[n.Session.ID] = n
	f.hint()
}

// taken is what a follower had collected.
type taken struct {
	events  []shown
	full    bool // true if stored events were left out, which the log has
	removed []event.SessionID
	notices []session.Notice
}

// take returns what was collected, and begins anew. The slices of spare are used again.
func (f *follower) take(spare []shown) taken {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := taken{events: f.queue, full: f.full, removed: f.removed}
	for _, id := range f.order {
		t.notices = append(t.notices, f.notices[id])
	}
	f.queue, f.size, f.full, f.removed, f.order = spare[:0], 0, false, nil, nil
	clear(f.notices)
	return t
}
