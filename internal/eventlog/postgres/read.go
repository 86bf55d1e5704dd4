package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A head is the part of a session's row that appends and readers need.
type head struct {
	session int64
	end     eventlog.End
	parent  int64         // row of the parent; zero if it is no fork
	shared  event.Seq     // number of events that it shares with the parent
	base    eventlog.Hash // hash of the chain after those events
	damage  *eventlog.Damage
}

const selectHead = "SELECT id, seq, head, coalesce(parent, 0), shared, base, damaged, reason FROM sessions WHERE "

// findHead returns a session's head, or eventlog.ErrNotFound.
func findHead(ctx context.Context, q querier, id event.SessionID) (head, error) {
	return scanHead(id, q.QueryRow(ctx, selectHead+"name = $1 AND NOT deleted", []byte(id)))
}

func scanHead(id event.SessionID, row pgx.Row) (h head, err error) {
	var end, base, reason []byte
	var damaged *int64
	err = row.Scan(&h.session, &h.end.Seq, &end, &h.parent, &h.shared, &base, &damaged, &reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return head{}, notFound(id)
	}
	h.end.Hash, h.base = hash(end), hash(base)
	if damaged != nil {
		h.damage = &eventlog.Damage{Session: id, Seq: event.Seq(*damaged), Reason: string(reason)}
	}
	return h, err
}

// hash converts stored bytes to a hash. Bytes of a wrong length become the zero hash, which
// matches no event, so that reading reports the damage.
func hash(stored []byte) (h eventlog.Hash) {
	if len(stored) == len(h) {
		copy(h[:], stored)
	}
	return h
}

func notFound(id event.SessionID) error {
	return fmt.Errorf("session %s: %w", id, eventlog.ErrNotFound)
}

// head returns a session's head.
func (s *Store) head(ctx context.Context, id event.SessionID) (head, error) {
	if err := s.open(ctx); err != nil {
		return head{}, err
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

// ancestor returns the session that another one was forked from, deleted or not.
func ancestor(ctx context.Context, q querier, h head) (head, error) {
	if h.parent <= 0 || h.parent >= h.session { // a parent is older; this prevents an endless loop
		return head{}, &fault{1, orphaned}
	}
	parent, err := scanHead("", q.QueryRow(ctx, selectHead+"id = $1", h.parent))
	if errors.Is(err, eventlog.ErrNotFound) {
		return head{}, &fault{1, orphaned}
	}
	return parent, err
}

// endAt returns the end of a session's chain after n events, of which it has at least as many.
func endAt(ctx context.Context, q querier, h head, n event.Seq) (eventlog.End, error) {
	for n > 0 && n <= h.shared {
		parent, err := ancestor(ctx, q, h)
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
	r, err := recordOf(ctx, q, h.session, n)
	if err != nil {
		return eventlog.End{}, err
	}
	if r.last() == n {
		return eventlog.End{Seq: n, Hash: hash(r.head)}, nil
	}
	before, err := endAt(ctx, q, h, r.first-1)
	if err != nil {
		return eventlog.End{}, err
	}
	links, f := r.open(before)
	if f != nil {
		return eventlog.End{}, f
	}
	return links[n-r.first].end, nil
}

// recordOf returns the record of a session that contains an event.
func recordOf(ctx context.Context, q querier, session int64, n event.Seq) (r record, err error) {
	err = q.QueryRow(ctx, "SELECT first, head, body FROM records WHERE session = $1 AND first <= $2 ORDER BY first DESC LIMIT 1", session, int64(n)).
		Scan(&r.first, &r.head, &r.body)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.last() < n {
		return record{}, &fault{n, missing}
	}
	return r, err
}

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

// reaches reports whether the session can have had that end: it is the current one, or at an
// earlier position.
func (h head) reaches(end eventlog.End) bool {
	return end == h.end || end.Seq >= 0 && end.Seq < h.end.Seq
}

// A walk reads a session and verifies the chain as it goes.
type walk struct {
	s     *Store
	ctx   context.Context
	id    event.SessionID
	yield func(event.Event, error) bool
	from  eventlog.End // end that the caller started from
	at    eventlog.End // end of the part that is verified so far
	head  head
}

// errStopped means that the caller does not want more events.
var errStopped = errors.New("stopped")

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

// stored returns the stored end after n events, without verifying the events before it.
func (w *walk) stored(n event.Seq) (eventlog.End, error) {
	if d := w.head.damage; d != nil && n >= d.Seq {
		return eventlog.End{}, d
	}
	end, err := endAt(w.ctx, w.s.reading, w.head, n)
	return end, w.failed(err)
}

// run walks from w.at to the end of the session.
func (w *walk) run() error {
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
	case w.at != w.head.end:
		return w.failed(&fault{max(w.head.end.Seq, 1), otherHash})
	case w.head.damage != nil:
		return w.head.damage
	}
	return nil
}

// A segment is a part of a session's history that is in the records of one session: of itself or
// of an ancestor.
type segment struct {
	session int64
	last    event.Seq
}

// lineage returns the segments that contain the events after w.at, oldest first. It checks that
// each ancestor has the chain that its fork was made from.
func (w *walk) lineage() ([]segment, error) {
	h := w.head
	segments := []segment{{h.session, h.end.Seq}}
	for last := h.shared; last > w.at.Seq; last = min(last, h.shared) {
		parent, err := ancestor(w.ctx, w.s.reading, h)
		if err != nil {
			return nil, w.failed(err)
		}
		end, err := endAt(w.ctx, w.s.reading, parent, h.shared)
		if err == nil && end.Hash != h.base {
			err = &fault{1, otherOrigin}
		}
		if err != nil {
			return nil, w.failed(err)
		}
		h = parent
		segments = append(segments, segment{h.session, last})
	}
	slices.Reverse(segments)
	return segments, nil
}

// The records that are read at once: a number, and about how many bytes.
const (
	pageRows  = 128
	pageBytes = 1 << 20
)

// segment yields the events of a segment. It reads some records at a time, and holds no
// connection while the caller handles their events.
func (w *walk) segment(seg segment) error {
	for w.at.Seq < seg.last {
		if err := w.s.open(w.ctx); err != nil {
			return err
		}
		page, err := w.page(seg.session, w.at.Seq+1, seg.last)
		if err != nil {
			return w.failed(err)
		}
		if len(page) == 0 {
			return w.failed(&fault{w.at.Seq + 1, missing})
		}
		for _, r := range page {
			if err := w.record(r, seg.last); err != nil {
				return err
			}
		}
	}
	return nil
}

// page reads records from the one that contains the event from. The event need not be the first
// of its record.
func (w *walk) page(session int64, from, upTo event.Seq) ([]record, error) {
	return collect(w.ctx, w.s.reading, scanRecord, `SELECT first, head, body FROM (
			SELECT first, head, body, sum(length(body)) OVER (ORDER BY first) - length(body) AS before FROM records
			WHERE session = $1 AND first >= coalesce((SELECT max(first) FROM records WHERE session = $1 AND first <= $2), $2) AND first <= $3
			ORDER BY first LIMIT $4) part
		WHERE before < $5 ORDER BY first`, session, int64(from), int64(upTo), pageRows, pageBytes)
}

func scanRecord(row pgx.CollectableRow) (r record, err error) {
	err = row.Scan(&r.first, &r.head, &r.body)
	return r, err
}

// record verifies a record and yields its events up to the given position.
func (w *walk) record(r record, last event.Seq) error {
	links, f := r.open(w.at)
	if f != nil {
		return w.failed(f)
	}
	for _, l := range links {
		if l.event.Seq > last { // the fork begins in the middle of the record, or the session has grown
			return nil
		}
		if d := w.head.damage; d != nil && l.event.Seq >= d.Seq {
			return d
		}
		w.at = l.end
		if !w.yield(l.event, nil) {
			return errStopped
		}
	}
	return nil
}

func (w *walk) conflict(after event.Seq) error {
	return fmt.Errorf("read %s after event %d: %w", w.id, after, eventlog.ErrConflict)
}

// failed converts an error of a query, or a fault in the records, to the error for the caller. A
// fault is not always damage: the session may have been deleted meanwhile, or the end that the
// caller started from was never an end of this session.
func (w *walk) failed(err error) error {
	f, ok := errors.AsType[*fault](err)
	if !ok {
		return w.s.readError(err)
	}
	now, err := w.s.head(w.ctx, w.id)
	if err == nil && now.session != w.head.session {
		err = notFound(w.id)
	}
	if err != nil {
		return err
	}
	if w.at == w.from && w.at.Seq > 0 {
		if stored, err := endAt(w.ctx, w.s.reading, w.head, w.at.Seq); err == nil && stored != w.from {
			return w.conflict(w.from.Seq)
		}
	}
	return &eventlog.Damage{Session: w.id, Seq: f.at, Reason: f.reason}
}
