package session

import (
	"errors"
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

// put adds an intent. It reports whether the caller has to drain the mailbox, which
// it must enter for, and false if the session was removed from memory meanwhile. If
// the host is closed, the intent is finished with that.
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

// An intent is something that somebody wants of a session.
type intent struct {
	do       func(*txn) error
	readOnly bool       // it only looks: nothing follows from it
	done     chan error // buffered; nil if nobody waits
	err      error

	started atomic.Bool // it is carried out, or was withdrawn
}

// errWithdrawn means that nobody wants an intent any more.
var errWithdrawn = errors.New("the request was withdrawn")

// run carries an intent out, unless it was withdrawn.
func (in *intent) run(tx *txn) error {
	if !in.started.CompareAndSwap(false, true) {
		return errWithdrawn
	}
	return in.do(tx)
}

func (in *intent) finish(err error) {
	if in.done != nil {
		in.done <- err
	}
}

// take empties the inbox.
func (m *mailbox) take() []*intent {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch := m.inbox
	m.inbox = nil
	return batch
}

func (m *mailbox) stopTimer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
}

// enqueue hands over an intent. If nobody drains the inbox, that is now up to the
// caller, with run. It reports false if the session was removed from memory
// meanwhile.
func (s *Session) enqueue(in *intent) (run func(), ok bool) {
	switch drain, ok := s.mailbox.put(in, s.host.enter); {
	case !ok:
		return nil, false
	case drain:
		return s.drain, true
	default:
		return func() {}, true
	}
}

// post hands over an intent that nobody waits for.
func (s *Session) post(f func(*txn) error) {
	for {
		if run, ok := s.enqueue(&intent{do: f}); ok {
			run()
			return
		}
		s = s.host.get(s.id)
	}
}

// drain carries out what is in the inbox. Whoever has something for a session at
// rest does this for itself: a plain turn should not wait for goroutines to be
// woken. What arrives meanwhile is left to a goroutine of its own.
func (s *Session) drain() {
	s.carryOut(s.mailbox.take())
	if s.endDraining() {
		s.host.leave()
		return
	}
	go func() {
		defer s.host.leave()
		for more := true; more; more = !s.endDraining() {
			s.carryOut(s.mailbox.take())
		}
	}()
}

// endDraining ends the draining if the inbox is empty, and reports whether it did.
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

// unload takes the session out of memory, unless it has something to do.
func (s *Session) unload() {
	if run, ok := s.enqueue(&intent{do: func(tx *txn) error { tx.unload = true; return nil }}); ok {
		run()
	}
}
