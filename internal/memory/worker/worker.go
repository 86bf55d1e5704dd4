// Package worker does the jobs of memory in the background: it reads new parts of logs,
// has a model extract what is worth remembering, and writes that into pages.
//
//   - A session gets the findings as an intent like any other. They are recorded if they
//     begin where the last part ended and nothing was rewound meanwhile; otherwise the
//     part is extracted again.
//   - A part whose extraction fails too often is set aside, and the next one is read.
//   - Pages are changed before the change is recorded. After a crash in between they are
//     changed again, which has no effect.
//   - A failure for one session does not affect others.
//
// A [Worker] implements jobs.Worker.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jobs"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
)

// A Worker does the jobs of memory. It is safe for concurrent use.
type Worker struct {
	host   *session.Host
	store  eventlog.Store
	books  *book.Set
	runner *jobs.Runner

	pages sync.Mutex // held while pages are written or a session is forgotten
}

// Options configure a worker. The zero value is usable.
type Options struct {
	Parallel int           // number of jobs at a time; see jobs.Options
	Lease    time.Duration // time limit of a job; see jobs.Options
	Log      *slog.Logger
}

// New returns a worker for the sessions in a store. It does nothing before Start.
func New(store eventlog.Store, books *book.Set, opts Options) *Worker {
	w := &Worker{store: store, books: books}
	w.runner = jobs.New(store, w, jobs.Options{Again: again, Parallel: opts.Parallel, Lease: opts.Lease, Turn: session.Working, Log: opts.Log})
	return w
}

// Session returns the functions by which sessions use memory.
func (w *Worker) Session() session.MemorySource {
	return session.MemorySource{Recall: w.recall, Wake: w.runner.Wake}
}

// SetHost sets the host of the sessions. It is called once, before all other methods.
func (w *Worker) SetHost(host *session.Host) { w.host = host }

// Start starts doing jobs. It does nothing if the worker was started already.
func (w *Worker) Start() { w.runner.Start() }

// Stop stops doing jobs, and waits for those that have begun. Start can be called again.
func (w *Worker) Stop() { w.runner.Stop() }

// Drain does the jobs that are due for at most the given time, if the worker was not started,
// and returns how many are left.
func (w *Worker) Drain(most time.Duration) (left int) { return w.runner.Drain(most) }

// Wait waits until a job is done.
func (w *Worker) Wait(ctx context.Context, id string) error { return w.runner.Wait(ctx, id) }

// Stats returns the counters of the runner.
func (w *Worker) Stats() jobs.Stats { return w.runner.Stats() }

var _ jobs.Worker = (*Worker)(nil)

// again returns the time at which a job that has failed is tried again, or zero if it is
// to be set aside. Temporary errors of a provider never set a job aside.
func again(attempts int, now time.Time, err error) time.Time {
	a := memory.Attempts{Failed: attempts, Last: now}
	var failure *model.Error
	if a.Quarantined() && !(errors.As(err, &failure) && failure.Temporary()) {
		return time.Time{}
	}
	return a.Again()
}

// Work implements jobs.Worker.
func (w *Worker) Work(ctx context.Context, j eventlog.Job) error {
	defer w.host.Unload(j.Session)
	var err error
	if j.Kind == eventlog.JobConsolidate {
		err = w.consolidate(ctx, j)
	} else {
		err = w.extract(ctx, j)
	}
	switch {
	case errors.Is(err, session.ErrMoved):
		return jobs.Later{At: time.Now()}
	case errors.Is(err, session.ErrLeft): // requests to the model go through a client that is not connected
		return jobs.Later{At: time.Now().Add(clientPause)}
	case errors.Is(err, session.ErrBudget):
		return jobs.Later{At: time.Now().Add(budgetPause)}
	}
	return err
}

// clientPause is the time after which a job is tried again if it needs a client that is
// not connected.
const clientPause = 10 * time.Minute

// budgetPause is the time after which a job is tried again if the budget of its session does
// not let it ask a model. Nobody is asked about that: memory can wait.
const budgetPause = time.Hour

// GiveUp implements jobs.Worker. It records that the part was passed over, so that the
// next one can be extracted.
func (w *Worker) GiveUp(ctx context.Context, j eventlog.Job) error {
	if j.Kind == eventlog.JobConsolidate {
		return nil
	}
	looked, err := w.host.Memory.Remembered(ctx, j.Session)
	var damage *eventlog.Damage
	if errors.As(err, &damage) {
		return nil // later parts cannot be read, either
	}
	if err != nil || isAside(looked, j) || j.To <= looked.Pointer {
		return err
	}
	p, err := w.passage(ctx, j, looked)
	if err != nil {
		return err
	}
	batch := p.next(usualRoom)
	d := p.data(j, batch)
	d.Quarantined, d.Error = true, j.Error
	return w.host.Memory.Quarantine(ctx, j, looked, d)
}

// recall returns the text from memory that a new session in a working directory gets,
// and what it is of each page.
func (w *Worker) recall(dir, where string, tokens int) (string, []event.MemoryPart) {
	text, told := w.books.Recall(dir, where, 4*tokens)
	var parts []event.MemoryPart
	for _, r := range told {
		parts = append(parts, event.MemoryPart{Path: r.Path, Own: r.Own, Facts: r.Facts, Of: r.Of})
	}
	return text, parts
}

// Forget removes the facts that only came from a session from the pages of its workspace
// and of the user, and drops findings that are not in pages yet. It returns the number of
// facts that were removed. Later messages of the session are remembered again. A deleted
// session can be forgotten, too: dir is its working directory then.
func (w *Worker) Forget(ctx context.Context, id event.SessionID, dir string) (int, error) {
	w.pages.Lock()
	defer w.pages.Unlock()
	where := ""
	looked, err := w.host.Memory.Remembered(ctx, id)
	if err == nil {
		dir, where = looked.Config.LocalDirectory(), looked.Config.Memory.Where
		err = w.host.Memory.Forget(ctx, id)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return 0, err
	}
	gone := 0
	var errs []error
	for _, b := range w.books.All(dir, where) {
		n, err := b.Forget(string(id))
		gone, errs = gone+n, append(errs, err)
	}
	return gone, errors.Join(errs...)
}
