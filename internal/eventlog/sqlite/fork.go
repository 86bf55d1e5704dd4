package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// Fork implements eventlog.Store.
func (s *Store) Fork(ctx context.Context, child, parent event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	a, err := s.prepare(ctx, child, batch)
	if err == nil {
		err = s.fork(ctx, a, parent)
	}
	if err != nil {
		return eventlog.End{}, fmt.Errorf("fork %s from %s at event %d: %w", child, parent, batch.After.Seq, err)
	}
	return a.end, nil
}

func (s *Store) fork(ctx context.Context, a *addition, parent event.SessionID) error {
	h, err := s.head(ctx, parent)
	if err != nil {
		return err
	}
	if err := s.passes(ctx, parent, h, a.after); err != nil {
		return err
	}
	return withCosts(a, func() error { return s.queue.Do(ctx, s.adding(a, s.forking(a, parent, h))) })
}

// forking returns what stores a fork, if its parent is the one that was looked at.
func (s *Store) forking(a *addition, parent event.SessionID, h record.Head) func(*writing) (record.Head, error) {
	return func(w *writing) (record.Head, error) {
		from, err := w.session(parent)
		switch {
		case err != nil:
			return record.Head{}, err
		case from.Session != h.Session:
			return record.Head{}, refusal{eventlog.ErrConflict}
		case from.Damage != nil && a.after.Seq >= from.Damage.Seq:
			return record.Head{}, refusal{from.Damage}
		}
		return w.createSession(a, from)
	}
}

// passes returns an error unless a session's chain passes through an end. The result
// stays valid as long as the session exists, because events never change.
func (s *Store) passes(ctx context.Context, id event.SessionID, h record.Head, end eventlog.End) error {
	if !h.Reaches(end) {
		return eventlog.ErrConflict
	}
	stored, err := record.EndAt(ctx, rows{s.reading}, h, end.Seq)
	if f, ok := errors.AsType[*record.Fault](err); ok {
		return &eventlog.Damage{Session: id, Seq: f.At, Reason: f.Reason}
	}
	if err != nil {
		return s.readError(id, end.Seq, err)
	}
	if stored != end {
		return eventlog.ErrConflict
	}
	return nil
}

// Delete implements eventlog.Store.
func (s *Store) Delete(ctx context.Context, id event.SessionID) error {
	var row int64
	err := s.withJobs(func(jobs bool) error {
		return s.change(ctx, id, func(w *writing, session int64) error {
			row = session
			if jobs {
				if err := w.execJobs("DELETE FROM jobs WHERE session = ?", session); err != nil {
					return err
				}
			}
			return w.delete(session)
		})
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	s.startUpkeep()
	s.search.forget(row)
	return nil
}

// delete hides a session, and removes its events unless a fork shares them.
func (w *writing) delete(session int64) error {
	if err := w.exec("UPDATE sessions SET deleted = 1, active = 0, info = '{}' WHERE id = ?", session); err != nil {
		return err
	}
	if err := w.exec("DELETE FROM secrets WHERE session = ?", session); err != nil {
		return err
	}
	if err := w.keepCosts(session); err != nil {
		return err
	}
	for {
		parent, err := w.release(session)
		if err != nil || parent == 0 || parent >= session { // a parent is older; this prevents an endless loop in a damaged file
			return err
		}
		session = parent
	}
}

// release removes the events of a deleted session that no fork shares, and the session
// itself if it has no fork. It returns the session's parent, which the caller releases
// next, or 0.
func (w *writing) release(session int64) (parent int64, err error) {
	var deleted bool
	var shared sql.NullInt64
	row := w.conn.QueryRowContext(context.Background(), `SELECT deleted, coalesce(parent, 0),
		(SELECT max(f.shared) FROM sessions f WHERE f.parent = s.id AND f.id > s.id) FROM sessions s WHERE id = ?`, session)
	if err := row.Scan(&deleted, &parent, &shared); err != nil || !deleted {
		return 0, ignore(err, sql.ErrNoRows) // the row of a parent may be missing in a damaged file
	}
	if shared.Valid {
		return parent, w.cut(session, event.Seq(shared.Int64))
	}
	if err := w.drop(session, 0); err != nil {
		return 0, err
	}
	return parent, w.exec("DELETE FROM sessions WHERE id = ?", session)
}

// ignore returns err, or nil if it is the known error.
func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// drop removes the records of a session that begin after the given position.
func (w *writing) drop(session int64, after event.Seq) error {
	return w.exec("DELETE FROM records WHERE key > ? AND key <= ?", key(session, after), key(session, maxSeq))
}

// cut shortens a deleted session to its first n events. If those are damaged, it leaves
// the session as it is until its last fork is deleted.
func (w *writing) cut(session int64, n event.Seq) error {
	h, err := rows{w.conn}.Head(context.Background(), session)
	if err != nil || h.End.Seq == n {
		return err
	}
	end, err := record.EndAt(context.Background(), rows{w.conn}, h, n)
	if _, damaged := errors.AsType[*record.Fault](err); damaged {
		return nil
	}
	if err != nil {
		return err
	}
	if n > h.Shared {
		if err := w.shorten(session, end); err != nil {
			return err
		}
	}
	if err := w.drop(session, n); err != nil {
		return err
	}
	if n < h.Shared {
		h.Shared, h.Base = n, end.Hash
	}
	return w.exec("UPDATE sessions SET seq = ?, head = ?, shared = ?, base = ? WHERE id = ?", n, end.Hash[:], h.Shared, h.Base[:], session)
}

// shorten shortens the record that contains an end to the events up to it: a fork may
// begin in the middle of a record.
func (w *writing) shorten(session int64, end eventlog.End) error {
	r, err := record.With(context.Background(), rows{w.conn}, session, end.Seq)
	if err != nil || r.Last() == end.Seq {
		return err
	}
	return w.exec("UPDATE records SET head = ?, body = ? WHERE key = ?", end.Hash[:], r.UpTo(end.Seq), key(session, r.First))
}

// exec runs a statement that returns no rows.
func (w *writing) exec(text string, args ...any) error {
	_, err := w.conn.ExecContext(context.Background(), text, args...)
	return err
}
