package session

import (
	"fmt"
	"runtime/debug"

	"github.com/abide-run/abide/internal/event"
)

// A panic in one session must not end the others, nor every engine that finds the session
// again. So it is contained: what was to be done fails, the turn ends with an error in the
// log, and the queue is held until somebody sends a message or resumes the session.

// errorInternal is the type of the session.error after a panic.
const errorInternal = "internal"

// carryOut carries out a batch of intents, and contains a panic.
func (s *Session) carryOut(batch []*intent) {
	defer func() {
		if p := recover(); p != nil {
			s.contain(p, batch)
		}
	}()
	s.transact(batch)
}

// contain gives up a transaction that has panicked.
func (s *Session) contain(p any, batch []*intent) {
	err := s.host.reportPanic(s.id, p)
	s.discard(err)
	for _, in := range batch {
		in.giveUp(err)
	}
	if _, again := s.host.broken.LoadOrStore(s.id, true); again { // the session was ended after an earlier panic, and nobody has used it since
		return
	}
	s.host.spawn(func() { s.endBroken(err) })
}

// reportPanic logs a panic, and returns the error for those who wait.
func (h *Host) reportPanic(id event.SessionID, p any) error {
	h.log.Error("abide broke while it worked on a session; please report this", "session", id, "panic", p, "stack", string(debug.Stack()))
	return fmt.Errorf("session %s: abide broke while it worked on it: %v (please report this; the log of the engine has the details)", id, p)
}

// contained calls f for a session that may be out of memory. A panic becomes an error.
func (h *Host) contained(id event.SessionID, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = h.reportPanic(id, p)
		}
	}()
	return f()
}

// endBroken ends the turn of a session in which something has panicked.
func (s *Session) endBroken(cause error) {
	s.post(func(tx *txn) error {
		tx.stays = true
		tx.afterCommit = append(tx.afterCommit, func() { tx.s.post(func(*txn) error { return nil }) }) // the next step may break again
		if tx.State.Seq == 0 {
			return nil
		}
		d := event.AbortFor("internal error")
		d.KeepQueue, d.Hold = true, true
		if tx.State.Active() {
			if err := tx.abort(d); err != nil {
				return err
			}
		}
		return tx.record(event.SessionErrorData{ErrorType: errorInternal, Message: cause.Error()})
	})
}

// spawn runs f beside the session. If f panics, the turn ends with an error.
func (s *Session) spawn(f func()) bool {
	return s.host.spawn(func() {
		defer func() {
			if p := recover(); p != nil {
				s.endBroken(s.host.reportPanic(s.id, p))
			}
		}()
		f()
	})
}

// giveUp finishes an intent that may be finished already.
func (in *intent) giveUp(err error) {
	select {
	case in.done <- err: // not ready if nobody waits, or if the intent is finished already
	default:
	}
}
