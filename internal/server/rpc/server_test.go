package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A testServer is a server with real TCP connections.
type testServer struct {
	t    *testing.T
	srv  *rpc.Server
	host *session.Host
}

// withAgents are the tools of sessions that can start agents.
func withAgents(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }

func newTestServer(t *testing.T) *testServer { return newTestServerWith(t, session.Options{}) }

// newTestServerWith is a server whose host has further options.
func newTestServerWith(t *testing.T, o session.Options) *testServer {
	f := sessiontest.On(t, eventlog.NewMemory(), o)
	f.Start()
	return &testServer{t: t, host: f.Host, srv: rpc.New(f.Host, rpc.Options{Version: "test", Agents: agent.Briefs()})}
}

// A peer is a client of the server.
type peer struct {
	*jsonrpc.Conn
	t      *testing.T
	events chan event.Event
	hints  chan api.LifecycleParams
	answer func(api.UserInputParams) (api.UserInputResult, error)
	serve  func(method string, params json.RawMessage) (any, error) // any other request; none if nil
	exits  chan json.RawMessage                                     // exit notifications of commands that the client has started
}

// dial connects a client over TCP, without the handshake.
func (r *testServer) dial(door rpc.Door) *peer {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		defer l.Close()
		conn, _ := l.Accept() // the dialling fails, too
		accepted <- conn
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.join(conn, <-accepted, door)
}

// dialPipe connects a client within the process, with the handshake, so that a test can
// wait until all is quiet.
func (r *testServer) dialPipe() *peer {
	near, far := net.Pipe()
	p := r.join(near, far, rpc.Door{})
	p.must(api.Connect, api.ConnectParams{}, nil)
	return p
}

// join serves one end of a connection, and is a client at the other one.
func (r *testServer) join(near, far net.Conn, door rpc.Door) *peer {
	served := make(chan struct{})
	go func() { defer close(served); r.srv.Serve(context.Background(), far, door) }()
	p := &peer{t: r.t, events: make(chan event.Event, 10000), hints: make(chan api.LifecycleParams, 1000), exits: make(chan json.RawMessage, 10)}
	p.Conn = jsonrpc.New(near, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
	ran := make(chan struct{})
	go func() { defer close(ran); p.Run(context.Background()) }()
	r.t.Cleanup(func() { p.Close(); <-ran; <-served })
	return p
}

func (r *testServer) connect(door rpc.Door) *peer {
	p := r.dial(door)
	p.must(api.Connect, api.ConnectParams{Token: door.Token}, nil)
	return p
}

func (p *peer) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case api.SessionEvent:
		var d api.EventParams
		if err := json.Unmarshal(req.Params, &d); err != nil {
			return nil, err
		}
		if faults := shapetest.Event(d.Event); len(faults) > 0 {
			p.t.Errorf("typed clients cannot read %s: %q", d.Event, faults)
		}
		e, err := event.Parse(d.Seq, d.Event)
		if err == nil {
			p.events <- e
		}
		return nil, err
	case api.SessionLifecycle:
		var d api.LifecycleParams
		if err := json.Unmarshal(req.Params, &d); err != nil {
			return nil, err
		}
		select {
		case p.hints <- d:
		default:
		}
		return nil, nil
	case api.UserInput:
		if p.answer == nil {
			break
		}
		var d api.UserInputParams
		if err := json.Unmarshal(req.Params, &d); err != nil {
			return nil, err
		}
		return p.answer(d)
	}
	if req.Method == api.ShellExit {
		p.exits <- req.Params
		return nil, nil
	}
	if p.serve != nil && req.ID != nil { // a notification needs no answer
		return p.serve(req.Method, req.Params)
	}
	return nil, jsonrpc.MethodNotFound(req.Method)
}

func (p *peer) must(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var raw json.RawMessage
	err := p.Call(ctx, method, params, &raw)
	if faults := shapetest.Result(method, raw); err == nil && len(faults) > 0 {
		p.t.Errorf("%s: typed clients cannot read %s: %q", method, raw, faults)
	}
	if err == nil && result != nil {
		err = json.Unmarshal(raw, result)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// refused makes a request that must fail, and returns why.
func (p *peer) refused(method string, params any) *jsonrpc.Error {
	p.t.Helper()
	err := p.Call(context.Background(), method, params, nil)
	fault, ok := err.(*jsonrpc.Error)
	if !ok {
		p.t.Fatalf("%s: %v, want an error of the protocol", method, err)
	}
	return fault
}

func (p *peer) await(kind event.Type) event.Event {
	p.t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e := <-p.events:
			if e.Type == kind {
				return e
			}
		case <-timeout:
			p.t.Fatalf("no %s", kind)
		}
	}
}

func TestATurnOverTCP(t *testing.T) {
	p := newTestServer(t).connect(rpc.Door{})
	var opened api.OpenResult
	p.must(api.SessionCreate, map[string]any{"sessionId": "s", "availableTools": nil}, &opened)
	p.await(event.SessionStart)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HI"}, nil)
	d, err := event.As[event.AssistantMessageData](p.await(event.AssistantMessage))
	if err != nil || d.Content != "HI" {
		t.Errorf("answer = %q, %v", d.Content, err)
	}
	p.await(event.SessionIdle)
	var list api.ListResult
	p.must(api.SessionList, map[string]any{}, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Summary != "Reply with exactly: HI" {
		t.Errorf("list = %+v", list)
	}
	var messages api.EventsResult
	p.must(api.SessionGetMessages, api.SessionParams{SessionID: "s"}, &messages)
	for _, b := range messages.Events {
		e, err := event.Parse(0, b)
		if err != nil || !e.Kind().Listed() {
			t.Errorf("getMessages has %s, %v", e.Type, err)
		}
	}
}

func TestTheTokenIsRequired(t *testing.T) {
	r := newTestServer(t)
	p := r.dial(rpc.Door{Token: "secret"})
	if e := p.refused(api.Ping, nil); e.Code != api.CodeAuthenticationRequired {
		t.Errorf("ping before connect: %v", e)
	}
	for _, token := range []string{"", "wrong"} {
		if e := p.refused(api.Connect, api.ConnectParams{Token: token}); e.Code != api.CodeAuthenticationFailed {
			t.Errorf("connect with %q: %v", token, e)
		}
	}
	r.connect(rpc.Door{}).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	p.refused(api.Ping, nil)
	if len(p.hints) > 0 {
		t.Errorf("somebody who was not let in was told %+v", <-p.hints)
	}
	p.must(api.Connect, api.ConnectParams{Token: "secret"}, nil)
	p.must(api.Ping, nil, nil)
}

func TestBadRequestsAreNamed(t *testing.T) {
	p := newTestServer(t).connect(rpc.Door{})
	p.must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	for _, test := range []struct {
		method string
		params any
		want   string
	}{
		{"no.such", map[string]any{}, "Unhandled method no.such"},
		{api.SessionResume, map[string]any{"sessionId": "nope"}, "Session not found: nope"},
		{api.SessionSend, map[string]any{"sessionId": "nope", "prompt": "x"}, "not found"},
		{api.SessionSend, map[string]any{"sessionId": "s", "prompt": 7}, "prompt: want string, have number"},
		{api.SessionSend, map[string]any{"sessionId": "s", "prompt": "x", "mode": "shout"}, `mode: "shout" is unknown`},
		{api.SessionCreate, map[string]any{"tools": []any{map[string]any{}}}, "tools[0].name"},
		{api.AnswerPermission, map[string]any{"sessionId": "s", "requestId": "r", "result": 3}, "result"},
		{api.HistoryTruncate, map[string]any{"sessionId": "s", "eventId": "e"}, "Event not found: event e"},
		{api.SessionGetMessages, map[string]any{"sessionId": ""}, "sessionId: it is missing"},
		{api.Attach, map[string]any{"sessionId": "s"}, "Unhandled method"},
	} {
		if e := p.refused(test.method, test.params); !strings.Contains(e.Message, test.want) {
			t.Errorf("%s %v: %q, want %q in it", test.method, test.params, e.Message, test.want)
		}
	}
}

func TestAnAnswerGivenTwiceWinsOnce(t *testing.T) {
	r := newTestServer(t)
	p, q := r.connect(rpc.Door{}), r.connect(rpc.Door{})
	p.must(api.SessionCreate, map[string]any{"sessionId": "s", "requestPermission": true,
		"tools": []any{map[string]any{"name": "look", "skipPermission": true}}}, nil)
	q.must(api.SessionResume, map[string]any{"sessionId": "s"}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Use look with value 'a', then reply with the result"}, nil)
	d, err := event.As[event.ExternalAskedData](q.await(event.ExternalAsked))
	if err != nil {
		t.Fatal(err)
	}
	var unknown, first, second api.Success
	q.must(api.AnswerTool, map[string]any{"sessionId": "s", "requestId": "made up", "result": "X"}, &unknown)
	q.must(api.AnswerTool, map[string]any{"sessionId": "s", "requestId": d.RequestID, "result": "ONE"}, &first)
	p.must(api.AnswerTool, map[string]any{"sessionId": "s", "requestId": d.RequestID, "result": "TWO"}, &second)
	if unknown.Success || !first.Success || second.Success {
		t.Errorf("success of an unknown, a first and a second answer = %v, %v, %v; want false, true, false", unknown.Success, first.Success, second.Success)
	}
	p.await(event.ToolComplete)
	m, _ := event.As[event.AssistantMessageData](p.await(event.AssistantMessage))
	if m.Content != "ONE" {
		t.Errorf("answer = %q, want ONE", m.Content)
	}
}

func TestAQuestionIsPutToThePerson(t *testing.T) {
	p := newTestServer(t).connect(rpc.Door{})
	p.answer = func(d api.UserInputParams) (api.UserInputResult, error) {
		return api.UserInputResult{Answer: "to " + d.Question, WasFreeform: true}, nil
	}
	p.must(api.SessionCreate, map[string]any{"sessionId": "s", "requestUserInput": true}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Ask me: what now?"}, nil)
	p.await(event.ToolComplete)
	m, _ := event.As[event.AssistantMessageData](p.await(event.AssistantMessage))
	if m.Content != "User responded: to what now?" {
		t.Errorf("answer = %q", m.Content)
	}
}

// Something that is no answer is what an error of the client is: the turn goes on.
func TestAnAnswerThatCannotBeReadEndsTheQuestion(t *testing.T) {
	p := newTestServer(t).connect(rpc.Door{})
	p.serve = func(method string, _ json.RawMessage) (any, error) {
		return object{"answer": 5, "wasFreeform": "x"}, nil
	}
	p.must(api.SessionCreate, object{"sessionId": "s", "requestUserInput": true}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Ask me: what now?"}, nil)
	p.await(event.ToolComplete)
	m, _ := event.As[event.AssistantMessageData](p.await(event.AssistantMessage))
	if !strings.Contains(m.Content, "unable to respond due to an error") {
		t.Errorf("answer = %q", m.Content)
	}
}

func TestALostConnectionIsGoneOnWithWithoutGap(t *testing.T) {
	r := newTestServer(t)
	p := r.connect(rpc.Door{Private: true})
	open := map[string]any{"sessionId": "s"}
	p.must(api.SessionCreate, open, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: A"}, nil)
	seen := p.await(event.UserMessage).Seq
	p.Close()
	q := r.connect(rpc.Door{Private: true})
	q.must(api.Attach, map[string]any{"sessionId": "s", "after": seen, "method": api.SessionCreate, "params": open}, nil)
	last := seen
	for last == seen || len(q.events) > 0 {
		e := <-q.events
		if e.Seq == 0 {
			continue
		}
		if e.Seq <= last {
			t.Fatalf("event %d came after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Type == event.SessionIdle {
			return
		}
	}
	q.await(event.SessionIdle)
}

func TestNothingIsMissedByAClientThatSendsAtOnce(t *testing.T) {
	r := newTestServer(t)
	for i := range 20 {
		p := r.connect(rpc.Door{})
		id := event.SessionID(fmt.Sprint(i))
		p.must(api.SessionCreate, map[string]any{"sessionId": id, "streaming": true}, nil)
		p.must(api.SessionSend, api.SendParams{SessionID: id, Prompt: "Reply with exactly: a b c d e f"}, nil)
		var text string
		for e := range p.events {
			if e.Type == event.MessageDelta {
				d, _ := event.As[event.MessageDeltaData](e)
				text += d.DeltaContent
			}
			if e.Type == event.SessionIdle {
				break
			}
		}
		if text != "a b c d e f" {
			t.Fatalf("the pieces give %q", text)
		}
	}
}

func TestAClientIsToldOfATurnThatItSeesOnlyWhenItIsOver(t *testing.T) {
	r := newTestServer(t)
	attached, other := r.connect(rpc.Door{}), r.connect(rpc.Door{})
	attached.must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	attached.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HI"}, nil)
	attached.await(event.SessionIdle)
	for name, test := range map[string]struct {
		p    *peer
		want []string
	}{
		"attached": {attached, []string{session.Created, session.Updated}},
		"other":    {other, []string{session.Created, session.Updated, session.Updated}},
	} {
		test.p.must(api.Ping, nil, nil) // notifications that came before its answer are here
		var told []string
		for len(test.p.hints) > 0 {
			h := <-test.p.hints
			told = append(told, h.Type)
			if h.SessionID != "s" || h.Metadata == nil || (h.Metadata.Summary == "") != (h.Type == session.Created) {
				t.Errorf("%s was told %+v", name, h)
			}
		}
		if !slices.Equal(told, test.want) {
			t.Errorf("%s was told %v, want %v", name, told, test.want)
		}
	}
	attached.must(api.SessionDelete, api.SessionParams{SessionID: "s"}, nil)
	if h := <-other.hints; h.Type != session.Deleted || h.Metadata != nil {
		t.Errorf("at the end %+v was told", h)
	}
}

// A client that leaves closes its connection, or has forgotten the session already: SDKs
// forget their sessions before they close the connection.
func TestAClientThatLeavesHasNotAnswered(t *testing.T) {
	for name, said := range map[string]error{
		"closing":        jsonrpc.Errorf(jsonrpc.CodeClosing, "the connection is closing"),
		"forgotten":      jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown session s"),
		"also forgotten": jsonrpc.Errorf(jsonrpc.CodeInternal, "Request userInput.request failed with message: Session not found: s"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t)
			p := r.connect(rpc.Door{})
			asked := make(chan struct{})
			p.answer = func(api.UserInputParams) (api.UserInputResult, error) {
				close(asked)
				return api.UserInputResult{}, said
			}
			p.must(api.SessionCreate, map[string]any{"sessionId": "s", "requestUserInput": true}, nil)
			p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Ask me: what now?"}, nil)
			<-asked
			p.Close()
			q := r.connect(rpc.Door{})
			q.answer = func(d api.UserInputParams) (api.UserInputResult, error) {
				return api.UserInputResult{Answer: "this", WasFreeform: true}, nil
			}
			q.must(api.SessionResume, map[string]any{"sessionId": "s", "requestUserInput": true, "continuePendingWork": true}, nil)
			m, _ := event.As[event.AssistantMessageData](q.await(event.AssistantMessage))
			if m.Content != "User responded: this" {
				t.Errorf("answer = %q", m.Content)
			}
		})
	}
}

func TestAnEndpointThatSomebodyNamedIsNotReplacedByADefault(t *testing.T) {
	r := newTestServer(t)
	door := rpc.Door{Defaults: api.Defaults{Provider: &api.Provider{BaseURL: "http://default.example"}}}
	p := r.connect(door)
	p.must(api.SessionCreate, map[string]any{"sessionId": "named", "provider": map[string]any{"baseUrl": "http://named.example"}}, nil)
	p.must(api.SessionCreate, map[string]any{"sessionId": "default"}, nil)
	door.Defaults.Provider = &api.Provider{BaseURL: "http://moved.example"}
	q := r.connect(door)
	for id, want := range map[event.SessionID]string{"named": "http://named.example", "default": "http://moved.example"} {
		q.must(api.SessionResume, map[string]any{"sessionId": id}, nil)
		st, err := r.host.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(st.Config.Provider), want) {
			t.Errorf("%s: provider = %s, want %s", id, st.Config.Provider, want)
		}
	}
}
