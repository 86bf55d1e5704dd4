package guard

import (
	"context"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// sessionLocks serialise the looks of each session. The locks of two sessions never are
// the same: a look can wait for a workspace that is away.
type sessionLocks struct {
	mu   sync.Mutex
	held map[event.SessionID]*sessionLock
}

type sessionLock struct {
	free  chan struct{} // has an element while nobody holds the lock
	users int           // number of those that hold it or wait for it
}

// lock locks a session and returns the function that unlocks it. It waits no longer than
// the context lasts.
func (l *sessionLocks) lock(ctx context.Context, id event.SessionID) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[event.SessionID]*sessionLock)
	}
	one := l.held[id]
	if one == nil {
		one = &sessionLock{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		l.held[id] = one
	}
	one.users++
	l.mu.Unlock()
	select {
	case <-one.free:
		return func() { one.free <- struct{}{}; l.leave(id, one) }, nil
	case <-ctx.Done():
		l.leave(id, one)
		return nil, context.Cause(ctx)
	}
}

func (l *sessionLocks) leave(id event.SessionID, one *sessionLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.held, id)
	}
}
