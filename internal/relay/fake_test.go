package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/jsonrpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A sharedState is what outlives engines: the stored events of each session, and the
// requests that were carried out.
type sharedState struct {
	t    *testing.T
	dir  string
	plan func(generation int, e *fakeEngine) // called before an engine starts

	mu       sync.Mutex
	logs     map[string][]string        // events by session
	done     map[string]json.RawMessage // results by key
	keys     map[string]int             // number of requests with each key
	engines  []*fakeEngine
	current  chan *fakeEngine // holds the living one
	finished bool
	running  sync.WaitGroup
}

func newSharedState(t *testing.T, plan func(generation int, e *fakeEngine)) *sharedState {
	w := &sharedState{
		t: t, dir: t.TempDir(), plan: plan,
		logs: make(map[string][]string), done: make(map[string]json.RawMessage), keys: make(map[string]int),
		current: make(chan *fakeEngine, 1),
	}
	t.Cleanup(func() {
		w.mu.Lock()
		w.finished = true
		all := w.engines
		w.mu.Unlock()
		for _, e := range all {
			e.die()
		}
		w.running.Wait()
	})
	w.start()
	return w
}

// start brings up the next engine, on a socket of its own.
func (w *sharedState) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return
	}
	generation := len(w.engines)
	ln, err := net.Listen("unix", filepath.Join(w.dir, strconv.Itoa(generation)))
	if err != nil {
		w.t.Error(err)
		return
	}
	e := &fakeEngine{world: w, generation: generation, ln: ln, attached: make(map[string]int), heard: make(chan string, 1000)}
	e.die = sync.OnceFunc(e.stop)
	if w.plan != nil {
		w.plan(generation, e)
	}
	w.engines = append(w.engines, e)
	w.running.Go(e.run)
	w.current <- e
}

// engine returns the engine of a generation, which must exist.
func (w *sharedState) engine(generation int) *fakeEngine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engines[generation]
}

// dial connects to the living engine, or waits for one.
func (w *sharedState) dial(ctx context.Context) (net.Conn, error) {
	for {
		select {
		case e := <-w.current:
			w.current <- e
			conn, err := net.Dial("unix", e.ln.Addr().String())
			if err == nil {
				return conn, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A phase is a moment of a request at which an engine may die.
type phase string

const (
	received phase = "received" // nothing was done yet
	stored   phase = "stored"   // the request was done and not answered
	answered phase = "answered" // the request was answered, and its events were not sent yet
	finished phase = "finished" // all sent
)

// An fakeEngine is a fake one with a single connection at a time. It handles one
// message after the other, so that a test knows where it dies.
type fakeEngine struct {
	world      *sharedState
	generation int
	ln         net.Listener
	die        func() // ends it like a kill
	heard      chan string

	fatal   func(method string, at phase) bool                    // dies there; nil never
	handler func(e *fakeEngine, m jsonrpc.Message) (handled bool) // goes first
	answers func(e *fakeEngine, m jsonrpc.Message)                // gets the client's answers

	mu       sync.Mutex
	dead     bool
	conn     net.Conn
	attached map[string]int // position up to which events were sent
	methods  []string
	bodies   []string
}

func (e *fakeEngine) stop() {
	e.mu.Lock()
	e.dead = true
	e.ln.Close()
	if e.conn != nil {
		e.conn.Close()
	}
	e.mu.Unlock()
	<-e.world.current
	e.world.start()
}

func (e *fakeEngine) run() {
	for {
		conn, err := e.ln.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		if e.dead {
			conn.Close()
		}
		e.conn = conn
		e.mu.Unlock()
		e.serve(conn)
	}
}

func (e *fakeEngine) serve(conn net.Conn) {
	defer conn.Close()
	in := jsonrpc.NewReader(conn, 0)
	for {
		body, err := in.Next(nil)
		if err != nil {
			return
		}
		m, fault := jsonrpc.Parse(body)
		if fault != nil {
			e.world.t.Errorf("the relay sent %s: %v", body, fault)
			return
		}
		if e.handle(m, string(body)) != nil {
			return
		}
	}
}

var errDead = errors.New("dead")

// at dies if the test wants that.
func (e *fakeEngine) at(m jsonrpc.Message, p phase) error {
	if e.fatal != nil && e.fatal(m.Method, p) {
		e.die()
		return errDead
	}
	return nil
}

func (e *fakeEngine) handle(m jsonrpc.Message, body string) error {
	e.mu.Lock()
	e.methods = append(e.methods, m.Method)
	e.bodies = append(e.bodies, body)
	e.mu.Unlock()
	e.heard <- m.Method
	if m.IsAnswer() {
		if e.answers != nil {
			e.answers(e, m)
		}
		return nil
	}
	if e.handler != nil && e.handler(e, m) {
		return nil
	}
	if err := e.at(m, received); err != nil {
		return err
	}
	result := e.execute(m)
	if err := e.at(m, stored); err != nil {
		return err
	}
	if m.Method == "abide.attach" { // events may come before the answer
		e.stream()
	}
	if m.IsRequest() {
		e.answer(m, string(result))
	}
	if err := e.at(m, answered); err != nil {
		return err
	}
	e.stream()
	return e.at(m, finished)
}

// execute does what a request asks for, once for each key.
func (e *fakeEngine) execute(m jsonrpc.Message) json.RawMessage {
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	id, key := textMember(m.Params, "sessionId"), textMember(m.Params, "abideKey")
	switch _, warm := e.attached[id]; {
	case m.Method == "abide.attach":
		e.attach(id, member(m.Params, "after"))
	case attaches(m.Method) && !warm:
		e.attach(id, member(m.Params, "abideAfter"))
	}
	if m.Method == "session.destroy" {
		e.mu.Lock()
		delete(e.attached, id)
		e.mu.Unlock()
	}
	if key == "" {
		return json.RawMessage(`{}`)
	}
	w.keys[key]++
	if result, ok := w.done[key]; ok {
		return result
	}
	result := fmt.Sprintf(`{"sessionId":%q,"echo":%q}`, id, m.Method)
	switch m.Method {
	case "session.create":
		w.logs[id] = append(w.logs[id], "session.start")
	case "session.send":
		w.logs[id] = append(w.logs[id], textMember(m.Params, "prompt"), "reply")
	}
	w.done[key] = json.RawMessage(result)
	return w.done[key]
}

// attach begins to send events after a position; after none if that is nil.
func (e *fakeEngine) attach(id string, position json.RawMessage) {
	after, _ := strconv.Atoi(string(position))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attached[id] = after
}

// stream sends the stored events that attached clients have not been sent.
func (e *fakeEngine) stream() {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, from := range e.attached {
		for n := from; n < len(e.world.logs[id]); n++ {
			e.sendLocked(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%q,"event":{"type":%q},"seq":%d}}`,
				id, e.world.logs[id][n], n+1))
			e.sendLocked(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":%q,"event":{"type":"delta"}}}`, id))
			e.attached[id] = n + 1
		}
	}
}

func (e *fakeEngine) answer(m jsonrpc.Message, result string) {
	e.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (e *fakeEngine) refuse(m jsonrpc.Message, code int, message string) {
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, message))
}

func (e *fakeEngine) send(body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sendLocked(body)
}

func (e *fakeEngine) sendLocked(body string) {
	if e.conn != nil {
		e.conn.Write(jsonrpc.AppendFrame(nil, []byte(body)))
	}
}

// wait returns when the engine has got a message with that method.
func (e *fakeEngine) wait(method string) {
	for e.world.t.Context().Err() == nil {
		select {
		case got := <-e.heard:
			if got == method {
				return
			}
		case <-e.world.t.Context().Done():
		}
	}
}

// got returns the bodies of a method that the engine was sent.
func (e *fakeEngine) got(method string) (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, m := range e.methods {
		if m == method {
			all = append(all, e.bodies[i])
		}
	}
	return all
}

// A client is the far end of a relay.
type client struct {
	t    *testing.T
	conn net.Conn
	over chan struct{} // closed when the relay has closed the connection

	mu      sync.Mutex
	changed sync.Cond
	answers map[string][]jsonrpc.Message // answers by request id
	asked   []jsonrpc.Message
	events  map[string][]int // positions by session
	notices []string
}

// connect starts a relay and returns its client, and how Run ends.
func connect(t *testing.T, opt Options) (*client, <-chan error) {
	t.Helper()
	near, far := unixPair(t)
	return attachClient(t, near, far, opt)
}

func attachClient(t *testing.T, near, far net.Conn, opt Options) (*client, <-chan error) {
	t.Helper()
	r, err := New(far, opt)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: near, over: make(chan struct{}), answers: make(map[string][]jsonrpc.Message), events: make(map[string][]int)}
	c.changed.L = &c.mu
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	go c.read()
	t.Cleanup(func() {
		near.Close()
		<-c.over
	})
	return c, ended
}

// unixPair returns a connected pair of Unix sockets.
func unixPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "door"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if near, err = net.Dial("unix", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func (c *client) read() {
	defer close(c.over)
	defer c.changed.Broadcast()
	in := jsonrpc.NewReader(c.conn, 0)
	for {
		body, err := in.Next(nil)
		if err != nil {
			return
		}
		m, fault := jsonrpc.Parse(body)
		if fault != nil {
			c.t.Errorf("the relay sent %s: %v", body, fault)
			return
		}
		c.receive(m)
	}
}

func (c *client) receive(m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	switch {
	case m.IsAnswer():
		c.answers[string(m.ID)] = append(c.answers[string(m.ID)], m)
	case m.IsRequest():
		c.asked = append(c.asked, m)
	case m.Method == "session.event" && member(m.Params, "seq") != nil:
		id := textMember(m.Params, "sessionId")
		n, _ := strconv.Atoi(string(member(m.Params, "seq")))
		c.events[id] = append(c.events[id], n)
	default:
		c.notices = append(c.notices, m.Method)
	}
}

func (c *client) send(body string) {
	if _, err := c.conn.Write(jsonrpc.AppendFrame(nil, []byte(body))); err != nil {
		c.t.Error(err)
	}
}

// until waits for a condition on what was received.
func (c *client) until(what string, ok func() bool) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() {
		select {
		case <-c.over:
			c.t.Fatalf("the connection is over, and still not: %s", what)
		default:
		}
		c.changed.Wait()
	}
}

// call sends a request and waits for its answer.
func (c *client) call(id, method, params string) jsonrpc.Message {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return c.answer(id)
}

func (c *client) answer(id string) (m jsonrpc.Message) {
	c.t.Helper()
	c.until("answer to "+id, func() bool {
		if all := c.answers[id]; len(all) > 0 {
			m = all[0]
		}
		return m.ID != nil
	})
	return m
}

// ask waits for the n-th request of an engine.
func (c *client) ask(n int) (m jsonrpc.Message) {
	c.t.Helper()
	c.until("request of an engine", func() bool {
		if len(c.asked) > n {
			m = c.asked[n]
		}
		return m.ID != nil
	})
	return m
}

// check compares what the client has seen with what the world has stored.
func (c *client) check(w *sharedState, sessions ...string) {
	c.t.Helper()
	for _, id := range sessions {
		w.mu.Lock()
		want := len(w.logs[id])
		w.mu.Unlock()
		c.until("all events of "+id, func() bool {
			got := c.events[id]
			return len(got) > 0 && got[len(got)-1] == want
		})
		c.mu.Lock()
		for i, n := range c.events[id] {
			if n != i+1 {
				c.t.Errorf("the events of %s are %v", id, c.events[id])
				break
			}
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, all := range c.answers {
		if len(all) != 1 {
			c.t.Errorf("request %s has %d answers", id, len(all))
		}
		for _, m := range all {
			if m.Err != nil {
				c.t.Errorf("request %s was refused: %s", id, m.Err)
			}
		}
	}
}

func prompts(log []string) string {
	var all []string
	for _, e := range log {
		if strings.HasPrefix(e, "p") {
			all = append(all, e)
		}
	}
	return strings.Join(all, " ")
}
