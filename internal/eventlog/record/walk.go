package record

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Source is what a walk reads from.
type Source interface {
	Rows

	// Open returns an error if the store is closed, or ctx is over.
	Open(ctx context.Context) error
	// Find returns the head of a session, or eventlog.ErrNotFound.
	Find(ctx context.Context, id event.SessionID) (Head, error)
	// Stored does the same, and never answers from memory.
	Stored(ctx context.Context, id event.SessionID) (Head, error)
	// Pages yields the records of a session in parts, from the one that contains the event
	// from up to the position upTo. A part with an error is the last one; its records are good.
	Pages(ctx context.Context, session int64, from, upTo event.Seq) iter.Seq2[[]Record, error]
	// ReadError converts an error of Rows or Pages to the error for the caller. at is the
	// position of the event that was read.
	ReadError(id event.SessionID, at event.Seq, err error) error
}

// Read yields the events after a position, as Read of an eventlog.Log does.
func Read(ctx context.Context, from Source, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return walkFrom(ctx, from, id, func(w *walk) (err error) {
		w.at, err = w.stored(max(0, min(after, w.head.End.Seq)))
		w.from = w.at
		return err
	})
}

// ReadFrom yields the events after a verified end, as ReadFrom of an eventlog.Log does.
func ReadFrom(ctx context.Context, from Source, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return walkFrom(ctx, from, id, func(w *walk) error {
		w.from, w.at = after, after
		if after != (eventlog.End{}) && !w.head.Reaches(after) {
			return w.conflict(after.Seq)
		}
		return nil
	})
}

// FindEnd returns the end that a session had after n events, as EndAt of an eventlog.Log does.
func FindEnd(ctx context.Context, from Source, id event.SessionID, n event.Seq) (end eventlog.End, err error) {
	w := walk{s: from, ctx: ctx, id: id}
	if w.head, err = from.Find(ctx, id); err != nil {
		return end, err
	}
	if n < 0 || n > w.head.End.Seq {
		return end, w.conflict(n)
	}
	return w.stored(n)
}

// A walk reads a session and verifies the chain as it goes.
type walk struct {
	s      Source
	ctx    context.Context
	id     event.SessionID
	yield  func(event.Event, error) bool
	from   eventlog.End // end that the caller started from
	at     eventlog.End // end of the part that is verified so far
	head   Head
	beyond bool   // true if there are events after the head
	links  []Link // events of the current record; the slice is used again for the next
}

// errStopped means that the caller does not want more events.
var errStopped = errors.New("stopped")

// walkFrom yields the events of a session after the end that begin sets.
func walkFrom(ctx context.Context, from Source, id event.SessionID, begin func(*walk) error) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		w := walk{s: from, ctx: ctx, id: id, yield: yield}
		var err error
		if w.head, err = from.Find(ctx, id); err == nil {
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

// run walks from w.at to the end of the session.
func (w *walk) run() error {
	end := w.head.End
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
		return w.fault(&Fault{max(end.Seq, 1), OtherHash})
	case w.beyond:
		return w.fault(&Fault{end.Seq + 1, Unknown})
	case w.head.Damage != nil:
		return w.head.Damage
	}
	return nil
}

// stored returns the stored end after n events, without verifying the events before
// it. The session must have that many events.
func (w *walk) stored(n event.Seq) (eventlog.End, error) {
	if d := w.head.Damage; d != nil && n >= d.Seq {
		return eventlog.End{}, d
	}
	end, err := EndAt(w.ctx, w.s, w.head, n)
	if err != nil {
		err = w.failed(n, err)
	}
	return end, err
}

// A segment is a part of a session's history that is in the records of one session: of
// itself or of an ancestor.
type segment struct {
	session int64
	last    event.Seq
}

// lineage returns the segments that contain the events after w.at, oldest first. It
// checks that each ancestor has the chain that its fork was made from.
func (w *walk) lineage() ([]segment, error) {
	h := w.head
	segments := []segment{{h.Session, h.End.Seq}}
	for last := h.Shared; last > w.at.Seq; last = min(last, h.Shared) {
		parent, err := ancestor(w.ctx, w.s, h)
		if err != nil {
			return nil, w.failed(w.at.Seq+1, err)
		}
		end, err := EndAt(w.ctx, w.s, parent, h.Shared)
		if err == nil && end.Hash != h.Base {
			err = &Fault{1, OtherOrigin}
		}
		if err != nil {
			return nil, w.failed(w.at.Seq+1, err)
		}
		h = parent
		segments = append(segments, segment{h.Session, last})
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
	if seg.session == w.head.Session {
		upTo = math.MaxInt64 // a record after the end should not exist, and is found
	}
	for records, failed := range w.s.Pages(w.ctx, seg.session, w.at.Seq+1, upTo) {
		for _, r := range records {
			if w.beyond = r.First > seg.last; w.beyond {
				return nil
			}
			if err := w.record(r, seg.last); err != nil {
				return err
			}
		}
		if failed != nil {
			return w.failed(w.at.Seq+1, failed)
		}
		if err := w.s.Open(w.ctx); err != nil {
			return err
		}
	}
	if w.at.Seq < seg.last {
		return w.fault(&Fault{w.at.Seq + 1, Missing})
	}
	return nil
}

// record verifies a record and yields its events up to the given position.
func (w *walk) record(r Record, last event.Seq) error {
	links, f := r.Open(w.at, w.links[:0])
	if f != nil {
		return w.fault(f)
	}
	w.links = links
	for _, l := range links {
		e := l.Event
		if e.Seq > last { // the fork begins in the middle of the record, or the index does not know the event
			w.beyond = last == w.head.End.Seq
			return nil
		}
		if d := w.head.Damage; d != nil && e.Seq >= d.Seq {
			return d
		}
		w.at = l.End
		if !w.yield(e, nil) {
			return errStopped
		}
	}
	return nil
}

func (w *walk) conflict(after event.Seq) error {
	return fmt.Errorf("read %s after event %d: %w", w.id, after, eventlog.ErrConflict)
}

// failed converts an error of the source, or a fault in its records, to the error for the
// caller. at is the position that was read.
func (w *walk) failed(at event.Seq, err error) error {
	if f, ok := errors.AsType[*Fault](err); ok {
		return w.fault(f)
	}
	return w.s.ReadError(w.id, at, err)
}

// fault converts a fault in the records to the error for the caller. It is not always
// damage: the session may have been deleted or appended to meanwhile, or the end that
// the caller started from was never an end of this session.
func (w *walk) fault(f *Fault) error {
	now, err := w.s.Stored(w.ctx, w.id)
	if err == nil && now.Session != w.head.Session {
		err = NotFound(w.id)
	}
	if err != nil {
		return err
	}
	if f.Reason == Unknown && now.End.Seq > w.head.End.Seq {
		return nil
	}
	if w.at == w.from && w.at.Seq > 0 {
		if stored, err := EndAt(w.ctx, w.s, w.head, w.at.Seq); err == nil && stored != w.from {
			return w.conflict(w.from.Seq)
		}
	}
	return &eventlog.Damage{Session: w.id, Seq: f.At, Reason: f.Reason}
}
