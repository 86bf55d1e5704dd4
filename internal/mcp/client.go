package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	used    time.Time          // end of the last one
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
				processes: c.set.opts.Processes, owner: spec.Owner, spec: spec, config: fingerprint(config, c.set.in, c.set.events.Elicit != nil),
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
		ToolListChangedHandler:   func(context.Context, *sdk.ToolListChangedRequest) { c.listLater() },
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { c.listLater() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) {
			c.set.events.Changed(c.config.Name, event.MCPResourcesChanged)
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress(r.Params) },
	}
	c.addOlderParts(options)
	if c.set.events.Elicit != nil {
		options.ElicitationHandler = c.elicit
	}
	k := sdk.NewClient(&sdk.Implementation{Name: "abide", Version: cmp.Or(c.set.opts.Version, "dev")}, options)
	c.addRoot(k)
	return k
}

// maxQuestions is how many questions of a server can be open: each is stored.
const maxQuestions = 16

// elicit puts a question of the server to a person. The calls of the server wait for it.
func (c *client) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	open := c.ask(1)
	defer c.ask(-1)
	if open > maxQuestions {
		return nil, fmt.Errorf("%d questions of the server are open, and no more can be", maxQuestions)
	}
	return c.set.events.Elicit(ctx, c.config.Name, c.questionKey(r.Params), r.Params)
}

// questionKey returns the key of a question of a program, the same each time it is read; empty
// if it has none. The server cannot choose it.
func (c *client) questionKey(p *sdk.ElicitParams) string {
	key, _ := p.Meta[questionKey].(string)
	delete(p.Meta, questionKey)
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

// These bound what a server can offer.
const (
	maxTools   = 2000
	maxSchema  = 64 << 10
	listTime   = 30 * time.Second
	gatherTime = 250 * time.Millisecond
)

// list reads the lists of the server.
func (c *client) list(ctx context.Context, conn *sdk.ClientSession) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("the server did not answer within %v", listTime))
	defer cancel()
	owner := Owner(c.set.in.Session)
	tools, more, err := listTools(ctx, conn)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if more {
		c.log.note(owner, "only the first %d tools are used", maxTools)
	}
	l := lists{Tools: tools}
	if l.Prompts, err = listPrompts(ctx, conn); err != nil {
		c.log.note(owner, "the prompts could not be listed: %v", err)
	}
	c.setLists(l)
	c.keepLists(l)
	return nil
}

// listTools reads the tools of a server. It reports whether there are more than are used.
func listTools(ctx context.Context, conn *sdk.ClientSession) (list []*sdk.Tool, more bool, err error) {
	if caps := conn.InitializeResult(); caps == nil || caps.Capabilities == nil || caps.Capabilities.Tools == nil {
		return nil, false, nil
	}
	for t, err := range conn.Tools(ctx, nil) {
		if err != nil || len(list) == maxTools {
			return list, err == nil, err
		}
		list = append(list, t)
	}
	return list, false, nil
}

// listPrompts reads the prompts of a server.
func listPrompts(ctx context.Context, conn *sdk.ClientSession) (list []*sdk.Prompt, err error) {
	if caps := conn.InitializeResult(); caps == nil || caps.Capabilities == nil || caps.Capabilities.Prompts == nil {
		return nil, nil
	}
	for p, err := range conn.Prompts(ctx, nil) {
		if err != nil || len(list) == maxTools {
			return list, err
		}
		list = append(list, p)
	}
	return list, nil
}

// keepLists keeps the lists of a program, so that it need not be started for them.
func (c *client) keepLists(l lists) {
	c.mu.Lock()
	fingerprint := c.fingerprint
	c.mu.Unlock()
	if fingerprint == "" {
		return
	}
	if config, err := c.config.expanded(c.set.in.Env); err == nil {
		l.Files = programFiles(config, c.set.in)
	}
	c.set.opts.keep(fingerprint, l)
}

// setLists takes in the lists of the server.
func (c *client) setLists(l lists) {
	offered := toolsOf(c.config, l.Tools)
	c.mu.Lock()
	others := !reflect.DeepEqual(c.prompts, l.Prompts)
	c.tools, c.offered, c.prompts = l.Tools, offered, l.Prompts
	c.wakeLocked()
	c.mu.Unlock()
	c.set.events.Changed(c.config.Name, event.MCPToolsChanged)
	if others {
		c.set.events.Changed(c.config.Name, event.MCPPromptsChanged)
	}
}

// listLater reads the tools again when the server has stopped changing them for a moment.
func (c *client) listLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gather != nil {
		c.gather.Reset(gatherTime)
		return
	}
	c.gather = time.AfterFunc(gatherTime, func() {
		c.mu.Lock()
		conn := c.conn
		c.gather = nil
		c.mu.Unlock()
		if conn == nil {
			return
		}
		if err := c.list(c.set.ctx, conn); err != nil {
			c.log.note(Owner(c.set.in.Session), "the changed tools could not be listed: %v", err)
		}
	})
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
	}
	return c.conn, usability{c.status, c.err, c.resting, c.changed}
}

// release says that a connection is not used any more.
func (c *client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses--
	c.used = time.Now()
}

// Unavailable is the error of a request to a server that is not connected.
type Unavailable struct {
	Server string
	Status Status
	Reason string
}

func (e *Unavailable) Error() string {
	text := fmt.Sprintf("the MCP server %s is not connected (%s)", e.Server, e.Status)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	switch e.Status {
	case Disabled:
		return text + "; enable it to use it"
	case Stopped:
		return text + "; start it to use it"
	case NeedsAuth:
		return text + "; a person has to log in: abide mcp login " + e.Server
	}
	return text
}

// Answered reports whether an error is the answer of a server to a request.
func Answered(err error) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && !errors.Is(err, sdk.ErrConnectionClosed)
}

// A Silence is the error of a call that took too long.
type Silence struct {
	Idle bool // true if there was no progress either
	Time time.Duration
}

func (e *Silence) Error() string {
	if e.Idle {
		return fmt.Sprintf("the server has told nothing for %v", e.Time)
	}
	return fmt.Sprintf("the call took longer than %v", e.Time)
}

// A Request is a call of a tool.
type Request struct {
	Server, Tool string
	Key          string // key of the call, the same for each attempt; [Set.Settle] is called with it when its result is stored. It may be empty
	Again        bool   // true if an earlier attempt may have made the call
	Arguments    json.RawMessage
	Meta         map[string]any
	Progress     func(done, total float64, message string) // may be nil
}

// call calls a tool. The time that the call may take without progress begins anew with each
// sign of progress, and stands still while a person is asked.
func (c *client) call(ctx context.Context, conn *sdk.ClientSession, q Request) (*sdk.CallToolResult, error) {
	if inner := c.shares(); inner != nil {
		return inner.call(ctx, conn, q)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := c.limit(c.config.Idle(), func() { cancel(&Silence{true, c.config.Idle()}) })
	defer idle.stop()
	longest := c.limit(c.config.Longest(), func() { cancel(&Silence{false, c.config.Longest()}) })
	defer longest.stop()
	token := cmp.Or(q.Key, event.NewID())
	c.mu.Lock()
	pipe := c.pipe
	if c.conn != conn {
		pipe = nil
	}
	c.mu.Unlock()
	switch {
	case pipe != nil:
		if err := pipe.begin(token, q.Again && !c.config.MayRepeat(q.Tool)); err != nil {
			return nil, err
		}
		if q.Key == "" {
			defer pipe.settle(token)
		}
	case q.Again && !c.config.MayRepeat(q.Tool):
		return nil, ErrUnknown
	}
	c.mu.Lock()
	c.calls[token] = &call{idle.renew, q.Progress}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, token)
		c.mu.Unlock()
	}()
	p := &sdk.CallToolParams{Name: q.Tool, Meta: make(sdk.Meta)}
	for name, value := range q.Meta {
		p.Meta[name] = value
	}
	p.Meta["progressToken"] = token
	if len(q.Arguments) > 0 {
		p.Arguments = q.Arguments
	}
	result, err := conn.CallTool(ctx, p)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case Answered(err), errors.Is(err, errLogin):
		return nil, err
	case pipe != nil && !pipe.isOver(err):
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	c.lose(conn)
	return nil, err
}

// ErrUnreadable means that a server has answered a call with something that is no result.
var ErrUnreadable = errors.New("the answer is no result")

// lose gives up a connection that does not work: the next call waits for a new one.
func (c *client) lose(conn *sdk.ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn && c.set.ctx.Err() == nil {
		c.conn = nil
		c.set.work.Go(func() { conn.Close() })
	}
}

// A limit ends something after a time that can be renewed.
type limit struct {
	mu    sync.Mutex
	timer *time.Timer
	time  time.Duration
}

// limit calls f after a time. While a person is asked, the time begins anew.
func (c *client) limit(d time.Duration, f func()) *limit {
	l := &limit{time: d}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(d, func() {
		if c.isAsking() {
			l.renew()
			return
		}
		f()
	})
	return l
}

func (l *limit) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Reset(l.time)
}

func (l *limit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
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
