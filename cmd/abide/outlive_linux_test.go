package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/client"
)

// pid returns the process of the program itself: the child of its launcher, if it has
// one. abide serve and abide workspace have none, and their children are keepers.
func (p *program) pid() int {
	p.t.Helper()
	if p.Args[1] == "serve" || p.Args[1] == "workspace" {
		return p.Process.Pid
	}
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Process.Pid))
	must(p.t, err)
	child, err := strconv.Atoi(strings.TrimSpace(string(list)))
	must(p.t, err)
	return child
}

// A sharedProvider is a model behind HTTP for several programs. It counts the requests of
// each, and answers when it is told to. The prompt of a program contains its name.
type sharedProvider struct {
	url string

	mu    sync.Mutex
	names []string
	count map[string]int
	asked map[string]chan struct{} // gets a token for each request
	gate  map[string]chan struct{} // closed when requests are answered
	no    map[string]bool          // true when requests are refused
}

func newSharedProvider(t *testing.T, names ...string) *sharedProvider {
	p := &sharedProvider{names: names, count: map[string]int{}, asked: map[string]chan struct{}{}, gate: map[string]chan struct{}{}, no: map[string]bool{}}
	for _, name := range names {
		p.asked[name], p.gate[name] = make(chan struct{}, 10), make(chan struct{})
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *sharedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	for _, name := range p.names {
		if !bytes.Contains(body, []byte("prompt of the "+name)) {
			continue
		}
		p.mu.Lock()
		p.count[name]++
		p.mu.Unlock()
		p.asked[name] <- struct{}{}
		select {
		case <-p.gate[name]:
		case <-r.Context().Done():
			return
		}
		if p.refuses(name) {
			http.Error(w, "refused", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
			`"message":{"role":"assistant","content":"answer to %s"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, name)
	}
}

// refuse refuses the requests of a program.
func (p *sharedProvider) refuse(name string) {
	p.mu.Lock()
	p.no[name] = true
	p.mu.Unlock()
	close(p.gate[name])
}

func (p *sharedProvider) refuses(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.no[name]
}

// requests returns the number of requests of a program.
func (p *sharedProvider) requests(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[name]
}

// prepare prepares a run whose prompt contains its name, in a process group of its own.
func (p *sharedProvider) prepare(t *testing.T, dir, name string, args ...string) *program {
	t.Helper()
	c := command(t, dir, append([]string{"run", "--model", "m", "prompt of the " + name}, args...)...)
	c.Env = append(c.Env, "OPENAI_BASE_URL="+p.url)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// start starts a run as prepare has it, and returns when the model is asked.
func (p *sharedProvider) start(t *testing.T, dir, name string, args ...string) *program {
	t.Helper()
	c := p.prepare(t, dir, name, args...)
	c.begin()
	<-p.asked[name]
	return c
}

// A handle is a process whose end can be awaited, although it is not a child.
type handle struct {
	t  *testing.T
	fd int
}

func watch(t *testing.T, pid int) handle {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return handle{t, fd}
}

// await waits until the process has ended.
func (h handle) await() {
	h.t.Helper()
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			must(h.t, err)
			return
		}
	}
}

// isThere reports whether the process has not ended.
func (h handle) isThere() bool {
	h.t.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, 0)
	must(h.t, err)
	return n == 0
}

// ways are the ways in which a run ends, with its exit code; -1 if it was killed.
var ways = map[string]struct {
	code int
	end  func(t *testing.T, p *program, model *sharedProvider)
}{
	"answered": {0, func(_ *testing.T, _ *program, m *sharedProvider) { close(m.gate["first"]) }},
	"SIGINT":   {130, func(t *testing.T, p *program, _ *sharedProvider) { must(t, p.Process.Signal(syscall.SIGINT)) }},
	"SIGTERM":  {143, func(t *testing.T, p *program, _ *sharedProvider) { must(t, p.Process.Signal(syscall.SIGTERM)) }},
	"SIGHUP":   {129, func(t *testing.T, p *program, _ *sharedProvider) { must(t, p.Process.Signal(syscall.SIGHUP)) }},
	"Ctrl-C": {130, func(t *testing.T, p *program, _ *sharedProvider) {
		must(t, syscall.Kill(-p.Process.Pid, syscall.SIGINT))
	}},
	"hangup": {129, func(t *testing.T, p *program, _ *sharedProvider) {
		must(t, syscall.Kill(-p.Process.Pid, syscall.SIGHUP))
	}},
	"timeout": {143, sendTwice},
	"kill -9": {-1, func(t *testing.T, p *program, _ *sharedProvider) { must(t, p.Process.Kill()) }},
}

// sendTwice ends a program as timeout(1) does: it sends a signal to the process, and then
// to its group.
func sendTwice(t *testing.T, p *program, _ *sharedProvider) {
	must(t, p.Process.Signal(syscall.SIGTERM))
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGTERM) // it may have ended
}

func TestTheEngineOutlivesTheCommandThatStartedItForOthers(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model := newSharedProvider(t, "first", "second", "third")
			first := model.start(t, dir, "first")
			engine := watch(t, first.pid())
			second := model.start(t, dir, "second")
			third := model.start(t, dir, "third")

			way.end(t, first, model)
			if _, code := first.ends(); code != way.code {
				t.Errorf("the first ends with %d, want %d; stderr: %s", code, way.code, first.stderr)
			}
			if !engine.isThere() {
				t.Error("the engine has ended, and two programs wait for an answer")
			}
			for _, other := range []struct {
				*program
				name string
			}{{third, "third"}, {second, "second"}} {
				close(model.gate[other.name])
				if out, code := other.ends(); code != 0 || out != "answer to "+other.name+"\n" {
					t.Errorf("the %s ends with %d and %q; stderr: %s", other.name, code, out, other.stderr)
				}
				if got := model.requests(other.name); got != 1 {
					t.Errorf("the model was asked %d times for the %s", got, other.name)
				}
			}
			if way.code != 0 {
				close(model.gate["first"])
			}
			engine.await()
			if got := model.requests("first"); got != 1 {
				t.Errorf("the model was asked %d times for the first", got)
			}
			checkFolder(t, dir)
		})
	}
}

// checkFolder checks that an engine that has ended has left nothing but what it stores.
func checkFolder(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "home"))
	must(t, err)
	for _, e := range entries {
		switch e.Name() {
		case "abide.db", "abide.db-wal", "abide.db-shm", "lock", "processes", "sessions", "locations.json", "memory", "secrets.key", "sock.token", "token":
		default:
			t.Errorf("%s is left in the data folder", e.Name())
		}
	}
	if got := output(t, dir, "sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("verify: %s", got)
	}
}

func TestAnEngineThatIsKilledIsReplaced(t *testing.T) {
	dir := t.TempDir()
	model := newSharedProvider(t, "first", "second")
	first := model.start(t, dir, "first")
	engine := first.pid()
	second := model.start(t, dir, "second")
	must(t, syscall.Kill(engine, syscall.SIGKILL))
	if _, code := first.ends(); code != -1 {
		t.Errorf("the first ends with %d", code)
	}
	<-model.asked["second"] // it has to be asked again
	close(model.gate["second"])
	if out, code := second.ends(); code != 0 || out != "answer to second\n" {
		t.Errorf("the second ends with %d and %q; stderr: %s", code, out, second.stderr)
	}
	if got := model.requests("second"); got != 2 {
		t.Errorf("the model was asked %d times", got)
	}
	if got := model.requests("first"); got != 1 { // nobody uses that session any more
		t.Errorf("the model was asked %d times for the first", got)
	}
}

func TestAServerThatIsStoppedWaitsForTheWorkOfOthers(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir, "serve")
	server.await("serves .*engine")
	model := newSharedProvider(t, "second")
	second := model.start(t, dir, "second")
	must(t, server.Process.Signal(syscall.SIGTERM))
	close(model.gate["second"])
	if out, code := second.ends(); code != 0 || out != "answer to second\n" {
		t.Errorf("the second ends with %d and %q; stderr: %s", code, out, second.stderr)
	}
	if got := model.requests("second"); got != 1 {
		t.Errorf("the model was asked %d times", got)
	}
	if _, code := server.ends(); code != 143 {
		t.Errorf("the server ends with %d; stderr: %s", code, server.stderr)
	}
}

func TestWorkThatAnotherProgramHasLeftGoesOn(t *testing.T) {
	dir := t.TempDir()
	model := newSharedProvider(t, "first", "second")
	first := model.start(t, dir, "first")
	engine := watch(t, first.pid())
	second := model.start(t, dir, "second")
	must(t, syscall.Kill(second.pid(), syscall.SIGKILL))
	second.ends()
	close(model.gate["first"])
	if out, code := first.ends(); code != 0 || out != "answer to first\n" {
		t.Errorf("the first ends with %d and %q", code, out)
	}
	close(model.gate["second"])
	engine.await()
	if got := output(t, dir, "run", "--continue"); got != "answer to second\n" {
		t.Errorf("the session of the second has the answer %q", got)
	}
	if got := model.requests("second"); got != 1 {
		t.Errorf("the model was asked %d times", got)
	}
	checkFolder(t, dir)
}

// A person who leaves a turn to the engine is told that it goes on. The engine is the run
// of somebody else, whose turn ends in one way or the other.
func TestATurnThatWasLeftGoesOnWhenTheEngineHasNoOwn(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		end  func(t *testing.T, first *program, model *sharedProvider)
	}{
		"Ctrl-C": {130, func(t *testing.T, first *program, _ *sharedProvider) {
			must(t, syscall.Kill(-first.Process.Pid, syscall.SIGINT))
		}},
		"the provider fails": {3, func(_ *testing.T, _ *program, m *sharedProvider) { m.refuse("first") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model := newSharedProvider(t, "first", "second")
			first := model.start(t, dir, "first")
			engine := watch(t, first.pid())
			second := model.start(t, dir, "second", "--detach")
			out, _ := second.ends()
			c.end(t, first, model)
			if _, code := first.ends(); code != c.code {
				t.Errorf("the first ends with %d, want %d; stderr: %s", code, c.code, first.stderr)
			}
			if !engine.isThere() {
				t.Error("the engine has ended, and a turn was left to it")
			}
			close(model.gate["second"])
			engine.await()
			if got := output(t, dir, "run", "--resume", strings.TrimSpace(out)); got != "answer to second\n" {
				t.Errorf("the session of the second has the answer %q", got)
			}
			if got := model.requests("second"); got != 1 {
				t.Errorf("the model was asked %d times", got)
			}
			checkFolder(t, dir)
		})
	}
}

func TestTheEngineOutlivesTheClientOfAnSDKForOthers(t *testing.T) {
	for name, end := range map[string]func(p *program, in io.Closer) error{
		"kill -9": func(p *program, _ io.Closer) error { return p.Process.Kill() },
		"SIGTERM": func(p *program, _ io.Closer) error { return p.Process.Signal(syscall.SIGTERM) },
		"stdin":   func(_ *program, in io.Closer) error { return in.Close() },
	} {
		for _, args := range [][]string{{"--headless", "--stdio"}, {"--headless", "--port", "0"}} {
			if args[1] == "--port" && name == "stdin" {
				continue
			}
			t.Run(name+" "+args[1], func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				first := command(t, dir, args...)
				in, err := first.StdinPipe()
				must(t, err)
				first.begin()
				if args[1] == "--port" {
					first.await("listening on port")
				} else {
					c := client.New(duplex{io.NopCloser(first.out), in}, client.Options{})
					_, err := c.Connect(t.Context(), "")
					must(t, err)
				}
				engine := watch(t, first.pid())
				model := newSharedProvider(t, "second")
				second := model.start(t, dir, "second")
				must(t, end(first, in))
				must(t, ignoreExit(first.Wait()))
				close(model.gate["second"])
				if out, code := second.ends(); code != 0 || out != "answer to second\n" {
					t.Errorf("the second ends with %d and %q; stderr: %s", code, out, second.stderr)
				}
				if got := model.requests("second"); got != 1 {
					t.Errorf("the model was asked %d times", got)
				}
				engine.await()
				checkFolder(t, dir)
			})
		}
	}
}

// ignoreExit returns nil if a program has ended, however it did.
func ignoreExit(err error) error {
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil
	}
	return err
}
