package memory

import "time"

// A Session is what the decision about it needs to know.
type Session struct {
	// Last is the time of its last stored event. What is in memory does not
	// count, so that a restart changes nothing.
	Last    time.Time
	Busy    bool // a turn is unfinished
	Waiting bool // there is something to consolidate
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
// It reports false for one that is not waiting or is busy, and for all if the limit
// is zero or less.
func DueAt(s Session, idle time.Duration) (time.Time, bool) {
	if idle <= 0 || s.Busy || !s.Waiting {
		return time.Time{}, false
	}
	return s.Last.Add(idle + granularity), true // exactly at the limit is not yet idle
}
