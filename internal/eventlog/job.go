package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// The kinds of jobs.
const (
	JobExtract     = "extract"     // read a part of the log, and note what is worth keeping
	JobConsolidate = "consolidate" // fold what was noted into memory
)

// A Job is upkeep of a session that is to be done later, by whoever takes it. It is
// a row beside the log.
type Job struct {
	ID       string
	Kind     string
	Session  event.SessionID
	Epoch    string    // that was current when it was written down
	From, To event.Seq // what it is about
	Attempts int       // that failed, one after the other
	Due      time.Time // when it can be taken; zero if it is set aside until a person wants it
	Holder   string    // who works on it, until it is due; empty if nobody does
	Error    string    // of the last attempt that failed
}

// Aside reports whether a job is left alone until a person wants it.
func (j Job) Aside() bool { return j.Due.IsZero() }

// A JobChange is what happens to a row.
type JobChange struct {
	Verb JobVerb
	Job  Job
}

// A JobVerb says what happens to a row.
type JobVerb int

const (
	// AddJob writes a row. There is one for a session, a kind and a beginning:
	// if it is there already it stays as it is, but if it was set aside it is due
	// again when the new one would be.
	AddJob JobVerb = iota
	// PutJob gives the row of an id another end, number of attempts, due time and
	// error, and nobody holds it any more. If the change names a holder, it only
	// counts while that one holds the row.
	PutJob
	// DropJob removes the row of an id.
	DropJob
)

// Jobs are the rows of a store. A batch changes them together with the log; what
// follows from no event is changed here. A session that is deleted takes its rows
// along.
type Jobs interface {
	// TakeJob gives the row that has been due longest to a holder. It is due again
	// at the given time, when the lease is over: whoever takes it then has it. If
	// no row is due it returns nil, and when the next one will be; zero if none
	// will.
	TakeJob(ctx context.Context, holder string, now, until time.Time) (job *Job, next time.Time, err error)
	// ChangeJobs changes rows, all or none. A row that is not there is not
	// changed; to add one to a session that is not there is ErrNotFound.
	ChangeJobs(ctx context.Context, changes ...JobChange) error
	// Job returns the row of an id, or ErrNoJob.
	Job(ctx context.Context, id string) (Job, error)
	// Jobs returns the rows of a session, or of all if it is empty: in the order in
	// which they are due, those that are set aside last.
	Jobs(ctx context.Context, session event.SessionID) ([]Job, error)
}

// ErrNoJob means that there is no such job, or none any more.
var ErrNoJob = errors.New("no such job")
