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

// A Retention says which sessions are old enough to be deleted.
type Retention struct {
	Before time.Time         // sessions that were modified later are kept
	Named  bool              // true if sessions with a name are deleted, too
	Except []event.SessionID // sessions that are kept
}

// A Verdict is what a retention means for a session that is old.
type Verdict struct {
	Session eventlog.Session
	Keep    string // reason why it is kept although it is old; empty if it is to be deleted
}

// Old yields the sessions that are old, and whether they are to be deleted. It changes
// nothing.
func (h *Host) Old(ctx context.Context, r Retention) iter.Seq2[Verdict, error] {
	return func(yield func(Verdict, error) bool) {
		for s, err := range h.Find(ctx, eventlog.Query{ModifiedBefore: r.Before}) {
			v := Verdict{Session: s}
			if err == nil {
				v.Keep = h.reasonToKeep(ctx, s, r)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// reasonToKeep returns the reason why an old session is kept, or nothing.
func (h *Host) reasonToKeep(ctx context.Context, s eventlog.Session, r Retention) string {
	switch {
	case slices.Contains(r.Except, s.ID):
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
	case s.Info.Name != "" && !r.Named:
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

// DeleteOld deletes a session that is old, unless there is a reason to keep it by now,
// which it returns. Nothing happens to the session between the two.
func (h *Host) DeleteOld(ctx context.Context, id event.SessionID, r Retention) (keep string, err error) {
	err = h.delete(ctx, id, func() error {
		s, err := h.store.Session(ctx, id)
		switch {
		case err != nil:
			return err
		case !s.Modified.Before(r.Before):
			keep = "it was used meanwhile"
		default:
			keep = h.reasonToKeep(ctx, s, r)
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
func (h *Host) Expire(ctx context.Context, r Retention) (deleted int, err error) {
	for v, failed := range h.Old(ctx, r) {
		if failed != nil {
			return deleted, errors.Join(err, failed)
		}
		if v.Keep != "" {
			continue
		}
		keep, failed := h.DeleteOld(ctx, v.Session.ID, r)
		switch {
		case ctx.Err() != nil:
			return deleted, context.Cause(ctx)
		case failed != nil && !errors.Is(failed, ErrNotFound):
			err = errors.Join(err, failed)
		case failed == nil && keep == "":
			h.log.Info("an old session was deleted", "session", v.Session.ID, "modified", v.Session.Modified)
			deleted++
		}
	}
	return deleted, err
}
