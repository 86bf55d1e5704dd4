// Package worker remembers what was said in sessions, while nobody waits: it reads
// what is new, has a model note what is worth keeping, and folds that into pages.
//
//   - A session is only ever told of a result, as an intent like any other. What was
//     found counts if it begins where the last part ended and nothing was taken back
//     meanwhile; else it is found again.
//   - What nobody can read is set aside, and what comes after it is read.
//   - Pages are changed before it is recorded that they are. If that is never
//     recorded they are changed again, which changes nothing.
//   - What fails for one session fails for that one alone.
//
// A [Keeper] is the worker of a job.Runner.
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

// A Keeper does the jobs of memory. It is safe for concurrent use.
type Keeper struct {
	host   *session.Host
	store  eventlog.Store
	shelf  *book.Shelf
	runner *jobs.Runner

	pages sync.Mutex // what is written to pages and what is forgotten come one after the other
}

// Options are what a keeper can be told. The zero value is usable.
type Options struct {
	Parallel int           // jobs at a time
	Lease    time.Duration // how long one may take
	Log      *slog.Logger
}

// New returns a keeper of the sessions in a store. It does nothing before Start.
func New(store eventlog.Store, shelf *book.Shelf, opts Options) *Keeper {
	k := &Keeper{store: store, shelf: shelf}
	k.runner = jobs.New(store, k, jobs.Options{Again: again, Parallel: opts.Parallel, Lease: opts.Lease, Turn: session.Working, Log: opts.Log})
	return k
}

// Session is what sessions are told of memory, and whom they wake.
func (k *Keeper) Session() session.Memory {
	return session.Memory{Recall: k.recall, Wake: k.runner.Wake}
}

// Attend names the host of the sessions. It is done once, before anything else.
func (k *Keeper) Attend(host *session.Host) { k.host = host }

// Start begins to work. While it works already, nothing changes.
func (k *Keeper) Start() { k.runner.Start() }

// Stop ends the work and waits for it. It can be started again.
func (k *Keeper) Stop() { k.runner.Stop() }

// Wait waits until a job is done.
func (k *Keeper) Wait(ctx context.Context, id string) error { return k.runner.Wait(ctx, id) }

// Stats counts what became of jobs.
func (k *Keeper) Stats() jobs.Stats { return k.runner.Stats() }

var _ jobs.Worker = (*Keeper)(nil)

// again is when a job that has failed so often is tried again; zero if it is to be
// set aside. What a provider says will be over some time is never a reason for that.
func again(attempts int, now time.Time, err error) time.Time {
	a := memory.Attempts{Failed: attempts, Last: now}
	var failure *model.Error
	if a.Quarantined() && !(errors.As(err, &failure) && failure.Temporary()) {
		return time.Time{}
	}
	return a.Again()
}

// Work implements job.Worker.
func (k *Keeper) Work(ctx context.Context, j eventlog.Job) error {
	defer k.host.LetGo(j.Session)
	var err error
	if j.Kind == eventlog.JobConsolidate {
		err = k.consolidate(ctx, j)
	} else {
		err = k.extract(ctx, j)
	}
	switch {
	case errors.Is(err, session.ErrMoved):
		return jobs.Later{At: time.Now()}
	case errors.Is(err, session.ErrLeft): // only a client that is gone can reach the model
		return jobs.Later{At: time.Now().Add(clientPause)}
	}
	return err
}

// clientPause is how long a job waits for a client without which it cannot be done.
const clientPause = 10 * time.Minute

// GiveUp implements job.Worker: what nobody could read is marked, so that what comes
// after it can be.
func (k *Keeper) GiveUp(ctx context.Context, j eventlog.Job) error {
	if j.Kind == eventlog.JobConsolidate {
		return nil
	}
	looked, err := k.host.Remembered(ctx, j.Session)
	var damage *eventlog.Damage
	if errors.As(err, &damage) {
		return nil // what comes after it cannot be read either
	}
	if err != nil || isAside(looked, j) || j.To <= looked.Pointer {
		return err
	}
	p, err := k.passage(ctx, j, looked)
	if err != nil {
		return err
	}
	batch := p.next(usualRoom)
	d := p.data(j, batch)
	d.Quarantined, d.Error = true, j.Error
	return k.host.Quarantine(ctx, j, looked, d)
}

// recall is what a new session in a working directory is told.
func (k *Keeper) recall(dir, where string, tokens int) (string, []string) {
	return k.shelf.Recall(dir, where, 4*tokens)
}

// Forget removes what came only from a session from the pages of memory, of its own
// workspace and of the user, and what was found in it and is not in them yet. It
// returns how many facts are gone. What is said in the session from now on is
// remembered again. A session that was deleted can be forgotten, too: by its
// working directory.
func (k *Keeper) Forget(ctx context.Context, id event.SessionID, dir string) (int, error) {
	k.pages.Lock()
	defer k.pages.Unlock()
	where := ""
	looked, err := k.host.Remembered(ctx, id)
	if err == nil {
		dir, where = looked.Config.WorkingDirectory, looked.Config.Memory.Where
		err = k.host.ForgetMemory(ctx, id)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return 0, err
	}
	gone := 0
	var errs []error
	for _, b := range k.shelf.All(dir, where) {
		n, err := b.Forget(string(id))
		gone, errs = gone+n, append(errs, err)
	}
	return gone, errors.Join(errs...)
}
