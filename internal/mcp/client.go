package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
)

// A client is the connection to one server, with whatever it takes to keep it.
type client struct {
	set    *Set
	config Server
	log    *serverLog

	mu      sync.Mutex
	status  Status
	err     string             // reason for Failed, or what is wrong although it is connected
	conn    *sdk.ClientSession // nil unless it is connected
	inner   *client            // connection to a server that sessions share; nil if there is none
	resting bool               // true if it can be used, and is connected when it is
	uses    int                // number of requests that use the connection
	allowance
	used    time.Time // end of the last one
	tools   []*sdk.Tool
	offered []event.MCPTool // the same as sessions know them, without their names for models
	prompts []*sdk.Prompt
	changed chan struct{} // closed when status or tools change
	tried   bool          // true when the first attempt to connect is over
	calls   map[string]*call
	asking  int                // questions of the server to a person that are open
	stop    context.CancelFunc // ends the connection and the goroutine; nil if there is none
	done    chan struct{}      // closed when the goroutine has ended
	kick    chan struct{}      // holds a token if somebody wants a connection now
	gather  *time.Timer        // runs while changes of the lists are gathered
	telling bool               // true while changes of the list of resources are gathered
	journal *journal           // of a program
	pipe    *pipe              // connection to a program, while conn is set

	fingerprint string // of a program, once it was connected

	access
}

// A call is a call of a tool that is under way.
type call struct {
	alive    func()
	progress func(done, total float64, message string)
}

// pauses are the times before each further attempt to connect to a server that has failed.
// After the last one, it is tried again when it is needed.
var pauses = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second}

// steadyTime is how long a connection lasts before its end counts as the first failure.
const steadyTime = time.Minute

func newClient(s *Set, config Server) *client {
	c := &client{set: s, config: config, journal: openJournal(s.opts.state(s.in.Session), config.Name), log: s.opts.Logs.of(config.Name), status: Pending, changed: make(chan struct{}), calls: make(map[string]*call), kick: make(chan struct{}, 1)}
	if config.Disabled {
		c.status, c.tried = Disabled, true
	}
	return c
}

// start begins to connect, unless that is under way. A program that may rest is connected when
// it is used if its lists are known.
func (c *client) start(mayRest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil || c.set.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.set.ctx)
	c.stop, c.done = cancel, make(chan struct{})
	c.status, c.err, c.tried = Pending, "", false
	c.wakeLocked()
	done := c.done
	c.set.work.Go(func() {
		defer close(done)
		if c.isShared() {
			c.set.opts.Shared.use(ctx, c)
			return
		}
		c.run(ctx, mayRest && c.remember())
	})
}

// end ends the connection and waits for that. The server has the given status then.
func (c *client) end(status Status) {
	c.drop()
	c.mu.Lock()
	c.stop, c.resting = nil, false
	c.mu.Unlock()
	c.setStatus(status, "")
}

// drop ends the connection of a client that nobody uses any more.
func (c *client) drop() {
	c.mu.Lock()
	stop, done := c.stop, c.done
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// run connects, and connects again when the connection is lost, until ctx ends. With rests, it
// connects when the server is used.
func (c *client) run(ctx context.Context, rests bool) {
	failures := 0
	for ctx.Err() == nil {
		if rests && !c.rest(ctx) {
			return
		}
		c.setStatus(Pending, "")
		began := time.Now()
		err := c.connectAndWait(ctx)
		if ctx.Err() != nil {
			return
		}
		if rests = errors.Is(err, errUnused); rests {
			failures = 0
			continue
		}
		if time.Since(began) > steadyTime {
			failures = 0
		}
		if errors.Is(err, errLogin) {
			c.awaitLogin(ctx, err)
			continue
		}
		failures++
		c.pause(ctx, err, failures)
	}
}

// pause waits until the next attempt is due or wanted.
func (c *client) pause(ctx context.Context, err error, failures int) {
	c.setStatus(Failed, err.Error())
	c.log.note(Owner(c.set.in.Session), "%s: %v", Failed, err)
	var soon <-chan time.Time
	if failures <= len(pauses) && !errors.Is(err, errPermanent) {
		timer := time.NewTimer(pauses[failures-1])
		defer timer.Stop()
		soon = timer.C
	}
	select {
	case <-ctx.Done():
	case <-soon:
	case <-c.kick:
	}
}

var (
	errLogin     = errors.New("the server wants a login")
	errPermanent = errors.New("the configuration has to be changed")
)

// connectAndWait connects and returns when the connection has ended, with the reason.
func (c *client) connectAndWait(ctx context.Context) error {
	config, err := c.config.expanded(c.set.in.Env)
	if err != nil {
		return permanent{err}
	}
	var work sync.WaitGroup
	defer work.Wait()
	conn, web, pipe, err := c.connect(ctx, config, &work)
	if err != nil {
		return err
	}
	defer conn.Close()
	if pipe == nil || !pipe.adopted {
		c.set.events.begun(c.config.Name)
	}
	if !c.adopt(pipe) {
		err = c.list(ctx, conn)
	}
	if err == nil && pipe != nil {
		err = pipe.journal.add(readyRecord)
	}
	if err != nil {
		if web.wantsLogin() {
			return web.loginError()
		}
		return fmt.Errorf("list its tools: %w", err)
	}
	if pipe != nil {
		pipe.tellRest(ctx)
	}
	lostLogin := web.ready()
	c.mu.Lock()
	c.conn, c.pipe, c.used = conn, pipe, time.Now()
	c.mu.Unlock()
	c.setStatus(Connected, "")
	defer func() {
		c.mu.Lock()
		c.conn, c.pipe = nil, nil
		c.mu.Unlock()
	}()
	if pipe != nil && pipe.adopted {
		c.listLater()
	}
	lost := make(chan error, 1)
	c.set.work.Go(func() { lost <- conn.Wait() })
	var unused <-chan time.Time
	if pipe != nil {
		timer := time.NewTicker(c.config.Kept())
		defer timer.Stop()
		unused = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lostLogin:
			return web.loginError()
		case err := <-lost:
			return cmp.Or(err, errors.New("the server has closed the connection"))
		case <-unused:
			if c.leave() {
				conn.Close()
				work.Wait()
				return errors.Join(errUnused, c.journal.ended())
			}
		}
	}
}

// adopt takes over the tools of a program that an earlier engine has started. They are listed
// again later: a program that is busy with a call need not answer now. It reports false if
// they are not known.
func (c *client) adopt(p *pipe) bool {
	if p == nil || !p.adopted {
		return false
	}
	l, _, ok := c.set.opts.cached(p.config)
	if ok {
		c.setLists(l)
	}
	return ok
}

// permanent is an error that another attempt does not change.
type permanent struct{ error }

func (permanent) Is(target error) bool { return target == errPermanent }

// connect makes a connection. The goroutines of it are counted in work.
func (c *client) connect(ctx context.Context, config Server, work *sync.WaitGroup) (*sdk.ClientSession, *remote, *pipe, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("the server did not answer within %v", connectTime))
	defer cancel()
	var web *remote
	var local *program
	transport := func() (sdk.Transport, error) {
		if config.Type == Stdio {
			spec, err := specOf(config, c.set.in)
			local = &program{
				processes: c.set.opts.Processes, owner: spec.Owner, spec: spec, config: c.fingerprintOf(config), kept: config.Kept(),
				journal: c.journal, log: c.log, work: work, leaving: &c.set.leaving,
			}
			c.mu.Lock()
			c.fingerprint = local.config
			c.mu.Unlock()
			return local, err
		}
		var err error
		web, err = newRemote(config, c.set.opts.HTTP)
		if web != nil {
			web.client = c
		}
		if err != nil {
			return nil, permanent{err}
		}
		return web.transport(), nil
	}
	if config.Type == Stdio && c.set.opts.Processes == nil {
		return nil, nil, nil, permanent{errors.New("programs cannot be run here")}
	}
	t, err := transport()
	if err != nil {
		return nil, nil, nil, err
	}
	conn, err := c.sdkClient().Connect(ctx, t, nil)
	if err != nil && config.Type == HTTP && !web.wantsLogin() && ctx.Err() == nil { // it may be confused by what it does not know
		if t, err = transport(); err == nil {
			conn, err = c.sdkClient().Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: legacyVersion})
		}
	}
	switch {
	case err == nil && local != nil:
		return conn, nil, local.pipe, nil
	case err == nil:
		return conn, web, nil, nil
	case web.wantsLogin():
		return nil, nil, nil, web.loginError()
	case ctx.Err() != nil:
		return nil, nil, nil, context.Cause(ctx)
	}
	return nil, nil, nil, err
}

// legacyVersion is the last version of the protocol with an initialize request.
const legacyVersion = "2025-11-25"

// sdkClient returns what answers the requests of the server.
func (c *client) sdkClient() *sdk.Client {
	options := &sdk.ClientOptions{
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.listLater() },
		PromptListChangedHandler:    func(context.Context, *sdk.PromptListChangedRequest) { c.listLater() },
		ResourceListChangedHandler:  func(context.Context, *sdk.ResourceListChangedRequest) { c.tellResourcesLater() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress(r.Params) },
	}
	c.addOlderParts(options)
	if c.set.events.Elicit != nil {
		options.ElicitationHandler = c.elicit
	}
	if c.maySample() {
		c.addSampling(options)
	}
	k := sdk.NewClient(&sdk.Implementation{Name: "abide", Version: cmp.Or(c.set.opts.Version, "dev")}, options)
	c.addRoot(k)
	if !c.maySample() {
		k.AddReceivingMiddleware(refuseSampling)
	}
	return k
}

// maxQuestions is how many questions of a server can be open: each is stored.
const maxQuestions = 16

// elicit puts a question of the server to a person. The calls of the server wait for it.
func (c *client) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	open := c.ask(1)
	defer c.ask(-1)
	if open > maxQuestions {
		return nil, declined("%d questions of the server are open, and no more can be", maxQuestions)
	}
	if !c.countQuestion() {
		return nil, declined("the server has put %d questions for a call, and cannot put more", maxAsked)
	}
	answer, err := c.set.events.Elicit(ctx, c.config.Name, c.questionKey(r.Params.Meta), r.Params)
	if err != nil {
		return nil, told("nobody could be asked", err)
	}
	return answer, nil
}

// questionKey returns the key of a question of a program, the same each time it is read; empty
// if it has none. The server cannot choose it.
func (c *client) questionKey(meta sdk.Meta) string {
	key, _ := meta[questionKey].(string)
	delete(meta, questionKey)
	if process, _, _, _, _ := c.journal.state(); process == "" || !strings.HasPrefix(key, process+"#") {
		return ""
	}
	return key
}

// ask counts the questions that are open, and returns how many there are.
func (c *client) ask(more int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking += more
	return c.asking
}

// isAsking reports whether a question of the server to a person is open.
func (c *client) isAsking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking > 0
}

// progress renews the time of a call.
func (c *client) progress(p *sdk.ProgressNotificationParams) {
	c.mu.Lock()
	k := c.calls[fmt.Sprint(p.ProgressToken)]
	c.mu.Unlock()
	if k == nil {
		return
	}
	k.alive()
	if k.progress != nil {
		k.progress(p.Progress, p.Total, p.Message)
	}
}

// setStatus changes the status, and tells the owner of the set.
func (c *client) setStatus(to Status, why string) {
	why = cut(why, maxWhy)
	c.mu.Lock()
	news := c.setStatusLocked(to, why)
	c.mu.Unlock()
	if news {
		c.log.state(to, why)
		c.set.events.Status(c.config.Name, to, why)
	}
}

// setStatusLocked changes the status, and reports whether that is news.
func (c *client) setStatusLocked(to Status, why string) bool {
	same := c.status == to && c.err == why && (c.tried || to == Pending)
	c.status, c.err, c.tried = to, why, c.tried || to != Pending
	c.wakeLocked()
	return !same
}

func (c *client) wakeLocked() {
	c.set.version.Add(1)
	close(c.changed)
	c.changed = make(chan struct{})
}

// connection returns the connection, and waits for it if the server is being connected. A
// server that rests or has failed is connected. The connection is not ended before it is
// released.
func (c *client) connection(ctx context.Context) (conn *sdk.ClientSession, release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("it was not connected within %v", connectTime))
	defer cancel()
	kicked := false
	for {
		if inner := c.shares(); inner != nil {
			return inner.connection(ctx)
		}
		conn, state := c.use()
		switch {
		case conn != nil:
			return conn, c.release, nil
		case state.resting:
			kicked = true
			c.wake()
		case state.status == Disabled, state.status == Stopped, state.status == NeedsAuth, state.status == Failed && kicked:
			return nil, nil, &Unavailable{c.config.Name, state.status, state.err}
		case state.status == Failed:
			kicked = true
			c.kickNow()
		}
		select {
		case <-state.changed:
		case <-ctx.Done():
			return nil, nil, &Unavailable{c.config.Name, state.status, context.Cause(ctx).Error()}
		}
	}
}

// A usability says why there is no connection.
type usability struct {
	status  Status
	err     string
	resting bool
	changed <-chan struct{} // closed when that may have changed
}

// use returns the connection, which is used from now on; nil if there is none.
func (c *client) use() (*sdk.ClientSession, usability) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.uses++
		c.beginUseLocked()
	}
	return c.conn, usability{c.status, c.err, c.resting, c.changed}
}

// release says that a connection is not used any more.
func (c *client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses--
	c.used = time.Now()
	c.endUseLocked()
}

// kickNow lets the client try to connect at once.
func (c *client) kickNow() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

func (c *client) snapshotStatus() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// snapshot returns the state of the server.
func (c *client) snapshot() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{Server: c.config, Status: c.status, Error: c.err, Tools: slices.Clone(c.tools), Prompts: slices.Clone(c.prompts)}
}

// A State is what is known of a server.
type State struct {
	Server Server
	Status Status
	Error  string
	Tools  []*sdk.Tool

	Prompts []*sdk.Prompt
}

// Public returns the state in the form of the protocol.
func (s State) Public() event.MCPServerState {
	to := event.MCPServerState{Name: s.Server.Name, Status: string(s.Status), Error: s.Error, Source: s.Server.Source, Transport: s.Server.Type}
	if to.Source == SourceSession { // typed clients do not know it
		to.Source = ""
	}
	return to
}

// String returns the state in a line, for people.
func (s State) String() string {
	text := string(s.Status)
	if s.Status == Connected {
		text += ", " + strconv.Itoa(len(s.Tools)) + " tools"
	}
	if s.Error != "" {
		text += ": " + s.Error
	}
	return text
}
