package session

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// looking is the activity of reading what a decision of the session needs: files of the
// project, and what a call would do to them. They may be on another machine that does not
// answer, so that nothing in the session waits for them but what needs them.
type looking struct {
	now  map[string]*look // readings that are under way, by subject
	seen map[string]*look // finished readings that are not used yet, by subject
	near []string         // folders that were on disks of this machine when they were read last
}

// isNear reports whether folders were on disks of this machine when they were read last.
func (l *looking) isNear(folders []string) bool {
	return l.near != nil && slices.Equal(l.near, folders)
}

// A look is one reading.
type look struct {
	of     any // value that the reading depends on
	found  any
	cancel context.CancelFunc
}

// errLooking means that something is being looked at. The session goes on when it was
// found.
var errLooking = errors.New("something is being looked at")

// lookTime is how long a transaction waits for a look by default. Files of this machine are read in
// less, and need no second transaction; everything else is waited for beside the session.
const lookTime = 5 * time.Millisecond

// nearTime is how long a transaction waits for a look at folders on disks of this machine. If
// it takes longer, a network may have come in between.
const nearTime = 100 * time.Millisecond

func (l *looking) busy() bool { return len(l.now) > 0 }

func (l *looking) stop(error) {
	for _, now := range l.now {
		now.cancel()
	}
	l.now, l.seen = nil, nil
}

func (l *looking) abort(*txn, event.AbortData) error {
	l.stop(errAborted)
	return nil
}

// take returns what a finished look has found, if it depended on the same.
func (l *looking) take(subject string, of any) (*look, bool) {
	seen := l.seen[subject]
	delete(l.seen, subject)
	return seen, seen != nil && reflect.DeepEqual(seen.of, of)
}

// lookAt returns what do finds out about a subject, or errLooking if that takes longer than
// a moment: then the session tries again when it was found. The reading depends on nothing
// but of, and may use neither the session nor its state. Its context ends when nobody needs
// it any more: then what it returns is not used.
func lookAt[T any](s *Session, subject string, of any, do func(context.Context) T) (found T, err error) {
	return lookFor(s, s.host.opts.LookTime, subject, of, do)
}

// lookFor is lookAt with the time that a moment takes.
func lookFor[T any](s *Session, moment time.Duration, subject string, of any, do func(context.Context) T) (found T, err error) {
	if l, ok := s.looking.take(subject, of); ok {
		return l.found.(T), nil
	}
	if now := s.looking.now[subject]; now != nil && reflect.DeepEqual(now.of, of) {
		return found, errLooking
	}
	ctx, cancel := context.WithCancel(s.host.ctx)
	l := &look{of: of, cancel: cancel}
	soon, late := make(chan T), make(chan struct{})
	spawned := s.spawn(func() {
		defer cancel()
		found := do(ctx)
		select {
		case soon <- found:
		case <-late:
			if ctx.Err() != nil { // nobody needs it, and it may have found nothing because of that
				return
			}
			l.found = found
			s.post(func(tx *txn) error { tx.s.looking.finish(subject, l); return nil })
		}
	})
	if !spawned {
		cancel()
		return found, ErrClosed
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case found = <-soon:
		return found, context.Cause(s.host.ctx)
	case <-timer.C:
	}
	s.looking.start(subject, l)
	close(late)
	return found, errLooking
}

func (l *looking) start(subject string, at *look) {
	if l.now == nil {
		l.now = make(map[string]*look)
	}
	if before := l.now[subject]; before != nil {
		before.cancel()
	}
	l.now[subject] = at
}

// finish takes in what a look has found, unless it was given up.
func (l *looking) finish(subject string, at *look) {
	if l.now[subject] != at {
		return
	}
	delete(l.now, subject)
	if l.seen == nil {
		l.seen = make(map[string]*look)
	}
	l.seen[subject] = at
}
