package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// The reasons of damage that are not a matter of one record.
const (
	brokenPage    = "the page of the file that holds it cannot be read"
	brokenIndex   = "its entry in the index cannot be read"
	unknownRecord = "there is a record that the index does not know of"
)

const selectHead = "SELECT id, seq, head, parent, shared, damaged, reason FROM sessions"

// reading is what readers need again and again.
type reading struct {
	head, records *sql.Stmt
}

func prepareReading(ctx context.Context, db *sql.DB) (*reading, error) {
	r := &reading{}
	err := prepare(func(text string) (*sql.Stmt, error) { return db.PrepareContext(ctx, text) }, map[**sql.Stmt]string{
		&r.head: selectHead + " WHERE name = ? AND NOT deleted",
		// The record that holds an event, and those after it: the event need
		// not be the first of its record.
		&r.records: `SELECT key, head, body FROM records
			WHERE key >= coalesce((SELECT max(key) FROM records WHERE key >= ?1 AND key <= ?2), ?2) AND key <= ?3
			ORDER BY key`,
	})
	return r, err
}

// head returns a session's head, from memory if it is known there.
func (s *Store) head(ctx context.Context, id event.SessionID) (head, error) {
	if err := s.open(ctx); err != nil {
		return head{}, err
	}
	if h, known := s.heads.get(id); known {
		return h, nil
	}
	return s.storedHead(id)
}

// storedHead returns a session's head as the file has it.
func (s *Store) storedHead(id event.SessionID) (head, error) {
	h, err := scanHead(id, s.read.head.QueryRow(string(id)))
	return h, s.readError(id, 1, err)
}

// scanHead reads a row of selectHead.
func scanHead(id event.SessionID, row *sql.Row) (head, error) {
	var h head
	var hash []byte
	var parent, damaged sql.NullInt64
	var reason sql.NullString
	err := row.Scan(&h.session, &h.end.Seq, &hash, &parent, &h.shared, &damaged, &reason)
	if errors.Is(err, sql.ErrNoRows) {
		return head{}, fmt.Errorf("session %s: %w", id, eventlog.ErrNotFound)
	}
	copy(h.end.Hash[:], hash) // one of another length cannot match: reading tells
	h.parent = parent.Int64
	if damaged.Valid {
		h.damage = &eventlog.Damage{Session: id, Seq: event.Seq(damaged.Int64), Reason: reason.String}
	}
	return h, err
}

// readError says what an error of a query means for a session, of which the
// events before the given one were read.
func (s *Store) readError(id event.SessionID, at event.Seq, err error) error {
	switch {
	case err == nil, errors.Is(err, eventlog.ErrNotFound):
		return err
	case corrupt(err):
		return &eventlog.Damage{Session: id, Seq: at, Reason: brokenPage}
	}
	if closed := s.open(context.Background()); closed != nil {
		return closed
	}
	return explain(s.path, err)
}

const selectSession = `SELECT s.name, s.seq, s.head, s.created, s.modified, coalesce(p.name, ''), s.shared, s.damaged, s.reason, s.info
	FROM sessions s LEFT JOIN sessions p ON p.id = s.parent WHERE NOT s.deleted`

// Session implements eventlog.Store.
func (s *Store) Session(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	for session, err := range s.list(ctx, "AND s.name = ?", string(id)) {
		if damage := (*eventlog.Damage)(nil); errors.As(err, &damage) {
			damage.Session = id
		}
		return session, err
	}
	return eventlog.Session{}, fmt.Errorf("session %s: %w", id, eventlog.ErrNotFound)
}

// Sessions implements eventlog.Store.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.Session, error] {
	return s.list(ctx, "ORDER BY s.modified DESC")
}

// Active implements eventlog.Store.
func (s *Store) Active(ctx context.Context) iter.Seq2[eventlog.Session, error] {
	return s.list(ctx, "AND s.active ORDER BY s.modified DESC")
}

// list yields sessions after all of them are read: no connection is held while
// the caller looks at them.
func (s *Store) list(ctx context.Context, which string, args ...any) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		all, err := s.sessions(ctx, which, args...)
		for _, session := range all {
			if !yield(session, nil) {
				return
			}
		}
		if err != nil {
			yield(eventlog.Session{}, err)
		}
	}
}

func (s *Store) sessions(ctx context.Context, which string, args ...any) (all []eventlog.Session, err error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	rows, err := s.reading.Query(selectSession+" "+which, args...)
	if err != nil {
		return nil, s.readError("", 0, err)
	}
	defer rows.Close()
	for rows.Next() {
		session, err := scanSession(rows)
		if err != nil {
			return all, s.readError(session.ID, 0, err)
		}
		all = append(all, session)
	}
	return all, s.readError("", 0, rows.Err())
}

// scanSession reads a row of selectSession.
func scanSession(rows *sql.Rows) (eventlog.Session, error) {
	var out eventlog.Session
	var hash, info sql.RawBytes
	var created, modified int64
	var damaged sql.NullInt64
	var reason sql.NullString
	err := rows.Scan(&out.ID, &out.End.Seq, &hash, &created, &modified, &out.Parent, &out.Shared, &damaged, &reason, &info)
	if err != nil {
		return out, err
	}
	copy(out.End.Hash[:], hash)
	out.Created, out.Modified = time.UnixMicro(created), time.UnixMicro(modified)
	if damaged.Valid {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: event.Seq(damaged.Int64), Reason: reason.String}
	}
	if json.Unmarshal(info, &out.Info) != nil && out.Damage == nil {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: out.End.Seq, Reason: brokenIndex}
	}
	return out, nil
}
