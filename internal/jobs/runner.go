// Package jobs runs jobs, which are the upkeep of sessions: it takes those that are due
// from the store, the longest due first, and gives them to a worker.
//
//   - One timer waits for the next job that is due. There is no polling.
//   - A few jobs run at a time, with a pause after each. A job that fails is tried again
//     later, and set aside when it has failed too often; other jobs do not wait for it.
//   - A running job is held by a lease. When the runner stops, its jobs are due again at
//     once; after a crash, they are due again when the lease ends.
//   - Adding a job and waiting for it are separate calls. No turn waits for a job:
//     [Stats] would count it.
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

// A Worker does jobs.
type Worker interface {
	// Work does the job. If it returns nil, it has removed the job from the store in
	// the same append as the result. It returns when ctx is done.
	Work(ctx context.Context, j eventlog.Job) error
	// GiveUp is called before a job is set aside because it has failed too often.
	// j.Error is the last error.
	GiveUp(ctx context.Context, j eventlog.Job) error
}

// ErrMoot is returned by Work if the job is not needed any more. The job is removed.
var ErrMoot = errors.New("there is nothing to do any more")

// A Later is returned by Work if the job cannot be done yet. It does not count as a
// failed attempt.
type Later struct{ At time.Time }

func (l Later) Error() string { return "it cannot be done before " + event.FormatTime(l.At) }

// Options configure a runner. Again is required; the zero value of every other field is
// usable.
type Options struct {
	// Again returns the time at which a job that has failed is tried again, or zero
	// if it is to be set aside. attempts is the number of failures.
	Again    func(attempts int, now time.Time, err error) time.Time
	Parallel int           // number of jobs that run at a time; 2 if zero
	Lease    time.Duration // time limit of a job; 15 minutes if zero
	// Turn reports whether ctx belongs to a turn. It is used to count turns that wait
	// for a job. If it is nil, none does.
	Turn func(context.Context) bool
	Log  *slog.Logger // discarded if nil
}

// Stats counts the outcomes of jobs since the runner was created.
type Stats struct {
	Done   int64 // number of jobs that were done or not needed any more
	Failed int64 // number of attempts that failed
	Aside  int64 // number of jobs that were set aside
	Turns  int64 // number of turns that waited for a job
}

// A Runner runs the jobs of a store. It is safe for concurrent use.
type Runner struct {
	queue  eventlog.Jobs
	worker Worker
	opts   Options
	holder string // holder of the leases

	wake chan struct{} // gets an element if a job may be due earlier than the timer

	mu      sync.Mutex
	cancel  context.CancelFunc // stops the loop; nil if it does not run
	ended   chan struct{}      // closed when the loop has stopped
	changed chan struct{}      // closed when an attempt has ended; nil if nobody waits for one

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

// Start starts the runner. It does nothing if the runner was started already.
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

// Stop cancels the jobs that run and waits for them. They are due again at once. Stop
// does nothing if the runner was not started. Start can be called again after it.
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
	r.notifyWaiters()
}

// putOff is how long a job that Drain has cut waits: an engine that stays may do it by then, and
// short ones do not begin it again and again, which would cost a request each time.
const putOff = time.Hour

// errCut is the reason that a job did not end in Drain.
var errCut = errors.New("it takes longer than a short command may go on after its end: abide serve does it, or abide jobs retry")

// Drain does the jobs that are due, one after the other, for at most the given time, and
// returns how many are left that are due. It does nothing if the runner was started: then the
// jobs are done as they become due. A job that does not end in time is put off.
func (r *Runner) Drain(most time.Duration) (left int) {
	r.mu.Lock()
	started := r.cancel != nil
	r.mu.Unlock()
	if started {
		return 0
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), most, errCut)
	defer cancel()
	for ctx.Err() == nil {
		now := time.Now()
		j, _, err := r.queue.TakeJob(ctx, r.holder, now, now.Add(r.opts.Lease))
		if err != nil || j == nil {
			break
		}
		err = r.worker.Work(ctx, *j)
		if err != nil && ctx.Err() != nil {
			j.Error = errCut.Error()
			err = Later{time.Now().Add(putOff)}
		}
		if err := r.storeOutcome(context.Background(), false, *j, err); err != nil {
			r.opts.Log.Error("what became of a job is not written down; it is tried again when its lease is over", "job", j.ID, "session", j.Session, "err", err)
		}
	}
	return r.countDue()
}

// countDue returns the number of jobs that were due or are put off.
func (r *Runner) countDue() (n int) {
	list, err := r.queue.Jobs(context.Background(), "")
	for _, j := range list {
		if err == nil && !j.Aside() && (!j.Due.After(time.Now()) || j.Error == errCut.Error()) {
			n++
		}
	}
	return n
}

// Wake makes the runner look for jobs. It is called after a job was added that may be due
// earlier than the one the timer waits for.
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

// Wait waits until a job is done. If the job fails, Wait returns an error that contains
// the reason and the time of the next attempt.
func (r *Runner) Wait(ctx context.Context, id string) error {
	if r.opts.Turn(ctx) {
		r.turns.Add(1)
	}
	for {
		changed := r.nextChange() // before reading the job, so that no change is missed
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

// nextChange returns a channel that is closed when the next attempt ends.
func (r *Runner) nextChange() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// notifyWaiters wakes all calls of Wait. The mutex must be held.
func (r *Runner) notifyWaiters() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// storePause is the pause after an error of the store.
const storePause = 5 * time.Second

// loop takes jobs until ctx is done, and waits for those that run.
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
				r.runJob(ctx, *j)
				pauseAfter(ctx, time.Since(now))
			})
			continue
		}
		<-free
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Error("it is not known which jobs are due", "err", err)
			next = now.Add(storePause)
		}
		if !r.waitUntil(ctx, next) {
			return
		}
	}
}

// The pause after a job, which keeps the disk and the processors free for turns when
// there are many jobs.
const (
	pauseFactor  = 4                      // duration of the pause, as a multiple of that of the job
	longestPause = 100 * time.Millisecond // longest pause
)

// pauseAfter pauses after a job that took the given time.
func pauseAfter(ctx context.Context, took time.Duration) {
	if took = min(pauseFactor*took, longestPause); took <= 0 {
		return
	}
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waitUntil waits until the time next, or until Wake is called. It reports false when ctx is
// done.
func (r *Runner) waitUntil(ctx context.Context, next time.Time) bool {
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

// runJob does a job that was taken, and stores the outcome.
func (r *Runner) runJob(ctx context.Context, j eventlog.Job) {
	working, cancel := context.WithTimeoutCause(ctx, r.opts.Lease, errors.New("it took too long"))
	defer cancel()
	err := r.worker.Work(working, j)
	err = r.storeOutcome(context.WithoutCancel(ctx), ctx.Err() != nil, j, err)
	if err != nil {
		r.opts.Log.Error("what became of a job is not written down; it is tried again when its lease is over", "job", j.ID, "session", j.Session, "err", err)
	}
	r.Wake() // the job may be due earlier than the end of its lease
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notifyWaiters()
}

// storeOutcome stores the outcome of an attempt.
func (r *Runner) storeOutcome(ctx context.Context, stopped bool, j eventlog.Job, err error) error {
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
