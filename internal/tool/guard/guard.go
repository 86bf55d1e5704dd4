// Package guard looks after protected files around the commands of agents. The system
// cannot keep a command from writing a file that its user may write, so the guard looks
// before and after.
//
//   - What the files hold is stored in the session's folder before a command begins.
//   - A change that a command makes is put back, and a person is asked about it, with a
//     diff: yes makes the change again, no leaves it put back. What was changed is kept
//     until then, so that nothing is lost.
//   - The files are looked at when a command ends, at every call and every model request
//     while it runs in the background, and again after a crash.
//   - A change that is made while no process of the session runs is somebody else's, and
//     is left alone. A process that a command leaves behind is one of the session, and a
//     change counts as its doing if it was running at any time since the last look. Such
//     a change may be somebody else's too: nobody can tell, and so it is put back and
//     asked about.
//
// The guard sees what is on the list of package protect around the folders that commands
// run in. It does not see a file that is changed and changed back between two looks, nor
// what reads the file meanwhile.
package guard

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// Options are the settings of a Guard.
type Options struct {
	List protect.List
	// Folder returns the folder of a session, which exists.
	Folder func(id event.SessionID) (string, error)
	// Busy reports whether a command of a session or of its agents, or a process that one
	// of them left behind, is running, or whether a command of another session that
	// belongs to it was started since a time.
	Busy func(ctx context.Context, id event.SessionID, since time.Time) (bool, error)
	Log  *slog.Logger
}

// A Guard looks after the protected files of all sessions. It is safe for concurrent use.
type Guard struct {
	Options
	seed  maphash.Seed
	locks [64]sync.Mutex // a session's lock is chosen by the hash of its id

	mu       sync.Mutex
	cached   map[event.SessionID]*baseline
	approved map[string]allowance // allowances by path
}

// New returns a guard.
func New(o Options) *Guard {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{Options: o, seed: maphash.MakeSeed(), cached: make(map[event.SessionID]*baseline), approved: make(map[string]allowance)}
}

// lock serialises the looks of a session, and returns the function that unlocks it.
func (g *Guard) lock(id event.SessionID) func() {
	mu := &g.locks[maphash.Comparable(g.seed, id)%uint64(len(g.locks))]
	mu.Lock()
	return mu.Unlock
}

// An allowance is a state of a file that no session takes for a change by a command. It is
// for one change: once a session has looked at its files again, it counts no more there.
type allowance struct {
	state protect.State
	at    time.Time
}

// Approve notes that a person has allowed a file to hold a content, so that no session
// takes it for a change by a command.
func (g *Guard) Approve(path string, content []byte) {
	g.approve(path, protect.State{Exists: true, Digest: protect.Digest(content)})
}

func (g *Guard) approve(path string, s protect.State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.approved[path] = allowance{s, time.Now()}
}

// isApproved reports whether a state of a file was approved after a time.
func (g *Guard) isApproved(path string, s protect.State, since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.approved[path]
	return ok && since.Before(a.at) && a.state.Exists == s.Exists && a.state.Digest == s.Digest && a.state.Link == s.Link
}

// Wrap returns the tools that run commands, looked after.
func (g *Guard) Wrap(tools []tool.Tool) []tool.Tool {
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = &guarded{t, g}
	}
	return all
}

// A guarded tool looks at the protected files before and after each call.
type guarded struct {
	tool.Tool
	guard *Guard
}

// Run makes the call. If the protected files cannot be kept, no command is started.
func (t *guarded) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	starts := t.Spec().Detaches
	w, err := t.guard.begin(ctx, call, starts)
	if err != nil {
		return tool.Fail("Command not executed. The protected files could not be kept: " + err.Error() + "."), nil
	}
	r, err := t.Tool.Run(ctx, call)
	if err != nil {
		return r, err // the task that goes on is looked after
	}
	return w.end(ctx, call, r, starts), nil
}

// TaskSource is what sessions know of their background commands.
type TaskSource interface {
	Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error)
	News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool)
	Summary(ctx context.Context, id event.SessionID, keys []string) (string, error)
	Seen(id event.SessionID, key string)
}

// Tasks returns background commands, looked after: what they have changed is put back
// when they end, and before each model request while they run. The next call of the
// session asks about it.
func (g *Guard) Tasks(source TaskSource) TaskSource { return tasks{source, g} }

type tasks struct {
	TaskSource
	guard *Guard
}

func (t tasks) Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error) {
	news, err := t.TaskSource.Watch(ctx, id, key, last)
	if err == nil {
		t.guard.lookAtTask(ctx, id, &news)
	}
	return news, err
}

func (t tasks) News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool) {
	news, ok := t.TaskSource.News(ctx, id, key)
	if ok {
		t.guard.lookAtTask(ctx, id, &news)
	}
	return news, ok
}

func (t tasks) Summary(ctx context.Context, id event.SessionID, keys []string) (string, error) {
	if len(keys) > 0 {
		t.guard.lookBetween(ctx, id)
	}
	return t.TaskSource.Summary(ctx, id, keys)
}
