package relay

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A routedEngine is an engine behind a router. It notes which requests it gets, and answers what its
// function says.
type routedEngine struct {
	name   string
	answer func(e *routedEngine, method, session string) (any, error)

	mu    sync.Mutex
	conn  *jsonrpc.Conn // the connection that was made last
	heard []string
}

func (e *routedEngine) connect(work *sync.WaitGroup) net.Conn {
	ours, theirs := net.Pipe()
	conn := jsonrpc.New(theirs, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(e.handle)})
	e.mu.Lock()
	e.conn = conn
	e.mu.Unlock()
	work.Go(func() { _ = conn.Run(context.Background()) }) // it ends with the router
	return ours
}

func (e *routedEngine) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	var p struct{ SessionID string }
	_ = json.Unmarshal(req.Params, &p) // a request without a session has none
	e.mu.Lock()
	e.heard = append(e.heard, strings.TrimSuffix(req.Method+" "+p.SessionID, " "))
	e.mu.Unlock()
	return e.answer(e, req.Method, p.SessionID)
}

func (e *routedEngine) has(text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.heard {
		if h == text {
			n++
		}
	}
	return n
}

// works answers with the name of the engine.
func works(e *routedEngine, _, _ string) (any, error) { return map[string]string{"at": e.name}, nil }

// elsewhere is the error for a session of another engine.
func elsewhere(server string) error {
	fault := jsonrpc.Errorf(codeElsewhere, "another server works on the session")
	fault.Data = json.RawMessage(`{"server":"` + server + `","address":"address of ` + server + `"}`)
	return fault
}

// routed calls test with a client whose requests are routed to home and to other engines.
func routed(t *testing.T, home *routedEngine, others map[string]*routedEngine, test func(c *jsonrpc.Conn, ended <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		r := Router{
			Home: func() net.Conn { return home.connect(&work) },
			Dial: func(_ context.Context, server, address string) (net.Conn, error) {
				if other := others[server]; other != nil && address == "address of "+server {
					return other.connect(&work), nil
				}
				return nil, errors.New("no route to host")
			},
			Log: slog.New(slog.DiscardHandler),
		}
		ours, theirs := net.Pipe()
		c := jsonrpc.New(ours, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, req *jsonrpc.Request) (any, error) {
			return json.RawMessage(req.Params), nil // the client answers an engine with what it was asked
		})})
		ended := make(chan error, 1)
		work.Go(func() { ended <- r.Run(context.Background(), theirs) })
		work.Go(func() { _ = c.Run(context.Background()) }) // it ends with the router
		test(c, ended)
		c.Close()
		work.Wait()
	})
}

// at returns the engine that has answered a request.
func at(t *testing.T, c *jsonrpc.Conn, method, session string) string {
	t.Helper()
	var answer struct{ At string }
	if err := c.Call(context.Background(), method, map[string]string{"sessionId": session}, &answer); err != nil {
		t.Errorf("%s %s: %v", method, session, err)
	}
	return answer.At
}

func TestARequestGoesToTheServerThatWorksOnTheSession(t *testing.T) {
	home := &routedEngine{name: "home", answer: func(e *routedEngine, method, session string) (any, error) {
		if session == "theirs" {
			return nil, elsewhere("b")
		}
		return works(e, method, session)
	}}
	b := &routedEngine{name: "b", answer: works}
	routed(t, home, map[string]*routedEngine{"b": b}, func(c *jsonrpc.Conn, _ <-chan error) {
		if err := c.Call(context.Background(), "connect", map[string]any{"abide": map[string]any{}}, nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := at(t, c, "session.send", "theirs"); got != "b" {
				t.Errorf("a request for a session of another server is answered by %s", got)
			}
			if got := at(t, c, "session.send", "ours"); got != "home" {
				t.Errorf("a request for a session of this server is answered by %s", got)
			}
		}
		if n := home.has("session.send theirs"); n != 1 {
			t.Errorf("home is asked %d times about a session of another server", n)
		}
		if b.has("connect") != 1 {
			t.Error("the settings of the client are not repeated")
		}
		// Both engines ask the client, with the same ids.
		var wg sync.WaitGroup
		for _, e := range []*routedEngine{home, b} {
			wg.Go(func() {
				var answer map[string]string
				if err := e.conn.Call(context.Background(), "userInput.request", map[string]string{"of": e.name}, &answer); err != nil || answer["of"] != e.name {
					t.Errorf("%s is answered %v, %v", e.name, answer, err)
				}
			})
		}
		wg.Wait()
	})
}

// A lost server ends the connection: the relay in front connects again.
func TestALostServerEndsTheConnection(t *testing.T) {
	home := &routedEngine{name: "home", answer: func(*routedEngine, string, string) (any, error) { return nil, elsewhere("b") }}
	b := &routedEngine{name: "b", answer: works}
	routed(t, home, map[string]*routedEngine{"b": b}, func(c *jsonrpc.Conn, ended <-chan error) {
		at(t, c, "session.send", "s")
		b.conn.Close()
		if err := <-ended; !errors.Is(err, errLost) {
			t.Errorf("the connection ends with %v", err)
		}
	})
}

func TestAServerThatCannotBeReachedIsWaitedFor(t *testing.T) {
	var mu sync.Mutex
	taken := false // true when home has taken the session over
	home := &routedEngine{name: "home", answer: func(e *routedEngine, method, session string) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if session == "theirs" && !taken {
			return nil, elsewhere("gone")
		}
		return works(e, method, session)
	}}
	routed(t, home, nil, func(c *jsonrpc.Conn, _ <-chan error) {
		began := time.Now()
		err := c.Call(context.Background(), "session.send", map[string]string{"sessionId": "theirs"}, nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "try again") || !strings.Contains(err.Error(), "address of gone") || took < routeTime || took > routeTime+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		// Attaching a client again keeps nobody waiting, and goes on until it succeeds.
		if err := c.Call(context.Background(), "abide.attach", map[string]string{"sessionId": "theirs"}, nil); err != nil {
			t.Error(err)
		}
		if got := at(t, c, "session.send", "ours"); got != "home" {
			t.Errorf("another session is answered by %s", got)
		}
		time.AfterFunc(14*time.Second, func() { mu.Lock(); taken = true; mu.Unlock() })
		if got := at(t, c, "session.send", "theirs"); got != "home" {
			t.Errorf("a request that waits for the takeover is answered by %s", got)
		}
		before := home.has("abide.attach theirs")
		time.Sleep(time.Minute)
		if after := home.has("abide.attach theirs"); after > before+1 {
			t.Errorf("the client was attached, and %d attempts followed", after-before)
		}
	})
}

// A server that has given the session away says so, and the session is looked for again.
func TestASessionThatMovesOnIsFollowed(t *testing.T) {
	var mu sync.Mutex
	owner := "b"
	home := &routedEngine{name: "home", answer: func(*routedEngine, string, string) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		return nil, elsewhere(owner)
	}}
	b := &routedEngine{name: "b", answer: func(e *routedEngine, method, session string) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if owner != "b" {
			return nil, elsewhere(owner)
		}
		return works(e, method, session)
	}}
	c2 := &routedEngine{name: "c", answer: works}
	routed(t, home, map[string]*routedEngine{"b": b, "c": c2}, func(c *jsonrpc.Conn, _ <-chan error) {
		if got := at(t, c, "session.send", "s"); got != "b" {
			t.Errorf("it is answered by %s", got)
		}
		mu.Lock()
		owner = "c"
		mu.Unlock()
		for range 2 {
			if got := at(t, c, "session.send", "s"); got != "c" {
				t.Errorf("it is answered by %s", got)
			}
		}
	})
}
