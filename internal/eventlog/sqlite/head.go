package sqlite

import (
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// maxHeads is the number of heads that are cached.
const maxHeads = 4096

// heads caches the heads of sessions that were appended to. Only a finished commit adds
// to it, so that it always agrees with the file.
type heads struct {
	mu    sync.Mutex
	known map[event.SessionID]record.Head
}

func newHeads() heads { return heads{known: make(map[event.SessionID]record.Head)} }

// get returns a session's cached head.
func (h *heads) get(id event.SessionID) (record.Head, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.known[id]
	return known, ok
}

// set caches a session's new head. If the cache is full, it drops any other one.
func (h *heads) set(id event.SessionID, now record.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.known[id]; !known && len(h.known) >= maxHeads {
		for any := range h.known {
			delete(h.known, any)
			break
		}
	}
	h.known[id] = now
}

// forget drops a session's head, so that it is read from the file again.
func (h *heads) forget(id event.SessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, id)
}
