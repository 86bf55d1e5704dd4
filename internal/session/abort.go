package session

import (
	"context"
	"errors"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// Abort stops the turn and clears the queue. It is no error if no turn is running.
func (h *Host) Abort(ctx context.Context, id event.SessionID, reason string) error {
	return h.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil || !tx.State.Active() {
			return err
		}
		return tx.abort(reason, false)
	})
}

// Interrupt stops the turn, and reports whether one was running. With keepQueue, the
// next turn begins with what waits in the queue.
func (h *Host) Interrupt(ctx context.Context, id event.SessionID, keepQueue bool) (interrupted bool, err error) {
	err = h.change(ctx, id, func(tx *txn) error {
		if interrupted = tx.State.Turn != nil; !interrupted {
			return nil
		}
		return tx.abort("user_initiated", keepQueue)
	})
	return interrupted, err
}

func (tx *txn) abort(reason string, keepQueue bool) error {
	if err := tx.abortWork(keepQueue); err != nil {
		return err
	}
	about := func(h event.HookStartData) bool { return h.InputID == "" || !keepQueue }
	record := turn.Interrupt(tx.State, "Session aborted", func(*turn.Call) bool { return true })
	record = append(record, turn.CloseHooks(tx.State, "Session aborted", func(h event.HookStartData) bool { return len(h.Calls) == 0 && about(h) })...)
	record = append(record, tx.State.DropCommand("Session aborted")...)
	abort := event.AbortFor(reason)
	abort.KeepQueue = keepQueue
	return tx.record(append(record, abort)...)
}

var errAborted = errors.New("the turn was aborted")

// Suspend stops the turn without ending it, until somebody resumes the session or
// sends it something. Open permission questions are cancelled; other questions stay
// open.
func (h *Host) Suspend(ctx context.Context, id event.SessionID) error {
	return h.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil || !tx.State.Active() || tx.State.Life.Suspended {
			return err
		}
		tx.s.asking.stop(errSuspended)
		if err := tx.record(turn.Suspend(tx.State)...); err != nil {
			return err
		}
		tx.send(event.AssistantIdleData{Aborted: true})
		tx.send(event.SessionIdleData{Aborted: true, Totals: tx.State.About.Totals})
		return nil
	})
}

var errSuspended = errors.New("the session was suspended")

// unsuspend records that a suspended session goes on.
func (tx *txn) unsuspend() error {
	if !tx.State.Life.Suspended {
		return nil
	}
	return tx.record(event.SessionSuspendedData{})
}

// End ends the use of a session for all its clients. Its turn is suspended until
// somebody resumes the session.
func (h *Host) End(ctx context.Context, id event.SessionID, d event.ShutdownData) error {
	return h.change(ctx, id, func(tx *txn) error {
		s := tx.State
		d.Started, d.APIDuration, d.Model = s.About.Started.UnixMilli(), s.About.Totals.DurationMs, s.Setup.Model
		d.Changes.Files, d.Metrics = []string{}, map[string]struct{}{}
		if err := tx.record(d); err != nil {
			return err
		}
		if s.Active() && !s.Life.Suspended {
			tx.s.asking.stop(errSuspended)
			if err := tx.record(event.SessionSuspendedData{Suspended: true}); err != nil {
				return err
			}
		}
		tx.afterCommit = append(tx.afterCommit, tx.s.clients.removeAll)
		return nil
	})
}
