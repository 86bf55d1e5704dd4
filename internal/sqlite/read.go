package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Read implements eventlog.Log.
func (s *Store) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range s.ReadFrom(ctx, id, eventlog.End{}) {
			if (err != nil || e.Seq > after) && !yield(e, err) {
				return
			}
		}
	}
}

// ReadFrom implements eventlog.Log.
func (s *Store) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w := walk{s: s, ctx: ctx, id: id, from: after, at: after, yield: yield}
		if err := w.run(); err != nil && !errors.Is(err, errStopped) {
			yield(event.Event{}, err)
		}
	}
}

// errStopped means that the caller has seen enough.
var errStopped = errors.New("stopped")

// A walk reads a session and verifies the chain as it goes.
type walk struct {
	s      *Store
	ctx    context.Context
	id     event.SessionID
	yield  func(event.Event, error) bool
	from   eventlog.End // what the caller trusts
	at     eventlog.End // verified so far
	head   head
	beyond bool   // there are events after the head
	links  []link // of the record at hand; used again for the next
}

// A segment is the part of a session's history that one session's records hold.
type segment struct {
	session int64
	last    event.Seq
}

// run walks from w.at to the end of the session.
func (w *walk) run() (err error) {
	if w.head, err = w.s.head(w.ctx, w.id); err != nil {
		return err
	}
	end := w.head.end
	if w.at.Seq < 0 || w.at.Seq > end.Seq || w.at.Seq == end.Seq && w.at != end {
		return w.conflict()
	}
	segments, err := w.s.lineage(w.id, w.head, w.at.Seq)
	if err != nil {
		return err
	}
	for _, seg := range segments {
		if err := w.segment(seg); err != nil {
			return err
		}
	}
	switch {
	case w.at != end:
		return w.fault(&fault{end.Seq, "the index has another hash for it"})
	case w.beyond:
		return w.fault(&fault{end.Seq + 1, unknownRecord})
	case w.head.damage != nil:
		return w.head.damage
	}
	return nil
}

// lineage returns where the events after the given one are, oldest first.
func (s *Store) lineage(id event.SessionID, h head, after event.Seq) ([]segment, error) {
	segments := []segment{{h.session, h.end.Seq}}
	for last := h.shared; last > after; last = min(last, h.shared) {
		parent := h.parent
		var err error
		if h, err = ancestor(s.reading, parent); err != nil {
			return nil, s.readError(id, after+1, err)
		}
		segments = append(segments, segment{parent, last})
	}
	slices.Reverse(segments)
	return segments, nil
}

// ancestor returns the head of a session that others may have been forked from,
// deleted or not.
func ancestor(q querier, session int64) (head, error) {
	return scanHead("", q.QueryRowContext(context.Background(), selectHead+" WHERE id = ?", session))
}

// segment walks to the last event of a segment.
func (w *walk) segment(seg segment) error {
	if w.at.Seq >= seg.last {
		return nil
	}
	upTo := seg.last
	if seg.session == w.head.session {
		upTo = maxSeq // to see what should not be there
	}
	for p := range w.s.pages(seg.session, w.at.Seq+1, upTo) {
		for _, r := range p.records {
			if w.beyond = r.first > seg.last; w.beyond {
				return nil
			}
			if err := w.record(r, seg.last); err != nil {
				return err
			}
		}
		if p.err != nil {
			return w.s.readError(w.id, w.at.Seq+1, p.err)
		}
		if err := w.s.open(w.ctx); err != nil {
			return err
		}
	}
	if w.at.Seq < seg.last {
		return w.fault(&fault{w.at.Seq + 1, missing})
	}
	return nil
}

// record verifies a record and yields its events up to the last of the segment.
func (w *walk) record(r record, last event.Seq) error {
	links, err := r.open(w.at, w.links[:0])
	if err != nil {
		return w.fault(err)
	}
	w.links = links
	for _, l := range links {
		e := l.event
		if e.Seq > last { // a fork in the middle of it, or more than the index knows of
			w.beyond = last == w.head.end.Seq
			return nil
		}
		if d := w.head.damage; d != nil && e.Seq >= d.Seq {
			return d
		}
		w.at = l.end
		if !w.yield(e, nil) {
			return errStopped
		}
	}
	return nil
}

func (w *walk) conflict() error {
	return fmt.Errorf("read %s after event %d: %w", w.id, w.from.Seq, eventlog.ErrConflict)
}

// fault decides what it means that the records are not what they should be.
func (w *walk) fault(err error) error {
	now, gone := w.s.storedHead(w.id)
	if gone == nil && now.session != w.head.session {
		gone = fmt.Errorf("session %s: %w", w.id, eventlog.ErrNotFound)
	}
	if gone != nil {
		return gone // deleted while it was read
	}
	f := err.(*fault)
	if f.reason == unknownRecord && now.end.Seq > w.head.end.Seq {
		return nil // appended while it was read
	}
	if w.at == w.from && w.at.Seq > 0 {
		if stored, err := endAt(w.s.reading, w.head, w.at.Seq); err == nil && stored != w.from {
			return w.conflict()
		}
	}
	return &eventlog.Damage{Session: w.id, Seq: f.at, Reason: f.reason}
}

// chunk is about how many bytes of records are read at once.
const chunk = 256 << 10

// A page is a number of records in a row.
type page struct {
	records []record
	more    bool  // there are records after them
	err     error // what ended the reading
}

// pages yields a session's records, from the one that holds an event up to the
// given position. While the caller looks at a page, the next one is fetched.
func (s *Store) pages(session int64, from, upTo event.Seq) iter.Seq[page] {
	return func(yield func(page) bool) {
		p := s.fetch(session, from, upTo)
		for p.more {
			next := make(chan page, 1)
			from := p.records[len(p.records)-1].last() + 1
			go func() { next <- s.fetch(session, from, upTo) }() // waited for below
			wanted := yield(p)
			if p = <-next; !wanted {
				return
			}
		}
		yield(p)
	}
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
		size += len(r.body)
	}
	p.err = rows.Err()
	return p
}

// scanRecord reads a row of the records table.
func scanRecord(row interface{ Scan(...any) error }) (record, error) {
	var r record
	var at int64
	err := row.Scan(&at, &r.head, &r.body)
	r.first = event.Seq(at & maxSeq)
	return r, err
}

// A querier is a connection, or a pool of them.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// endAt returns the end of a session's chain after n events, which must exist.
func endAt(q querier, h head, n event.Seq) (end eventlog.End, err error) {
	for n > 0 && n <= h.shared {
		if h, err = ancestor(q, h.parent); err != nil {
			return eventlog.End{}, err
		}
	}
	switch n {
	case 0:
		return eventlog.End{}, nil
	case h.end.Seq:
		return h.end, nil
	}
	r, err := lastRecord(q, h.session, n)
	if errors.Is(err, sql.ErrNoRows) {
		return eventlog.End{}, &fault{n, missing}
	}
	if err != nil {
		return eventlog.End{}, err
	}
	switch last := r.last(); {
	case last < n:
		return eventlog.End{}, &fault{last + 1, missing}
	case last == n:
		copy(end.Hash[:], r.head)
		return eventlog.End{Seq: n, Hash: end.Hash}, nil
	}
	before, err := endAt(q, h, r.first-1)
	if err != nil {
		return eventlog.End{}, err
	}
	links, err := r.open(before, nil)
	if err != nil {
		return eventlog.End{}, err
	}
	return links[n-r.first].end, nil
}

// lastRecord returns the last record of a session that begins at or before an
// event, or sql.ErrNoRows.
func lastRecord(q querier, session int64, n event.Seq) (record, error) {
	return scanRecord(q.QueryRowContext(context.Background(),
		"SELECT key, head, body FROM records WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1",
		key(session, 0), key(session, n)))
}
