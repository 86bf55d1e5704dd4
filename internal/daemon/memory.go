package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/page"
	"github.com/abide-run/abide/internal/memory/worker"
	"github.com/abide-run/abide/internal/session"
)

// Memory says where and how sessions are remembered. The zero value is usable.
type Memory struct {
	Dir      string        // the user's own pages; a folder in the data folder if empty
	Parallel int           // jobs at a time
	Lease    time.Duration // maximum time of one job

	// Trusts reports whether the user trusts a folder, so that models are told what
	// is in its memory. If nil all are trusted.
	Trusts func(dir string) (bool, error)
}

// newBooks returns the books of the user of a node. Folders that clients trust are
// trusted, too.
func newBooks(n *Node, known *places.Places) *book.Set {
	dir := n.config.Memory.Dir
	if dir == "" {
		dir = filepath.Join(n.folder.Dir(), "memory")
	}
	books := book.NewSet(dir, memory.Kinds...)
	if n.config.Memory.Trusts != nil {
		books.Trusts = n.trustsMemory(known)
	}
	return books
}

// trustsMemory reports whether models are told what is in the memory of a folder. That
// it is left out is said once for each folder.
func (n *Node) trustsMemory(known *places.Places) func(dir string) bool {
	var said sync.Map
	return func(dir string) bool {
		trusted, err := n.config.Memory.Trusts(dir)
		if err == nil && !trusted {
			trusted, err = known.Trusted(dir)
		}
		if _, again := said.LoadOrStore(dir, true); !trusted && !again {
			n.log.Warn("the memory of a folder is not told to models, because the folder is not trusted; see abide trust", "folder", dir, "err", err)
		}
		return trusted && err == nil
	}
}

// newMemoryWorker returns the worker of memory of an engine. It does nothing before it is
// started.
func newMemoryWorker(n *Node, store eventlog.Store, books *book.Set) *worker.Worker {
	return worker.New(store, books, worker.Options{Parallel: n.config.Memory.Parallel, Lease: n.config.Memory.Lease, Log: n.log})
}

// remembered shows clients what is remembered.
type remembered struct {
	host   *session.Host
	worker *worker.Worker
	books  *book.Set
}

// book returns the book that is meant: the nearest, or the user's.
func (r remembered) book(dir string, user bool) *book.Book {
	where := ""
	if user {
		where = book.User
	}
	return r.books.For(dir, where)
}

// Show lists the pages that matter in a folder, or shows one.
func (r remembered) Show(_ context.Context, p api.MemoryParams) (api.MemoryResult, error) {
	if p.Page != "" {
		b := r.book(p.Cwd, p.User)
		one, err := shownPage(b, p.Page, p.Version)
		return api.MemoryResult{Books: []api.MemoryBook{{Path: b.Path(), Pages: []api.MemoryPage{one}}}}, err
	}
	result := api.MemoryResult{Books: []api.MemoryBook{}}
	users := r.books.For("", "")
	for _, b := range r.books.All(p.Cwd, "") {
		if p.User && b != users {
			continue
		}
		list := api.MemoryBook{Path: b.Path(), User: b == users, Pages: []api.MemoryPage{}}
		names, err := b.Names()
		if err != nil {
			return result, err
		}
		for _, name := range names {
			one, err := shownPage(b, name, 0)
			if err != nil {
				return result, err
			}
			one.Text, one.Digest = "", ""
			list.Pages = append(list.Pages, one)
		}
		result.Books = append(result.Books, list)
	}
	return result, nil
}

// shownPage is a page as clients are shown it.
func shownPage(b *book.Book, name string, version int) (api.MemoryPage, error) {
	text, digest, err := b.Read(name)
	if version > 0 {
		text, err = b.At(name, version)
		digest = ""
	}
	if err != nil {
		return api.MemoryPage{}, err
	}
	one := api.MemoryPage{Name: name, Path: b.Path(name), Text: text, Digest: string(digest), Version: version}
	if p, err := page.Parse(text); err == nil {
		one.Title, one.Facts = p.Title, len(p.Facts())
	} else {
		one.Damage = err.Error()
	}
	if versions, err := b.History(name); err == nil && len(versions) > 0 && version == 0 {
		one.Version = versions[len(versions)-1].Number
	}
	return one, nil
}

// Search looks for lines.
func (r remembered) Search(_ context.Context, p api.MemorySearchParams) (api.MemorySearchResult, error) {
	if p.Max <= 0 {
		p.Max = 50
	}
	result := api.MemorySearchResult{Matches: []api.MemoryMatch{}}
	for _, h := range r.books.Search(p.Cwd, "", p.Query, p.Max) {
		result.Matches = append(result.Matches, api.MemoryMatch{Page: h.Page, Path: h.Path, Line: h.Line, Text: h.Text})
	}
	return result, nil
}

// Edit gives a page another text.
func (r remembered) Edit(_ context.Context, p api.MemoryEditParams) (api.MemoryEdited, error) {
	b := r.book(p.Cwd, p.User)
	version, err := b.Write(p.Page, p.Text, book.Digest(p.Was))
	return api.MemoryEdited{Path: b.Path(p.Page), Version: version}, err
}

// History lists the versions of a page.
func (r remembered) History(_ context.Context, p api.MemoryParams) (api.MemoryHistoryResult, error) {
	b := r.book(p.Cwd, p.User)
	result := api.MemoryHistoryResult{Path: b.Path(p.Page), Versions: []api.MemoryVersion{}}
	list, err := b.History(p.Page)
	for _, v := range list {
		result.Versions = append(result.Versions, api.MemoryVersion{Version: v.Number, Time: event.FormatTime(v.Time), Bytes: v.Bytes})
	}
	return result, err
}

// Revert gives a page the text of an earlier version.
func (r remembered) Revert(_ context.Context, p api.MemoryParams) (api.MemoryEdited, error) {
	b := r.book(p.Cwd, p.User)
	version, err := b.Revert(p.Page, p.Version)
	return api.MemoryEdited{Path: b.Path(p.Page), Version: version}, err
}

// Forget removes what came only from a session.
func (r remembered) Forget(ctx context.Context, p api.MemoryForgetParams) (api.MemoryForgotten, error) {
	gone, err := r.worker.Forget(ctx, p.SessionID, p.Cwd)
	return api.MemoryForgotten{Facts: gone}, err
}

// Consolidate has a session remembered.
func (r remembered) Consolidate(ctx context.Context, id event.SessionID) (string, error) {
	return r.host.Memory.Schedule(ctx, id)
}

// Jobs lists jobs.
func (r remembered) Jobs(ctx context.Context, id event.SessionID) (api.JobsResult, error) {
	s := r.worker.Stats()
	result := api.JobsResult{Jobs: []api.Job{}, Stats: api.JobStats{Done: s.Done, Failed: s.Failed, Aside: s.Aside, Turns: s.Turns}}
	list, err := r.host.Memory.Jobs(ctx, id)
	for _, j := range list {
		result.Jobs = append(result.Jobs, listed(j))
	}
	return result, err
}

func listed(j eventlog.Job) api.Job {
	one := api.Job{
		JobID: j.ID, Kind: j.Kind, SessionID: j.Session, EpochID: j.Epoch, From: j.From, To: j.To,
		Attempts: j.Attempts, Error: j.Error, Status: api.JobWaiting,
	}
	switch {
	case j.Aside():
		one.Status = api.JobAside
		return one
	case j.Holder != "":
		one.Status = api.JobRunning
	}
	one.Due = event.FormatTime(j.Due)
	return one
}

// Retry has a job tried again.
func (r remembered) Retry(ctx context.Context, jobID string) error {
	err := r.host.Memory.RetryJob(ctx, jobID)
	if errors.Is(err, eventlog.ErrNoJob) {
		return errors.Join(err, errors.New("abide jobs lists those that there are"))
	}
	return err
}

// Wait waits until a job is done. Jobs that somebody waits for are done in every engine.
func (r remembered) Wait(ctx context.Context, jobID string) error {
	r.worker.Start()
	return r.worker.Wait(ctx, jobID)
}

// lastTime is how long an engine that is there for one command does jobs of memory at its end.
const lastTime = 5 * time.Second

// lastJobs does the jobs of memory that are due at the end of an engine that is there for one
// command, as far as they fit into a short time. It still serves other processes meanwhile.
// The others wait for an engine that stays, and are counted.
func (n *Node) lastJobs(e *engine) {
	if !n.config.OneCommand || n.config.Visitor || n.ctx.Err() != nil || e.store.Err() != nil {
		return
	}
	if left := e.worker.Drain(lastTime); left > 0 {
		n.log.Info("jobs of memory wait for an engine that stays; see abide jobs", "jobs", left)
	}
}
