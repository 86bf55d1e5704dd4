package sqlite

import (
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// maxHeads bounds the memory that is spent on saving a query.
const maxHeads = 4096

// A head is what an append and a reader need to know of a session.
type head struct {
	session int64
	end     eventlog.End
	parent  int64 // zero if it is no fork
	shared  event.Seq
	base    eventlog.Hash // of the chain after what it shares
	damage  *eventlog.Damage
}

// heads remembers sessions that were appended to. Only a commit adds to it, when it
// is done: so it is never ahead of the file, and never behind it.
type heads struct {
	mu    sync.Mutex
	known map[event.SessionID]head
}

func newHeads() heads { return heads{known: make(map[event.SessionID]head)} }

func (h *heads) get(id event.SessionID) (head, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.known[id]
	return known, ok
}

// set moves a session's head.
func (h *heads) set(id event.SessionID, now head) {
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

// forget makes everyone look into the file again.
func (h *heads) forget(id event.SessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, id)
}
