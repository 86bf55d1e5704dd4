package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// Work knows where the files of sessions are, which sessions this engine goes on with, and
// whether it has work.
type Work struct{ host *Host }

// gate knows whether the host may begin something, and what it has begun.
type gate struct {
	sync.Mutex
	closed   bool
	draining int // number of sessions that carry out intents
	busy     int // number of sessions in which something is under way, and of stops that are not acknowledged
}

// attendance knows which sessions go on by themselves. It is safe for concurrent use.
type attendance struct {
	mu   sync.Mutex
	all  bool                     // true if every session does
	used map[event.SessionID]bool // sessions that somebody has used, if not all go on
}

// add notes that somebody uses a session: from now on it goes on by itself, also
// when it is out of memory meanwhile.
func (a *attendance) add(id event.SessionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.all {
		a.used[id] = true
	}
}

// addAll lets every session go on by itself.
func (a *attendance) addAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.used = true, nil
}

func (a *attendance) has(id event.SessionID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all || a.used[id]
}

func (a *attendance) hasAll() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// GoesOn reports whether this engine goes on with a session by itself. It does not with
// a session that an earlier engine left unfinished and that nobody has used since, if
// the engine is there for one command.
func (w Work) GoesOn(id event.SessionID) bool {
	return w.host.attended.has(id)
}

// Unfinished counts the sessions with an unfinished turn with which this engine does not
// go on. Sessions that wait for an answer are not counted, nor are those of agents.
func (w Work) Unfinished(ctx context.Context) (n int, err error) {
	for s, err := range w.host.store.Active(ctx) {
		if err != nil {
			return 0, fmt.Errorf("find unfinished turns: %w", err)
		}
		if s.Info.Active && !s.Info.Waiting && s.Info.Listed && !w.GoesOn(s.ID) {
			n++
		}
	}
	return n, nil
}

// Busy reports whether something is under way in a session: a request to a model, a call
// of a tool, a hook. A call that waits for an agent is not; what the agent does is. A turn
// that waits for its model counts in an engine that is there for one command: no other
// engine would go on with it.
func (w Work) Busy() bool {
	if w.host.keepsParked() {
		return true
	}
	w.host.gate.Lock()
	defer w.host.gate.Unlock()
	return w.host.gate.busy > 0
}

// StopIfIdle stops the host unless something is under way or about to begin, and reports
// whether it did. From then on whatever clients want is refused with ErrClosed, so that
// nothing begins that would be cut by Close.
func (w Work) StopIfIdle() bool {
	parked := w.host.keepsParked()
	w.host.gate.Lock()
	defer w.host.gate.Unlock()
	if w.host.gate.busy > 0 || w.host.gate.draining > 0 || parked {
		return false
	}
	w.host.gate.closed = true
	return true
}

// enterDraining is enter for a session that carries out intents.
func (h *Host) enterDraining() bool {
	h.gate.Lock()
	defer h.gate.Unlock()
	if h.gate.closed {
		return false
	}
	h.work.Add(1)
	h.gate.draining++
	return true
}

func (h *Host) leaveDraining() {
	h.gate.Lock()
	h.gate.draining--
	h.gate.Unlock()
	h.leave()
}

// countBusy tells the host whether something is under way in the session.
func (s *Session) countBusy() {
	is := s.isBusy()
	if is == s.busy {
		return
	}
	s.busy = is
	s.host.gate.Lock()
	defer s.host.gate.Unlock()
	if is {
		s.host.gate.busy++
	} else {
		s.host.gate.busy--
	}
}

// isBusy reports whether something is under way that would have to be done again, or
// be found again, by another engine.
func (s *Session) isBusy() bool {
	if s.state == nil {
		return false
	}
	for _, a := range s.activities() {
		if a != &s.calls && a.busy() {
			return true
		}
	}
	return len(s.calls.running) > len(s.host.opts.Tools.Working(s.state))
}

// FinishDeletions removes what is left of sessions that were deleted. It does not wait
// for the end of that.
func (w Work) FinishDeletions(ctx context.Context) {
	h := w.host
	gone := h.interruptedDeletions(ctx)
	if len(gone) == 0 {
		return
	}
	h.spawn(func() {
		for _, d := range gone {
			h.finishDeletion(d)
		}
	})
}
