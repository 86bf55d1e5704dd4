package session

import (
	"sync"

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
	return cs.host.watchers.add(w)
}

// watchList has the watchers of the list of sessions. It is safe for concurrent use.
type watchList struct {
	mu  sync.Mutex
	all map[*Watcher]struct{}
}

func (l *watchList) add(w *Watcher) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[w] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, w)
	}
}

func (l *watchList) notify(n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.all {
		w.Tell(n)
	}
}
