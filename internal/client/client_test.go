package client_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A testServer is a real server for clients in this process.
type testServer struct {
	t   *testing.T
	srv *rpc.Server
}

func newTestServer(t *testing.T) *testServer {
	f := sessiontest.New(t, offline.Model{})
	return &testServer{t: t, srv: rpc.New(f.Host, rpc.Options{Version: "test"})}
}

// client connects a client.
func (r *testServer) client(door rpc.Door, opts client.Options) *client.Client {
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.srv.Serve(context.Background(), theirs, door)
	}()
	c := client.New(ours, opts)
	r.t.Cleanup(func() { c.Close(); <-served })
	return c
}

func (r *testServer) connected(opts client.Options) *client.Client {
	c := r.client(rpc.Door{}, opts)
	_, err := c.Connect(r.t.Context(), "")
	must(r.t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await takes events until one of that kind has come.
func await(t *testing.T, s *client.Stream, kind event.Type) []event.Event {
	t.Helper()
	var all []event.Event
	for {
		e, err := s.Next(t.Context())
		must(t, err)
		all = append(all, e)
		if e.Type == kind {
			return all
		}
	}
}

// ask creates a session and gives it a prompt.
func ask(t *testing.T, c *client.Client, id event.SessionID, prompt string) *client.Stream {
	t.Helper()
	s := c.Watch(id)
	_, err := c.Create(t.Context(), api.OpenParams{SessionID: id, RequestPermission: true, RequestUserInput: true})
	must(t, err)
	_, err = c.Send(t.Context(), api.SendParams{SessionID: id, Prompt: prompt})
	must(t, err)
	return s
}

func TestATurnIsShownInOrderFromItsFirstEventOn(t *testing.T) {
	c := newTestServer(t).connected(client.Options{})
	events := await(t, ask(t, c, "s", "Reply with exactly: HELLO"), event.SessionIdle)
	var parent string
	for i, e := range events {
		head, err := e.Head()
		must(t, err)
		if head.Parent != parent {
			t.Errorf("event %d (%s) follows %q, want %q", i, e.Type, head.Parent, parent)
		}
		if !head.Ephemeral {
			parent = head.ID
		}
	}
	if events[0].Type != event.SessionStart {
		t.Errorf("the first event is %s, want %s", events[0].Type, event.SessionStart)
	}
	if !slices.ContainsFunc(events, func(e event.Event) bool {
		d, err := event.As[event.AssistantMessageData](e)
		return e.Type == event.AssistantMessage && err == nil && d.Content == "HELLO"
	}) {
		t.Error("the answer is missing")
	}
}

func TestWhatCameBeforeAnAnswerIsInTheStreamWhenTheCallReturns(t *testing.T) {
	stop, c := fake(t, func(_ context.Context, req *jsonrpc.Request) (any, error) {
		for range 100 {
			req.Conn().Notify(api.SessionEvent, json.RawMessage(`{"sessionId":"s","event":{"type":"x"}}`))
		}
		return api.SendResult{MessageID: "m"}, nil
	}, client.Options{})
	defer stop()
	s := c.Watch("s")
	_, err := c.Send(t.Context(), api.SendParams{SessionID: "s"})
	must(t, err)
	if n := len(s.Take()); n != 100 {
		t.Errorf("%d events are in the stream, want 100", n)
	}
}

// fake connects a client to a runtime that a test plays.
func TestACallThatIsEndedReturnsTheCauseAlone(t *testing.T) {
	begun := make(chan struct{})
	stop, c := fake(t, func(ctx context.Context, _ *jsonrpc.Request) (any, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}, client.Options{})
	defer stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("terminated")
	go func() { <-begun; cancel(cause) }()
	if _, err := c.TaskOutput(ctx, api.TaskOutputParams{TaskID: "t", Wait: true}); err != cause {
		t.Errorf("err = %v, want %v", err, cause)
	}
}

func fake(t *testing.T, handle jsonrpc.HandlerFunc, opts client.Options) (stop func(), c *client.Client) {
	t.Helper()
	_, stop, c = played(t, handle, opts)
	return stop, c
}

func played(t *testing.T, handle jsonrpc.HandlerFunc, opts client.Options) (*jsonrpc.Conn, func(), *client.Client) {
	t.Helper()
	ours, theirs := net.Pipe()
	runtime := jsonrpc.New(theirs, jsonrpc.Options{Handler: handle})
	ended := make(chan struct{})
	go func() { defer close(ended); runtime.Run(context.Background()) }()
	c := client.New(ours, opts)
	t.Cleanup(func() { c.Close() })
	return runtime, func() { runtime.Close(); <-ended }, c
}

func pong(context.Context, *jsonrpc.Request) (any, error) { return api.PingResult{}, nil }

func TestAStreamEndsWithTheConnectionButLosesNothing(t *testing.T) {
	runtime, stop, c := played(t, pong, client.Options{})
	s := c.Watch("s")
	_, err := c.Ping(t.Context(), "") // the runtime is there
	must(t, err)
	must(t, runtime.Notify(api.SessionEvent, json.RawMessage(`{"sessionId":"s","seq":7,"event":{"type":"x"}}`)))
	stop()
	e, err := s.Next(t.Context())
	if err != nil || e.Seq != 7 {
		t.Errorf("Next = %+v, %v, want event 7", e, err)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Next after the last event: %v, want ErrClosed", err)
	}
}

func TestNextReturnsWhenItsContextIsDone(t *testing.T) {
	_, stop, c := played(t, pong, client.Options{})
	defer stop()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := c.Watch("s").Next(ctx); !errors.Is(err, cause) {
		t.Errorf("Next = %v, want the cause", err)
	}
}

func TestAClosedStreamGetsNothingMore(t *testing.T) {
	runtime, stop, c := played(t, pong, client.Options{})
	defer stop()
	first := c.Watch("s")
	second := c.Watch("s") // takes the place of the first
	first.Close()          // the second one is not closed with the first
	must(t, runtime.Notify(api.SessionEvent, json.RawMessage(`{"sessionId":"s","event":{"type":"x"}}`)))
	_, err := c.Ping(t.Context(), "")
	must(t, err)
	if a, b := len(first.Take()), len(second.Take()); a != 0 || b != 1 {
		t.Errorf("the first stream has %d events and the second %d, want 0 and 1", a, b)
	}
}

func TestAQuestionIsPutToThePerson(t *testing.T) {
	c := newTestServer(t).connected(client.Options{
		AskUser: func(_ context.Context, p api.UserInputParams) (api.UserInputResult, error) {
			return api.UserInputResult{Answer: "the answer to " + p.Question, WasFreeform: true}, nil
		},
	})
	events := await(t, ask(t, c, "s", "Ask me: Q?"), event.SessionIdle)
	if !slices.ContainsFunc(events, func(e event.Event) bool { return strings.Contains(string(e.Bytes), "the answer to Q?") }) {
		t.Error("the person's answer did not arrive")
	}
}

func TestAQuestionOutlivesTheClientThatWasAsked(t *testing.T) {
	for name, opts := range map[string]client.Options{
		"nobody to ask": {},
		"a person who is asked when the client leaves": {
			AskUser: func(ctx context.Context, _ api.UserInputParams) (api.UserInputResult, error) {
				<-ctx.Done()
				return api.UserInputResult{}, errors.New("nobody is there any more")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t)
			c := r.connected(opts)
			await(t, ask(t, c, "s", "Ask me: Q?"), event.UserInputAsked)
			_, err := c.Ping(t.Context(), "") // the request to ask has arrived, too
			must(t, err)
			must(t, c.Close())

			other := r.connected(client.Options{})
			open, err := other.Questions(t.Context(), "")
			must(t, err)
			if len(open) != 1 {
				t.Fatalf("%d questions are open, want 1", len(open))
			}
			e, err := event.Parse(0, open[0].Event)
			must(t, err)
			q, err := event.As[event.UserInputAskedData](e)
			must(t, err)
			p := api.AnswerUserInputParams{SessionID: "s", RequestID: q.RequestID, Response: api.UserInputResult{Answer: "A"}}
			for i, want := range []bool{true, false} {
				if won, err := other.AnswerUserInput(t.Context(), p); err != nil || won != want {
					t.Errorf("answer %d: won = %v, %v, want %v", i+1, won, err, want)
				}
			}
		})
	}
}

func TestSomebodyWhoIsNotAttachedIsToldThatASessionGoesOn(t *testing.T) {
	r := newTestServer(t)
	told := make(chan api.LifecycleParams, 100)
	watcher := r.connected(client.Options{Changed: func(p api.LifecycleParams) {
		select {
		case told <- p:
		default:
		}
	}})
	s := watcher.Watch("s")
	await(t, ask(t, r.connected(client.Options{}), "s", "Reply with exactly: X"), event.SessionIdle)
	<-s.Ready()
	if got := <-told; got.SessionID != "s" {
		t.Errorf("told of session %q, want s", got.SessionID)
	}
	if n := len(s.Take()); n != 0 {
		t.Errorf("%d events were shown to somebody who is not attached", n)
	}
}

func TestEveryMethodIsCalledAsTheServerKnowsIt(t *testing.T) {
	r := newTestServer(t)
	c := r.connected(client.Options{})
	ctx := t.Context()
	await(t, ask(t, c, "s", "Reply with exactly: needle"), event.SessionIdle)

	ping, err := c.Ping(ctx, "hi")
	must(t, err)
	if ping.Message != "pong: hi" {
		t.Errorf("ping = %+v", ping)
	}

	list, err := c.List(ctx, "")
	must(t, err)
	info, err := c.Metadata(ctx, "s")
	must(t, err)
	nobody, err := c.Metadata(ctx, "nobody")
	must(t, err)
	if len(list) != 1 || info == nil || nobody != nil {
		t.Errorf("list = %v, s = %v, nobody = %v", list, info, nobody)
	}

	must(t, c.Rename(ctx, "s", "named"))
	st, err := c.Status(ctx, "s")
	must(t, err)
	if st.Session.Name != "named" || st.Active || st.Totals.Turns != 1 {
		t.Errorf("status %+v", st)
	}

	found, err := c.Search(ctx, api.SearchParams{Text: "NEEDLE"})
	must(t, err)
	checked, err := c.Verify(ctx, "s")
	must(t, err)
	if len(found.Matches) != 2 || checked.Events != st.Position || checked.Damage != nil {
		t.Errorf("found %d, verified %+v", len(found.Matches), checked)
	}

	fork, err := c.Fork(ctx, api.ForkParams{SessionID: "s", Name: "other"})
	must(t, err)
	prompt := promptID(t, c, "s")
	took, err := c.Rewind(ctx, api.RewindParams{SessionID: fork.SessionID, EventID: prompt})
	must(t, err)
	again, err := c.Rewind(ctx, api.RewindParams{SessionID: fork.SessionID, EventID: prompt})
	must(t, err)
	if took.EventsRemoved == 0 || again.EventsRemoved != 0 {
		t.Errorf("rewind took %d events back, and then %d", took.EventsRemoved, again.EventsRemoved)
	}
	_, err = c.Abort(ctx, api.AbortParams{SessionID: "s"})
	must(t, err)
	for i, want := range []bool{true, false} {
		if was, err := c.Delete(ctx, "s"); err != nil || was != want {
			t.Errorf("delete %d = %v, %v, want %v", i+1, was, err, want)
		}
	}
	_, err = c.Resume(ctx, api.OpenParams{SessionID: fork.SessionID})
	must(t, err)
	for name, answer := range map[string]func() (bool, error){
		"permission": func() (bool, error) {
			return c.AnswerPermission(ctx, api.AnswerPermissionParams{SessionID: fork.SessionID, RequestID: "none", Result: json.RawMessage(`{"kind":"reject"}`)})
		},
		"tool": func() (bool, error) {
			return c.AnswerTool(ctx, api.AnswerToolParams{SessionID: fork.SessionID, RequestID: "none"})
		},
	} {
		if won, err := answer(); won || err != nil {
			t.Errorf("%s: an answer to no question: won = %v, %v", name, won, err)
		}
	}
}

// promptID returns the id of the first user message of a session.
func promptID(t *testing.T, c *client.Client, id event.SessionID) string {
	t.Helper()
	for e, err := range c.Events(t.Context(), id, 0) {
		must(t, err)
		if e.Type == event.UserMessage {
			head, err := e.Head()
			must(t, err)
			return head.ID
		}
	}
	t.Fatalf("session %s has no user message", id)
	return ""
}

func TestStoredEventsAreReadPageByPageAsTheyAre(t *testing.T) {
	r := newTestServer(t)
	c := r.connected(client.Options{})
	s := ask(t, c, "s", "Reply with exactly: X")
	await(t, s, event.SessionIdle)
	for i := range 1200 { // more than a page
		must(t, c.Rename(t.Context(), "s", fmt.Sprintf("name %d", i)))
	}
	var end eventlog.End
	for e, err := range c.Events(t.Context(), "s", 0) {
		must(t, err)
		end = end.Next(e.Bytes)
		if e.Seq != end.Seq {
			t.Fatalf("event %d has position %d", end.Seq, e.Seq)
		}
	}
	checked, err := c.Verify(t.Context(), "s")
	must(t, err)
	if end.Seq != checked.Events || hex.EncodeToString(end.Hash[:]) != checked.Hash {
		t.Errorf("the events give %d %x, the store has %d %s", end.Seq, end.Hash, checked.Events, checked.Hash)
	}
	if e, err := firstOf(c.Events(t.Context(), "s", 5)); err != nil || e.Seq != 6 {
		t.Errorf("the first event after 5 is %d, %v", e.Seq, err)
	}
	if _, err := firstOf(c.Events(t.Context(), "none", 0)); err == nil {
		t.Error("reading a session that is not there gives no error")
	}
}

func firstOf(events iter.Seq2[event.Event, error]) (event.Event, error) {
	for e, err := range events {
		return e, err
	}
	return event.Event{}, errors.New("there is none")
}

func TestReadingStopsAtDamage(t *testing.T) {
	stop, c := fake(t, func(context.Context, *jsonrpc.Request) (any, error) {
		return json.RawMessage(`{"events":[{"type":"x"},{"type":"y"}],"next":2,"more":false,"damage":"event 3 is damaged"}`), nil
	}, client.Options{})
	defer stop()
	n := 0
	for _, err := range c.Events(t.Context(), "s", 0) {
		if err == nil {
			n++
			continue
		}
		var damage *client.DamageError
		if !errors.As(err, &damage) || damage.After != 2 || n != 2 {
			t.Errorf("after %d events: %v, want damage after 2", n, err)
		}
		return
	}
	t.Error("the damage was not told")
}

func TestAPageThatDoesNotAddUpIsRefused(t *testing.T) {
	stop, c := fake(t, func(context.Context, *jsonrpc.Request) (any, error) {
		return json.RawMessage(`{"events":[{"type":"x"}],"next":2,"more":true}`), nil
	}, client.Options{})
	defer stop()
	for _, err := range c.Events(t.Context(), "s", 0) {
		if err != nil {
			return
		}
	}
	t.Error("a page with a hole was accepted")
}

func TestConnectNeedsTheTokenAndTheVersion(t *testing.T) {
	r := newTestServer(t)
	for token, code := range map[string]int{"right": 0, "wrong": api.CodeAuthenticationFailed} {
		_, err := r.client(rpc.Door{Token: "right"}, client.Options{}).Connect(t.Context(), token)
		var refused *jsonrpc.Error
		if code == 0 && err != nil || code != 0 && (!errors.As(err, &refused) || refused.Code != code) {
			t.Errorf("connect with the %s token: %v", token, err)
		}
	}
	stop, c := fake(t, func(context.Context, *jsonrpc.Request) (any, error) {
		return api.ConnectResult{OK: true, ProtocolVersion: 2}, nil
	}, client.Options{})
	defer stop()
	if _, err := c.Connect(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("connect to version 2: %v", err)
	}
}

// TestAnEngineOfAnotherVersionIsNamed: a method that the engine does not know is one of a later
// version, and the person is told what to do.
func TestAnEngineOfAnotherVersionIsNamed(t *testing.T) {
	stop, c := fake(t, func(_ context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method == api.Cost {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		return nil, jsonrpc.MethodNotFound("something else")
	}, client.Options{})
	defer stop()
	var fault *jsonrpc.Error
	if _, err := c.Cost(t.Context(), api.CostParams{}); err == nil || !strings.Contains(err.Error(), "another version of abide") || !errors.As(err, &fault) {
		t.Errorf("a method that is not known: %v", err)
	}
	if _, err := c.Rules(t.Context()); err == nil || strings.Contains(err.Error(), "version") {
		t.Errorf("an error about another method: %v", err)
	}
}

func TestARequestThatNobodyKnowsIsRefused(t *testing.T) {
	runtime, stop, _ := played(t, pong, client.Options{})
	defer stop()
	var refused *jsonrpc.Error
	if err := runtime.Call(t.Context(), "hooks.invoke", nil, nil); !errors.As(err, &refused) || refused.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("hooks.invoke: %v, want method not found", err)
	}
}

// Each page must follow the one before: not only by its number.
func TestAPageFollowsTheHashOfTheOneBefore(t *testing.T) {
	var asked []api.ReadParams
	stop, c := fake(t, func(_ context.Context, r *jsonrpc.Request) (any, error) {
		var p api.ReadParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		asked = append(asked, p)
		return api.ReadResult{Events: []json.RawMessage{json.RawMessage(`{"type":"x"}`)}, Next: p.After + 1, Hash: "h" + string(rune('1'+p.After)), More: p.After < 2}, nil
	}, client.Options{})
	for _, err := range c.Events(t.Context(), "s", 0) {
		must(t, err)
	}
	stop()
	want := []api.ReadParams{{SessionID: "s"}, {SessionID: "s", After: 1, Hash: "h1"}, {SessionID: "s", After: 2, Hash: "h2"}}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
}
