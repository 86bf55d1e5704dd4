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
	return s.walk(ctx, id, func(w *walk) (err error) {
		w.at, err = w.stored(max(0, min(after, w.head.end.Seq)))
		w.from = w.at
		return err
	})
}

// ReadFrom implements eventlog.Log.
func (s *Store) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return s.walk(ctx, id, func(w *walk) error {
		w.from, w.at = after, after
		if after != (eventlog.End{}) && !w.head.reaches(after) {
			return w.conflict(after.Seq)
		}
		return nil
	})
}

// EndAt implements eventlog.Log.
func (s *Store) EndAt(ctx context.Context, id event.SessionID, n event.Seq) (end eventlog.End, err error) {
	w := walk{s: s, ctx: ctx, id: id}
	if w.head, err = s.head(ctx, id); err != nil {
		return end, err
	}
	if n < 0 || n > w.head.end.Seq {
		return end, w.conflict(n)
	}
	return w.stored(n)
}

// walk yields the events of a session after the end that begin sets.
func (s *Store) walk(ctx context.Context, id event.SessionID, begin func(*walk) error) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w := walk{s: s, ctx: ctx, id: id, yield: yield}
		var err error
		if w.head, err = s.head(ctx, id); err == nil {
			err = begin(&w)
		}
		if err == nil {
			err = w.run()
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(event.Event{}, err)
		}
	}
}

// errStopped means that the caller does not want more events.
var errStopped = errors.New("stopped")

// A walk reads a session and verifies the chain as it goes.
type walk struct {
	s      *Store
	ctx    context.Context
	id     event.SessionID
	yield  func(event.Event, error) bool
	from   eventlog.End // end that the caller started from
	at     eventlog.End // end of the part that is verified so far
	head   head
	beyond bool   // true if there are events after the head
	links  []link // events of the current record; the slice is used again for the next
}

// A segment is a part of a session's history that is in the records of one session: of
// itself or of an ancestor.
type segment struct {
	session int64
	last    event.Seq
}

// run walks from w.at to the end of the session.
func (w *walk) run() error {
	end := w.head.end
	segments, err := w.lineage()
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
		return w.fault(&fault{max(end.Seq, 1), otherHash})
	case w.beyond:
		return w.fault(&fault{end.Seq + 1, unknownRecord})
	case w.head.damage != nil:
		return w.head.damage
	}
	return nil
}

// stored returns the stored end after n events, without verifying the events before
// it. The session must have that many events.
func (w *walk) stored(n event.Seq) (eventlog.End, error) {
	if d := w.head.damage; d != nil && n >= d.Seq {
		return eventlog.End{}, d
	}
	end, err := endAt(w.s.reading, w.head, n)
	f, ok := errors.AsType[*fault](err)
	switch {
	case ok:
		err = w.fault(f)
	case err != nil:
		err = w.s.readError(w.id, n, err)
	}
	return end, err
}

// reaches reports whether the session can have had that end: it is the current one, or
// at an earlier position.
func (h head) reaches(end eventlog.End) bool {
	return end == h.end || end.Seq >= 0 && end.Seq < h.end.Seq
}

// lineage returns the segments that contain the events after w.at, oldest first. It
// checks that each ancestor has the chain that its fork was made from.
func (w *walk) lineage() ([]segment, error) {
	h := w.head
	segments := []segment{{h.session, h.end.Seq}}
	for last := h.shared; last > w.at.Seq; last = min(last, h.shared) {
		parent, err := ancestor(w.s.reading, h)
		if err != nil {
			return nil, w.failed(err)
		}
		if end, err := endAt(w.s.reading, parent, h.shared); err != nil {
			return nil, w.failed(err)
		} else if end.Hash != h.base {
			return nil, w.fault(&fault{1, otherOrigin})
		}
		h = parent
		segments = append(segments, segment{h.session, last})
	}
	slices.Reverse(segments)
	return segments, nil
}

// segment yields the events of a segment.
func (w *walk) segment(seg segment) error {
	if w.at.Seq >= seg.last {
		return nil
	}
	upTo := seg.last
	if seg.session == w.head.session {
		upTo = maxSeq // a record after the end should not exist, and is found
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
			return w.failed(p.err)
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

// record verifies a record and yields its events up to the given position.
func (w *walk) record(r record, last event.Seq) error {
	links, f := r.open(w.at, w.links[:0])
	if f != nil {
		return w.fault(f)
	}
	w.links = links
	for _, l := range links {
		e := l.event
		if e.Seq > last { // the fork begins in the middle of the record, or the index does not know the event
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

func (w *walk) conflict(after event.Seq) error {
	return fmt.Errorf("read %s after event %d: %w", w.id, after, eventlog.ErrConflict)
}

// failed converts an error of a query to the error for the caller.
func (w *walk) failed(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return w.fault(f)
	}
	return w.s.readError(w.id, w.at.Seq+1, err)
}

// fault converts a fault in the records to the error for the caller. It is not always
// damage: the session may have been deleted or appended to meanwhile, or the end that
// the caller started from was never an end of this session.
func (w *walk) fault(f *fault) error {
	now, err := w.s.storedHead(w.id)
	if err == nil && now.session != w.head.session {
		err = notFound(w.id)
	}
	if err != nil {
		return err
	}
	if f.reason == unknownRecord && now.end.Seq > w.head.end.Seq {
		return nil
	}
	if w.at == w.from && w.at.Seq > 0 {
		if stored, err := endAt(w.s.reading, w.head, w.at.Seq); err == nil && stored != w.from {
			return w.conflict(w.from.Seq)
		}
	}
	return &eventlog.Damage{Session: w.id, Seq: f.at, Reason: f.reason}
}

// chunk is the approximate number of bytes of records that are read at once.
const chunk = 256 << 10

// A page is a number of consecutive records.
type page struct {
	records []record
	more    bool  // true if there are records after them
	err     error // error that ended the reading
}

// pages yields a session's records, from the one that contains the event from up to the
// position upTo. While the caller handles a page, the next one is fetched.
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
		s.fetched.Add(1)
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

// ancestor returns the session that another one was forked from, deleted or not.
func ancestor(q querier, h head) (head, error) {
	if h.parent <= 0 || h.parent >= h.session { // a parent is older; this prevents an endless loop in a damaged file
		return head{}, &fault{1, orphaned}
	}
	parent, err := scanHead("", q.QueryRowContext(context.Background(), selectHead+" WHERE id = ?", h.parent))
	if errors.Is(err, eventlog.ErrNotFound) {
		return head{}, &fault{1, orphaned}
	}
	return parent, err
}

// endAt returns the end of a session's chain after n events.
func endAt(q querier, h head, n event.Seq) (eventlog.End, error) {
	for n > 0 && n <= h.shared {
		parent, err := ancestor(q, h)
		if err != nil {
			return eventlog.End{}, err
		}
		h = parent
	}
	switch n {
	case 0:
		return eventlog.End{}, nil
	case h.end.Seq:
		return h.end, nil
	}
	r, err := recordOf(q, h.session, n)
	if err != nil {
		return eventlog.End{}, err
	}
	if r.last() == n {
		return eventlog.End{Seq: n, Hash: hash(r.head)}, nil
	}
	before, err := endAt(q, h, r.first-1)
	if err != nil {
		return eventlog.End{}, err
	}
	links, f := r.open(before, nil)
	if f != nil {
		return eventlog.End{}, f
	}
	return links[n-r.first].end, nil
}

// recordOf returns the record of a session that contains an event.
func recordOf(q querier, session int64, n event.Seq) (record, error) {
	r, err := scanRecord(q.QueryRowContext(context.Background(),
		"SELECT key, head, body FROM records WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1",
		key(session, 0), key(session, n)))
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.last() < n {
		return record{}, &fault{n, missing}
	}
	return r, err
}
