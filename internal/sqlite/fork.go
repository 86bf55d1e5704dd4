package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Fork implements eventlog.Store.
func (s *Store) Fork(ctx context.Context, child, parent event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	a, err := newAddition(child, batch)
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
	if err := s.passes(parent, h, a.after); err != nil {
		return err
	}
	var now head
	return s.do(ctx, &op{
		events: a.events,
		apply: func(w *writing) error {
			from, err := w.session(parent)
			switch {
			case err != nil:
				return err
			case from.session != h.session:
				return refusal{eventlog.ErrConflict}
			case from.damage != nil && a.after.Seq >= from.damage.Seq:
				return refusal{from.damage}
			}
			now, err = w.found(a, from)
			return err
		},
		committed: func() { s.added(a, now) },
	})
}

// passes checks that a session's chain passes through an end. What it finds
// stays true for as long as the session exists.
func (s *Store) passes(id event.SessionID, h head, end eventlog.End) error {
	if end.Seq < 0 || end.Seq > h.end.Seq {
		return eventlog.ErrConflict
	}
	stored, err := endAt(s.reading, h, end.Seq)
	if f := (*fault)(nil); errors.As(err, &f) {
		return &eventlog.Damage{Session: id, Seq: f.at, Reason: f.reason}
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
	err := s.change(ctx, id, func(w *writing, session int64) error { return w.delete(session) })
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// delete hides a session and drops what nobody can read any more.
func (w *writing) delete(session int64) error {
	if err := w.exec("UPDATE sessions SET deleted = 1, active = 0, info = '{}' WHERE id = ?", session); err != nil {
		return err
	}
	if err := w.exec("DELETE FROM secrets WHERE session = ?", session); err != nil {
		return err
	}
	for session != 0 {
		parent, err := w.release(session)
		if err != nil {
			return err
		}
		session = parent
	}
	return nil
}

// release drops the events of a deleted session that no fork shares, and the
// session when it has no fork. It returns the parent, for which the same is to
// be done, or 0.
func (w *writing) release(session int64) (parent int64, err error) {
	var deleted bool
	var shared sql.NullInt64
	row := w.conn.QueryRowContext(context.Background(), `SELECT deleted, coalesce(parent, 0),
		(SELECT max(f.shared) FROM sessions f WHERE f.parent = s.id) FROM sessions s WHERE id = ?`, session)
	if err := row.Scan(&deleted, &parent, &shared); err != nil || !deleted {
		return 0, err
	}
	if shared.Valid {
		return parent, w.cut(session, event.Seq(shared.Int64))
	}
	if err := w.exec("DELETE FROM records WHERE key BETWEEN ? AND ?", key(session, 0), key(session, maxSeq)); err != nil {
		return 0, err
	}
	return parent, w.exec("DELETE FROM sessions WHERE id = ?", session)
}

// cut makes a deleted session end after n events.
func (w *writing) cut(session int64, n event.Seq) error {
	h, err := ancestor(w.conn, session)
	if err != nil || h.end.Seq == n {
		return err
	}
	end, err := endAt(w.conn, h, n)
	if errors.As(err, new(*fault)) {
		return nil // damaged: it goes as a whole, with its last fork
	}
	if err != nil {
		return err
	}
	if err := w.exec("DELETE FROM records WHERE key BETWEEN ? AND ?", key(session, n+1), key(session, maxSeq)); err != nil {
		return err
	}
	if err := w.shorten(session, end); err != nil {
		return err
	}
	return w.exec("UPDATE sessions SET seq = ?, head = ?, shared = min(shared, ?) WHERE id = ?", n, end.Hash[:], n, session)
}

// shorten makes a session's last record stop at the given end, in the middle of
// which a fork may have been made.
func (w *writing) shorten(session int64, end eventlog.End) error {
	r, err := lastRecord(w.conn, session, end.Seq)
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.last() == end.Seq {
		return nil
	}
	if err != nil {
		return err
	}
	lines := bytes.SplitAfterN(r.body, newline, int(end.Seq-r.first)+2)
	rest := lines[len(lines)-1]
	body := r.body[:len(r.body)-len(rest)-1]
	return w.exec("UPDATE records SET head = ?, body = ? WHERE key = ?", end.Hash[:], body, key(session, r.first))
}

func (w *writing) exec(text string, args ...any) error {
	_, err := w.conn.ExecContext(context.Background(), text, args...)
	return err
}
