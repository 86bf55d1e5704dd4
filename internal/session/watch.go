package session

import (
	"github.com/abide-run/abide/internal/event"
)

// A Notice tells that something changed in the list of sessions.
type Notice struct {
	Kind    string // "session.created", "session.updated" or "session.deleted"
	Session event.SessionID
}

// A Watcher is told of changes in the list of sessions. Tell must not block.
type Watcher struct {
	Tell func(Notice)
}

// WatchList adds a watcher; the function returned removes it.
func (h *Host) WatchList(w *Watcher) (remove func()) {
	h.watching.Lock()
	defer h.watching.Unlock()
	h.watchers[w] = struct{}{}
	return func() {
		h.watching.Lock()
		defer h.watching.Unlock()
		delete(h.watchers, w)
	}
}

// changed tells that a session was created or went on.
func (h *Host) changed(id event.SessionID, created bool) {
	kind := "session.updated"
	if created {
		kind = "session.created"
	}
	h.told(Notice{kind, id})
}

func (h *Host) told(n Notice) {
	h.watching.Lock()
	defer h.watching.Unlock()
	for w := range h.watchers {
		w.Tell(n)
	}
}
