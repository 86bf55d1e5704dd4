// Package jobs sees to it that upkeep is done: it takes the rows that are due, the
// longest due first, and has somebody work on them.
//
//   - One timer waits for the earliest row. Nothing is looked through, and nobody
//     asks again and again.
//   - A few are worked on at a time, with a rest after each. One that fails is tried again later, and set
//     aside when it has failed too often; the others never wait for that.
//   - Whoever works on a row holds a lease. What is under way when the runner stops
//     is given back; what a crash leaves is taken again when the lease is over.
//   - To have work done and to wait for it are two calls. No turn makes the second:
//     [Stats] counts it if one ever does.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Worker does what a row says.
type Worker interface {
	// Work does the job. When it returns nil the row is gone: the work has removed
	// it together with what it recorded. It ends with its context.
	Work(ctx context.Context, j eventlog.Job) error
	// GiveUp is told that a job has failed so often that it is set aside, before it
	// is. The row has the last error.
	GiveUp(ctx context.Context, j eventlog.Job) error
}

// ErrMoot is the error of a job that there is nothing to do for any more. Its row is
// removed.
var ErrMoot = errors.New("there is nothing to do any more")

// A Later is the error of a job that cannot be done yet. It does not count as an
// attempt.
type Later struct{ At time.Time }

func (l Later) Error() string { return "it cannot be done before " + event.FormatTime(l.At) }

// Options are what a runner can be told. The zero value of each field is usable,
// except for Again.
type Options struct {
	// Again is when a job that has failed so often is tried again; zero if it is
	// to be set aside.
	Again    func(attempts int, now time.Time, err error) time.Time
	Parallel int                        // how many are worked on at a time; 2 if zero
	Lease    time.Duration              // how long one may take; 15 minutes if zero
	Turn     func(context.Context) bool // whether somebody who waits is a turn
	Log      *slog.Logger               // discarded if nil
}

// Stats counts what became of jobs since the runner was made.
type Stats struct {
	Done   int64 // that were carried out
	Failed int64 // attempts that failed
	Aside  int64 // jobs that were set aside
	Turns  int64 // turns that have waited for a job
}

// A Runner works on the rows of a store. It is safe for concurrent use.
type Runner struct {
	queue  eventlog.Jobs
	worker Worker
	opts   Options
	holder string

	wake chan struct{} // holds a token if a row may be due earlier than was known

	mu      sync.Mutex
	cancel  context.CancelFunc // nil if it does not run
	ended   chan struct{}      // closed when it has stopped
	changed chan struct{}      // closed when an attempt is over; nil if nobody waits

	done, failed, aside, turns atomic.Int64
}

// New returns a runner that does nothing before Start.
func New(queue eventlog.Jobs, worker Worker, opts Options) *Runner {
	opts.Parallel, opts.Lease = cmp.Or(opts.Parallel, 2), cmp.Or(opts.Lease, 15*time.Minute)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Turn == nil {
		opts.Turn = func(context.Context) bool { return false }
	}
	return &Runner{queue: queue, worker: worker, opts: opts, holder: event.NewID(), wake: make(chan struct{}, 1)}
}

// Start begins to work. A runner that works already goes on as it is.
func (r *Runner) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	r.cancel, r.ended = cancel, ended
	go func() { // Stop waits for it
		defer close(ended)
		r.loop(ctx)
	}()
}

// Stop ends the work and waits for it. What was under way is given back and can be
// taken at once. A runner that does not work stays as it is; one that was stopped
// can be started again.
func (r *Runner) Stop() {
	r.mu.Lock()
	cancel, ended := r.cancel, r.ended
	r.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == ended {
		r.cancel = nil
	}
	r.tell()
}

// Wake makes the runner look for rows: one was written that may be due earlier than
// the one it waits for.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counters.
func (r *Runner) Stats() Stats {
	return Stats{Done: r.done.Load(), Failed: r.failed.Load(), Aside: r.aside.Load(), Turns: r.turns.Load()}
}

// Wait waits until a job is done. One that has failed is an error that says why, and
// when it is tried again.
func (r *Runner) Wait(ctx context.Context, id string) error {
	if r.opts.Turn(ctx) {
		r.turns.Add(1)
	}
	for {
		changed := r.listen() // before looking, so that nothing is missed
		j, err := r.queue.Job(ctx, id)
		switch {
		case errors.Is(err, eventlog.ErrNoJob):
			return nil
		case err != nil:
			return err
		case j.Aside():
			return fmt.Errorf("job %s was set aside after %d attempts: %s", id, j.Attempts, j.Error)
		case j.Attempts > 0 && j.Holder == "" && j.Due.After(time.Now()):
			return fmt.Errorf("job %s has failed, and is tried again at %s: %s", id, event.FormatTime(j.Due), j.Error)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *Runner) listen() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// tell lets everyone who waits look again. The mutex is held.
func (r *Runner) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// storePause is how long the store is left alone after it could not say what is due.
const storePause = 5 * time.Second

// loop takes rows until ctx is done, and waits for those who work on them.
func (r *Runner) loop(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	free := make(chan struct{}, r.opts.Parallel)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		j, next, err := r.queue.TakeJob(ctx, r.holder, now, now.Add(r.opts.Lease))
		if j != nil {
			workers.Go(func() {
				defer func() { <-free }()
				r.carryOut(ctx, *j)
				breathe(ctx, time.Since(now))
			})
			continue
		}
		<-free
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Error("it is not known which jobs are due", "err", err)
			next = now.Add(storePause)
		}
		if !r.rest(ctx, next) {
			return
		}
	}
}

// Who has worked takes a rest before the next job, so that many of them, one after the
// other, do not take the disk and the processors away from those who take turns.
const (
	restShare = 4                      // times as long as the work has taken
	longRest  = 100 * time.Millisecond // at most
)

func breathe(ctx context.Context, took time.Duration) {
	if took = min(restShare*took, longRest); took <= 0 {
		return
	}
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// rest waits for the next row, or for word of another. It reports false when ctx is
// done.
func (r *Runner) rest(ctx context.Context, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-r.wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// carryOut works on a job that was taken, and writes down what became of it.
func (r *Runner) carryOut(ctx context.Context, j eventlog.Job) {
	working, cancel := context.WithTimeoutCause(ctx, r.opts.Lease, errors.New("it took too long"))
	defer cancel()
	err := r.worker.Work(working, j)
	err = r.settle(context.WithoutCancel(ctx), ctx.Err() != nil, j, err)
	if err != nil {
		r.opts.Log.Error("what became of a job is not written down; it is tried again when its lease is over", "job", j.ID, "session", j.Session, "err", err)
	}
	r.Wake() // it may be due earlier than the end of its lease
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell()
}

// settle writes down what became of an attempt.
func (r *Runner) settle(ctx context.Context, stopped bool, j eventlog.Job, err error) error {
	var later Later
	switch {
	case err == nil:
		r.done.Add(1)
		return nil
	case errors.Is(err, ErrMoot), errors.Is(err, eventlog.ErrNotFound):
		r.done.Add(1)
		return r.queue.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.DropJob, Job: j})
	case errors.As(err, &later):
		j.Due = later.At
	case stopped:
		j.Due = time.Now()
	default:
		return r.fail(ctx, j, err)
	}
	return r.queue.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.PutJob, Job: j})
}

// fail puts a job off, or sets it aside.
func (r *Runner) fail(ctx context.Context, j eventlog.Job, err error) error {
	r.failed.Add(1)
	j.Attempts++
	j.Error = err.Error()
	j.Due = r.opts.Again(j.Attempts, time.Now(), err)
	if j.Aside() {
		r.aside.Add(1)
		r.opts.Log.Warn("a job has failed too often and is set aside; see abide jobs", "job", j.ID, "kind", j.Kind, "session", j.Session, "err", err)
		if err := r.worker.GiveUp(ctx, j); err != nil {
			r.opts.Log.Error("a job could not be given up; it is tried again", "job", j.ID, "session", j.Session, "err", err)
			j.Due = r.opts.Again(1, time.Now(), err)
		}
	}
	return r.queue.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.PutJob, Job: j})
}
