package memory

import "time"

// A Session is what DueAt needs to know of a session.
type Session struct {
	Last    time.Time // time of the last stored event, so that a restart changes nothing
	Busy    bool      // true if a turn is unfinished
	Waiting bool      // true if there are findings to consolidate
}

// Attempts is the history of attempts at one job.
type Attempts struct {
	Failed int       // number of failures since the last success
	Last   time.Time // time of the last failure
}

// The treatment of failures.
const (
	firstPause  = time.Minute      // pause after the first failure; it doubles each time
	longPause   = time.Hour        // longest pause
	mostFailed  = 5                // failures after which a job is quarantined
	granularity = time.Millisecond // granularity of stored times
)

// Quarantined reports whether a job has failed so often that it is set aside, so that
// later parts of the log can be extracted. A person can have it tried again.
func (a Attempts) Quarantined() bool { return a.Failed >= mostFailed }

// Again returns the time at which the job may be tried again.
func (a Attempts) Again() time.Time {
	if a.Failed == 0 {
		return time.Time{}
	}
	return a.Last.Add(min(longPause, firstPause<<min(a.Failed-1, 10)))
}

// DueAt returns the time at which the findings of a session are to be consolidated: when
// it has been idle for longer than the limit. It reports false if the session has no
// findings or is busy, or if the limit is not positive.
func DueAt(s Session, idle time.Duration) (time.Time, bool) {
	if idle <= 0 || s.Busy || !s.Waiting {
		return time.Time{}, false
	}
	return s.Last.Add(idle + granularity), true // exactly at the limit is not yet idle
}
