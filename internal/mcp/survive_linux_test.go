package mcp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// A workplace is the folders of an engine, and what a call of the tool work does there.
type workplace struct {
	t      *testing.T
	dir    string
	server Server
}

func newWorkplace(t *testing.T, mode string) *workplace {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &workplace{t, dir, Server{
		MCPServer: event.MCPServer{Name: "one", Type: Stdio, Command: program},
		Secret:    Secret{Env: map[string]string{serverVariable: mode}},
	}}
	for _, name := range []string{"begun", "go"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *workplace) path(name string) string { return filepath.Join(w.dir, name) }

// request returns a call of the tool work.
func (w *workplace) request(key string, again bool, pad int) sentRequest {
	w.t.Helper()
	args, err := json.Marshal(work{w.path("effects"), w.path("begun"), w.path("go"), strings.Repeat("x", pad)})
	if err != nil {
		w.t.Fatal(err)
	}
	return sentRequest{Server: "one", Tool: "work", Key: key, Again: again, Arguments: args}
}

// awaitBegun waits until the tool has had its effect.
func (w *workplace) awaitBegun() {
	w.t.Helper()
	if _, err := os.ReadFile(w.path("begun")); err != nil {
		w.t.Fatal(err)
	}
}

// goOn lets the tool end.
func (w *workplace) goOn() {
	w.t.Helper()
	if err := os.WriteFile(w.path("go"), []byte("well"), 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workplace) effects() int {
	text, err := os.ReadFile(w.path("effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// engine starts an engine in this process.
func (w *workplace) engine() *engine {
	w.t.Helper()
	e, err := startEngine(w.dir, w.server)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { e.cancel(); e.Set.Close(); e.Manager.Close() })
	return e
}

// call makes a call that is not waited for.
func (e *engine) call(q sentRequest) (result func() (Result, error)) {
	type outcome struct {
		r   Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := e.Set.Call(e.ctx, q.request())
		done <- outcome{r, err}
	}()
	return func() (Result, error) { o := <-done; return o.r, o.err }
}

func (e *engine) pid(t *testing.T) int {
	t.Helper()
	r, err := e.Set.Call(e.ctx, Request{Server: "one", Tool: "pid", Arguments: json.RawMessage("{}")})
	n, bad := strconv.Atoi(r.Text)
	if err != nil || bad != nil {
		t.Fatalf("the process of the server: %+v, %v", r, err)
	}
	return n
}

// eachMode tests with a server of the newest protocol and with one of an older.
func eachMode(t *testing.T, f func(t *testing.T, mode string)) {
	for _, mode := range []string{"good", "older"} {
		t.Run(mode, func(t *testing.T) { t.Parallel(); f(t, mode) })
	}
}

func TestACallGoesOnWithoutTheEngine(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
		w.awaitBegun()
		first.kill()
		w.goOn()
		e := w.engine()
		r, err := e.call(w.request("k1", true, 0))()
		if err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 1 {
			t.Fatalf("the late answer: %+v, %v, with %d effects", r, err, w.effects())
		}
		e.Set.Settle("one", "k1")
		again := e.call(w.request("k2", false, 0))
		w.awaitBegun()
		w.goOn()
		if r, err := again(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 2 {
			t.Fatalf("the next call: %+v, %v, with %d effects", r, err, w.effects())
		}
	})
}

// The second engine is killed, too, while the call is under way, and the third asks before the
// server answers. Nothing is sent again, and the ids of the other requests are new ones.
func TestACallGoesOnWithoutTwoEngines(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
		w.awaitBegun()
		first.kill()
		second := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", true, 0)})
		await(t, "the connection of the second engine", func() bool { return openJournal(stateOf(w.dir), "one").connections == 2 })
		second.kill()
		e := w.engine()
		result := e.call(w.request("k1", true, 0))
		w.goOn()
		if r, err := result(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 1 {
			t.Fatalf("the late answer: %+v, %v, with %d effects", r, err, w.effects())
		}
	})
}

func TestAnEngineThatLeavesLeavesItsCalls(t *testing.T) {
	w := newWorkplace(t, "older")
	e, err := startEngine(w.dir, w.server)
	if err != nil {
		t.Fatal(err)
	}
	pid := e.pid(t)
	result := e.call(w.request("k1", false, 0))
	w.awaitBegun()
	e.Close()
	if _, err := result(); err == nil {
		t.Error("the call has a result without an answer")
	}
	w.goOn()
	next := w.engine()
	if r, err := next.call(w.request("k1", true, 0))(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 1 {
		t.Fatalf("the late answer: %+v, %v, with %d effects", r, err, w.effects())
	}
	if now := next.pid(t); now != pid {
		t.Errorf("it is process %d and was %d", now, pid)
	}
	next.Set.Settle("one", "k1")
	next.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a server without calls still runs: %v", err)
	}
	if left, err := os.ReadDir(stateOf(w.dir)); err == nil && len(left) > 1 {
		t.Errorf("what is left: %v", left)
	}
}

func TestWithoutItsServerACallIsUnknown(t *testing.T) {
	w := newWorkplace(t, "older")
	first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
	w.awaitBegun()
	first.kill()
	e := w.engine()
	pid := e.pidOf(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := e.call(w.request("k1", true, 0))(); err == nil || Answered(err) {
		t.Fatalf("the call has a result: %v", err)
	}
	for range 2 { // also with the process that was started in the place of the other
		if _, err := e.call(w.request("k1", true, 0))(); !errors.Is(err, ErrUnknown) || w.effects() != 1 {
			t.Fatalf("the call of a server that has ended: %v, with %d effects", err, w.effects())
		}
	}
	e.pid(t)
}

// pidOf returns the process of the server without a call.
func (e *engine) pidOf(t *testing.T) int {
	t.Helper()
	e.Set.Wait(t.Context())
	list := e.Manager.All()
	for _, p := range list {
		if !p.State.Ended() {
			return p.PID
		}
	}
	t.Fatalf("no server runs: %+v", list)
	return 0
}

// What was never sent is sent, if the process is the one that it would have been sent to.
func TestACallThatWasNotSentIsMade(t *testing.T) {
	w := newWorkplace(t, "older")
	first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
	w.awaitBegun()
	first.kill()
	w.goOn()
	e := w.engine()
	result := e.call(w.request("k2", true, 0))
	w.awaitBegun()
	w.goOn()
	if r, err := result(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 2 {
		t.Fatalf("%+v, %v, with %d effects", r, err, w.effects())
	}
}

func TestACallThatMayBeRepeatedIs(t *testing.T) {
	w := newWorkplace(t, "older")
	w.server.Repeatable = []string{"work"}
	first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 0)})
	w.awaitBegun()
	first.kill()
	w.server.Args = []string{"another", "configuration"}
	e := w.engine()
	result := e.call(w.request("k1", true, 0))
	w.awaitBegun()
	w.goOn()
	if r, err := result(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 2 {
		t.Fatalf("%+v, %v, with %d effects", r, err, w.effects())
	}
	await(t, "the end of the server with the old configuration", func() bool {
		running := 0
		for _, p := range e.Manager.All() {
			if !p.Gone {
				running++
			}
		}
		return running == 1
	})
}

func TestAQuestionOfAServerOutlivesTheEngine(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		ask := sentRequest{Server: "one", Tool: "ask", Key: "k1", Arguments: json.RawMessage("{}")}
		first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: ask})
		key := first.line("asked")
		first.kill()
		if key == "" {
			t.Fatal("the question has no key")
		}
		ask.Again = true
		e := w.engine()
		result := e.call(ask)
		if again := <-e.Questions; again != key {
			t.Errorf("the question has the key %q and had %q", again, key)
		}
		e.Answers <- "green"
		if r, err := result(); err != nil || !strings.Contains(r.Text, "green") {
			t.Fatalf("%+v, %v", r, err)
		}
		e.Set.Settle("one", "k1")
		e.pid(t) // a server that got a second answer has ended
	})
}

// The engine is killed when the answer was sent and nothing of the result is stored.
func TestAnAnswerIsNotGivenTwice(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		w := newWorkplace(t, mode)
		ask := sentRequest{Server: "one", Tool: "ask", Key: "k1", Arguments: json.RawMessage("{}")}
		first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: ask, Answers: []string{"green"}})
		if got := first.line("result"); !strings.Contains(got, "green") {
			t.Fatalf("the result is %q", got)
		}
		first.kill()
		ask.Again = true
		e := w.engine()
		e.Answers <- "green" // the session gives the answer that is stored
		r, err := e.call(ask)()
		if err != nil || !strings.Contains(r.Text, "green") {
			t.Fatalf("%+v, %v", r, err)
		}
		e.Set.Settle("one", "k1")
		e.pid(t)
	})
}

func TestALongCallIsNotTakenForTheRestOfAnother(t *testing.T) {
	w := newWorkplace(t, "older")
	first := startKillableEngine(t, engineOrder{Dir: w.dir, Server: w.server, Request: w.request("k1", false, 100_000)})
	w.awaitBegun()
	first.kill()
	w.goOn()
	if j := openJournal(stateOf(w.dir), "one"); !j.torn() { // the engine was killed before it noted the end, perhaps
		if r, err := w.engine().call(w.request("k1", true, 100_000))(); err != nil || !strings.HasPrefix(r.Text, "done well") || w.effects() != 1 {
			t.Fatalf("%+v, %v, with %d effects", r, err, w.effects())
		}
	}
	j := openJournal(stateOf(w.dir), "one")
	if err := j.send("k9", 2); err != nil {
		t.Fatal(err)
	}
	if !openJournal(stateOf(w.dir), "one").torn() {
		t.Error("a call that was written in part is not known")
	}
	if err := j.wrote("k9"); err != nil {
		t.Fatal(err)
	}
	if openJournal(stateOf(w.dir), "one").torn() {
		t.Error("a call that was written to its end counts as written in part")
	}
}

// More is printed on standard error, in the middle of a line, than is kept of the output.
func TestErrorsInTheMiddleOfALineDoNotStopAServer(t *testing.T) {
	w := newWorkplace(t, "older")
	e := w.engine()
	r, err := e.call(sentRequest{Server: "one", Tool: "flood", Key: "k1", Arguments: json.RawMessage("{}")})()
	if err != nil || r.Text != "dry" {
		t.Fatalf("%+v, %v", r, err)
	}
	e.Set.Settle("one", "k1")
	e.pid(t)
}

func TestAnAnswerThatIsNoResultIsNotTheEndOfAServer(t *testing.T) {
	w := newWorkplace(t, "older")
	e := w.engine()
	pid := e.pid(t)
	if r, err := e.call(sentRequest{Server: "one", Tool: "odd", Key: "k1", Arguments: json.RawMessage("{}")})(); !errors.Is(err, ErrUnreadable) {
		t.Fatalf("%+v, %v", r, err)
	}
	if now := e.pid(t); now != pid {
		t.Errorf("it is process %d and was %d", now, pid)
	}
}

// A question of a server is open, and meanwhile it prints nothing but short lines.
func TestMarksOfAFloodOfLinesAreFew(t *testing.T) {
	c := &pipe{program: &program{journal: &journal{}}, marks: marks{waiting: make(map[string]*mark)}}
	c.await("question", c.mark(10, 1))
	for i := range int64(1000) {
		c.mark(11+2*i, 0)
		c.done(c.mark(12+2*i, 1))
	}
	if n := len(c.marks.list); n > 2 || c.marks.at != 0 {
		t.Errorf("%d marks, and %d bytes are carried out", n, c.marks.at)
	}
	last := c.mark(5000, 1)
	c.settleMark("question")
	if c.marks.at != 12+2*999 && c.marks.at != 10 {
		t.Errorf("when the question is answered, %d bytes are carried out", c.marks.at)
	}
	c.done(last)
	if c.marks.at != 5000 || len(c.marks.list) != 0 {
		t.Errorf("in the end %d bytes are carried out, and there are %d marks", c.marks.at, len(c.marks.list))
	}
}
