package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs connections until the test ends.
func start(t testing.TB, conns ...*Conn) {
	var running sync.WaitGroup
	for _, c := range conns {
		running.Go(func() { c.Run(context.Background()) })
	}
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
		running.Wait()
	})
}

// pair returns running peers: a client without a handler, and one with it.
func pair(t testing.TB, h HandlerFunc) (client, server *Conn) {
	client, server = Pair(Options{}, Options{Handler: h})
	start(t, client, server)
	return client, server
}

func echo(_ context.Context, req *Request) (any, error) { return req.Params, nil }

func TestCallReturnsWhatThePeerAnswers(t *testing.T) {
	client, _ := pair(t, func(ctx context.Context, req *Request) (any, error) {
		switch req.Method {
		case "echo":
			return req.Params, nil
		case "value":
			return map[string]string{"html": "<&>"}, nil
		case "void":
			return nil, nil
		case "typed":
			return nil, fmt.Errorf("wrapped: %w", &Error{Code: 42, Message: "no", Data: raw(`{"why":1}`)})
		case "plain":
			return nil, errors.New("broken")
		case "odd":
			return func() {}, nil
		case "decode":
			var p struct{ N int }
			return nil, req.Decode(&p)
		}
		return nil, MethodNotFound(req.Method)
	})
	tests := map[string]struct {
		method string
		params any
		want   string
		code   int
	}{
		"raw bytes pass":    {"echo", raw(`{ "a" : 1.0 }`), `{ "a" : 1.0 }`, 0},
		"values encode":     {"echo", map[string]int{"a": 1}, `{"a":1}`, 0},
		"no params":         {"echo", nil, `{}`, 0},
		"no HTML escapes":   {"value", nil, `{"html":"<&>"}`, 0},
		"void is null":      {"void", nil, `null`, 0},
		"own code":          {"typed", nil, `no`, 42},
		"any other error":   {"plain", nil, `broken`, CodeInternal},
		"unknown method":    {"nope", nil, `Unhandled method nope`, CodeMethodNotFound},
		"bad params":        {"decode", raw(`{"N":"x"}`), `decode: the params do not fit: json: cannot unmarshal string into Go struct field .N of type int`, CodeInvalidParams},
		"params not object": {"echo", raw(`[1]`), `echo: the params must be an object`, CodeInvalidParams},
		"result not JSON":   {"odd", nil, `encode func(): json: unsupported type: func()`, CodeInternal},
		"odd method name":   {"\"\n", nil, "Unhandled method \"\n", CodeMethodNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got json.RawMessage
			err := client.Call(t.Context(), test.method, test.params, &got)
			fault, _ := errors.AsType[*Error](err)
			switch {
			case test.code == 0 && (err != nil || string(got) != test.want):
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			case test.code != 0 && (fault == nil || fault.Code != test.code || fault.Message != test.want):
				t.Errorf("got error %+v (%v), want %d %q", fault, err, test.code, test.want)
			}
		})
	}
}

func TestCallDecodesTheAnswer(t *testing.T) {
	client, _ := pair(t, echo)
	var got struct{ A int }
	if err := client.Call(t.Context(), "echo", raw(`{"a":5}`), &got); err != nil || got.A != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := client.Call(t.Context(), "echo", raw(`{"a":"x"}`), &got); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("a wrong type gives %v", err)
	}
	if err := client.Call(t.Context(), "echo", nil, nil); err != nil {
		t.Errorf("an unwanted result gives %v", err)
	}
}

// talk runs a server against raw frames, and returns the bodies it answers.
func talk(t *testing.T, opt Options, stream string) (bodies []string, cause error) {
	t.Helper()
	near, far := net.Pipe()
	var peer sync.WaitGroup
	peer.Go(func() {
		io.WriteString(near, stream)
		near.Close()
	})
	replies := &recorder{}
	cause = New(connectedPair{Reader: far, Writer: replies, Closer: far}, opt).Run(t.Context())
	peer.Wait()
	for _, b := range frames(NewReader(&replies.Buffer, 0)) {
		bodies = append(bodies, string(b))
	}
	return bodies, cause
}

type connectedPair struct {
	io.Reader
	io.Writer
	io.Closer
}

type recorder struct{ bytes.Buffer }

func TestAnswersAreExactBytes(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"number id":      {`{"id":007e0,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not JSON"}}`},
		"float id":       {`{"id":1.50,"method":"echo","params":{"a":1}}`, `{"jsonrpc":"2.0","id":1.50,"result":{"a":1}}`},
		"string id":      {`{"id":"\u00e9/\"","method":"echo","params":{}}`, `{"jsonrpc":"2.0","id":"\u00e9/\"","result":{}}`},
		"no params":      {`{"id":1,"method":"echo"}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		"not a request":  {`{"id":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the message is neither a request nor an answer"}}`},
		"batch":          {`[{"id":1,"method":"echo"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported; send each message in a frame of its own"}}`},
		"unknown answer": {`{"id":99,"result":1}`, ``},
		"odd answer":     {`{"id":"x","error":{}}`, ``},
		"notification":   {`{"method":"unknown","params":{}}`, ``},
		"odd params":     {`{"method":"unknown","params":[]}`, ``},
		"cancel nothing": {`{"method":"$/cancelRequest","params":{"id":5}}`, ``},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := talk(t, Options{Handler: HandlerFunc(echo)}, frame(test.in))
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestAMalformedMessageDoesNotEndTheConnection(t *testing.T) {
	got, err := talk(t, Options{Handler: HandlerFunc(echo)}, frame(`{`)+frame(`{"id":2,"method":"echo"}`))
	if err != nil || len(got) != 2 || got[1] != `{"jsonrpc":"2.0","id":2,"result":null}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAMalformedFrameEndsTheConnectionWithAReason(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"garbage":   {"hello\r\n\r\n", "malformed frame: \"hello\" is not a header; expected Content-Length: N"},
		"too large": {"Content-Length: 101\r\n\r\n", "malformed frame: 101 bytes are more than the limit of 100; send less at once"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := talk(t, Options{MaxFrame: 100}, test.in)
			if err == nil || err.Error() != test.want {
				t.Errorf("Run returned %v, want %s", err, test.want)
			}
			var m struct{ Error Error }
			if len(got) != 1 || json.Unmarshal([]byte(got[0]), &m) != nil || m.Error.Message != test.want {
				t.Errorf("the peer was told %s", got)
			}
		})
	}
}

func TestAPeerThatVanishesInAFrameIsReported(t *testing.T) {
	_, err := talk(t, Options{}, frame(`{"id":2,"method":"echo"}`)[:30])
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Run returned %v", err)
	}
}

func TestAnswersMayBeOutOfOrder(t *testing.T) {
	release := make(chan struct{})
	client, _ := pair(t, func(ctx context.Context, req *Request) (any, error) {
		if req.Method == "slow" {
			<-release
		} else {
			defer close(release)
		}
		return req.Method, nil
	})
	slow := make(chan error, 1)
	go func() { slow <- client.Call(t.Context(), "slow", nil, nil) }()
	if err := client.Call(t.Context(), "fast", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
}

func TestManyCallsInBothDirections(t *testing.T) {
	var c [2]*Conn
	nested := func(ctx context.Context, req *Request) (any, error) {
		var p struct{ Depth, N int }
		if err := req.Decode(&p); err != nil || p.Depth == 0 {
			return p.N, err
		}
		p.Depth--
		var got int
		err := req.Conn().Call(ctx, "down", p, &got)
		return got, err
	}
	c[0], c[1] = Pair(Options{Handler: HandlerFunc(nested)}, Options{Handler: HandlerFunc(nested)})
	start(t, c[0], c[1])
	var calls sync.WaitGroup
	for i := range 400 {
		calls.Go(func() {
			var got int
			err := c[i%2].Call(t.Context(), "down", map[string]int{"depth": i % 7, "n": i}, &got)
			if err != nil || got != i {
				t.Errorf("call %d: got %d, %v", i, got, err)
			}
		})
	}
	calls.Wait()
}

func TestNotificationsAreHandledInOrderAndBeforeALaterAnswer(t *testing.T) {
	var seen []int
	client, server := Pair(
		Options{Handler: HandlerFunc(func(_ context.Context, req *Request) (any, error) {
			var p struct{ N int }
			req.Decode(&p)
			seen = append(seen, p.N) // the reader alone touches it until the answer
			return nil, nil
		})},
		Options{Handler: HandlerFunc(func(_ context.Context, req *Request) (any, error) {
			for i := range 1000 {
				if err := req.Conn().Notify("n", map[string]int{"n": i}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})})
	start(t, client, server)
	if err := client.Call(t.Context(), "go", nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1000 {
		t.Fatalf("%d notifications were handled when the call returned", len(seen))
	}
	for i, n := range seen {
		if i != n {
			t.Fatalf("notification %d came as number %d", n, i)
		}
	}
}

func TestAfterFollowsTheAnswer(t *testing.T) {
	got, err := talk(t, Options{Handler: HandlerFunc(func(_ context.Context, req *Request) (any, error) {
		c := req.Conn()
		c.Notify("before", nil)
		return Answer{Result: raw(`1`), After: func() { c.Notify("after", nil) }}, nil
	})}, frame(`{"id":1,"method":"m"}`))
	want := `{"jsonrpc":"2.0","method":"before","params":{}} {"jsonrpc":"2.0","id":1,"result":1} {"jsonrpc":"2.0","method":"after","params":{}}`
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestTooManyRequestsAreRefusedAtOnce(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	client, server := Pair(Options{}, Options{MaxRequests: 2, Handler: HandlerFunc(func(context.Context, *Request) (any, error) {
		begun <- struct{}{}
		<-release
		return nil, nil
	})})
	start(t, client, server)
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if err := client.Call(t.Context(), "wait", nil, nil); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	err := client.Call(t.Context(), "wait", nil, nil)
	if fault, ok := errors.AsType[*Error](err); !ok || fault.Code != codeBusy {
		t.Errorf("the third call returned %v", err)
	}
	close(release)
	waiting.Wait()
	if err := client.Call(t.Context(), "wait", nil, nil); err != nil {
		t.Errorf("a later call returned %v", err)
	}
}

func TestFewGoroutinesWaitForTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client, server := pair(t, func(context.Context, *Request) (any, error) { <-release; return nil, nil })
		var calls sync.WaitGroup
		call := func() {
			if err := client.Call(t.Context(), "wait", nil, nil); err != nil {
				t.Error(err)
			}
		}
		waiting := func(when string, want int32) {
			t.Helper()
			synctest.Wait()
			if n := server.idleWorkers.Load(); n != want {
				t.Errorf("%s: %d goroutines wait for a request, want %d", when, n, want)
			}
		}
		for range 10 * maxIdle {
			calls.Go(call)
		}
		waiting("while all are handled", 0)
		for range 10 * maxIdle {
			release <- struct{}{}
		}
		calls.Wait()
		waiting("when all are answered", maxIdle)
		calls.Go(call)
		waiting("while one is handled", maxIdle-1)
		release <- struct{}{}
		calls.Wait()
	})
}

func TestAnIDInFlightCannotBeUsedAgain(t *testing.T) {
	release := make(chan struct{})
	near, far := net.Pipe()
	server := New(far, Options{Handler: HandlerFunc(func(ctx context.Context, req *Request) (any, error) {
		<-release
		return nil, nil
	})})
	start(t, server)
	io.WriteString(near, frame(`{"id":"a","method":"m"}`)+frame(`{"id":"a","method":"m"}`))
	in := NewReader(near, 0)
	first, _ := in.Next(nil)
	if !strings.Contains(string(first), `"the id \"a\" belongs to a request in flight"`) {
		t.Errorf("got %s", first)
	}
	close(release)
	if second, err := in.Next(nil); string(second) != `{"jsonrpc":"2.0","id":"a","result":null}` {
		t.Errorf("got %s, %v", second, err)
	}
	near.Close()
}

func TestCancellingACallCancelsItsHandler(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error)
	client, _ := pair(t, func(ctx context.Context, req *Request) (any, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if err := client.Call(ctx, "m", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Call returned %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler saw %v", err)
	}
}

func TestACancelledRequestIsStillAnswered(t *testing.T) {
	near, far := net.Pipe()
	begun := make(chan struct{}, 2)
	start(t, New(far, Options{Handler: HandlerFunc(func(ctx context.Context, req *Request) (any, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})}))
	io.WriteString(near, frame(`{"id":"a","method":"m"}`)+frame(`{"id":"b","method":"m"}`))
	<-begun
	<-begun
	io.WriteString(near, frame(`{"method":"$/cancelRequest","params":{"id":"b"}}`))
	got, err := NewReader(near, 0).Next(nil)
	if string(got) != `{"jsonrpc":"2.0","id":"b","error":{"code":-32800,"message":"the request was cancelled"}}` {
		t.Errorf("got %s, %v", got, err)
	}
	near.Close()
}

func TestTheEndCancelsHandlersAndFailsCalls(t *testing.T) {
	ends := map[string]func(client, server *Conn, cancel context.CancelFunc){
		"client closes": func(client, _ *Conn, _ context.CancelFunc) { client.Close() },
		"server closes": func(_, server *Conn, _ context.CancelFunc) { server.Close() },
		"context ends":  func(_, _ *Conn, cancel context.CancelFunc) { cancel() },
		"stream breaks": func(client, _ *Conn, _ context.CancelFunc) { client.rwc.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			client, server := Pair(Options{}, Options{Handler: HandlerFunc(func(ctx context.Context, _ *Request) (any, error) {
				close(begun)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrClosed) && !errors.Is(context.Cause(ctx), context.Canceled) {
					t.Errorf("the handler saw %v", context.Cause(ctx))
				}
				return nil, nil
			})})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var running sync.WaitGroup
			running.Go(func() { client.Run(t.Context()) })
			running.Go(func() { server.Run(ctx) })
			failed := make(chan error, 1)
			go func() { failed <- client.Call(t.Context(), "m", nil, nil) }()
			<-begun
			end(client, server, cancel)
			// An answer may still win the race; a hang may not.
			if err := <-failed; err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("the call returned %v", err)
			}
			running.Wait()
			for _, c := range []*Conn{client, server} {
				<-c.Done()
				if err := c.Call(t.Context(), "m", nil, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("a later call returned %v", err)
				}
				if err := c.Notify("m", nil); !errors.Is(err, ErrClosed) {
					t.Errorf("a later notification returned %v", err)
				}
				if c.TryNotify("m") {
					t.Error("a later notification was queued")
				}
				if err := c.Err(); !errors.Is(err, ErrClosed) {
					t.Errorf("Err is %v", err)
				}
			}
		})
	}
}

func TestRunReturnsTheCause(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		c, other := Pair(Options{}, Options{})
		start(t, other)
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		if err := c.Run(ctx); err != reason {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("close", func(t *testing.T) {
		c, other := Pair(Options{}, Options{})
		start(t, other)
		c.Close()
		if err := c.Run(t.Context()); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestWhatIsQueuedLeavesBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := New(far, Options{})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		for range 100 {
			c.Notify("n", nil)
		}
		synctest.Wait()
		c.Close()
		if got := len(frames(NewReader(near, 0))); got != 100 {
			t.Errorf("%d notifications arrived", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestTheEndWaitsNoLongerThanTheDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		c := New(far, Options{Drain: 2 * time.Second})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		c.Notify("n", nil)
		synctest.Wait()
		begin := time.Now()
		c.Close()
		if err := <-ended; err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("Run returned %v after %v", err, time.Since(begin))
		}
	})
}

func TestAPeerThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		c := New(far, Options{Outbox: 10 << 10, Stall: 3 * time.Second})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		begin := time.Now()
		text := []byte(`"` + strings.Repeat("x", 1000) + `"`)
		queued := 0
		for c.TryNotify("n", []byte(`{"t":`), text, []byte(`}`)) {
			queued++
		}
		if queued < 8 || queued > 11 {
			t.Errorf("%d notifications fit", queued)
		}
		blocked := make(chan error, 1)
		go func() { blocked <- c.Notify("n", raw(string(text))) }()
		if err := <-blocked; !errors.Is(err, ErrStalled) || !errors.Is(err, ErrClosed) {
			t.Errorf("the waiting notification returned %v", err)
		}
		if err := <-ended; !errors.Is(err, ErrStalled) || err.Error() != "the peer has stopped reading: nothing was accepted for 3s" {
			t.Errorf("Run returned %v", err)
		}
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

// A stuckStream fails its reads as soon as it is closed, and its writes only when
// the connection has begun to end.
type stuckStream struct {
	closed chan struct{}
	over   <-chan struct{}
}

func (s *stuckStream) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *stuckStream) Write([]byte) (int, error) {
	<-s.over
	return 0, io.ErrClosedPipe
}

func (s *stuckStream) Close() error {
	close(s.closed)
	return nil
}

func TestAStallIsTheCauseEvenIfTheReaderNoticesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckStream{closed: make(chan struct{})}
		c := New(s, Options{})
		s.over = c.Done()
		c.Notify("n", nil)
		if err := c.Run(t.Context()); !errors.Is(err, ErrStalled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestASlowReaderIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := New(far, Options{Stall: 3 * time.Second})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		c.Notify("n", raw(`{"t":"`+strings.Repeat("x", 500<<10)+`"}`))
		buf := make([]byte, oneWrite)
		for got := 0; got < 500<<10; {
			time.Sleep(2 * time.Second)
			n, err := near.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		near.Close()
		if err := <-ended; err != nil && errors.Is(err, ErrStalled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestDrainedTellsWhenThereIsRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := New(far, Options{Outbox: 10 << 10})
		select {
		case <-c.Drained():
		default:
			t.Error("an empty outbox is not drained")
		}
		for c.TryNotify("n", []byte(`"`+strings.Repeat("x", 100)+`"`)) {
		}
		drained := c.Drained()
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(t.Context()) }()
		synctest.Wait()
		select {
		case <-drained:
			t.Error("a full outbox is drained")
		default:
		}
		go io.Copy(io.Discard, near)
		<-drained
		if !c.TryNotify("n") {
			t.Error("there is no room after Drained")
		}
		c.Close()
		<-ended
	})
}

// An answer that waits for room gets it before notifications that come later.
func TestNotificationsDoNotOvertakeWaitingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(nil, 1000, 0)
		full := bytes.Repeat([]byte("x"), 900)
		if !o.tryPut(full) {
			t.Fatal("the first does not fit")
		}
		put := make(chan error, 1)
		go func() { put <- o.Put(context.Background(), full) }()
		synctest.Wait()
		if o.tryPut([]byte("y")) {
			t.Error("a notification was queued although an answer waits")
		}
		o.failWaiting()
		if err := <-put; err != ErrClosed {
			t.Errorf("Put returned %v", err)
		}
		if !o.tryPut([]byte("y")) {
			t.Error("nobody waits, but there is no room")
		}
	})
}

func TestPutWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(nil, 10, 0)
		o.tryPut(make([]byte, 100)) // greater than the limit, but alone
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := o.Put(ctx, []byte("y")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put returned %v", err)
		}
	})
}

// A countingWriter lets the first write wait, so that the others pile up.
type countingWriter struct {
	gate   chan struct{}
	writes atomic.Int32
	bytes  atomic.Int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	<-w.gate
	w.writes.Add(1)
	w.bytes.Add(int64(len(b)))
	return len(b), nil
}

func (w *countingWriter) Close() error { return nil }

func TestWhatIsQueuedLeavesInFewWrites(t *testing.T) {
	w := &countingWriter{gate: make(chan struct{})}
	o := NewOutbox(w, 1<<20, 0)
	ended := make(chan error, 1)
	go func() { ended <- o.Run() }()
	size := 0
	for range 1000 {
		if err := o.Put(t.Context(), []byte("hello")); err != nil {
			t.Fatal(err)
		}
		size += len(frame("hello"))
	}
	close(w.gate)
	o.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if w.writes.Load() > 2 || w.bytes.Load() != int64(size) {
		t.Errorf("%d bytes in %d writes, want %d in at most 2", w.bytes.Load(), w.writes.Load(), size)
	}
}

func TestHugeMessagesPass(t *testing.T) {
	client, _ := pair(t, echo)
	big := raw(`{"t":"` + strings.Repeat("x", 5<<20) + `"}`)
	var got json.RawMessage
	if err := client.Call(t.Context(), "echo", big, &got); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// A peer that reads nothing costs its own connection, and nobody else's.
func TestAStuckPeerDoesNotHinderOthers(t *testing.T) {
	near, far := net.Pipe()
	stuck := New(far, Options{Outbox: 1 << 10})
	start(t, stuck)
	t.Cleanup(func() { near.Close() })
	client, _ := pair(t, func(_ context.Context, req *Request) (any, error) {
		for stuck.TryNotify("n", req.Params) {
		}
		return nil, nil
	})
	for range 100 {
		if err := client.Call(t.Context(), "m", raw(`{"x":1}`), nil); err != nil {
			t.Fatal(err)
		}
	}
}
