package session

import (
	"github.com/abide-run/abide/internal/eventlog"
)

// A Notice tells that something changed in the list of sessions.
type Notice struct {
	Kind    string
	Session eventlog.Session // only the id if the session was deleted
}

// These are the kinds of notices.
const (
	Created = "session.created"
	Updated = "session.updated"
	Deleted = "session.deleted"
)

// A Watcher is told of changes in the list of sessions. Tell must not block.
type Watcher struct {
	Tell func(Notice)
}

// WatchList adds a watcher; the function returned removes it.
func (cs Clients) WatchList(w *Watcher) (remove func()) {
	cs.host.watching.Lock()
	defer cs.host.watching.Unlock()
	cs.host.watchers[w] = struct{}{}
	return func() {
		cs.host.watching.Lock()
		defer cs.host.watching.Unlock()
		delete(cs.host.watchers, w)
	}
}

func (h *Host) notifyWatchers(n Notice) {
	h.watching.Lock()
	defer h.watching.Unlock()
	for w := range h.watchers {
		w.Tell(n)
	}
}
