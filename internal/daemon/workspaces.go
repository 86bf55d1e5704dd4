package daemon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// sessionWorkspaces finds the workspaces of sessions. It asks the index only, because it
// is asked while sessions wait for the answer.
type sessionWorkspaces struct {
	local    workspace.Workspace
	registry *workspaces.Registry
	index    eventlog.Store // nil until the engine has one
	mu       sync.Mutex
	chosen   map[event.SessionID]*event.Workspace // never changes for a session; nil for this machine
	// openOwn opens the own folder of a session.
	openOwn func(id event.SessionID) (ownFolder, error)
	// protected returns what is protected on this machine in a session.
	protected func(id event.SessionID) protect.List
	own       map[event.SessionID]ownFolder // folders of sessions whose workspace is elsewhere
	// fence returns what changes for a session carry, so that the workspace refuses those of a
	// server that does not work on it any more; nil if there is one server.
	fence func(ctx context.Context, id event.SessionID) (workspace.Fence, error)
	// What the settings of this engine demand of commands elsewhere, too: that they are
	// confined or not started, and that they have no network.
	require, offline bool
}

// An ownFolder is the folder of a session in the data folder of the engine.
type ownFolder struct {
	dir   string
	files workspace.Files // confined to dir
}

func newSessionWorkspaces(places *workspaces.Registry, openOwn func(event.SessionID) (ownFolder, error)) *sessionWorkspaces {
	return &sessionWorkspaces{
		local: local.New(homeFolder(), nil), registry: places, openOwn: openOwn, protected: func(event.SessionID) protect.List { return protect.List{} },
		chosen: make(map[event.SessionID]*event.Workspace), own: make(map[event.SessionID]ownFolder),
	}
}

// maxChosen is how many sessions are remembered with their workspaces.
const maxChosen = 4096

// choice returns the workspace that a session has chosen; nil for this machine. It fails
// for a session that is not stored, because a call of one that was deleted meanwhile must
// not run on this machine.
func (w *sessionWorkspaces) choice(ctx context.Context, id event.SessionID) (*event.Workspace, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.chosen[id]; ok || w.index == nil {
		return known, nil
	}
	s, err := w.index.Session(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("find the workspace of session %s: %w", id, err)
	}
	if len(w.chosen) >= maxChosen {
		clear(w.chosen)
		clear(w.own)
	}
	w.chosen[id] = s.Info.Workspace
	return s.Info.Workspace, nil
}

// forget forgets the workspace of a session that was deleted.
func (w *sessionWorkspaces) forget(id event.SessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.chosen, id)
	delete(w.own, id)
}

// used returns the sessions in other workspaces that were used lately.
func (w *sessionWorkspaces) used() (list []event.SessionID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, choice := range w.chosen {
		if choice != nil {
			list = append(list, id)
		}
	}
	return list
}

// isRemote reports whether the files of a session are not on this machine. If that cannot
// be found out, they count as remote: nothing of this machine is used for them.
func (w *sessionWorkspaces) isRemote(ctx context.Context, id event.SessionID) bool {
	choice, err := w.choice(ctx, id)
	return choice != nil || err != nil
}

// connection returns the connection to the workspace of a session; nil for this machine.
func (w *sessionWorkspaces) connection(ctx context.Context, id event.SessionID) (*workspaces.Connection, error) {
	choice, err := w.choice(ctx, id)
	if err != nil || choice == nil {
		return nil, err
	}
	return w.registry.Open(*choice)
}

// through returns the workspace behind a connection as a session changes it.
func (w *sessionWorkspaces) through(c *workspaces.Connection, id event.SessionID) workspace.Workspace {
	if w.fence == nil {
		return c.Workspace()
	}
	return c.For(func(ctx context.Context) (workspace.Fence, error) { return w.fence(ctx, id) })
}

// of returns the workspace of a session. It does not wait for one that is away; the calls
// on it do.
func (w *sessionWorkspaces) of(ctx context.Context, id event.SessionID) (workspace.Workspace, error) {
	c, err := w.connection(ctx, id)
	if err != nil || c == nil {
		return w.local, err
	}
	return w.through(c, id), nil
}

// guarded returns the protected files of a session's workspace, and its identity, which is
// empty for this machine.
func (w *sessionWorkspaces) guarded(ctx context.Context, id event.SessionID) (workspace.Guarded, string, error) {
	choice, err := w.choice(ctx, id)
	if err != nil {
		return nil, "", err
	}
	ws, err := w.of(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if choice == nil {
		return local.Guarding(ws, w.protected(id)), "", nil
	}
	return ws.Files, choice.Identity, nil
}

// files returns the files of a session, or those of this machine if the id is empty. The own
// folder of a session is always on this machine.
func (w *sessionWorkspaces) files(id event.SessionID) (workspace.Files, error) {
	if id == "" {
		return w.local.Files, nil
	}
	c, err := w.connection(context.Background(), id)
	if err != nil || c == nil {
		return w.local.Files, err
	}
	own, err := w.ownFolder(id)
	if err != nil {
		return nil, err
	}
	return workspace.WithFolder(w.through(c, id).Files, own.dir, own.files), nil
}

// ownFolder returns the own folder of a session. It is always the same one: the locks of its
// files belong to it.
func (w *sessionWorkspaces) ownFolder(id event.SessionID) (ownFolder, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.own[id]; ok {
		return known, nil
	}
	own, err := w.openOwn(id)
	if err == nil {
		w.own[id] = own
	}
	return own, err
}

// env returns the environment of the commands of a call if they do not run on this
// machine: nothing of this machine or of a client reaches them.
func (w *sessionWorkspaces) env(ctx context.Context, call tool.Call) ([]string, error) {
	c, err := w.connection(ctx, call.Session)
	if err != nil || c == nil {
		return nil, err
	}
	env, err := c.Env(ctx)
	if env == nil {
		env = []string{}
	}
	return env, err
}

// elsewhere returns the files of the workspace that the commands of a call run in; nil if
// they run on this machine.
func (w *sessionWorkspaces) elsewhere(ctx context.Context, call tool.Call) (workspace.Scoped, error) {
	c, err := w.connection(ctx, call.Session)
	if err != nil || c == nil {
		return nil, err
	}
	return w.through(c, call.Session).Files, nil
}

// answers returns nil if the workspace of a session gives a sign of life now, or is this
// machine.
func (w *sessionWorkspaces) answers(ctx context.Context, id event.SessionID) error {
	c, err := w.connection(ctx, id)
	if err != nil || c == nil {
		return err
	}
	return c.Answers(ctx)
}

// answersSoon is answers for somebody who can do without the workspace.
func (w *sessionWorkspaces) answersSoon(ctx context.Context, id event.SessionID) error {
	c, err := w.connection(ctx, id)
	if err != nil || c == nil {
		return err
	}
	return c.AnswersSoon(ctx)
}

// hurriedly returns a context for calls that do not wait for a workspace that is away.
func hurriedly(ctx context.Context) context.Context { return bridge.WithoutPatience(ctx) }

// errSilent means that a workspace gives signs of life, and does not answer.
var errSilent = fmt.Errorf("%w (it does not answer)", workspace.ErrLost)

// asSilence returns errSilent for the error of a workspace that has noticed itself that the
// time of a request is over.
func asSilence(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errSilent
	}
	return err
}

// within returns a context for calls that neither wait for a workspace that is away, nor
// longer than a time for one that is silent.
func within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(hurriedly(ctx), most, errSilent)
}

// routedProcesses are the processes of all sessions, each in the workspace of its session.
// The owner of a process is its session.
type routedProcesses struct{ *sessionWorkspaces }

var _ workspace.Processes = routedProcesses{}

func (r routedProcesses) at(ctx context.Context, owner process.Owner) (workspace.Processes, error) {
	if isShared(owner) {
		return r.local.Processes, nil
	}
	ws, err := r.of(ctx, sessionOf(owner))
	return ws.Processes, err
}

// errOfAnother means that a workspace has answered with another process than it was asked
// about. What follows would go to the workspace of that one, which may be this machine.
var errOfAnother = errors.New("the workspace has answered with another process than it was asked about")

// checked returns what a workspace says of a process, if that belongs to the owner and fits.
func checked(info process.Info, err error, owner process.Owner, fits bool) (process.Info, error) {
	if err == nil && (info.Owner != owner || !fits) {
		return process.Info{}, errOfAnother
	}
	return info, err
}

func (r routedProcesses) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	p, err := r.at(ctx, spec.Owner)
	if err != nil {
		return process.Info{}, false, err
	}
	if !isShared(spec.Owner) && r.isRemote(ctx, sessionOf(spec.Owner)) {
		spec.Require, spec.Offline = r.require, r.offline
	}
	info, attached, err := p.Start(ctx, spec)
	info, err = checked(info, err, spec.Owner, spec.Key == "" || info.Key == spec.Key)
	return info, attached, err
}

func (r routedProcesses) Find(ctx context.Context, owner process.Owner, key string) (process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Info{}, err
	}
	info, err := p.Find(ctx, owner, key)
	return checked(info, err, owner, info.Key == key)
}

func (r routedProcesses) Get(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Info{}, err
	}
	info, err := p.Get(ctx, owner, id)
	return checked(info, err, owner, info.ID == id)
}

func (r routedProcesses) List(ctx context.Context, owner process.Owner) ([]process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return nil, err
	}
	list, err := p.List(ctx, owner)
	for _, info := range list {
		if _, other := checked(info, nil, owner, true); other != nil {
			return nil, other
		}
	}
	return list, err
}

func (r routedProcesses) Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Info{}, err
	}
	info, err := p.Wait(ctx, owner, id)
	return checked(info, err, owner, info.ID == id)
}

func (r routedProcesses) Read(ctx context.Context, owner process.Owner, id process.ID, q process.ReadRequest) (process.Chunk, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Chunk{}, err
	}
	return p.Read(ctx, owner, id, q)
}

func (r routedProcesses) Tail(ctx context.Context, owner process.Owner, id process.ID, n int, stream process.Stream) (process.Chunk, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Chunk{}, err
	}
	return p.Tail(ctx, owner, id, n, stream)
}

func (r routedProcesses) View(ctx context.Context, owner process.Owner, id process.ID, stream process.Stream) (string, *process.TruncationInfo, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return "", nil, err
	}
	return p.View(ctx, owner, id, stream)
}

func (r routedProcesses) Follow(ctx context.Context, owner process.Owner, id process.ID, offset int64) iter.Seq2[workspace.Frame, error] {
	p, err := r.at(ctx, owner)
	if err != nil {
		return func(yield func(workspace.Frame, error) bool) { yield(workspace.Frame{}, err) }
	}
	return p.Follow(ctx, owner, id, offset)
}

func (r routedProcesses) WriteStdin(ctx context.Context, owner process.Owner, id process.ID, in process.Input) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.WriteStdin(ctx, owner, id, in)
}

func (r routedProcesses) Rest(ctx context.Context, owner process.Owner, id process.ID, after time.Duration) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.Rest(ctx, owner, id, after)
}

func (r routedProcesses) Consume(ctx context.Context, owner process.Owner, id process.ID, offset int64) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.Consume(ctx, owner, id, offset)
}

func (r routedProcesses) Resize(ctx context.Context, owner process.Owner, id process.ID, size process.Size) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.Resize(ctx, owner, id, size)
}

func (r routedProcesses) Signal(ctx context.Context, owner process.Owner, id process.ID, sig syscall.Signal) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.Signal(ctx, owner, id, sig)
}

func (r routedProcesses) Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Info{}, err
	}
	info, err := p.Stop(ctx, owner, id)
	return checked(info, err, owner, info.ID == id)
}

func (r routedProcesses) Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	p, err := r.at(ctx, owner)
	if err != nil {
		return process.Info{}, err
	}
	info, err := p.Interrupt(ctx, owner, id)
	return checked(info, err, owner, info.ID == id)
}

func (r routedProcesses) MarkSeen(ctx context.Context, owner process.Owner, id process.ID) error {
	p, err := r.at(ctx, owner)
	if err != nil {
		return err
	}
	return p.MarkSeen(ctx, owner, id)
}
