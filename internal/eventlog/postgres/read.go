package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

const selectHead = "SELECT id, seq, head, coalesce(parent, 0), shared, base, damaged, reason FROM sessions WHERE "

// findHead returns a session's head, or eventlog.ErrNotFound.
func findHead(ctx context.Context, q querier, id event.SessionID) (record.Head, error) {
	return scanHead(id, q.QueryRow(ctx, selectHead+"name = $1 AND NOT deleted", []byte(id)))
}

func scanHead(id event.SessionID, row pgx.Row) (h record.Head, err error) {
	var end, base, reason []byte
	var damaged *int64
	err = row.Scan(&h.Session, &h.End.Seq, &end, &h.Parent, &h.Shared, &base, &damaged, &reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return record.Head{}, record.NotFound(id)
	}
	h.End.Hash, h.Base = record.Hash(end), record.Hash(base)
	if damaged != nil {
		h.Damage = &eventlog.Damage{Session: id, Seq: event.Seq(*damaged), Reason: string(reason)}
	}
	return h, err
}

// head returns a session's head.
func (s *Store) head(ctx context.Context, id event.SessionID) (record.Head, error) {
	if err := s.queue.Open(ctx); err != nil {
		return record.Head{}, err
	}
	h, err := findHead(ctx, s.reading, id)
	return h, s.readError(err)
}

// readError converts an error of a query to the error for the caller.
func (s *Store) readError(err error) error {
	if err == nil || errors.Is(err, eventlog.ErrNotFound) {
		return err
	}
	if closed := s.Err(); closed != nil {
		return closed
	}
	return s.explain(err)
}

// Read implements eventlog.Log.
func (s *Store) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return record.Read(ctx, s.reader(), id, after)
}

// ReadFrom implements eventlog.Log.
func (s *Store) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return record.ReadFrom(ctx, s.reader(), id, after)
}

// EndAt implements eventlog.Log.
func (s *Store) EndAt(ctx context.Context, id event.SessionID, n event.Seq) (eventlog.End, error) {
	return record.FindEnd(ctx, s.reader(), id, n)
}

// rows reads rows with a querier.
type rows struct{ querier }

// Head implements record.Rows.
func (q rows) Head(ctx context.Context, session int64) (record.Head, error) {
	return scanHead("", q.QueryRow(ctx, selectHead+"id = $1", session))
}

// Latest implements record.Rows.
func (q rows) Latest(ctx context.Context, session int64, n event.Seq) (r record.Record, found bool, err error) {
	err = q.QueryRow(ctx, "SELECT first, head, body FROM records WHERE session = $1 AND first <= $2 ORDER BY first DESC LIMIT 1", session, int64(n)).
		Scan(&r.First, &r.Head, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	return r, true, err
}

// A reader is the record.Source of a store. What it is asked for, it asks the server: nothing is
// answered from memory.
type reader struct {
	rows
	s *Store
}

func (s *Store) reader() reader { return reader{rows{s.reading}, s} }

// Open implements record.Source.
func (r reader) Open(ctx context.Context) error { return r.s.queue.Open(ctx) }

// Find implements record.Source.
func (r reader) Find(ctx context.Context, id event.SessionID) (record.Head, error) {
	return r.s.head(ctx, id)
}

// Stored implements record.Source.
func (r reader) Stored(ctx context.Context, id event.SessionID) (record.Head, error) {
	return r.s.head(ctx, id)
}

// ReadError implements record.Source.
func (r reader) ReadError(_ event.SessionID, _ event.Seq, err error) error { return r.s.readError(err) }

// The records that are read at once: a number, and about how many bytes.
const (
	pageRows  = 128
	pageBytes = 1 << 20
)

// Pages implements record.Source. It holds no connection while the caller handles a page. A page
// that is full may be the last one, so the next may be empty.
func (r reader) Pages(ctx context.Context, session int64, from, upTo event.Seq) iter.Seq2[[]record.Record, error] {
	return func(yield func([]record.Record, error) bool) {
		page, err := r.page(ctx, session, firstOf, from, upTo)
		for yield(page, err) && err == nil && isFull(page) {
			page, err = r.page(ctx, session, "$2", page[len(page)-1].Last()+1, upTo)
		}
	}
}

// firstOf is the first event of the record that contains the event $2. If there is no such record,
// it is that of the last one before it.
const firstOf = "coalesce((SELECT max(first) FROM records WHERE session = $1 AND first <= $2), $2)"

// isFull reports whether there may be records after those of a page.
func isFull(page []record.Record) bool {
	size := 0
	for _, r := range page {
		size += len(r.Body)
	}
	return len(page) == pageRows || size >= pageBytes
}

// page reads records, beginning with the one whose first event the expression says.
func (r reader) page(ctx context.Context, session int64, first string, from, upTo event.Seq) ([]record.Record, error) {
	return collect(ctx, r.s.reading, scanRecord, `SELECT first, head, body FROM (
			SELECT first, head, body, sum(length(body)) OVER (ORDER BY first) - length(body) AS before FROM records
			WHERE session = $1 AND first >= `+first+` AND first <= $3
			ORDER BY first LIMIT $4) part
		WHERE before < $5 ORDER BY first`, session, int64(from), int64(upTo), pageRows, pageBytes)
}

func scanRecord(row pgx.CollectableRow) (r record.Record, err error) {
	err = row.Scan(&r.First, &r.Head, &r.Body)
	return r, err
}
