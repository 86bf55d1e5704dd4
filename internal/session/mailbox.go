package session

import (
	"sync"
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
