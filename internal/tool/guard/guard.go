// Package guard looks after protected files around the commands of agents. The system
// cannot keep a command from writing a file that its user may write, so the guard looks
// before and after.
//
//   - What the files hold is stored in the session's folder before a command begins.
//
//   - A change that a command makes is put back, and a person is asked about it, with a
//     diff: yes makes the change again, no leaves it put back. What was changed is kept
//     until then, so that nothing is lost.
//
//   - The files are looked at when a command ends, at every call and every model request
//     while it runs in the background, and again after a crash.
//
//   - A change that is made while no process of the session runs is somebody else's, and
//     is left alone. A process that a command leaves behind is one of the session, and a
//     change counts as its doing if it was running at any time since the last look. Such
//     a change may be somebody else's too: nobody can tell, and so it is put back and
//     asked about.
//
//   - The files are looked at and put back where the commands run, by the workspace of the
//     session. While it is away no command is started, and a look that is due is made
//     when it is back; nothing but the call that needs the look waits for it.
//
// The guard sees what is on the list of package protect around the folders that commands
// run in. It does not see a file that is changed and changed back between two looks, nor
// what reads the file meanwhile.
package guard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// Options are the settings of a Guard.
type Options struct {
	// Place returns the protected files of the workspace of a session, and a name that no
	// other workspace has. It does not wait for a workspace that is away.
	Place func(ctx context.Context, id event.SessionID) (files workspace.Guarded, name string, err error)
	// Folder returns the folder of a session, which exists.
	Folder func(id event.SessionID) (string, error)
	// Root returns the session that a session works for in the end; itself if it is no
	// agent. Processes of all sessions that work for the same one count as one's own.
	Root func(ctx context.Context, id event.SessionID) event.SessionID
	// Hurry returns a context in which a workspace that is away is not waited for. It may
	// be nil.
	Hurry func(ctx context.Context) context.Context
	Log   *slog.Logger
}

// A Guard looks after the protected files of all sessions. It is safe for concurrent use.
type Guard struct {
	Options
	locks sessionLocks
	late  lateLooks

	mu       sync.Mutex
	cached   map[event.SessionID]*baseline
	approved map[placedPath]allowance
}

// A placedPath is a path in a workspace.
type placedPath struct{ place, path string }

// New returns a guard. Close ends what it does by itself.
func New(o Options) *Guard {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Hurry == nil {
		o.Hurry = func(ctx context.Context) context.Context { return ctx }
	}
	return &Guard{Options: o, late: newLateLooks(), cached: make(map[event.SessionID]*baseline), approved: make(map[placedPath]allowance)}
}

// Close ends the looks that wait for a workspace. They are made at the next call.
func (g *Guard) Close() { g.late.close() }

// An allowance is a state of a file that no session takes for a change by a command. It is
// for one change: once a session has looked at its files again, it counts no more there.
type allowance struct {
	state protect.State
	at    time.Time
}

// Approve notes that a person has allowed a call to give a file a content, so that no
// session takes it for a change by a command.
func (g *Guard) Approve(call tool.Call, path string, content []byte) {
	_, place, err := g.Place(context.Background(), call.Session)
	if err != nil {
		g.Log.Warn("a change that was allowed may be asked about again", "session", call.Session, "path", path, "err", err)
		return
	}
	g.approve(placedPath{place, path}, protect.State{Exists: true, Digest: protect.Digest(content)})
}

func (g *Guard) approve(file placedPath, s protect.State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.approved[file] = allowance{s, time.Now()}
}

// isApproved reports whether a state of a file was approved after a time.
func (g *Guard) isApproved(file placedPath, s protect.State, since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.approved[file]
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

// Run makes the call. If the protected files cannot be kept, no command is started. One
// that was started by an earlier run of the call is found again: what the files were like
// before it is stored, or a person was asked about what it did.
func (t *guarded) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	starts := t.Spec().Detaches
	notes, err := t.guard.begin(ctx, call, starts)
	if err != nil && ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err != nil && call.Review == nil && !t.guard.hasBegun(call) {
		return tool.Fail("Command not executed. The protected files could not be kept: " + err.Error() + "."), nil
	}
	r, err := t.Tool.Run(ctx, call)
	if err != nil {
		return r, err // the task that goes on is looked after
	}
	return t.guard.end(ctx, call, r, notes), nil
}

// TaskSource is what sessions know of their background commands.
type TaskSource interface {
	Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error)
	News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool)
	Summary(ctx context.Context, id event.SessionID, keys []string) (string, error)
	Seen(ctx context.Context, id event.SessionID, key string)
}

// Tasks returns background commands, looked after: what they have changed is put back
// when they end, and before each model request while they run. The next call of the
// session asks about it. Nothing is known of one that has ended as long as the files
// cannot be looked at because the workspace is away.
func (g *Guard) Tasks(source TaskSource) TaskSource { return tasks{source, g} }

type tasks struct {
	TaskSource
	guard *Guard
}

func (t tasks) Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error) {
	news, err := t.TaskSource.Watch(ctx, id, key, last)
	if err == nil {
		err = t.guard.lookAtTask(ctx, id, &news)
	}
	return news, err
}

func (t tasks) News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool) {
	news, ok := t.TaskSource.News(ctx, id, key)
	if ok && t.guard.lookAtTask(ctx, id, &news) != nil {
		return event.TaskReportedData{}, false // Watch looks again
	}
	return news, ok
}

func (t tasks) Summary(ctx context.Context, id event.SessionID, keys []string) (string, error) {
	if len(keys) > 0 {
		t.guard.lookBetween(ctx, id)
	}
	return t.TaskSource.Summary(ctx, id, keys)
}
