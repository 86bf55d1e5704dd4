package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// codeElsewhere is the error code of an engine for what only another server can do: it works on the
// session. The data of the error names that server, unless it is not known.
const codeElsewhere = -32010

// A Router passes the messages of a relay on to the engines of several servers that share a log. All
// go to the engine of this server, its home. If that says that another server works on a session,
// the request is passed on to that server, once, and so are the later ones for the session.
//
// If another server is lost, the router ends the connection: the relay connects again, attaches its
// client to its sessions and repeats what is unanswered, and each session is found where it is then.
type Router struct {
	// Home connects to the engine of this server.
	Home func() net.Conn
	// Dial connects to another server.
	Dial func(ctx context.Context, server, address string) (net.Conn, error)
	Log  *slog.Logger
}

// Times of passing on. A request waits for longer than it takes until others have taken over what a
// server was working on that was killed: only one that lives and cannot be reached is told of.
const (
	routeTime  = 20 * time.Second       // time that a request waits for a server that cannot be reached
	routePause = 100 * time.Millisecond // pause between attempts to find the server of a session
)

// routing is the work of a router for one connection.
type routing struct {
	Router
	out  *jsonrpc.Outbox // messages to the relay
	home *link
	end  context.CancelCauseFunc
	work sync.WaitGroup

	mu       sync.Mutex
	count    int64
	links    map[string]*link          // connections to other servers, by their ids
	places   map[string]*link          // other servers that work on sessions, by session
	requests map[string]*routedRequest // requests that are not answered, by id
	asks     map[string]routedAsk      // requests of engines to the client, by the id that the relay knows
	settings []setting                 // requests about the whole connection, for other servers
}

// A routedRequest is a request of the relay.
type routedRequest struct {
	id      string
	method  string
	session string
	body    []byte
	began   time.Time
	at      *link // engine that has it; nil while it is passed on
	told    bool  // true if the relay has an answer already: the attempt to attach its client goes on
}

// A routedAsk is a request of an engine to the client.
type routedAsk struct {
	link *link
	id   json.RawMessage
}

// Run passes messages on until the relay leaves, ctx is done, or an engine is lost. It closes the
// connection, and returns when all its goroutines have ended.
func (r Router) Run(ctx context.Context, relay io.ReadWriteCloser) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t := &routing{
		Router: r, out: jsonrpc.NewOutbox(relay, outboxSize, 5*time.Minute), end: end,
		links: make(map[string]*link), places: make(map[string]*link), requests: make(map[string]*routedRequest), asks: make(map[string]routedAsk),
	}
	defer context.AfterFunc(ctx, func() { relay.Close() })()
	t.home = newLink(r.Home())
	t.work.Go(func() { end(t.out.Run()) })
	t.follow(ctx, t.home)
	end(t.read(ctx, relay))
	t.out.Close()
	relay.Close()
	t.work.Wait()
	return context.Cause(ctx)
}

// follow passes on what an engine sends until it is lost.
func (t *routing) follow(ctx context.Context, l *link) {
	stop := context.AfterFunc(ctx, l.end)
	t.work.Go(func() {
		defer l.end()
		l.out.Run() // the reader tells why the engine is lost
	})
	t.work.Go(func() {
		defer stop()
		defer l.end()
		in := jsonrpc.NewReader(l.conn, jsonrpc.DefaultMaxFrame)
		for {
			body, err := in.Next(nil)
			if err == nil {
				err = t.fromEngine(ctx, l, body)
			}
			if err != nil {
				l.out.Close()
				t.lost(l, err)
				return
			}
		}
	})
}

// lost ends the connection if something of the client depends on an engine that is lost.
func (t *routing) lost(l *link, err error) {
	t.mu.Lock()
	needed := l == t.home
	for id, other := range t.links {
		if other == l {
			delete(t.links, id)
		}
	}
	for _, place := range t.places {
		needed = needed || place == l
	}
	for _, q := range t.requests {
		needed = needed || q.at == l
	}
	for id, a := range t.asks {
		if a.link == l {
			delete(t.asks, id)
		}
	}
	t.mu.Unlock()
	if needed {
		t.end(errors.Join(errLost, err))
	}
}

// read passes on what the relay sends.
func (t *routing) read(ctx context.Context, relay io.Reader) error {
	in := jsonrpc.NewReader(relay, jsonrpc.DefaultMaxFrame)
	for {
		body, err := in.Next(nil)
		if err != nil {
			return err
		}
		m, fault := jsonrpc.Scan(body)
		switch {
		case fault != nil:
			err = t.home.out.Put(ctx, body) // the engine says what is wrong
		case m.IsAnswer():
			err = t.reply(ctx, m)
		case m.Method == cancelMethod:
			err = t.cancel(ctx, m, body)
		case m.IsRequest():
			err = t.request(ctx, m, body)
		default:
			err = t.placeOf(textMember(m.Params, "sessionId")).out.Put(ctx, body)
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// placeOf returns the engine that works on a session, as far as it is known.
func (t *routing) placeOf(session string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.places[session]; l != nil {
		return l
	}
	return t.home
}

// request passes a request of the relay on.
func (t *routing) request(ctx context.Context, m jsonrpc.Message, body []byte) error {
	q := &routedRequest{id: string(m.ID), method: m.Method, session: textMember(m.Params, "sessionId"), body: body, began: time.Now()}
	q.at = t.placeOf(q.session)
	t.mu.Lock()
	t.requests[q.id] = q
	if m.Method == setInference || m.Method == "connect" && member(m.Params, "token") == nil {
		t.settings = append(t.settings, setting{method: m.Method, params: slices.Clone(orEmpty(m.Params))})
	}
	t.mu.Unlock()
	return q.at.out.Put(ctx, body)
}

// cancel passes a cancellation on to the engine that has the request.
func (t *routing) cancel(ctx context.Context, m jsonrpc.Message, body []byte) error {
	t.mu.Lock()
	q := t.requests[string(member(m.Params, "id"))]
	var l *link
	if q != nil {
		l = q.at
	}
	t.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.out.Put(ctx, body)
}

// reply passes the client's answer on to the engine that has asked.
func (t *routing) reply(ctx context.Context, m jsonrpc.Message) error {
	t.mu.Lock()
	a, known := t.asks[string(m.ID)]
	delete(t.asks, string(m.ID))
	t.mu.Unlock()
	switch {
	case !known:
		return nil
	case m.Err != nil:
		return a.link.refusal(ctx, a.id, m.Err)
	}
	return a.link.answer(ctx, a.id, m.Result)
}

// fromEngine passes on what an engine sends.
func (t *routing) fromEngine(ctx context.Context, l *link, body []byte) error {
	m, fault := jsonrpc.Scan(body)
	switch {
	case fault != nil:
		t.Log.Warn("an engine sent an invalid message", "err", fault)
		return nil
	case m.IsAnswer():
		return t.answer(ctx, l, m, body)
	case m.IsRequest():
		t.mu.Lock()
		t.count++
		id := strconv.FormatInt(t.count, 10)
		t.asks[id] = routedAsk{l, slices.Clone(m.ID)}
		t.mu.Unlock()
		return t.out.Put(ctx, appendHead(nil, []byte(id), m.Method), orEmpty(m.Params), closing)
	case m.Method == cancelMethod:
		return t.cancelAsk(ctx, l, member(m.Params, "id"))
	}
	return t.out.Put(ctx, body)
}

// cancelAsk passes an engine's cancellation of an ask on.
func (t *routing) cancelAsk(ctx context.Context, l *link, engineID json.RawMessage) error {
	t.mu.Lock()
	var known string
	for id, a := range t.asks {
		if a.link == l && string(a.id) == string(engineID) {
			known = id
		}
	}
	t.mu.Unlock()
	if known == "" {
		return nil
	}
	return t.out.Put(ctx, cancellation([]byte(known)))
}

// answer passes the answer of an engine on. If it is that another server works on the session, the
// request is passed on instead.
func (t *routing) answer(ctx context.Context, l *link, m jsonrpc.Message, body []byte) error {
	if l.answered(m) {
		return nil
	}
	t.mu.Lock()
	q := t.requests[string(m.ID)]
	if q == nil || q.at != l {
		t.mu.Unlock()
		if string(m.ID) == "null" {
			return t.out.Put(ctx, body)
		}
		return nil // the request has gone elsewhere since
	}
	fault := m.Failure()
	if fault != nil && fault.Code == codeElsewhere {
		q.at = nil
		if t.places[q.session] == l {
			delete(t.places, q.session)
		}
		t.mu.Unlock()
		t.work.Go(func() { t.passOn(ctx, q, fault, l == t.home) })
		return nil
	}
	delete(t.requests, q.id)
	if q.session != "" && fault == nil && (attaches(q.method) || q.method == "abide.attach" || l != t.home) {
		if delete(t.places, q.session); l != t.home {
			t.places[q.session] = l
		}
	}
	told := q.told
	t.mu.Unlock()
	if told {
		if fault != nil {
			t.Log.Warn("a session could not be attached again", "session", q.session, "err", fault)
		}
		return nil
	}
	return t.out.Put(ctx, body)
}

// passOn passes a request on to the server that an engine has named. If that cannot be reached, or
// does not work on the session any more, home is asked again: the session may have been claimed.
func (t *routing) passOn(ctx context.Context, q *routedRequest, fault *jsonrpc.Error, fromHome bool) {
	server, address := textMember(fault.Data, "server"), textMember(fault.Data, "address")
	var why error = fault
	if fromHome && address != "" {
		l, err := t.linkTo(ctx, server, address)
		if err == nil {
			t.sendTo(ctx, q, l)
			return
		}
		why = err
	}
	if ctx.Err() != nil {
		return
	}
	switch {
	case q.method == "abide.attach":
		t.tellAttached(ctx, q)
	case time.Since(q.began) > routeTime:
		t.refuse(ctx, q, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s was not done: the session is worked on by the server at %s, which cannot be reached (%v); try again", q.method, address, why))
		return
	}
	select {
	case <-time.After(routePause):
	case <-ctx.Done():
		return
	}
	t.sendTo(ctx, q, t.home)
}

// tellAttached lets the relay go on with other sessions while one of its sessions is with a server
// that cannot be reached.
func (t *routing) tellAttached(ctx context.Context, q *routedRequest) {
	t.mu.Lock()
	told := q.told
	q.told = true
	t.mu.Unlock()
	if !told {
		t.out.Put(ctx, []byte(`{"jsonrpc":"2.0","id":`), []byte(q.id), []byte(`,"result":{}}`)) // the relay may be gone
	}
}

// sendTo sends a request to an engine.
func (t *routing) sendTo(ctx context.Context, q *routedRequest, l *link) {
	t.mu.Lock()
	q.at = l
	t.mu.Unlock()
	if l.out.Put(ctx, q.body) != nil {
		t.lost(l, errLost)
	}
}

// refuse answers a request with an error.
func (t *routing) refuse(ctx context.Context, q *routedRequest, fault *jsonrpc.Error) {
	t.mu.Lock()
	delete(t.requests, q.id)
	t.mu.Unlock()
	text, err := json.Marshal(fault)
	if err != nil {
		text, _ = json.Marshal(&jsonrpc.Error{Code: fault.Code, Message: fault.Message})
	}
	t.out.Put(ctx, []byte(`{"jsonrpc":"2.0","id":`), []byte(q.id), []byte(`,"error":`), text, closing) // the relay may be gone
}

// linkTo returns the connection to another server, with the settings of the client.
func (t *routing) linkTo(ctx context.Context, server, address string) (*link, error) {
	t.mu.Lock()
	l, settings := t.links[server], slices.Clone(t.settings)
	t.mu.Unlock()
	if l != nil {
		return l, nil
	}
	conn, err := t.Dial(ctx, server, address)
	if err != nil {
		return nil, err
	}
	l = newLink(conn)
	t.follow(ctx, l)
	for _, s := range settings {
		if err := t.set(ctx, l, s); err != nil {
			l.end()
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.links[server]; other != nil { // another request was faster
		l.end()
		return other, nil
	}
	t.links[server] = l
	return l, nil
}

// set repeats a setting of the client at another server.
func (t *routing) set(ctx context.Context, l *link, s setting) error {
	t.mu.Lock()
	t.count++
	id := quote("route/" + strconv.FormatInt(t.count, 10))
	t.mu.Unlock()
	answer := l.expect(id)
	if err := l.out.Put(ctx, appendHead(nil, id, s.method), s.params, closing); err != nil {
		return err
	}
	fault, err := l.wait(answer)
	if err == nil && fault != nil {
		err = fault
	}
	return err
}
