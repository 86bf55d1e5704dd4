package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

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

// A reader is the record.Source of a store.
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
func (r reader) Stored(_ context.Context, id event.SessionID) (record.Head, error) {
	return r.s.storedHead(id)
}

// ReadError implements record.Source.
func (r reader) ReadError(id event.SessionID, at event.Seq, err error) error {
	return r.s.readError(id, at, err)
}

// Pages implements record.Source. While the caller handles a page, the next one is fetched.
func (r reader) Pages(_ context.Context, session int64, from, upTo event.Seq) iter.Seq2[[]record.Record, error] {
	s, upTo := r.s, min(upTo, maxSeq)
	return func(yield func([]record.Record, error) bool) {
		p := s.fetch(session, from, upTo)
		for p.more {
			next := make(chan page, 1)
			from := p.records[len(p.records)-1].Last() + 1
			go func() { next <- s.fetch(session, from, upTo) }() // waited for below
			wanted := yield(p.records, nil)
			if p = <-next; !wanted {
				return
			}
		}
		yield(p.records, p.err)
	}
}

// chunk is the approximate number of bytes of records that are read at once.
const chunk = 256 << 10

// A page is a number of consecutive records.
type page struct {
	records []record.Record
	more    bool  // true if there are records after them
	err     error // error that ended the reading
}

// fetch reads one page.
func (s *Store) fetch(session int64, from, upTo event.Seq) (p page) {
	rows, err := s.read.records.Query(key(session, 0), key(session, from), key(session, upTo))
	if err != nil {
		return page{err: err}
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		if p.more = size >= chunk; p.more {
			return p
		}
		r, err := scanRecord(rows)
		if err != nil {
			p.err = err
			return p
		}
		p.records = append(p.records, r)
		s.fetched.Add(1)
		size += len(r.Body)
	}
	p.err = rows.Err()
	return p
}

// scanRecord reads a row of the records table.
func scanRecord(row interface{ Scan(...any) error }) (record.Record, error) {
	var r record.Record
	var at int64
	err := row.Scan(&at, &r.Head, &r.Body)
	r.First = event.Seq(at & maxSeq)
	return r, err
}

// A querier is a connection, or a pool of them.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// rows reads rows with a querier. Its statements are not interrupted.
type rows struct{ querier }

// Head implements record.Rows.
func (q rows) Head(_ context.Context, session int64) (record.Head, error) {
	return scanHead("", q.QueryRowContext(context.Background(), selectHead+" WHERE id = ?", session))
}

// Latest implements record.Rows.
func (q rows) Latest(_ context.Context, session int64, n event.Seq) (record.Record, bool, error) {
	r, err := scanRecord(q.QueryRowContext(context.Background(),
		"SELECT key, head, body FROM records WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1",
		key(session, 0), key(session, n)))
	if errors.Is(err, sql.ErrNoRows) {
		return record.Record{}, false, nil
	}
	return r, true, err
}
