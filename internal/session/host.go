// Package session keeps the sessions of one engine: which are in memory, who is
// attached to them, and that each has exactly one writer.
//
// Everything that changes a session is an intent, handed to the session's own
// goroutine and acknowledged when it is stored. That goroutine runs only while
// there is something to do; an idle session costs a few hundred bytes, and one
// that nobody is attached to costs nothing.
//
// Work does not need a client: a turn goes on when nobody watches. When an engine
// that is there to stay starts, unfinished turns go on by themselves; in any other
// engine a session goes on when somebody uses it.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/workspace"
)

// An Endpoint is a model that can be asked, and its name.
type Endpoint struct {
	Model model.Model
	Name  string
	Blind bool // true if the model cannot see images
	// Unread is true if the model is not sent documents: it or its provider does not read them.
	Unread bool
	// Window is how many tokens fit into a request and its reply, and Output how
	// many of them are kept free for the reply. They are zero if that is not known.
	Window, Output int
	// Longest is how many tokens a reply of the model can have; zero if that is not known.
	Longest int
	Price   *model.Price // nil if it is not known

	provider *provider.Provider // where it is; nil for the models that are part of the program
}

// limits returns how many tokens fit into the model's window.
func (to Endpoint) limits() window.Limits {
	return window.LimitsOf(model.Capabilities{Window: to.Window, MaxOutput: to.Output}, 0)
}

// A Resolver finds the model of a session. The provider has the keys that the session's
// client gave. An error is shown to people: it says what is wrong with the name or the
// configuration, and what to do.
type Resolver func(ctx context.Context, as provider.Choice) (Endpoint, error)

// Options configure a host. The zero value of each field is usable, except for
// Resolve.
type Options struct {
	Resolve Resolver
	Tools   turn.Catalog
	Log     *slog.Logger  // nothing is logged if nil
	Version string        // version of the runtime in session.start
	Grace   time.Duration // time that a session counts as attached after its last client vanished; 2 s if zero
	Rest    time.Duration // time that an idle session stays in memory; 30 s if zero
	// Retries are the longest pauses before each further attempt at a model request; the
	// last one is repeated. Each pause is a random part of its longest.
	Retries []time.Duration
	// Patience is how long a turn waits for a model that cannot be reached, unless its session
	// says otherwise; an hour if zero.
	Patience time.Duration
	// LookTime is how long a transaction waits for a look at files; 5 ms if zero.
	LookTime time.Duration
	// OnDisk reports whether a folder of this machine and those above it are on its own
	// disks, so that reading there rarely waits for a network. No folder is if it is nil.
	OnDisk func(dir string) bool
	// MaxQueue is how many inputs can wait while a turn runs; 20 if zero.
	MaxQueue int
	// Files returns the files of the workspace of a session, or those of this machine if
	// the id is empty. It does not wait for the workspace. Sessions have no files if it is
	// nil.
	Files func(id event.SessionID) (workspace.Files, error)
	// Instructions returns what the files of a project say to agents that work in a
	// folder, and in the further folders. It is called at the beginning of each turn.
	// Nothing is read if it is nil.
	Instructions func(ctx context.Context, from workspace.Projects, dir string, further ...string) (string, []event.InstructionSource, error)
	// Standing returns the rules that hold in all sessions that work in a folder, and
	// the name of the place that the folder belongs to. It is called whenever a call
	// is judged. There are no such rules if it is nil.
	Standing func(dir string) (place string, rules []event.Rule, err error)
	// Skills finds skills. There are none if nil.
	Skills SkillSource
	// Folder returns the folder of a session's own files, which need not exist.
	// There is none if nil.
	Folder func(id event.SessionID) string
	// ToolsOf returns the tools that need the host itself. They come after Tools.
	ToolsOf func(*Host) turn.Catalog
	// Tasks is what goes on in the background. There is nothing if nil.
	Tasks TaskSource
	// StopTask ends what a call has begun, and returns when it has ended. It is no
	// error if the call has begun nothing. Nothing is ended if it is nil.
	StopTask func(ctx context.Context, id event.SessionID, key string) error
	// Undo undoes what calls did to files. Nothing is undone if it is nil.
	Undo Undo
	// MCP says where MCP servers run. Sessions have none if it is nil.
	MCP *mcp.Options
	// Memory is what sessions are told of memory, and who extends it.
	Memory MemorySource
	// Forget removes what a deleted session has outside of the store on this machine. An
	// earlier call may have removed a part of it.
	Forget func(ctx context.Context, id event.SessionID) error
	// Release ends what a deleted session has left in another workspace, unless there is a new
	// session with its id. It is called beside all sessions, and again after an error. Nothing
	// is ended if it is nil.
	Release func(ctx context.Context, d Deletion) error
	// Owners says which server works on a session. It is nil if no other server shares the store.
	Owners Owners
	// OnlyAttended is true for an engine that is there for one command: a session that
	// an earlier engine left unfinished goes on only when somebody uses it, or after
	// Start.
	OnlyAttended bool
	// Deletions remembers unfinished deletions. If it is nil, a deletion that is
	// interrupted leaves what Forget would have removed.
	Deletions Deletions
}

// defaultRetries are the longest pauses before each further attempt at a model request.
var defaultRetries = []time.Duration{
	500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
}

// A Host runs the sessions of a store. What every client needs are its own methods;
// the rest hangs on a service for each feature.
type Host struct {
	Agents      Agents
	Clients     Clients
	Commands    Commands
	Context     Context
	Ledger      Ledger
	Log         Log
	MCP         MCP
	Memory      Memory
	Permissions Permissions
	Questions   Questions
	Queues      Queues
	Settings    Settings
	Attachments Attachments
	Skills      Skills
	Tasks       Tasks
	Retention   Retention
	Todos       Todos
	Work        Work

	store eventlog.Store
	opts  Options
	log   *slog.Logger

	started time.Time

	ctx    context.Context // the context of all work; cancelled when the host stops
	cancel context.CancelCauseFunc

	// Locks are taken in this order: mu, a session's mailbox, its clients, gate. No other lock is
	// taken under that of attended.
	mu       sync.Mutex
	sessions map[event.SessionID]*Session
	attended attendance

	// broken has the ids of sessions in which something has panicked, until somebody uses
	// the session again. It is a field of the host, because a session that panics while its
	// log is read has no Session in memory.
	broken sync.Map

	outages outages
	budgets budgets
	mcp     mcpSets

	gate    gate
	work    sync.WaitGroup
	offers  offers
	tasking tasking

	watchers watchList

	waking chan struct{} // holds an element for each session that the host is waking
}

var (
	// ErrNotFound means that there is no such session.
	ErrNotFound = eventlog.ErrNotFound
	// ErrClosed means that the host is stopping.
	ErrClosed = errors.New("the engine is stopping")
)

// New returns a host. It does nothing before Start.
func New(store eventlog.Store, opts Options) *Host {
	if opts.Grace == 0 {
		opts.Grace = 2 * time.Second
	}
	if opts.LookTime == 0 {
		opts.LookTime = lookTime
	}
	if opts.Rest == 0 {
		opts.Rest = 30 * time.Second
	}
	if opts.MaxQueue == 0 {
		opts.MaxQueue = 20
	}
	if opts.Retries == nil {
		opts.Retries = defaultRetries
	}
	if opts.Patience == 0 {
		opts.Patience = defaultPatience
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{
		store: store, opts: opts, log: opts.Log, started: time.Now(),
		sessions: make(map[event.SessionID]*Session),
		attended: attendance{all: !opts.OnlyAttended, used: make(map[event.SessionID]bool)},
		tasking: tasking{
			watched: make(map[taskKey]bool), stopping: make(map[taskKey]chan struct{}),
			gathered: make(map[event.SessionID][]event.TaskReportedData),
		},
		watchers: watchList{all: make(map[*Watcher]struct{})},
		waking:   make(chan struct{}, maxWaking),
	}
	h.outages.host = h
	h.openServices()
	if opts.ToolsOf != nil {
		h.opts.Tools = append(slices.Clip(h.opts.Tools), opts.ToolsOf(h)...)
	}
	h.ctx, h.cancel = context.WithCancelCause(context.WithValue(context.Background(), turnKey{}, true))
	return h
}

// openServices lets every service know its host.
func (h *Host) openServices() {
	h.Agents, h.Clients, h.Commands, h.Context = Agents{h}, Clients{h}, Commands{h}, Context{h}
	h.Ledger, h.Log, h.Memory, h.Permissions, h.Questions = Ledger{h}, Log{h}, Memory{h}, Permissions{h}, Questions{h}
	h.Attachments, h.MCP = Attachments{h}, MCP{h}
	h.Queues, h.Settings, h.Skills, h.Tasks, h.Todos = Queues{h}, Settings{h}, Skills{h}, Tasks{h}, Todos{h}
	h.Retention, h.Work = Retention{h}, Work{h}
}

// Start lets every unfinished turn go on, and watches what goes on in the
// background. A session that only waits for an answer is not read, nor one that
// has only tasks or waits for its model. A session that cannot be read is reported and left alone; the
// others are not affected. What is left of sessions that were deleted is removed
// meanwhile.
func (h *Host) Start(ctx context.Context) error {
	h.attended.addAll()
	h.Work.FinishDeletions(ctx)
	if h.isShared() {
		return nil // what is due is claimed first: see Continue
	}
	var due []event.SessionID
	for s, err := range h.store.Active(ctx) {
		if err != nil {
			return fmt.Errorf("find unfinished turns: %w", err)
		}
		if h.resume(s) {
			due = append(due, s.ID)
		}
	}
	if len(due) > 0 {
		h.spawn(func() { h.wakeAll(due) })
	}
	return nil
}

// resume watches what a session has in the background and lets it wait for its model, as its entry in
// the index says, and reports whether the session is due.
func (h *Host) resume(s eventlog.Session) (due bool) {
	if p := s.Info.Parked; p != nil {
		h.outages.restore(s.ID, *p)
	}
	if s.Info.Due() {
		return true
	}
	if h.opts.Tasks != nil {
		for _, t := range s.Info.Watch {
			h.watchTask(taskKey{s.ID, t.Key}, t.Last, nil)
		}
	}
	return false
}

// maxWaking is how many sessions are read at the same time because the host
// wakes them. Whole logs are in memory while they are read: with more at once,
// a folder with many unfinished turns would need more memory than there is.
const maxWaking = 2

// wakeAll wakes sessions, a few at a time. A session that waits for something, such
// as a model's answer, does not keep the next one waiting.
func (h *Host) wakeAll(due []event.SessionID) {
	for _, id := range due {
		leave, ok := h.enterWaking()
		if !ok {
			return
		}
		if !h.spawn(func() { defer leave(); h.wake(id) }) {
			leave()
			return
		}
	}
}

// enterWaking waits for a place among the sessions that the host wakes. The returned
// function gives the place back. It reports false if the host is closed.
func (h *Host) enterWaking() (leave func(), ok bool) {
	select {
	case h.waking <- struct{}{}:
		return func() { <-h.waking }, true
	case <-h.ctx.Done():
		return nil, false
	}
}

// wake loads a session so that it does what is due. The session stays in memory only
// if something is under way then, or somebody has attached to it.
func (h *Host) wake(id event.SessionID) {
	err := h.changeAny(h.ctx, id, func(*txn) error { return nil })
	if err == nil {
		err = h.inspectAny(h.ctx, id, (*txn).reindex)
	}
	var damage *eventlog.Damage // reading has logged damage already
	if err != nil && h.ctx.Err() == nil && !errors.As(err, &damage) {
		h.log.Error("an unfinished turn could not go on; it is tried again when the session is next used", "session", id, "err", err)
	}
	h.Unload(id)
}

// Close stops all work and waits for it. What is unfinished goes on when the
// next engine starts.
func (h *Host) Close() {
	h.gate.Lock()
	h.gate.closed = true
	h.gate.Unlock()
	h.mu.Lock()
	for _, s := range h.sessions {
		s.mailbox.stopTimer()
	}
	h.mu.Unlock()
	h.outages.close()
	h.leaveMCP()
	h.cancel(ErrClosed)
	h.closeAllMCP()
	h.work.Wait()
}

// enter counts work that Close waits for, until leave is called. It reports false if
// the host is closed.
func (h *Host) enter() bool {
	h.gate.Lock()
	defer h.gate.Unlock()
	if h.gate.closed {
		return false
	}
	h.work.Add(1)
	return true
}

func (h *Host) leave() { h.work.Done() }

// spawn runs f in a goroutine that Close waits for. It reports false if the
// host is closed.
func (h *Host) spawn(f func()) bool {
	if !h.enter() {
		return false
	}
	go func() {
		defer h.leave()
		f()
	}()
	return true
}

// get returns the session in memory, and makes it if needed. It need not exist in the
// store.
func (h *Host) get(id event.SessionID) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[id]
	if s == nil {
		s = newSession(h, id)
		h.sessions[id] = s
	}
	return s
}

// peek returns the session if it is in memory, or nil.
func (h *Host) peek(id event.SessionID) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// changeAny lets f change a session that need not exist, and waits until the change
// is stored.
func (h *Host) changeAny(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.submit(ctx, id, &intent{do: f, done: make(chan error, 1)})
}

// inspectAny lets f read a session that need not exist.
func (h *Host) inspectAny(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.submit(ctx, id, &intent{do: f, readOnly: true, done: make(chan error, 1)})
}

// maintain lets f change a session as upkeep of the engine, which does not make an
// unfinished turn go on that nobody has asked for.
func (h *Host) maintain(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.submit(ctx, id, &intent{do: f, upkeep: true, done: make(chan error, 1)})
}

// maintained is maintain for a session that exists.
func (h *Host) maintained(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.maintain(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return f(tx)
	})
}

// submit hands an intent to a session and waits until it is carried out. If ctx is
// done first, the intent is withdrawn, unless it is being carried out. The intent
// never writes to variables of the caller after submit has returned.
func (h *Host) submit(ctx context.Context, id event.SessionID, in *intent) error {
	if id == "" {
		return fmt.Errorf("sessionId: %w: it is empty", ErrNotFound)
	}
	run, ok := h.get(id).enqueue(in)
	for !ok { // the session was removed from memory meanwhile
		run, ok = h.get(id).enqueue(in)
	}
	run()
	select {
	case err := <-in.done:
		return err
	case <-ctx.Done():
	}
	if in.started.CompareAndSwap(false, true) {
		return context.Cause(ctx)
	}
	return <-in.done
}

// evict removes a session from memory if nobody needs it there.
func (h *Host) evict(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mailbox.mu.Lock()
	defer s.mailbox.mu.Unlock()
	if s.mailbox.working || len(s.mailbox.inbox) > 0 || s.isNeeded() {
		return
	}
	s.mailbox.gone = true
	delete(h.sessions, s.id)
	h.closeMCP(s.id, !s.log.info.Active)
}

// Resident counts the sessions in memory.
func (h *Host) Resident() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// inspect lets f read a session that exists.
func (h *Host) inspect(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.inspectAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return f(tx)
	})
}

// change lets f change a session that exists, and waits until the change is stored.
func (h *Host) change(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return f(tx)
	})
}

// Unload removes a session from memory if no client is attached and nothing is under
// way.
func (h *Host) Unload(id event.SessionID) {
	if s := h.peek(id); s != nil && !s.clients.any() {
		s.unload()
	}
}
