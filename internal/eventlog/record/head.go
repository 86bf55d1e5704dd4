package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Head is the part of a session's row that appends and readers need.
type Head struct {
	Session int64 // number of the row
	End     eventlog.End
	Parent  int64         // number of the parent's row; zero if it is no fork
	Shared  event.Seq     // number of events that it shares with the parent
	Base    eventlog.Hash // hash of the chain after those events
	Damage  *eventlog.Damage
}

// Reaches reports whether the session can have had that end: it is the current one, or
// at an earlier position.
func (h Head) Reaches(end eventlog.End) bool {
	return end == h.End || end.Seq >= 0 && end.Seq < h.End.Seq
}

// Hash converts stored bytes to a hash. Bytes of a wrong length become the zero hash,
// which matches no event, so that reading reports the damage.
func Hash(stored []byte) (h eventlog.Hash) {
	if len(stored) == len(h) {
		copy(h[:], stored)
	}
	return h
}

// NotFound returns the error for a session that does not exist.
func NotFound(id event.SessionID) error {
	return fmt.Errorf("session %s: %w", id, eventlog.ErrNotFound)
}

// Rows are the rows of a store, inside a transaction or outside.
type Rows interface {
	// Head returns the head of the session in a row, deleted or not. The error is
	// eventlog.ErrNotFound if there is none.
	Head(ctx context.Context, session int64) (Head, error)
	// Latest returns the record of a session that begins last among those that begin at a
	// position or before. found is false if there is none.
	Latest(ctx context.Context, session int64, n event.Seq) (r Record, found bool, err error)
}

// ancestor returns the session that another one was forked from, deleted or not.
func ancestor(ctx context.Context, rows Rows, h Head) (Head, error) {
	if h.Parent <= 0 || h.Parent >= h.Session { // a parent is older; this prevents an endless loop in a damaged store
		return Head{}, &Fault{1, Orphaned}
	}
	parent, err := rows.Head(ctx, h.Parent)
	if errors.Is(err, eventlog.ErrNotFound) {
		return Head{}, &Fault{1, Orphaned}
	}
	return parent, err
}

// EndAt returns the end of a session's chain after n events, of which it has at least as many.
func EndAt(ctx context.Context, rows Rows, h Head, n event.Seq) (eventlog.End, error) {
	for n > 0 && n <= h.Shared {
		parent, err := ancestor(ctx, rows, h)
		if err != nil {
			return eventlog.End{}, err
		}
		h = parent
	}
	switch n {
	case 0:
		return eventlog.End{}, nil
	case h.End.Seq:
		return h.End, nil
	}
	r, err := With(ctx, rows, h.Session, n)
	if err != nil {
		return eventlog.End{}, err
	}
	if r.Last() == n {
		return eventlog.End{Seq: n, Hash: Hash(r.Head)}, nil
	}
	before, err := EndAt(ctx, rows, h, r.First-1)
	if err != nil {
		return eventlog.End{}, err
	}
	links, f := r.Open(before, nil)
	if f != nil {
		return eventlog.End{}, f
	}
	return links[n-r.First].End, nil
}

// With returns the record of a session that contains an event.
func With(ctx context.Context, rows Rows, session int64, n event.Seq) (Record, error) {
	r, found, err := rows.Latest(ctx, session, n)
	if err == nil && (!found || r.Last() < n) {
		return Record{}, &Fault{n, Missing}
	}
	return r, err
}
