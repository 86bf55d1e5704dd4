package sqlite

import (
	"context"
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

// heads remembers sessions that were appended to, and who waits for one. Only
// a commit adds to it, when it is done: so it is never ahead of the file,
// and never behind it.
type heads struct {
	mu      sync.Mutex
	known   map[event.SessionID]head
	waiting map[event.SessionID]*bell
}

// A bell is rung when something happens to a session.
type bell struct {
	rung    chan struct{}
	waiters int
}

func newHeads() heads {
	return heads{known: make(map[event.SessionID]head), waiting: make(map[event.SessionID]*bell)}
}

func (h *heads) get(id event.SessionID) (head, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.known[id]
	return known, ok
}

// set moves a session's head and wakes who waits for it.
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
	h.ring(id)
}

// forget makes everyone look into the file again.
func (h *heads) forget(id event.SessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, id)
	h.ring(id)
}

func (h *heads) ring(id event.SessionID) {
	if b := h.waiting[id]; b != nil {
		close(b.rung)
		delete(h.waiting, id)
	}
}

// listen returns the session's bell; leave gives it back.
func (h *heads) listen(id event.SessionID) *bell {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.waiting[id]
	if b == nil {
		b = &bell{rung: make(chan struct{})}
		h.waiting[id] = b
	}
	b.waiters++
	return b
}

func (h *heads) leave(id event.SessionID, b *bell) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.waiters--; b.waiters == 0 && h.waiting[id] == b {
		delete(h.waiting, id)
	}
}

// Wait implements eventlog.Log.
func (s *Store) Wait(ctx context.Context, id event.SessionID, after event.Seq) error {
	for {
		// Listen first, look second: nothing that happens in between is missed.
		b := s.heads.listen(id)
		h, err := s.head(ctx, id)
		if err == nil && h.end.Seq <= after {
			err = s.sleep(ctx, b)
		}
		s.heads.leave(id, b)
		if err != nil || h.end.Seq > after {
			return err
		}
	}
}

func (s *Store) sleep(ctx context.Context, b *bell) error {
	select {
	case <-b.rung:
		return nil
	case <-s.closing:
		return s.cause
	case <-ctx.Done():
		return ctx.Err()
	}
}
