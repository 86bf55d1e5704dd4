package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// The kinds of jobs.
const (
	JobExtract     = "extract"     // extract what is worth remembering from a part of the log
	JobConsolidate = "consolidate" // write what was extracted into the pages of memory
)

// A Job is upkeep of a session that is to be done later. It is a row of the store,
// outside the log. A holder takes a job for a limited time, its lease.
type Job struct {
	ID       string
	Kind     string // JobExtract or JobConsolidate
	Session  event.SessionID
	Epoch    string    // epoch that was current when the job was added
	From, To event.Seq // first and last position of the events that it is about
	Attempts int       // number of attempts that failed since the last success
	Due      time.Time // time from which it can be taken; zero if it is set aside
	Holder   string    // holder of the lease, which ends at Due; empty if there is none
	Error    string    // error of the last attempt
}

// Aside reports whether a job is set aside: it is not taken until a person asks for it.
func (j Job) Aside() bool { return j.Due.IsZero() }

// A JobChange is a change to one job.
type JobChange struct {
	Verb JobVerb
	Job  Job
}

// A JobVerb says how a job is changed.
type JobVerb int

const (
	// AddJob adds a job. A session has only one job of a kind that begins at a
	// position: if there is one already, it stays as it is, except that one that was
	// set aside gets the due time of the new one.
	AddJob JobVerb = iota
	// PutJob changes the end, the number of attempts, the due time and the error of
	// the job with the given id, and ends its lease. If the change names a holder,
	// nothing changes unless that holder has the lease.
	PutJob
	// DropJob removes the job with the given id.
	DropJob
)

// Jobs are the jobs of a store. A batch changes them together with the log; ChangeJobs
// makes changes that do not belong to any event. The jobs of a session are deleted with
// it.
type Jobs interface {
	// TakeJob gives a holder the lease of the job that has been due longest. The
	// lease ends at the given time: from then on, any holder can take the job again.
	// If no job is due, TakeJob returns nil and the time at which the next one will
	// be; that time is zero if there is none.
	TakeJob(ctx context.Context, holder string, now, until time.Time) (job *Job, next time.Time, err error)
	// ChangeJobs makes all of the changes or none. Changes to jobs that do not exist
	// do nothing; adding a job to a session that does not exist is ErrNotFound.
	ChangeJobs(ctx context.Context, changes ...JobChange) error
	// Job returns the job with the given id, or ErrNoJob.
	Job(ctx context.Context, id string) (Job, error)
	// Jobs returns the jobs of a session, or of all sessions if the id is empty, in
	// the order in which they are due. Jobs that are set aside come last.
	Jobs(ctx context.Context, session event.SessionID) ([]Job, error)
}

// ErrNoJob means that there is no such job.
var ErrNoJob = errors.New("no such job")
