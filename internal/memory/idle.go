package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A Session is what the decision about it needs to know.
type Session struct {
	ID event.SessionID
	// Last is the time of its last stored event. What is in memory does not
	// count, so that a restart changes nothing.
	Last    time.Time
	Busy    bool // a turn is unfinished
	Waiting bool // there is something to consolidate
	Job     Attempts
}

// Attempts is how the work on one thing has gone so far.
type Attempts struct {
	Failed int // one after the other
	Last   time.Time
}

// How failures are treated.
const (
	firstPause  = time.Minute
	longPause   = time.Hour
	mostFailed  = 5
	granularity = time.Millisecond // of stored times
)

// Quarantined reports whether it has failed so often that it is left alone, so
// that what comes after it can go on. A person can have it tried again.
func (a Attempts) Quarantined() bool { return a.Failed >= mostFailed }

// Again is when it may be tried again: later each time.
func (a Attempts) Again() time.Time {
	if a.Failed == 0 {
		return time.Time{}
	}
	return a.Last.Add(min(longPause, firstPause<<min(a.Failed-1, 10)))
}

// DueAt is when a session is due: when it has been idle for longer than the limit.
// It reports false for one that is not waiting, is busy, or is left alone; and for
// all if the limit is zero or less. It is the row that a timer waits for; the end
// of a turn writes it anew.
func DueAt(s Session, idle time.Duration) (time.Time, bool) {
	if idle <= 0 || s.Busy || !s.Waiting || s.Job.Quarantined() {
		return time.Time{}, false
	}
	at := s.Last.Add(idle + granularity) // exactly at the limit is not yet idle
	if again := s.Job.Again(); again.After(at) {
		at = again
	}
	return at, true
}

// Plan returns the sessions that are due, those that have waited longest first,
// and when the next of the others will be; zero if none will be.
func Plan(sessions []Session, idle time.Duration, now time.Time) (due []event.SessionID, next time.Time) {
	type row struct {
		id event.SessionID
		at time.Time
	}
	var rows []row
	for _, s := range sessions {
		at, ok := DueAt(s, idle)
		switch {
		case !ok:
		case !at.After(now):
			rows = append(rows, row{s.ID, at})
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	for _, r := range rows {
		due = append(due, r.id)
	}
	return due, next
}
