package eventlog

import (
	"context"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A Query selects sessions of the index. Its zero value selects all.
type Query struct {
	Listed   bool   // only sessions that have a user message
	Busy     bool   // only sessions that are not simply idle, see [Session.Busy]
	Dir      string // only sessions with this working directory; all if empty
	IDPrefix string // only sessions whose id begins with this
	Text     string // only sessions whose name, or summary if they have none, contains this, ignoring case

	ModifiedSince  time.Time // only sessions that were modified then or later; zero means any
	ModifiedBefore time.Time // only sessions that were modified earlier; zero means any

	// After continues a listing after one of its sessions.
	After Place
}

// A Place is the place of a session in a listing. The zero Place is before the first.
type Place struct {
	Began    time.Time // time of the last change of the first session of the listing
	Modified time.Time
	Row      int64
}

// Place returns the place of a session in a listing whose first session was modified at
// the given time.
func (s Session) Place(began time.Time) Place {
	return Place{Began: began, Modified: s.Modified, Row: s.Row}
}

// Moved reports whether the session there comes at the end of the listing because it
// changed since the listing began. Nothing continues after such a place: whoever reads
// a listing in pages reads these sessions to the end.
func (p Place) Moved() bool { return p.Modified.After(p.Began) }

// Busy reports whether a session is not simply idle: it has an unfinished turn, an open
// question, a running task, or damage.
func (s Session) Busy() bool {
	return s.Info.Active || s.Info.Questions > 0 || s.Info.Tasks > 0 || s.Damage != nil
}

// Selects reports whether a query selects a session, wherever the listing continues.
func (q Query) Selects(s Session) bool {
	return (!q.Listed || s.Info.Listed) &&
		(!q.Busy || s.Busy()) &&
		(q.Dir == "" || q.Dir == s.Info.Dir) &&
		strings.HasPrefix(string(s.ID), q.IDPrefix) &&
		contains(s.Info, q.Text) &&
		(q.ModifiedSince.IsZero() || !s.Modified.Before(q.ModifiedSince)) &&
		(q.ModifiedBefore.IsZero() || s.Modified.Before(q.ModifiedBefore))
}

// contains reports whether what a session is about contains a text.
func contains(i Info, text string) bool {
	about := i.Name
	if about == "" {
		about = i.Summary
	}
	return text == "" || strings.Contains(strings.ToLower(about), strings.ToLower(text))
}

// precedes reports whether the place of a session is before another.
func (p Place) precedes(other Place) bool {
	if c := p.Modified.Compare(other.Modified); c != 0 {
		return c > 0
	}
	return p.Row > other.Row
}

// A Listing decides what a store yields of the sessions that it reads, so that a session
// is neither missed nor repeated because it changes meanwhile: a change moves it to the
// beginning of the order, which the listing has left behind. A store reads the sessions
// from q.After on, in order, and then once more those that changed after Began.
type Listing struct {
	q     Query
	began time.Time
	seen  map[event.SessionID]bool
}

// NewListing returns a listing at its beginning, or where q.After says.
func NewListing(q Query) *Listing {
	return &Listing{q: q, began: q.After.Began, seen: make(map[event.SessionID]bool)}
}

// Began returns the time of the last change of the listing's first session; zero if
// there is none yet.
func (l *Listing) Began() time.Time { return l.began }

// Yields reports whether a session that was read is to be yielded.
func (l *Listing) Yields(s Session) bool {
	if l.seen[s.ID] || !l.q.Selects(s) {
		return false
	}
	if l.began.IsZero() {
		l.began = s.Modified
	}
	l.seen[s.ID] = true
	return true
}

// YieldsMoved reports whether a session that was read because it changed is to be
// yielded: sessions that were created meanwhile are not part of the listing.
func (l *Listing) YieldsMoved(s Session) bool {
	return !s.Created.After(l.Began()) && l.Yields(s)
}

// The number of sessions of a part of a listing. The first part is small, so that a caller
// that wants few sessions gets them at once.
const (
	firstPart = 64
	lastPart  = 1024
)

// A Lister reads sessions of an index for a listing. What it returns may be more than the
// query selects.
type Lister interface {
	// Part returns the first n sessions of a query from q.After on, in the order of a listing.
	Part(ctx context.Context, q Query, n int) ([]Session, error)
	// Moved returns all sessions of a query that changed after a time, in the same order.
	Moved(ctx context.Context, q Query, after time.Time) ([]Session, error)
}

// Walk calls yield for the sessions of the listing until it returns false. It reads them in
// parts, so that nothing is held while yield runs. The sessions that changed meanwhile are read
// at once, because they may change again.
func (l *Listing) Walk(ctx context.Context, from Lister, yield func(Session) bool) error {
	if l.q.After.Moved() {
		return nil
	}
	q := l.q
	for n := firstPart; ; n = min(2*n, lastPart) {
		part, err := from.Part(ctx, q, n)
		if err != nil {
			return err
		}
		for _, s := range part {
			if l.Yields(s) && !yield(s) {
				return nil
			}
		}
		if len(part) < n {
			break
		}
		q.After = part[len(part)-1].Place(part[0].Modified)
	}
	if l.Began().IsZero() {
		return nil
	}
	q.After = Place{}
	moved, err := from.Moved(ctx, q, l.Began())
	if err != nil {
		return err
	}
	for _, s := range moved {
		if l.YieldsMoved(s) && !yield(s) {
			return nil
		}
	}
	return nil
}
