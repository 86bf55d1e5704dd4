package session

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Retention deletes sessions that are old.
type Retention struct{ host *Host }

// An Age says which sessions are old enough to be deleted.
type Age struct {
	Before time.Time         // sessions that were modified later are kept
	Named  bool              // true if sessions with a name are deleted, too
	Except []event.SessionID // sessions that are kept
}

// A Verdict is what becomes of a session that is old.
type Verdict struct {
	Session eventlog.Session
	Keep    string // reason why it is kept although it is old; empty if it is to be deleted
}

// Old yields the sessions that are old, and whether they are to be deleted. It changes
// nothing.
func (rs Retention) Old(ctx context.Context, a Age) iter.Seq2[Verdict, error] {
	return func(yield func(Verdict, error) bool) {
		for s, err := range rs.host.List(ctx, eventlog.Query{Listed: true, ModifiedBefore: a.Before}) {
			v := Verdict{Session: s}
			if err == nil {
				v.Keep = rs.host.reasonToKeep(ctx, s, a)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// reasonToKeep returns the reason why an old session is kept, or nothing.
func (h *Host) reasonToKeep(ctx context.Context, s eventlog.Session, a Age) string {
	switch {
	case slices.Contains(a.Except, s.ID):
		return "it is excluded"
	case s.Damage != nil:
		return "it is damaged"
	case s.Info.Questions > 0:
		return "it waits for an answer"
	case s.Info.Active:
		return "it is unfinished"
	case s.Info.Tasks > 0:
		return "a command of it is running"
	case h.Clients.InUse(s.ID):
		return "it is in use"
	case s.Info.Name != "" && !a.Named:
		return "it has a name"
	}
	for _, id := range h.agentsOf(ctx, s.ID) {
		if agent, err := h.store.Session(ctx, id); err == nil && agent.Busy() {
			return "an agent of it is unfinished"
		}
	}
	return ""
}

// errKept means that there is a reason to keep a session.
var errKept = errors.New("the session is kept")

// Delete deletes a session that is old, unless there is a reason to keep it by now,
// which it returns. Nothing happens to the session between the two, and an input that the
// session has accepted before is a reason.
func (rs Retention) Delete(ctx context.Context, id event.SessionID, a Age) (keep string, err error) {
	err = rs.host.delete(ctx, id, func() error {
		s, err := rs.host.store.Session(ctx, id)
		switch {
		case err != nil:
			return err
		case !s.Modified.Before(a.Before):
			keep = "it was used meanwhile"
		default:
			keep = rs.host.reasonToKeep(ctx, s, a)
		}
		if keep != "" {
			return errKept
		}
		return nil
	})
	if errors.Is(err, errKept) {
		err = nil
	}
	return keep, err
}

// Expire deletes the sessions that are old. An error of one does not keep the others.
func (rs Retention) Expire(ctx context.Context, a Age) (deleted int, err error) {
	for v, failed := range rs.Old(ctx, a) {
		if failed != nil {
			return deleted, errors.Join(err, failed)
		}
		if v.Keep != "" {
			continue
		}
		keep, failed := rs.Delete(ctx, v.Session.ID, a)
		switch {
		case ctx.Err() != nil:
			return deleted, context.Cause(ctx)
		case failed != nil && !errors.Is(failed, ErrNotFound):
			err = errors.Join(err, failed)
		case failed == nil && keep == "":
			rs.host.log.Info("an old session was deleted", "session", v.Session.ID, "modified", v.Session.Modified)
			deleted++
		}
	}
	return deleted, err
}
