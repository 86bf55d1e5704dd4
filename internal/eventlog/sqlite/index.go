package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

const selectHead = "SELECT name, id, seq, head, parent, shared, base, damaged, reason FROM sessions"

// named is the condition that finds a session by its name. It does so in two steps: in
// one step, SQLite would return the name from its index of names, and damage in the row
// itself would not be noticed.
const named = " WHERE id = (SELECT id FROM sessions WHERE name = ?) AND NOT deleted"

// reading holds the prepared statements of readers.
type reading struct {
	head, records *sql.Stmt
}

func prepareReading(ctx context.Context, db *sql.DB) (*reading, error) {
	r := &reading{}
	err := prepare(func(text string) (*sql.Stmt, error) { return db.PrepareContext(ctx, text) }, map[**sql.Stmt]string{
		&r.head: selectHead + named,
		// The record that contains an event, and those after it. The event need
		// not be the first of its record.
		&r.records: `SELECT key, head, body FROM records
			WHERE key >= coalesce((SELECT max(key) FROM records WHERE key >= ?1 AND key <= ?2), ?2) AND key <= ?3
			ORDER BY key`,
	})
	return r, err
}

// head returns a session's head, from the cache if it is there.
func (s *Store) head(ctx context.Context, id event.SessionID) (record.Head, error) {
	if err := s.queue.Open(ctx); err != nil {
		return record.Head{}, err
	}
	if h, known := s.heads.get(id); known {
		return h, nil
	}
	return s.storedHead(id)
}

// storedHead returns a session's head from the file.
func (s *Store) storedHead(id event.SessionID) (record.Head, error) {
	h, err := scanHead(id, s.read.head.QueryRow(string(id)))
	return h, s.readError(id, 1, err)
}

// scanHead reads a row of selectHead. If id is not empty, the row must have that name.
func scanHead(id event.SessionID, row *sql.Row) (record.Head, error) {
	var h record.Head
	var name event.SessionID
	var end, base []byte
	var parent, damaged sql.NullInt64
	var reason sql.NullString
	err := row.Scan(&name, &h.Session, &h.End.Seq, &end, &parent, &h.Shared, &base, &damaged, &reason)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Head{}, record.NotFound(id)
	}
	if err == nil && id != "" && id != name {
		return record.Head{}, &eventlog.Damage{Session: id, Seq: 1, Reason: record.BrokenEntry}
	}
	h.End.Hash, h.Base = record.Hash(end), record.Hash(base)
	h.Parent = parent.Int64
	if damaged.Valid {
		h.Damage = &eventlog.Damage{Session: id, Seq: event.Seq(damaged.Int64), Reason: reason.String}
	}
	return h, err
}

// readError converts an error of a query about a session to the error for the caller.
// at is the position of the event that was read. A store whose files are gone is closed,
// as it is when it notices that while it writes.
func (s *Store) readError(id event.SessionID, at event.Seq, err error) error {
	switch {
	case err == nil, errors.Is(err, eventlog.ErrNotFound):
		return err
	case corrupt(err):
		return &eventlog.Damage{Session: id, Seq: at, Reason: brokenPage}
	}
	if gone := s.files.checkEach(); gone != nil {
		s.queue.Shut(closingError(s.path, gone))
	}
	if closed := s.queue.Open(context.Background()); closed != nil {
		return closed
	}
	return explain(s.path, err)
}

// Session implements eventlog.Store.
func (s *Store) Session(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	found, err := s.sessions(ctx, "AND s.id = (SELECT id FROM sessions WHERE name = ?)", string(id))
	switch {
	case err != nil:
		return eventlog.Session{}, s.readError(id, 1, err)
	case len(found) == 0:
		return eventlog.Session{}, record.NotFound(id)
	case found[0].ID != id:
		return eventlog.Session{}, &eventlog.Damage{Session: id, Seq: 1, Reason: record.BrokenEntry}
	}
	return found[0], nil
}

// Active implements eventlog.Store.
func (s *Store) Active(ctx context.Context) iter.Seq2[eventlog.Session, error] {
	return s.list(ctx, "AND s.active", func(s eventlog.Session) bool { return s.Info.Attended() })
}

// Reindex implements eventlog.Store.
func (s *Store) Reindex(ctx context.Context, id event.SessionID, at eventlog.End, info eventlog.Info) error {
	text, err := json.Marshal(info)
	if err == nil {
		err = s.change(ctx, id, func(w *writing, session int64) error {
			return w.exec("UPDATE sessions SET active = ?, info = ? WHERE id = ? AND seq = ? AND head = ?",
				info.Attended(), string(text), session, int64(at.Seq), at.Hash[:])
		})
	}
	if err != nil {
		return fmt.Errorf("index %s: %w", id, err)
	}
	return nil
}

// list yields sessions. It reads all of them first, so that it holds no connection
// while the caller handles them. The condition is given twice: which in SQL, and wanted
// in Go for sessions that are read from a damaged index.
func (s *Store) list(ctx context.Context, which string, wanted func(eventlog.Session) bool) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		all, err := s.sessions(ctx, which+" ORDER BY s.modified DESC")
		if corrupt(err) {
			all, err = s.salvage(ctx, wanted)
		}
		if err != nil {
			yield(eventlog.Session{}, s.readError("", 0, err))
			return
		}
		for _, session := range all {
			if !yield(session, nil) {
				return
			}
		}
	}
}

// selectSessions selects the rows that scanSession reads. Further conditions follow it.
const selectSessions = `SELECT s.id, s.name, s.seq, s.head, s.created, s.modified, coalesce(p.name, ''), s.shared, s.damaged, s.reason, s.info
	FROM sessions s LEFT JOIN sessions p ON p.id = s.parent WHERE NOT s.deleted `

// sessions reads the index.
func (s *Store) sessions(ctx context.Context, which string, args ...any) (all []eventlog.Session, err error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	rows, err := s.reading.Query(selectSessions+which, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		session, err := scanSession(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, session)
	}
	return all, rows.Err()
}

// scanSession reads a row of the index.
func scanSession(rows *sql.Rows) (eventlog.Session, error) {
	var out eventlog.Session
	var head, info sql.RawBytes
	var created, modified int64
	var damaged sql.NullInt64
	var reason sql.NullString
	err := rows.Scan(&out.Row, &out.ID, &out.End.Seq, &head, &created, &modified, &out.Parent, &out.Shared, &damaged, &reason, &info)
	if err != nil {
		return out, err
	}
	out.End.Hash = record.Hash(head)
	out.Created, out.Modified = time.UnixMicro(created), time.UnixMicro(modified)
	if damaged.Valid {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: event.Seq(damaged.Int64), Reason: reason.String}
	}
	if json.Unmarshal(info, &out.Info) != nil && out.Damage == nil {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: out.End.Seq, Reason: record.BrokenEntry}
	}
	return out, nil
}

// salvage lists sessions one by one when a page of the table is damaged: sessions on
// that page are returned as damaged, the others as they are. The names come from
// SQLite's index of names, which is on other pages.
func (s *Store) salvage(ctx context.Context, wanted func(eventlog.Session) bool) ([]eventlog.Session, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var all []eventlog.Session
	for _, id := range names {
		session, err := s.Session(ctx, id)
		if d, ok := errors.AsType[*eventlog.Damage](err); ok {
			session, err = eventlog.Session{ID: id, Damage: d}, nil
		}
		switch {
		case errors.Is(err, eventlog.ErrNotFound): // the session was deleted
		case err != nil:
			return nil, err
		case wanted(session):
			all = append(all, session)
		}
	}
	slices.SortFunc(all, func(a, b eventlog.Session) int { return b.Modified.Compare(a.Modified) })
	return all, nil
}

// selectNames selects the names of all sessions, including deleted ones, from SQLite's index
// of names.
const selectNames = "SELECT name FROM sessions INDEXED BY names"

// names returns the names of all sessions, including deleted ones.
func (s *Store) names() ([]event.SessionID, error) {
	return queryNames(context.Background(), s.reading, selectNames)
}
