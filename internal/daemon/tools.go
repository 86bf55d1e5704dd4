package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/tool/guard"
	mcptool "github.com/abide-run/abide/internal/tool/mcp"
	"github.com/abide-run/abide/internal/tool/recall"
	"github.com/abide-run/abide/internal/tool/todo"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A toolbox holds the tools of agents and the resources that they need.
type toolbox struct {
	folder      *folder.Folder
	folders     sync.RWMutex // held to make or to remove the folder of a session
	workspaces  *sessionWorkspaces
	scopes      scopes
	processes   *process.Manager // processes on this machine; nil if the system does not support durable commands
	sandbox     *sandbox.Sandbox // sandbox of the commands on this machine
	pinned      sync.Map         // working directories of sessions that were compared with the recorded ones
	rootFiles   sync.Map         // files with the working directories of sessions, by their paths
	targetFiles sync.Map         // files with the targets of the rules of sessions, by their paths
	commands    *bash.Commands
	later       sync.WaitGroup // counts what is done in other workspaces while nobody waits for it
	protected   protect.List
	guard       *guard.Guard
	host        *session.Host // nil until the engine has one
	store       eventlog.Store
	stops       sync.Map // commands, by taskName, that are being ended when their workspace is back
	givenUp     sync.Map // commands, by taskName, that nobody waits for any more
	family      family
	retention   process.Retention
	log         *slog.Logger
}

// Commands sets how agents run commands. The zero value of each field is usable.
type Commands struct {
	Wait       time.Duration // time that a call waits for its command
	TimeLimit  time.Duration // maximum run time of a command; no limit if zero
	MaxMemory  int64         // maximum memory of a command and all its processes; no limit if zero
	MaxRunning int           // maximum number of commands of a session at a time
	Quota      int64         // maximum number of bytes of output that are kept
	Keep       time.Duration // time that output is kept after the model was notified; a week if zero

	Sandbox  sandbox.Mode // whether commands are confined
	Writable []string     // further paths that confined commands may change
	Offline  bool         // true if confined commands have no network
	Cache    string       // folder for the caches of confined commands; none if empty
	Hidden   []string     // files beside the data folder that confined commands may not read
}

// openTools opens the tools, and finds the commands that are still running.
func openTools(f *folder.Folder, c Commands, places *workspaces.Registry, notice, atStep func(string), log *slog.Logger) (*toolbox, error) {
	protected := protect.ForUser(f.Dir())
	t := &toolbox{folder: f, protected: protected, log: log}
	at := newSessionWorkspaces(places, func(id event.SessionID) (ownFolder, error) {
		dir, err := t.makeFolder(id)
		if err != nil {
			return ownFolder{}, err
		}
		own, err := local.NewServed(dir, nil, local.Options{Confine: true, Protected: protected.Protected})
		return ownFolder{dir, own.Files}, err
	})
	t.workspaces, t.scopes = at, scopes{files: at.files, targets: t.targets, protected: protected, cached: make(map[event.SessionID]cachedScope)}
	at.protected = t.scopes.protectedIn
	at.require, at.offline = c.Sandbox == sandbox.Require, c.Offline
	t.guard = guard.New(guard.Options{
		Place: at.guarded, Root: t.family.root, Hurry: hurriedly, Log: log,
		Folder: t.makeFolder,
	})
	keep := cmp.Or(c.Keep, 7*24*time.Hour)
	t.retention = process.Retention{Output: keep, Record: max(keep, 30*24*time.Hour)}
	var err error
	t.sandbox = t.openSandbox(c, notice)
	t.processes, err = process.Open(f.Processes(), process.Options{
		Log: log, Sandbox: t.sandbox, Shell: process.Shell(), MaxRunning: c.MaxRunning, Quota: c.Quota,
		Limits: process.Limits{Time: c.TimeLimit, Memory: c.MaxMemory}, AtStep: atStep,
	})
	if errors.Is(err, process.ErrUnsupported) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	if at.local, err = local.NewServed(homeFolder(), t.processes, local.Options{List: protected}); err != nil {
		return nil, err
	}
	t.commands = bash.New(bash.Options{
		Processes: routedProcesses{at},
		Env:       at.env,
		Wait:      c.Wait,
		Scope:     t.scopes.of,
		Elsewhere: at.elsewhere,
		Protected: protected.Protected,
		Notes:     t.makeFolder,
		Place:     t.place,
		Confined:  t.sandbox.Confines(),
		Offline:   c.Offline,
	})
	return t, nil
}

// catalog lists the tools: the built-in ones, and those that this process adds.
func (t *toolbox) catalog(more turn.Catalog) turn.Catalog {
	var all turn.Catalog
	if t.commands != nil {
		all = append(all, t.guard.Wrap(t.commands.Tools())...)
	}
	all = append(all, files.New(files.Options{
		Files: func(call tool.Call) (workspace.Files, error) { return t.workspaces.files(call.Session) },
		Scope: t.scopes.of, Checkpoints: t.checkpoints, Approved: t.guard.Approve,
	})...)
	all = append(all, todo.New()...)
	return append(all, more...)
}

// daemonTools lists the tools that need a part of the daemon other than the toolbox.
func daemonTools(log eventlog.Log, books *book.Set) turn.Catalog {
	return turn.Catalog{recall.New(log, books)}
}

// ToolNames returns the names of all tools that sessions of an engine can have, without
// those that clients and MCP servers bring.
func ToolNames() []string {
	t := &toolbox{commands: bash.New(bash.Options{})}
	var names []string
	for _, v := range slices.Concat(t.catalog(daemonTools(nil, nil)), builtin.New(nil, nil), mcptool.New(nil)) {
		if _, stands := v.(tool.Family); !stands { // the tools that it stands for have their own names
			names = append(names, v.Spec().Name)
		}
	}
	return names
}

// sweepPause is the interval of sweeps.
const sweepPause = time.Hour

// sweep removes old output and records, now and every hour.
func (t *toolbox) sweep(ctx context.Context, host *session.Host) {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for t.processes != nil {
		t.markUnawaited(ctx, host)
		if err := t.processes.Sweep(t.retention); err != nil {
			t.log.Warn("old output could not be removed", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// markUnawaited marks ended commands as seen that no session waits for: the engine died before
// it could mark them, or they are not tasks of a session.
func (t *toolbox) markUnawaited(ctx context.Context, host *session.Host) {
	for _, p := range t.processes.All() {
		if !p.State.Ended() || p.Seen || time.Since(p.Ended) < sweepPause {
			continue
		}
		awaited, err := host.Tasks.Awaits(ctx, event.SessionID(p.Owner), p.Key)
		if err == nil && !awaited {
			err = t.processes.MarkSeen(p.Owner, p.ID)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, session.ErrNotFound) {
			t.log.Warn("could not mark a command as seen", "session", p.Owner, "err", err)
		}
	}
}

// close closes the process manager. Commands keep running.
func (t *toolbox) close() error {
	t.guard.Close()
	err := t.workspaces.registry.Close()
	t.later.Wait()
	if t.processes == nil {
		return err
	}
	defer t.sandbox.Close() // after the last start
	return errors.Join(err, t.processes.Close())
}

// scopes caches the scopes of sessions: a scope remembers the denied files that it has
// seen, so that they stay denied when they are renamed.
type scopes struct {
	files     func(event.SessionID) (workspace.Files, error)
	targets   func(context.Context, event.SessionID) (*scopeTargets, error)
	protected protect.List
	mu        sync.Mutex
	cached    map[event.SessionID]cachedScope
}

type cachedScope struct {
	rules     event.ScopeRules
	env       []string // environment of the session, which names files that are protected
	protected protect.List
	scope     *scope.Scope
}

// maxScopes is the maximum number of scopes that are cached.
const maxScopes = 1024

// of returns the scope of a call.
func (s *scopes) of(ctx context.Context, call tool.Call) (*scope.Scope, error) {
	s.mu.Lock()
	found := s.getLocked(call)
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	at, err := s.files(call.Session)
	if err != nil {
		return nil, err
	}
	found, err = s.make(ctx, call.Session, at, call.Scope)
	if err != nil {
		return nil, err
	}
	protected := s.protected.For(call.Env)
	found = found.Protecting(protected.Protected)
	s.mu.Lock() // not before: nobody waits for a workspace that does not answer
	defer s.mu.Unlock()
	if faster := s.getLocked(call); faster != nil {
		return faster, nil
	}
	if len(s.cached) >= maxScopes {
		clear(s.cached)
	}
	s.cached[call.Session] = cachedScope{call.Scope, call.Env, protected, found}
	return found, nil
}

// protectedIn returns what is protected in a session, given the environment of its last
// call.
func (s *scopes) protectedIn(id event.SessionID) protect.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.cached[id]; ok {
		return m.protected
	}
	return s.protected
}

// getLocked returns the cached scope of a call; nil if there is none.
func (s *scopes) getLocked(call tool.Call) *scope.Scope {
	if m, ok := s.cached[call.Session]; ok && slices.Equal(m.env, call.Env) && reflect.DeepEqual(m.rules, call.Scope) {
		return m.scope
	}
	return nil
}

func scopeRules(rules []event.ScopeRule) []scope.Rule {
	list := make([]scope.Rule, len(rules))
	for i, r := range rules {
		list[i].Target = r.Target
		if r.Permission == scope.Write.String() {
			list[i].Mode = scope.Write
		}
	}
	return list
}

// checkpoints returns the checkpoints of a session, which hold the files that its calls
// replaced.
func (t *toolbox) checkpoints(id event.SessionID) (*files.Checkpoints, error) {
	at, err := t.workspaces.files(id)
	if err != nil {
		return nil, err
	}
	dir, err := t.makeFolder(id)
	return files.NewCheckpoints(filepath.Join(dir, "checkpoints"), at), err
}

// makeFolder makes the folder of a session and returns its path. A session that was deleted
// gets none: what is under way in it may end after the deletion, and nobody would remove
// the folder again.
func (t *toolbox) makeFolder(id event.SessionID) (string, error) {
	t.folders.RLock()
	defer t.folders.RUnlock()
	dir := t.folder.Session(string(id))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if _, err := t.store.Session(context.Background(), id); err != nil {
		return "", fmt.Errorf("make the folder of session %s: %w", id, err)
	}
	return t.folder.MakeSession(string(id))
}

// undo restores the files that calls have changed; if look is true, it only returns what
// would be restored.
func (t *toolbox) undo(ctx context.Context, id event.SessionID, undone func(key string) bool, look bool) ([]event.RestoredFile, error) {
	at, err := t.workspaces.files(id)
	if err != nil {
		return nil, err
	}
	kept := files.NewCheckpoints(filepath.Join(t.folder.Session(string(id)), "checkpoints"), at)
	act := kept.Restore
	if look {
		act = kept.Preview
	}
	all, err := act(ctx, undone)
	list := make([]event.RestoredFile, len(all))
	for i, v := range all {
		list[i] = event.RestoredFile{Path: v.Path, Outcome: string(v.Outcome), Reason: v.Reason, Added: v.Added, Gone: v.Gone}
	}
	return list, err
}

// forget stops the commands of a session on this machine and removes its files.
func (t *toolbox) forget(_ context.Context, id event.SessionID) error {
	place, err := t.lastPlace(id)
	if err == nil && place == nil && t.processes != nil {
		err = errors.Join(t.processes.Abandon(context.Background(), process.Owner(id)), t.processes.Abandon(context.Background(), mcp.Owner(id)))
	}
	if err != nil {
		return fmt.Errorf("end the commands of the session: %w", err)
	}
	if err := os.RemoveAll(t.folder.MCPState(string(id))); err != nil {
		return fmt.Errorf("remove what is known of the MCP servers of the session: %w", err)
	}
	t.workspaces.forget(id)
	t.folders.Lock() // whoever has found the session in the store has made its folder
	defer t.folders.Unlock()
	if err := removeFolder(t.folder.Session(string(id))); err != nil {
		return fmt.Errorf("remove the folder of the session: %w", err)
	}
	return nil
}

// maxRemovals is how often the removal of a folder is tried to which others write.
const maxRemovals = 1000

// removeFolder removes a folder, although what is under way may still write a few files to
// it: a file that comes when the others are gone makes the removal fail.
func removeFolder(dir string) (err error) {
	for range maxRemovals {
		if err = os.RemoveAll(dir); !errors.Is(err, fs.ErrExist) { // the folder is not empty
			break
		}
	}
	return err
}
