package session

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A mailbox holds the intents that a session has yet to carry out, and knows whether
// a goroutine drains it.
type mailbox struct {
	mu      sync.Mutex
	inbox   []*intent
	working bool        // true while a goroutine drains the inbox
	gone    bool        // true when the session was removed from the host: put refuses
	timer   *time.Timer // takes an idle session out of memory
}

// put adds an intent. It reports whether the caller has to drain the mailbox, for
// which it calls enter first. It reports ok as false if the session was removed from
// memory meanwhile. If enter refuses, the intent is finished with ErrClosed.
func (m *mailbox) put(in *intent, enter func() bool) (drain, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return false, false
	}
	if !m.working && !enter() {
		in.finish(ErrClosed)
		return false, true
	}
	m.inbox = append(m.inbox, in)
	drain = !m.working
	m.working = true
	return drain, true
}

// An intent is a request to read or change a session.
type intent struct {
	do       func(*txn) error
	readOnly bool       // true if it changes nothing, so that the turn need not go on
	upkeep   bool       // true if nobody asked for it: it makes no turn go on that nobody has asked for
	alone    bool       // true if it has a transaction of its own: what it does cannot be taken back if others fail
	done     chan error // buffered; nil if nobody waits
	err      error
	unread   func(*Session, error) error // carried out if the log cannot be read; nil if the intent then fails

	started atomic.Bool // true when it is carried out or was withdrawn
}

// errWithdrawn means that the caller of an intent has left before the intent was
// carried out.
var errWithdrawn = errors.New("the request was withdrawn")

// run carries out an intent, unless it was withdrawn.
func (in *intent) run(tx *txn) error {
	if !in.started.CompareAndSwap(false, true) {
		return errWithdrawn
	}
	return in.do(tx)
}

// runUnread carries out what an intent does if the log cannot be read because of err.
func (in *intent) runUnread(s *Session, err error) error {
	switch {
	case in.unread == nil:
		return err
	case !in.started.CompareAndSwap(false, true):
		return errWithdrawn
	default:
		return in.unread(s, err)
	}
}

func (in *intent) finish(err error) {
	if in.done != nil {
		in.done <- err
	}
}

// take removes the intents of the next transaction from the inbox: all of them, or those
// before an intent that is to be alone, or that one.
func (m *mailbox) take() []*intent {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.inbox)
	if i := slices.IndexFunc(m.inbox, func(in *intent) bool { return in.alone }); i >= 0 {
		n = max(i, 1)
	}
	batch := m.inbox[:n:n]
	m.inbox = append([]*intent(nil), m.inbox[n:]...) // nil if all are taken
	return batch
}

func (m *mailbox) stopTimer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
}

// enqueue puts an intent into the mailbox. The caller has to call run afterwards,
// which drains the mailbox if nobody else does. It reports false if the session was
// removed from memory meanwhile.
func (s *Session) enqueue(in *intent) (run func(), ok bool) {
	switch drain, ok := s.mailbox.put(in, s.host.enterDraining); {
	case !ok:
		return nil, false
	case drain:
		return s.drain, true
	default:
		return func() {}, true
	}
}

// post carries out an intent of the session itself without waiting for its outcome.
func (s *Session) post(f func(*txn) error) { s.postIntent(&intent{do: f, upkeep: true}) }

// postIntent is post for an intent of any kind.
func (s *Session) postIntent(in *intent) {
	for {
		if run, ok := s.enqueue(in); ok {
			run()
			return
		}
		s = s.host.get(s.id)
	}
}

// drain carries out the intents in the inbox. The first batch runs in the caller's
// goroutine, so that a plain turn does not wait for a goroutine to be scheduled.
// Intents that arrive meanwhile are carried out in a goroutine of their own.
func (s *Session) drain() {
	s.carryOut(s.mailbox.take())
	if s.endDraining() {
		s.host.leaveDraining()
		return
	}
	go func() {
		defer s.host.leaveDraining()
		for more := true; more; more = !s.endDraining() {
			s.carryOut(s.mailbox.take())
		}
	}()
}

// endDraining stops draining if the inbox is empty, and reports whether it did.
func (s *Session) endDraining() bool {
	s.mailbox.mu.Lock()
	if len(s.mailbox.inbox) > 0 {
		s.mailbox.mu.Unlock()
		return false
	}
	s.mailbox.working = false
	s.restLocked()
	unloaded := s.state == nil
	s.mailbox.mu.Unlock()
	if unloaded {
		s.host.evict(s)
	}
	return true
}

// restLocked arms the timer that takes an idle session out of memory.
func (s *Session) restLocked() {
	switch {
	case s.state == nil || !s.isQuiet():
		if s.mailbox.timer != nil {
			s.mailbox.timer.Stop()
		}
	case s.mailbox.timer == nil:
		s.mailbox.timer = time.AfterFunc(s.host.opts.Rest, s.unload)
	default:
		s.mailbox.timer.Reset(s.host.opts.Rest)
	}
}

// unload removes the session's state from memory, unless something is under way.
func (s *Session) unload() {
	if run, ok := s.enqueue(&intent{do: func(tx *txn) error { tx.unload = true; return nil }, readOnly: true}); ok {
		run()
	}
}
