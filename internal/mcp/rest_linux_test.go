package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// newEngine starts an engine on the folders of the ones before, which have ended.
func (w *workplace) newEngine() (e *engine, end func()) {
	w.t.Helper()
	e, err := startEngine(w.dir, w.server)
	if err != nil {
		w.t.Fatal(err)
	}
	return e, func() { e.cancel(); e.Set.Close(); e.Manager.Close() }
}

// runs counts the servers that run.
func (e *engine) runs() (n int) {
	for _, p := range e.Manager.All() {
		if !p.State.Ended() {
			n++
		}
	}
	return n
}

func (e *engine) state(t *testing.T) State {
	t.Helper()
	s, err := e.Set.Get("one")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAServerWhoseToolsAreKnownIsStartedWhenItIsUsed(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		first, end := w.newEngine()
		first.Set.Wait(t.Context())
		if first.runs() != 1 {
			t.Fatalf("a server of which nothing is known does not run: %v", first.state(t))
		}
		first.Set.Forget()
		end()
		idle, end := w.newEngine()
		idle.Set.Wait(t.Context())
		idle.Set.Close()
		if s := idle.state(t); s.Status != Connected || len(idle.Manager.All()) != 1 {
			t.Errorf("when a session that did not use it is closed, it is %v, and there are %d processes", s.Status, len(idle.Manager.All()))
		}
		end()
		e := w.engine()
		e.Set.Wait(t.Context())
		if s := e.state(t); s.Status != Connected || !hasTool(s, "pid") || len(e.Set.Tools(func(string) bool { return false })) != len(s.Tools) {
			t.Fatalf("before it is used: %v with %d tools", s, len(s.Tools))
		}
		if len(e.Manager.All()) != 1 {
			t.Fatalf("it was started although nobody uses it: %+v", e.Manager.All())
		}
		e.pid(t)
		if e.runs() != 1 {
			t.Errorf("%d servers run", e.runs())
		}
	})
}

func TestAServerThatIsStartedByAPersonRuns(t *testing.T) {
	w := newWorkplace(t, "older")
	first, end := w.newEngine()
	first.Set.Wait(t.Context())
	first.Set.Forget()
	end()
	e := w.engine()
	e.Set.Wait(t.Context())
	if err := e.Set.Start("one"); err != nil {
		t.Fatal(err)
	}
	if s := e.state(t); s.Status != Pending {
		t.Errorf("a server that is being started is %v", s)
	}
	e.Set.Wait(t.Context())
	if s := e.state(t); s.Status != Connected || e.runs() != 1 {
		t.Errorf("%v, and %d servers run", s, e.runs())
	}
}

func TestOldListsAreReadAgain(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *workplace){
		"age": func(t *testing.T, w *workplace) {
			all, err := filepath.Glob(w.path("lists/*"))
			if err != nil || len(all) != 1 {
				t.Fatalf("the lists: %v, %v", all, err)
			}
			long := time.Now().Add(-48 * time.Hour)
			if err := os.Chtimes(all[0], long, long); err != nil {
				t.Fatal(err)
			}
		},
		"script": func(t *testing.T, w *workplace) {
			if err := os.WriteFile(w.path("script"), []byte("another one"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, "older")
			w.server.Args = []string{"script"}
			if err := os.WriteFile(w.path("script"), []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			first, end := w.newEngine()
			first.Set.Wait(t.Context())
			first.Set.Forget()
			end()
			change(t, w)
			e := w.engine()
			e.Set.Wait(t.Context())
			if s := e.state(t); !hasTool(s, "pid") {
				t.Errorf("its tools are not offered while it is started: %v", s)
			}
			await(t, "the start of the server", func() bool { return e.runs() == 1 && e.state(t).Status == Connected })
		})
	}
}

func TestAServerThatNobodyUsesIsEnded(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		w.server.IdleMs = 1
		e := w.engine()
		call := func(key string) int {
			t.Helper()
			r, err := e.call(sentRequest{Server: "one", Tool: "pid", Key: key, Arguments: []byte("{}")})()
			n, bad := strconv.Atoi(r.Text)
			if err != nil || bad != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			return n
		}
		first := call("k1")
		if j := openJournal(stateOf(w.dir), "one"); !j.unfinished() {
			t.Error("it is not noted that the result of the call is not stored")
		}
		if err := syscall.Kill(first, 0); err != nil {
			t.Errorf("the server was ended before the result was stored: %v", err)
		}
		e.Set.Settle("one", "k1")
		await(t, "the end of the server", func() bool { return errors.Is(syscall.Kill(first, 0), syscall.ESRCH) })
		if s := e.state(t); s.Status != Connected || !hasTool(s, "pid") {
			t.Errorf("a server that rests is %v", s)
		}
		if call("k2") == first {
			t.Error("it was not started anew")
		}
		e.Set.Settle("one", "k2")
		result := e.call(w.request("k3", false, 0))
		w.awaitBegun()
		w.goOn()
		if r, err := result(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 1 {
			t.Errorf("a call that takes longer than that: %+v, %v, with %d effects", r, err, w.effects())
		}
		e.Set.Settle("one", "k3")
		await(t, "the end of all servers", func() bool { return e.runs() == 0 })
		await(t, "the note of that", func() bool { return openJournal(stateOf(w.dir), "one").process == "" })
	})
}

// sharing opens the servers of a session that shares them.
func (e *engine) sharing(t *testing.T, pool *Pool, session event.SessionID, server Server, env ...string) *Set {
	t.Helper()
	dir := t.TempDir()
	s := Open(Options{Processes: local.New(dir, e.Manager).Processes, Shared: pool}, Surroundings{Session: session, Dir: "/", Env: env, Local: true}, []Server{server}, Events{
		Status: func(string, Status, string) {}, Changed: func(string, event.Type) {},
		Elicit: func(context.Context, string, string, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			t.Error("a server that sessions share asks a person")
			return nil, errors.New("nobody")
		},
	})
	t.Cleanup(s.Close)
	return s
}

func TestSessionsShareAServer(t *testing.T) {
	w := newWorkplace(t, "good")
	e := w.engine()
	w.server.Shared = true
	pool := &Pool{}
	pid := func(s *Set) string {
		t.Helper()
		r, err := s.Call(t.Context(), Request{Server: "one", Tool: "pid", Arguments: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text
	}
	a, b, other := e.sharing(t, pool, "a", w.server), e.sharing(t, pool, "b", w.server), e.sharing(t, pool, "c", w.server, "COLOUR=blue")
	first := pid(a)
	if second := pid(b); second != first {
		t.Errorf("one session uses %s, and the other %s", first, second)
	}
	if third := pid(other); third == first {
		t.Error("sessions with other environments share it")
	}
	if names := b.Tools(func(string) bool { return false }); len(names) == 0 {
		t.Error("the second session has no tools")
	}
	if _, err := a.Call(t.Context(), Request{Server: "one", Tool: "pid", Key: "k1", Arguments: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if c, err := b.client("one"); err != nil || !c.shares().journal.unfinished() {
		t.Errorf("a call whose result is not stored is not known: %v", err)
	}
	a.Settle("one", "k1")
	if c, err := b.client("one"); err != nil || c.shares().journal.unfinished() {
		t.Errorf("a call whose result is stored keeps the server from resting: %v", err)
	}
	if _, err := a.Call(t.Context(), Request{Server: "one", Tool: "ask", Arguments: []byte("{}")}); err == nil {
		t.Error("it has asked a person")
	}
	a.Close()
	if again := pid(b); again != first {
		t.Errorf("it was ended with the first session: %s, and was %s", again, first)
	}
	b.Close()
	n, err := strconv.Atoi(first)
	if err != nil || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
		t.Errorf("it runs although no session uses it: %v", err)
	}
	pid(other)
}

func TestAServerThatIsUsedIsNotEnded(t *testing.T) {
	w := newWorkplace(t, "older")
	e := w.engine()
	e.pid(t)
	c, err := e.Set.client("one")
	if err != nil {
		t.Fatal(err)
	}
	unused := func() { // for a long time
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used = time.Time{}
	}
	if c.leave() {
		t.Fatal("it was used a moment ago, and is ended")
	}
	if _, err := e.call(sentRequest{Server: "one", Tool: "pid", Key: "k1", Arguments: []byte("{}")})(); err != nil {
		t.Fatal(err)
	}
	if unused(); c.leave() {
		t.Fatal("the result of a call is not stored, and it is ended")
	}
	e.Set.Settle("one", "k1")
	_, release, err := c.connection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if unused(); c.leave() {
		t.Fatal("a request is under way, and it is ended")
	}
	release()
	c.ask(1)
	if unused(); c.leave() {
		t.Fatal("a question of it is open, and it is ended")
	}
	c.ask(-1)
	if unused(); !c.leave() {
		t.Error("nobody uses it, and it is not ended")
	}
}

// Nobody repeats the call of the engine that was killed, and the server is gone on with.
func TestAServerThatWasLeftDoesNotRest(t *testing.T) {
	w := newWorkplace(t, "older")
	first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
	w.awaitBegun()
	first.kill()
	w.engine()
	await(t, "the connection of the next engine", func() bool { return openJournal(stateOf(w.dir), "one").connections == 2 })
	w.goOn()
}

// noted are processes that note how often they are told to rest.
type noted struct {
	workspace.Processes
	rests chan time.Duration
}

func (n noted) Rest(ctx context.Context, owner process.Owner, id process.ID, after time.Duration) error {
	n.rests <- after
	return n.Processes.Rest(ctx, owner, id, after)
}

// The keeper of a program is told when the program has nothing to do, so that it ends although
// its engine is gone; and not while a result of a call is not stored.
func TestAKeeperIsToldThatItsProgramRests(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		w.server.IdleMs = 3_600_000
		manager, err := process.Open(t.TempDir(), process.Options{Shell: process.Shell()})
		if err != nil {
			t.Fatal(err)
		}
		defer manager.Close()
		p := noted{local.New(w.dir, manager).Processes, make(chan time.Duration, 10)}
		s := Open(Options{Processes: p}, Surroundings{Session: "s1", Dir: w.dir, Env: os.Environ()}, []Server{w.server}, Events{
			Status: func(string, Status, string) {}, Changed: func(string, event.Type) {},
		})
		defer s.Close()
		s.Wait(t.Context())
		if after := <-p.rests; after != time.Hour {
			t.Errorf("it ends after %v", after)
		}
		if _, err := s.Call(t.Context(), Request{Server: "one", Tool: "pid", Key: "k1", Arguments: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
		if len(p.rests) > 0 {
			t.Error("the keeper is told before the result is stored")
		}
		s.Settle("one", "k1")
		<-p.rests
	})
}

// Lists that were read are not read again while the file is the same one.
func TestListsAreReadOnce(t *testing.T) {
	o := Options{Lists: t.TempDir(), Known: &Known{}}
	one := Server{MCPServer: event.MCPServer{Name: "one"}}
	keep := func(name string) {
		o.keep("f", lists{Tools: []*sdk.Tool{{Name: name, InputSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}})
	}
	read := func() *sdk.Tool {
		t.Helper()
		l, _, ok := o.cached("f")
		if offered := l.offered(one); !ok || len(offered) != 1 || offered[0].Tool != l.Tools[0].Name || string(offered[0].Parameters) != `{"properties":{},"type":"object"}` {
			t.Fatalf("%+v are offered of %+v", offered, l.Tools)
		}
		return l.Tools[0]
	}
	keep("a")
	first := read()
	if again := read(); again != first {
		t.Error("the lists are read again")
	}
	keep("b")
	if next := read(); next.Name != "b" {
		t.Errorf("after a change the tool %s is offered", next.Name)
	}
	one.Tools = []string{"nothing"}
	if l, _, _ := o.cached("f"); len(l.offered(one)) > 0 {
		t.Error("tools are offered that the configuration leaves out")
	}
}
