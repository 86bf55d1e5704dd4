package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// Fork implements eventlog.Store.
func (s *Store) Fork(ctx context.Context, child, parent event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	a, err := s.prepare(ctx, child, batch)
	if err == nil {
		a.right, err = s.right(ctx, child, batch.Events)
	}
	if err == nil {
		err = s.queue.Do(ctx, &op{Op: group.Op{Events: a.events}, stored: a.isStored, apply: func(ctx context.Context, w *writing, tx pgx.Tx) error { return s.fork(ctx, w, tx, a, parent) }})
	}
	if err != nil {
		return eventlog.End{}, fmt.Errorf("fork %s from %s at event %d: %w", child, parent, batch.After.Seq, err)
	}
	s.era.noteEnd(child, a.end)
	return a.end, nil
}

// fork stores a fork, if its parent passes through the end that it begins from.
func (s *Store) fork(ctx context.Context, w *writing, tx pgx.Tx, a *addition, parent event.SessionID) error {
	from, err := s.lockParent(ctx, tx, parent)
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		return refusal{err}
	case err != nil:
		return err
	case from.Damage != nil && a.after.Seq >= from.Damage.Seq:
		return refusal{from.Damage}
	case !from.Reaches(a.after):
		return refusal{eventlog.ErrConflict}
	}
	end, err := record.EndAt(ctx, rows{tx}, from, a.after.Seq)
	if f, damaged := errors.AsType[*record.Fault](err); damaged {
		return refusal{&eventlog.Damage{Session: parent, Seq: f.At, Reason: f.Reason}}
	}
	if err != nil {
		return err
	}
	if end != a.after {
		return refusal{eventlog.ErrConflict}
	}
	text, args := a.creation(w, &from.Session)
	return s.store(ctx, tx, a, text, args)
}

// Delete implements eventlog.Store.
func (s *Store) Delete(ctx context.Context, id event.SessionID) error {
	err := s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h record.Head) error {
		if err := remove(ctx, tx, h.Session); err != nil {
			return err
		}
		return s.disown(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	s.claims.forget(id)
	s.era.forgetEnd(id)
	return nil
}

// remove hides a session, and removes its events unless a fork shares them.
func remove(ctx context.Context, tx pgx.Tx, session int64) error {
	if err := keepCosts(ctx, tx, session); err != nil {
		return err
	}
	for _, text := range []string{
		"UPDATE sessions SET deleted = true, active = false, info = '{}', dir = '', busy = false, listed = false, counted = true, words = seq WHERE id = $1",
		"DELETE FROM secrets WHERE session = $1",
		"DELETE FROM jobs WHERE session = $1",
		"DELETE FROM messages WHERE session = $1",
	} {
		if _, err := tx.Exec(ctx, text, session); err != nil {
			return err
		}
	}
	for {
		parent, err := release(ctx, tx, session)
		if err != nil || parent == 0 || parent >= session { // a parent is older; this prevents an endless loop
			return err
		}
		session = parent
	}
}

// release removes the events of a deleted session that no fork shares, and the session itself if
// it has no fork. It returns the session's parent, which the caller releases next, or 0.
func release(ctx context.Context, tx pgx.Tx, session int64) (parent int64, err error) {
	var deleted bool
	var shared *int64
	// Another server may delete another fork of it. What it sees of forks is read after the lock.
	if _, err := tx.Exec(ctx, "SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE", session); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT deleted, coalesce(parent, 0), (SELECT max(f.shared) FROM sessions f WHERE f.parent = s.id) FROM sessions s WHERE id = $1`, session).
		Scan(&deleted, &parent, &shared)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !deleted {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if shared != nil {
		return parent, cut(ctx, tx, session, event.Seq(*shared))
	}
	if _, err := tx.Exec(ctx, "DELETE FROM records WHERE session = $1", session); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "DELETE FROM sessions WHERE id = $1", session)
	return parent, err
}

// cut shortens a deleted session to its first n events. If those are damaged, it leaves the
// session as it is until its last fork is deleted.
func cut(ctx context.Context, tx pgx.Tx, session int64, n event.Seq) error {
	h, err := scanHead("", tx.QueryRow(ctx, selectHead+"id = $1", session))
	if err != nil || h.End.Seq == n {
		return err
	}
	end, err := record.EndAt(ctx, rows{tx}, h, n)
	if _, damaged := errors.AsType[*record.Fault](err); damaged {
		return nil
	}
	if err != nil {
		return err
	}
	if n > h.Shared {
		if err := shorten(ctx, tx, session, end); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "DELETE FROM records WHERE session = $1 AND first > $2", session, int64(n)); err != nil {
		return err
	}
	base := h.Base
	if n < h.Shared {
		h.Shared, base = n, end.Hash
	}
	_, err = tx.Exec(ctx, "UPDATE sessions SET seq = $2, head = $3, shared = $4, base = CASE WHEN parent IS NULL THEN base ELSE $5 END, words = $2 WHERE id = $1",
		session, int64(n), end.Hash[:], int64(h.Shared), base[:])
	return err
}

// shorten shortens the record that contains an end to the events up to it: a fork may begin in
// the middle of a record.
func shorten(ctx context.Context, tx pgx.Tx, session int64, end eventlog.End) error {
	r, err := record.With(ctx, rows{tx}, session, end.Seq)
	if err != nil || r.Last() == end.Seq {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE records SET head = $3, body = $4 WHERE session = $1 AND first = $2", session, int64(r.First), end.Hash[:], r.UpTo(end.Seq))
	return err
}

// Quarantine implements eventlog.Store.
func (s *Store) Quarantine(ctx context.Context, id event.SessionID, d *eventlog.Damage) error {
	err := s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h record.Head) error {
		var at *int64
		var reason []byte
		if d != nil {
			at, reason = new(int64(d.Seq)), []byte(d.Reason)
		}
		_, err := tx.Exec(ctx, "UPDATE sessions SET damaged = $2, reason = $3, words = -1 WHERE id = $1", h.Session, at, reason)
		return err
	})
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", id, err)
	}
	return nil
}

// change makes a change to a session that exists.
func (s *Store) change(ctx context.Context, id event.SessionID, apply func(context.Context, pgx.Tx, record.Head) error) error {
	r, err := s.right(ctx, id, nil)
	if err != nil {
		return err
	}
	return s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		if err := s.hold(ctx, tx, r); err != nil {
			return err
		}
		h, err := findHead(ctx, tx, id)
		if errors.Is(err, eventlog.ErrNotFound) {
			return refusal{err}
		}
		if err != nil {
			return err
		}
		return apply(ctx, tx, h)
	}})
}
