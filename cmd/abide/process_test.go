package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// A program is abide as a process of its own, on a data folder of the test.
type program struct {
	*exec.Cmd
	t      *testing.T
	out    *bufio.Reader
	stderr *heard
}

// heard is what a program has said so far. A test that fails may read it while the program
// still speaks.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// command prepares a run of the program; dir has the data folder and is the
// working directory.
func command(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	dropIgnoredSignals()
	p := &program{Cmd: exec.CommandContext(t.Context(), "abide", args...), t: t, stderr: new(heard)}
	p.Dir = dir
	p.Env = append(os.Environ(), "ABIDE_HOME="+filepath.Join(dir, "home"), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ABIDE_TOKEN=", "GORACE="+noRaceSleep)
	p.Stderr = p.stderr
	return p
}

// dropIgnoredSignals lets programs be hung up and interrupted, although the tests may run
// under nohup or in the background: signals that are ignored stay so in children, and
// those that are handled do not.
var dropIgnoredSignals = sync.OnceFunc(func() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

// start starts the program. Its stdout is read line by line.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	p := command(t, dir, args...)
	p.begin()
	return p
}

// begin starts a program that was prepared.
func (p *program) begin() {
	p.t.Helper()
	pipe, err := p.StdoutPipe()
	must(p.t, err)
	p.out = bufio.NewReader(pipe)
	must(p.t, p.Start())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await reads lines until one matches, and returns its groups.
func (p *program) await(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		line, err := p.out.ReadString('\n')
		if found := re.FindStringSubmatch(line); found != nil {
			return found
		}
		if err != nil {
			p.t.Fatalf("no line matches %s: %v; stderr: %s", pattern, err, p.stderr)
		}
	}
}

// ends waits for the end and returns the rest of stdout and the exit code.
func (p *program) ends() (string, int) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	must(p.t, err)
	err = p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(rest), p.ProcessState.ExitCode()
}

// output runs the program to its end and returns its stdout; it must succeed.
func output(t *testing.T, dir string, args ...string) string {
	t.Helper()
	p := command(t, dir, args...)
	out, err := p.Output()
	if err != nil {
		t.Fatalf("abide %s: %v; stderr: %s", strings.Join(args, " "), err, p.stderr)
	}
	return string(out)
}

// A provider is a model behind HTTP that does not answer until it is told to.
type provider struct {
	url    string
	asked  chan struct{} // gets a token for each request that is not answered
	answer atomic.Bool
}

func newProvider(t *testing.T) *provider {
	p := &provider{asked: make(chan struct{}, 1)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // it is asked for the window of its model, which it does not know
		http.NotFound(w, r)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if !p.answer.Load() {
		p.asked <- struct{}{}
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":"I took my time"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
}

// busy starts a run whose model does not answer the first request. It answers further
// requests.
func busy(t *testing.T, dir string) (*program, *provider) {
	t.Helper()
	model := newProvider(t)
	p := command(t, dir, "run", "--output-format", "stream-json", "--model", "m", "hello")
	p.Env = append(p.Env, "OPENAI_BASE_URL="+model.url)
	p.begin()
	<-model.asked
	model.answer.Store(true)
	return p, model
}

func TestAKilledRunGoesOnWithTheNextOne(t *testing.T) {
	dir := t.TempDir()
	p, _ := busy(t, dir)
	must(t, p.Process.Kill())
	if _, code := p.ends(); code != -1 {
		t.Errorf("exit code %d of a killed process", code)
	}
	if got := output(t, dir, "run", "--continue"); got != "I took my time\n" {
		t.Errorf("the answer is %q", got)
	}
	if got := output(t, dir, "sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("verify: %s", got)
	}
}

func TestASignalEndsARunAndItsSessionCanBeResumed(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGQUIT: 131, syscall.SIGTERM: 143} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			p, _ := busy(t, dir)
			must(t, p.Process.Signal(signal))
			rest, got := p.ends()
			if got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			if !strings.Contains(rest, `{"type":"result","subtype":"interrupted","is_error":true`) {
				t.Errorf("the stream ends with %s", rest)
			}
			id := regexp.MustCompile(`to continue: abide run --resume (\S+) `).FindStringSubmatch(p.stderr.String())
			if id == nil {
				t.Fatalf("stderr does not say how to go on: %s", p.stderr)
			}
			if got := output(t, dir, "run", "--resume", id[1]); got != "I took my time\n" {
				t.Errorf("the answer is %q", got)
			}
		})
	}
}

func TestAnInterruptEndsTheTurnOfARun(t *testing.T) {
	dir := t.TempDir()
	p, _ := busy(t, dir)
	must(t, p.Process.Signal(syscall.SIGINT))
	rest, code := p.ends()
	if code != 130 || !strings.Contains(rest, `"type":"abort"`) || !strings.Contains(rest, `{"type":"result","subtype":"interrupted","is_error":true`) {
		t.Errorf("exit code %d; the stream ends with %s", code, rest)
	}
	if got := output(t, dir, "sessions", "list"); !strings.Contains(got, "  idle  ") {
		t.Errorf("the session is not idle:\n%s", got)
	}
}

func TestATurnThatWaitsCanBeDropped(t *testing.T) {
	dir := t.TempDir()
	p, model := busy(t, dir)
	model.answer.Store(false)
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
	id := regexp.MustCompile(`abide abort (\S+)\)`).FindStringSubmatch(p.stderr.String())[1]
	output(t, dir, "abort", id)
	if got := output(t, dir, "sessions", "list"); !strings.Contains(got, "  idle  ") {
		t.Errorf("the session is not idle:\n%s", got)
	}
}

func TestARunThatIsStoppedElsewhereHasFailed(t *testing.T) {
	dir := t.TempDir()
	p, _ := busy(t, dir)
	id := p.await(`"session_id":"([^"]+)"`)[1]
	output(t, dir, "abort", id)
	rest, code := p.ends()
	if code != 1 || !strings.Contains(rest, `"is_error":true`) || !strings.Contains(p.stderr.String(), "stopped by another client") {
		t.Errorf("exit code %d, stdout ends with %s; stderr: %s", code, rest, p.stderr)
	}
	again := command(t, dir, "run", "--resume", id) // there is nothing to go on with, and it says what is
	if err := again.Run(); err == nil || !strings.Contains(again.stderr.String(), `the last turn was stopped, and no prompt waits; to go on, send a message: abide run --resume `+id+` "…"`) || strings.Contains(again.stderr.String(), "another client") {
		t.Errorf("abide run --resume: %v, %s", err, again.stderr)
	}
}

func TestARunGoesOnWhenTheEngineIsKilled(t *testing.T) {
	dir := t.TempDir()
	engine := start(t, dir, "serve")
	engine.await("serves .*engine")
	p, _ := busy(t, dir)
	must(t, engine.Process.Kill())
	engine.ends()
	rest, code := p.ends()
	if code != 0 || !strings.Contains(rest, `"result":"I took my time"`) {
		t.Errorf("exit code %d, stdout ends with %s; stderr: %s", code, rest, p.stderr)
	}
}

func TestAQuestionIsAskedAndAnsweredWhereverTheEngineIs(t *testing.T) {
	for _, elsewhere := range []struct{ asked, answered bool }{{false, true}, {true, true}, {true, false}} {
		dir := t.TempDir()
		var engine *program
		serve := func(wanted bool) {
			switch {
			case wanted && engine == nil:
				engine = start(t, dir, "serve")
				engine.await("serves .*engine")
			case !wanted && engine != nil:
				must(t, engine.Process.Signal(syscall.SIGTERM))
				engine.ends()
				engine = nil
			}
		}
		serve(elsewhere.asked)
		p := start(t, dir, "run", "Ask me: Q")
		if _, code := p.ends(); code != 5 {
			t.Fatalf("%+v: exit code %d, want 5; stderr: %s", elsewhere, code, p.stderr)
		}
		id := regexp.MustCompile(`abide answer (\S+) TEXT`).FindStringSubmatch(p.stderr.String())[1]
		serve(elsewhere.answered)
		if got := output(t, dir, "answer", id, "42"); got != "User responded: 42\n" {
			t.Errorf("%+v: the answer is %q", elsewhere, got)
		}
		serve(false)
	}
}

// dial connects to a program that listens.
func dial(t *testing.T, address, token string) (*client.Client, error) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", address)
	must(t, err)
	c := client.New(conn, client.Options{})
	t.Cleanup(func() { c.Close() })
	_, err = c.Connect(t.Context(), token)
	return c, err
}

func refused(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == api.CodeAuthenticationFailed
}

func TestServeLetsOnlyThoseInWhoKnowTheToken(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "serve", "--listen", "127.0.0.1:0")
	address := p.await(`^listening on (\S+)\n`)[1]
	file := p.await(`^token in (\S+)\n`)[1]
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the token file has mode %v", info.Mode())
	}
	token, err := os.ReadFile(file)
	must(t, err)
	for _, wrong := range []string{"", "wrong", string(token)} { // the last one has a line break
		if _, err := dial(t, address, wrong); !refused(err) {
			t.Errorf("with the token %q: %v, want a refusal", wrong, err)
		}
	}
	c, err := dial(t, address, strings.TrimSpace(string(token)))
	must(t, err)
	if pong, err := c.Ping(t.Context(), ""); err != nil || pong.Message != "pong" {
		t.Errorf("ping: %+v, %v", pong, err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	if _, code := p.ends(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	// The token stays the same, so that clients can come back.
	again := start(t, dir, "serve", "--listen", "localhost:0")
	address = again.await(`^listening on (\S+)\n`)[1]
	again.await(`^token in `)
	_, err = dial(t, address, strings.TrimSpace(string(token)))
	must(t, err)
	must(t, again.Process.Signal(syscall.SIGINT))
	if _, code := again.ends(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

func TestServeTakesATokenOfOnesOwn(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("from a file\n"), 0o600))
	for token, args := range map[string][]string{
		"from a file":     {"serve", "--listen", "127.0.0.1:0", "--token-file", "mine"},
		"from a variable": {"serve", "--listen", "127.0.0.1:0"},
	} {
		p := command(t, dir, args...)
		p.Env = append(p.Env, "ABIDE_TOKEN=from a variable")
		p.begin()
		_, err := dial(t, p.await(`^listening on (\S+)\n`)[1], token)
		must(t, err)
		must(t, p.Process.Signal(syscall.SIGTERM))
		p.ends()
	}
}

func TestServeRefusesAddressesThatItCannotHave(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--listen", taken.Addr().String()}, 3, "another program is listening there; choose another port"},
		{[]string{"--listen", "7480"}, 2, "give ADDRESS:PORT"},
		{[]string{"--listen", ":7480"}, 2, "the address is missing: use 127.0.0.1:7480 for this machine only"},
		{[]string{"--listen", "127.0.0.1:http"}, 2, "is not a port"},
		{[]string{"--listen", "127.0.0.1:0", "--token-file", "none"}, 3, "no such file"},
		{[]string{"--listen", "127.0.0.1:0", "--token-file", "empty"}, 3, "is empty"},
	} {
		p := start(t, dir, append([]string{"serve"}, c.args...)...)
		if _, code := p.ends(); code != c.code || !strings.Contains(p.stderr.String(), c.says) {
			t.Errorf("serve %s: exit code %d, %s", strings.Join(c.args, " "), code, p.stderr)
		}
	}
}

func TestHeadlessTCPTellsItsPortAndServesBothLoopbacks(t *testing.T) {
	dir := t.TempDir()
	p := command(t, dir, "--headless", "--no-auto-update")
	p.Env = append(p.Env, "COPILOT_CONNECTION_TOKEN=shared", "COPILOT_HOME="+filepath.Join(dir, "copilot"))
	p.begin()
	port := p.await(`^CLI server listening on port (\d+)\n$`)[1]
	hosts := []string{"127.0.0.1", "localhost"}
	if probe, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		probe.Close()
		hosts = append(hosts, "::1")
	} else {
		t.Logf("::1 is left out: %v", err)
	}
	for _, host := range hosts {
		if _, err := dial(t, net.JoinHostPort(host, port), "wrong"); !refused(err) {
			t.Errorf("%s with a wrong token: %v, want a refusal", host, err)
		}
		_, err := dial(t, net.JoinHostPort(host, port), "shared")
		must(t, err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	if _, code := p.ends(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}

func TestHeadlessTCPNeedsATokenEvenIfNoneWasGiven(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "--headless")
	port := p.await(`listening on port (\d+)`)[1]
	if _, err := dial(t, "127.0.0.1:"+port, ""); !refused(err) {
		t.Errorf("without a token: %v, want a refusal", err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "home", "token"))
	must(t, err)
	_, err = dial(t, "127.0.0.1:"+port, strings.TrimSpace(string(token)))
	must(t, err)
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
	if !strings.Contains(p.stderr.String(), "COPILOT_CONNECTION_TOKEN is not set") {
		t.Errorf("stderr does not say where the token is: %s", p.stderr)
	}
}

func TestHeadlessStdioServesUntilItsClientLeavesOrASignalComes(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*program, io.Closer) error
		code  int
	}{
		"leaves": {func(_ *program, in io.Closer) error { return in.Close() }, 0},
		"signal": {func(p *program, _ io.Closer) error { return p.Process.Signal(syscall.SIGTERM) }, 143},
	} {
		t.Run(name, func(t *testing.T) {
			p := command(t, t.TempDir(), "--headless", "--stdio")
			in, err := p.StdinPipe()
			must(t, err)
			out, err := p.StdoutPipe()
			must(t, err)
			must(t, p.Start())
			client := client.New(duplex{out, in}, client.Options{})
			hello, err := client.Connect(t.Context(), "")
			if err != nil || hello.Version != "dev" {
				t.Fatalf("connect: %+v, %v", hello, err)
			}
			must(t, c.leave(p, in))
			<-client.Done()
			client.Close()
			p.Wait()
			if code := p.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d; stderr: %s", code, c.code, p.stderr)
			}
		})
	}
}

func TestHeadlessAllowsEverythingOnlyIfItIsToldTo(t *testing.T) {
	for args, want := range map[string]string{"--headless --stdio": "", "--yolo --headless --stdio": "X\n"} {
		dir := t.TempDir()
		p := command(t, dir, strings.Fields(args)...)
		p.Path = lookPath(t, "abide-tools")
		p.Args[0] = "abide-tools"
		in, err := p.StdinPipe()
		must(t, err)
		out, err := p.StdoutPipe()
		must(t, err)
		must(t, p.Start())
		c := client.New(duplex{out, in}, client.Options{})
		_, err = c.Connect(t.Context(), "")
		must(t, err)
		events := c.Watch("s")
		_, err = c.Create(t.Context(), api.OpenParams{SessionID: "s"})
		must(t, err)
		_, err = c.Send(t.Context(), api.SendParams{SessionID: "s", Prompt: "Use note with value 'X', then reply with the result"})
		must(t, err)
		for kind := event.Type(""); kind != event.SessionIdle; {
			e, err := events.Next(t.Context())
			must(t, err)
			kind = e.Type
		}
		c.Close()
		p.Wait()
		if got := notes(t, dir); got != want {
			t.Errorf("%s: the notes are %q, want %q", args, got, want)
		}
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	must(t, err)
	return path
}

func notes(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// duplex makes a connection of two pipes.
type duplex struct {
	io.Reader
	io.WriteCloser
}

func TestAReaderThatLeavesIsNoFault(t *testing.T) {
	dir := t.TempDir()
	output(t, dir, "run", "Reply with exactly: X")
	for _, args := range [][]string{{"sessions", "list"}, {"run", "Reply with exactly: Y"}, {"run", "--output-format", "stream-json", "Reply with exactly: Z"}} {
		read, write, err := os.Pipe()
		must(t, err)
		must(t, read.Close())
		p := command(t, dir, args...)
		p.Stdout = write
		p.Run()
		write.Close()
		if code := p.ProcessState.ExitCode(); code != 141 || strings.Contains(p.stderr.String(), "panic") || strings.Contains(p.stderr.String(), "pipe") {
			t.Errorf("%v: exit code %d, stderr: %s", args, code, p.stderr)
		}
	}
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	p := command(t, t.TempDir(), "run", "Reply with exactly: X")
	p.Stdout = full
	p.Run()
	if code := p.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), "abide: cannot write the output: ") {
		t.Errorf("exit code %d, stderr: %s", code, p.stderr)
	}
}

func TestInheritedStdinIsReadByRunAlone(t *testing.T) {
	read, write, err := os.Pipe() // nobody ever writes to it or closes it
	must(t, err)
	defer read.Close()
	defer write.Close()
	dir := t.TempDir()
	output(t, dir, "run", "Reply with exactly: X")
	listed := ""
	for _, args := range [][]string{{"sessions", "list", "--json"}, {"questions"}} {
		p := command(t, dir, args...)
		p.Stdin = read
		out, err := p.Output()
		if err != nil {
			t.Errorf("%v: %v; stderr: %s", args, err, p.stderr)
		}
		listed += string(out)
	}
	if !strings.Contains(listed, `"sessionId"`) {
		t.Errorf("no session was listed: %s", listed)
	}
}

func TestASecondSignalDoesNotWait(t *testing.T) {
	// The first signal is never acted upon: the program is stopped meanwhile.
	dir := t.TempDir()
	p, _ := busy(t, dir)
	must(t, p.Process.Signal(syscall.SIGSTOP))
	must(t, p.Process.Signal(syscall.SIGTERM))
	must(t, p.Process.Signal(syscall.SIGQUIT))
	must(t, p.Process.Signal(syscall.SIGCONT))
	_, code := p.ends()
	if code != 131 && code != 143 {
		t.Errorf("exit code %d, want 131 or 143", code)
	}
	if got := output(t, dir, "run", "--continue"); got != "I took my time\n" {
		t.Errorf("the answer is %q", got)
	}
}

// A client has made a session that cannot be set to allow everything. Who tries to is told.
func TestYoloThatHasNoEffectSaysSo(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "serve", "--listen", "127.0.0.1:0")
	address := p.await(`^listening on (\S+)\n`)[1]
	token, err := os.ReadFile(p.await(`^token in (\S+)\n`)[1])
	must(t, err)
	c, err := dial(t, address, strings.TrimSpace(string(token)))
	must(t, err)
	for id, managed := range map[event.SessionID]bool{"free": false, "managed": true} {
		o := api.OpenParams{SessionID: id, Model: "offline", WorkingDirectory: dir}
		if managed {
			o.ManagedSettings = json.RawMessage(`{"permissions":{"disableBypassPermissionsMode":"disable"}}`)
		}
		_, err = c.Create(t.Context(), o)
		must(t, err)
		run := command(t, dir, "run", "--resume", string(id), "--yolo", "Reply with exactly: HI")
		must(t, run.Run())
		if said := strings.Contains(run.stderr.String(), "--yolo has no effect"); said != managed {
			t.Errorf("%s: %s", id, run.stderr)
		}
	}
}
