// Package daemon connects the parts: it opens a data folder, becomes its engine or a
// relay to the engine, and serves clients until it is closed.
//
// Each folder has one engine. It holds the folder's lock and listens on its private
// socket. Any further process on that folder is a relay: it passes its clients'
// connections on. When the engine ends, however it ends, one of the relays takes the
// lock and continues from the log.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httputil"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/memory/worker"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/project/instructions"
	"github.com/abide-run/abide/internal/project/skills"
	"github.com/abide-run/abide/internal/project/trust"
	"github.com/abide-run/abide/internal/relay"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/rest"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/builtin"
	mcptool "github.com/abide-run/abide/internal/tool/mcp"
	"github.com/abide-run/abide/internal/turn"
)

// Config is the configuration of a process. Only Dir is required.
type Config struct {
	Dir     string // data folder
	Version string
	Log     *slog.Logger // discarded if nil

	// Defaults are the defaults of the sessions of this process's clients.
	Defaults api.Defaults

	// OneCommand is true for a process that is there for one command or one client: if
	// it becomes the engine, it continues only the sessions that a client uses. Any
	// other process continues all unfinished turns, also through another engine.
	OneCommand bool
	// Visitor is true for a process that runs only for a moment: it is there for one
	// command, and does no upkeep.
	Visitor bool

	Cluster  *Cluster        // set if the engine is one of several servers on one log
	Store    string          // URL of the log, as stores has it; a file in the data folder if empty
	KeyFile  string          // path of the file with the key of the secrets, relative to the data folder; seal.FileName there if empty
	Sync     eventlog.Sync   // guarantee of an acknowledged append
	Keep     time.Duration   // time after its last change after which a session is deleted, unless OneCommand; never if zero
	Rest     time.Duration   // time that an idle session stays in memory; the host's default if zero
	MaxQueue int             // number of inputs that can wait while a turn runs; the host's default if zero
	Retries  []time.Duration // pauses before each further attempt at a model request; the host's default if nil
	LookTime time.Duration   // time that a transaction waits for a look at files; the host's default if zero

	ModelSettings ModelSettings      // about models that clients bring along
	Instructions  instructions.Rules // rules for the files that tell agents about a project
	Commands      Commands           // settings for the commands of agents
	Workspaces    workspaces.Options // workspaces on other machines, in which sessions can work
	Memory        Memory             // place and settings of memory
	Notify        Notify             // programs and addresses that are told when a session waits or ends; not used if OneCommand

	// Notice is called with a line for people while clients wait, once for each
	// reason. It may be nil.
	Notice func(line string)

	Tools  turn.Catalog                        // additional tools of agents
	Wrap   func(eventlog.Store) eventlog.Store // wraps the store; for tests
	AtStep func(step string)                   // called between the steps of what is done in several files; for tests
}

// A Node is one process on a data folder.
type Node struct {
	config Config
	folder *folder.Folder // nil if the servers are remote
	remote *remoteServers // servers on other machines; nil if the engine is on this one
	log    *slog.Logger

	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	relays sync.WaitGroup // counts the clients that another process serves

	proxyOnce sync.Once
	proxy     *httputil.ReverseProxy // passes requests over HTTP on to the engine; nil before the first

	notices         notices
	stopped         atomic.Bool   // true when the host was stopped because it was idle
	promoted        chan struct{} // closed when this process has become the engine, or never will
	mu              sync.Mutex
	engine          *engine
	takeoverError   error     // error of the last attempt to become the engine; nil if another process is the engine
	takeoverFailing time.Time // time of the first failed attempt
	failed          error     // reason why this process will never be the engine, if no other process is
}

// errClosed means that the process is stopping.
var errClosed = session.ErrClosed

// Open makes this process the engine of a folder, or a relay to its engine.
func Open(ctx context.Context, c Config) (*Node, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	f, err := folder.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	c.Store = storeURL(c.Store, f.Database())
	if err := errors.Join(stores.Check(c.Store), c.checkCluster(), checkStoreName(c.Store, f.Dir(), KeyFile(c.KeyFile, f.Dir()))); err != nil {
		return nil, err
	}
	c.OneCommand = c.OneCommand || c.Visitor
	lock, got, err := f.TryLock()
	if err != nil {
		return nil, err
	}
	n := &Node{config: c, folder: f, log: c.Log, promoted: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if !got {
		n.work.Go(n.takeOver)
		n.work.Go(func() { n.watchHolder(n.ctx) })
		if !c.OneCommand {
			n.work.Go(n.continueAll)
		}
		return n, nil
	}
	if err := n.promote(ctx, lock); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// promotion returns the channel that is closed when this process becomes the engine, or never will.
func (n *Node) promotion() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.promoted
}

// currentEngine returns the engine if it is in this process, or the reason why there will
// never be one.
func (n *Node) currentEngine() (*engine, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.engine, n.failed
}

// Dir returns the absolute path of the data folder; empty if there is none.
func (n *Node) Dir() string {
	if n.folder == nil {
		return ""
	}
	return n.folder.Dir()
}

// Engine reports whether this process is the engine.
func (n *Node) Engine() bool {
	e, _ := n.currentEngine()
	return e != nil
}

// Done returns a channel that is closed when this process can no longer serve clients:
// it was closed, or its engine could not write. Err returns the reason.
func (n *Node) Done() <-chan struct{} { return n.ctx.Done() }

// Err returns the reason why this process can no longer serve clients.
func (n *Node) Err() error {
	if _, failed := n.currentEngine(); failed != nil {
		return failed
	}
	return context.Cause(n.ctx)
}

// Close ends the connections, releases the folder and waits for all goroutines.
// Unfinished turns continue when the next engine starts.
func (n *Node) Close() error {
	if e, _ := n.currentEngine(); e != nil {
		n.noteFailure(e)
		if !n.stopped.Load() {
			n.lastJobs(e)
		}
	}
	n.cancel(errClosed)
	n.work.Wait()
	if c := n.config.Cluster; c != nil {
		c.Listener.Close()
	}
	if e, _ := n.currentEngine(); e != nil {
		e.running.Wait()
		return e.close()
	}
	return nil
}

// Connect returns a connection to the engine for a client in this process.
func (n *Node) Connect(ctx context.Context) (io.ReadWriteCloser, error) {
	if err := context.Cause(n.ctx); err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	n.work.Go(func() {
		if err := n.serve(n.ctx, theirs, rpc.Door{Positions: true}); err != nil {
			n.log.Debug("a connection ended", "err", err)
		}
	})
	return ours, nil
}

// ServeStdio serves the client that started this process, until it closes its end.
func (n *Node) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return n.serve(ctx, stdio{in, out}, rpc.Door{})
}

// ServeTCP serves clients that present the token, until ctx is done. Those that do not
// present it have little time and memory.
func (n *Node) ServeTCP(ctx context.Context, l net.Listener, token string) error {
	l = gate.New(gate.Limits{}).Listen(l)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer context.AfterFunc(n.ctx, func() { l.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := accept(ctx, l, n.log)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if cause := n.Err(); cause != nil {
				return unlessClosed(cause)
			}
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		}
		clients.Go(func() {
			if err := n.serve(ctx, conn, rpc.Door{Token: token, Admitted: func() { gate.Admit(conn) }}); err != nil {
				n.log.Log(ctx, levelOf(err), "a connection ended", "from", conn.RemoteAddr(), "err", err)
			}
		})
	}
}

// levelOf returns the level at which the end of a connection is logged. A client that was
// disconnected because it did not read cannot be told why.
func levelOf(err error) slog.Level {
	if errors.Is(err, jsonrpc.ErrStalled) || errors.Is(err, jsonrpc.ErrUnread) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// serve serves one client, in this process or through the process of the engine. If a token
// is wanted, admitted is called when the client has presented it.
func (n *Node) serve(ctx context.Context, client io.ReadWriteCloser, door rpc.Door) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(n.ctx, func() { cancel(context.Cause(n.ctx)) })()
	e, relayed := n.beginRelay()
	if e != nil {
		door.Defaults = n.config.Defaults
		return e.server.Serve(ctx, client, door)
	}
	if relayed {
		defer n.relays.Done()
	}
	options, err := n.relayOptions()
	if err != nil {
		return err
	}
	options.Admit = admit(door.Token, door.Admitted)
	if door.Token != "" {
		options.FirstFrame = gate.MaxFrame
	}
	r, err := relay.New(client, options)
	if err != nil {
		return err
	}
	return n.noteRefusal(r.Run(ctx))
}

// relayOptions returns the options of the relay of a client.
func (n *Node) relayOptions() (relay.Options, error) {
	if n.remote != nil {
		return n.remote.options(), nil
	}
	defaults, err := json.Marshal(n.config.Defaults)
	return relay.Options{Dial: n.dial, Token: n.folder.Token, Silent: n.reportSilence, Defaults: defaults, Store: n.ownStore(), Log: n.log}, err
}

// admit returns the function that decides about a client's first requests. It calls
// admitted, unless that is nil, when the client has presented the token.
func admit(token string, admitted func()) func(jsonrpc.Message) *jsonrpc.Error {
	check := rpc.Admit(token)
	return func(m jsonrpc.Message) *jsonrpc.Error {
		fault := check(m)
		if fault == nil && admitted != nil {
			admitted()
		}
		return fault
	}
}

// beginRelay returns the engine if it is in this process. Otherwise it counts a client
// of another process, unless there will never be an engine.
func (n *Node) beginRelay() (e *engine, relayed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// If other servers share the log, every client has a relay: it survives that they take this
	// server for dead.
	if n.failed == nil && (n.engine == nil || n.config.Cluster != nil) {
		n.relays.Add(1)
		return nil, true
	}
	return n.engine, false
}

// unlessClosed returns nil for the cause of an ordinary end.
func unlessClosed(cause error) error {
	if errors.Is(cause, errClosed) {
		return nil
	}
	return cause
}

// The pause between attempts to dial the engine while the old one has ended and the new
// one does not listen yet: the first one, and the longest one.
const (
	dialPause    = 10 * time.Millisecond
	maxDialPause = 200 * time.Millisecond
)

// dial connects to the engine, in this process or in another.
func (n *Node) dial(ctx context.Context) (net.Conn, error) {
	began := time.Now()
	for pause := dialPause; ; pause = min(2*pause, maxDialPause) {
		e, err := n.currentEngine()
		if err != nil {
			return nil, err
		}
		if e != nil {
			return e.connect(n), nil
		}
		conn, err := n.folder.Dial(ctx)
		if err == nil {
			n.clearTakeoverError()
			return conn, nil
		}
		if time.Since(began) > noticeAfter {
			n.reportNoEngine()
			if err := n.delay(); err != nil {
				return nil, err
			}
		}
		select {
		case <-n.promotion():
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stdio is a connection over two streams. Closing it ends pending reads if the streams
// allow that.
type stdio struct {
	io.Reader
	io.Writer
}

func (s stdio) Close() error {
	if c, ok := s.Reader.(io.Closer); ok {
		c.Close()
	}
	if c, ok := s.Writer.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// An engine runs the sessions of the folder.
type engine struct {
	lock    *folder.Lock
	store   eventlog.Store
	disk    eventlog.Store  // the same store, without the wrapper of Config.Wrap
	shared  *postgres.Store // the same store if other servers share it; nil otherwise
	tools   *toolbox
	worker  *worker.Worker
	host    *session.Host
	server  *rpc.Server
	socket  net.Listener
	ctx     context.Context // done when the engine ends
	cancel  context.CancelFunc
	peers   *peers         // connections with the other servers; nil if there are none
	running sync.WaitGroup // counts what the engine does by itself until its context is done
	token   string         // token that processes of ours show on the socket
	relays  atomic.Int64   // number of connections of other processes
	logins  *mcp.Logins    // to MCP servers

	remembered rpc.Memory
	webOnce    sync.Once
	web        *rest.Server // API of sessions over HTTP; nil before its first request
}

// startEngine opens the store, listens, and continues unfinished turns unless this
// process is there for one command.
func startEngine(ctx context.Context, n *Node, lock *folder.Lock) (*engine, error) {
	store, shared, err := n.openStore(ctx)
	if err != nil {
		lock.Close()
		return nil, err
	}
	if kind := folder.Network(n.folder.Dir()); kind != "" {
		n.log.Warn("the data folder is on a network file system: "+folder.NetworkRisk, "folder", n.folder.Dir(), "kind", kind)
	}
	e := &engine{lock: lock, store: store, disk: store, shared: shared}
	if shared != nil {
		if e.peers, err = openPeers(n); err != nil {
			return nil, errors.Join(err, store.Close(), lock.Close())
		}
	}
	e.ctx, e.cancel = context.WithCancel(n.ctx)
	if n.config.Wrap != nil {
		e.store = n.config.Wrap(store)
	}
	commands := n.config.Commands
	commands.Hidden = secretFilesOf(n.config, n.folder.Dir())
	if e.tools, err = openTools(n.folder, commands, workspaces.New(n.config.Workspaces), n.config.Notice, n.config.AtStep, n.log); err != nil {
		return nil, errors.Join(err, store.Close(), lock.Close())
	}
	e.tools.endMCPServers(n.ctx, e.store)
	e.tools.family.log, e.tools.workspaces.index, e.tools.store = e.store, e.store, e.store
	e.tools.workspaces.fence = e.fence()
	servers := n.mcpOptions(e.tools)
	e.logins = servers.Logins
	found := &models{version: n.config.Version, settings: n.config.ModelSettings, clients: make(map[string]*remote.Client), keys: keys{env: n.config.Defaults.Env}}
	known := places.Open(filepath.Join(n.config.Dir, "locations.json"))
	books := newBooks(n, known)
	e.worker = newMemoryWorker(n, e.store, books)
	e.host = session.New(e.store, session.Options{
		Version:      n.config.Version,
		Log:          n.log,
		Resolve:      found.resolve,
		Standing:     known.Standing,
		Skills:       skills.Library{},
		Files:        e.tools.workspaces.files,
		OnDisk:       folder.OnDisk,
		Instructions: n.config.Instructions.Read,
		Tools:        e.tools.catalog(append(daemonTools(e.store, books), n.config.Tools...)),
		Tasks:        e.tasks(),
		StopTask:     e.tools.stopTask(),
		Undo:         e.tools.undo,
		Forget:       e.tools.forget,
		Release:      n.releaser(e.tools),
		Deletions:    deletions{n.folder, n.config.AtStep},
		Owners:       e.owners(),
		OnlyAttended: n.config.OneCommand,
		Rest:         n.config.Rest,
		MaxQueue:     n.config.MaxQueue,
		Retries:      n.config.Retries,
		LookTime:     n.config.LookTime,
		MCP:          servers,
		ToolsOf: func(h *session.Host) turn.Catalog {
			return append(builtin.New(h.Skills, h.Agents), mcptool.New(h.MCP)...)
		},
		Folder: func(id event.SessionID) string { return n.folder.Session(string(id)) },
		Memory: e.worker.Session(),
	})
	e.worker.SetHost(e.host)
	e.tools.host = e.host
	e.remembered = remembered{e.host, e.worker, books}
	trusted := trust.Open(n.folder.Dir())
	e.server = rpc.New(e.host, rpc.Options{
		Version: n.config.Version, Log: n.log, Models: found.list, Tasks: e.tools.shown(), Shell: e.tools.shell(), Agents: agent.Briefs(),
		Workspace:  func(id event.SessionID) string { return n.folder.Session(string(id)) },
		Start:      e.tools.processes.StartReading,
		Workspaces: e.tools.workspaces.registry,
		Places:     known, Trust: &trusted, Instructions: n.config.Instructions,
		Memory:  e.remembered,
		Store:   n.ownStore(),
		Servers: e.listServers(),
		MCP:     mcp.OpenStore(n.folder.MCPServers()),
	})
	if e.token, err = lock.KeepToken(); err == nil {
		e.socket, err = lock.Listen()
	}
	if err == nil {
		err = e.begin(ctx, n)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// releaser returns what ends the commands of a deleted session in another workspace. It does
// not wait for the workspace any longer when this process is being closed.
func (n *Node) releaser(t *toolbox) func(context.Context, session.Deletion) error {
	return func(ctx context.Context, d session.Deletion) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(n.ctx, cancel)()
		return t.release(ctx, d)
	}
}

// run serves the processes that connect to the engine of this process, and does what it
// does by itself.
func (n *Node) run(e *engine) {
	first := e.socket
	e.running.Go(func() { n.serveSocket(e, first) })
	n.work.Go(func() { n.watchStore(e) })
	e.running.Go(func() { n.watchFolder(e) })
	if e.shared != nil {
		e.running.Go(func() { n.takePart(e) })
	}
	if !n.config.OneCommand {
		n.notify(e)
	}
	if !n.config.Visitor {
		e.running.Go(func() { e.tools.sweep(e.ctx, e.host) })
		if !n.config.OneCommand && n.config.Keep > 0 {
			e.running.Go(func() { n.expire(e.ctx, e.host) })
		}
		if !n.config.OneCommand { // one that is there for a command would have to cut them: see lastJobs
			e.worker.Start()
		}
	}
}

// begin continues what earlier engines left, as far as this process does that.
func (e *engine) begin(ctx context.Context, n *Node) error {
	if err := e.host.Tasks.FinishStops(ctx); err != nil {
		return err
	}
	if !n.config.OneCommand {
		return e.host.Start(ctx)
	}
	if !n.config.Visitor {
		e.host.Work.FinishDeletions(ctx)
	}
	if n.log.Enabled(ctx, slog.LevelInfo) {
		waiting, err := e.host.Work.Unfinished(ctx)
		n.log.Info("sessions that are unfinished wait until a client uses them, or abide serve starts", "sessions", waiting, "err", err)
	}
	return nil
}

// tasks returns the commands that sessions watch; nil if the system does not support
// durable commands.
func (e *engine) tasks() session.TaskSource {
	if e.tools.commands == nil {
		return nil
	}
	return placedTasks{e.tools.guard.Tasks(e.tools.commands), e.tools}
}

// serveSocket serves the relays that connect to the private socket.
func (n *Node) serveSocket(e *engine, l net.Listener) {
	l = gate.New(gate.Limits{}).Listen(l)
	defer context.AfterFunc(e.ctx, func() { l.Close() })()
	var relays sync.WaitGroup
	defer relays.Wait()
	for {
		conn, err := accept(e.ctx, l, n.log)
		if err != nil {
			return
		}
		relays.Go(func() { e.serveOther(n, conn) })
	}
}

// serveRelay serves another process. It counts from when it has shown the token.
func (e *engine) serveRelay(ctx context.Context, n *Node, conn *begun) {
	var counted atomic.Bool
	_ = e.serveRouted(n, ctx, conn, rpc.Door{Private: true, Token: e.token, Admitted: func() { // the relay logs why the connection ended
		gate.Admit(conn.Conn)
		if !counted.Swap(true) {
			e.relays.Add(1)
		}
	}})
	if counted.Load() {
		e.relays.Add(-1)
	}
}

// connect returns a connection for a relay in this process, which was not the engine
// when the relay began.
func (e *engine) connect(n *Node) net.Conn {
	ours, theirs := net.Pipe()
	n.work.Go(func() {
		_ = e.serveRouted(n, e.ctx, theirs, rpc.Door{Private: true}) // the relay logs why the connection ended
	})
	return ours
}

// close stops the sessions, then releases the folder.
func (e *engine) close() error {
	e.cancel()
	if e.socket != nil {
		e.socket.Close()
	}
	e.webOnce.Do(func() {}) // nobody makes it from now on
	if e.web != nil {
		e.web.Close()
	}
	e.worker.Stop()
	e.host.Close()
	e.logins.Close()
	e.tools.endMCPServers(context.Background(), e.store)
	return errors.Join(e.tools.close(), e.store.Close(), e.lock.Close())
}
