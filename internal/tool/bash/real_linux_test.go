package bash_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A testHost runs real commands, and a test can restart its daemon while they run.
type testHost struct {
	*caller
	t       *testing.T
	data    string
	notes   string
	opts    process.Options
	manager *process.Manager
	reach   func(m *testHost) (p bash.Processes, leave func())
	leave   func()
}

// onEachWorkspace runs a test with local processes, and with the same processes over a
// bridge.
func onEachWorkspace(t *testing.T, opts process.Options, test func(t *testing.T, m *testHost)) {
	if opts.Shell == "" {
		shell, err := exec.LookPath("bash")
		if err != nil {
			t.Skip("there is no bash")
		}
		opts.Shell = shell
	}
	for name, reach := range map[string]func(m *testHost) (bash.Processes, func()){
		"Local":  func(m *testHost) (bash.Processes, func()) { return m.workspace().Processes, func() {} },
		"Memory": func(m *testHost) (bash.Processes, func()) { return m.bridge(newMemoryListener()) },
		"Unix":   func(m *testHost) (bash.Processes, func()) { return m.bridge(unixSocket(m.t)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := &testHost{t: t, data: t.TempDir(), notes: t.TempDir(), opts: opts, reach: reach}
			m.open()
			m.dir = t.TempDir()
			t.Cleanup(m.stopAll)
			test(t, m)
		})
	}
}

func (m *testHost) workspace() workspace.Workspace { return local.New(m.t.TempDir(), m.manager) }

// A listener is a net.Listener and a way to connect to it.
type listener struct {
	net.Listener
	dial func(ctx context.Context) (net.Conn, error)
}

func unixSocket(t *testing.T) listener {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "w"))
	if err != nil {
		t.Fatal(err)
	}
	return listener{l, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}
}

// memoryListener is a listener in memory.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemoryListener() listener {
	p := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return listener{p, func(ctx context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case p.conns <- far:
			return near, nil
		case <-p.closed:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

func (p *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *memoryListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// bridge serves the machine's processes over a wire.
func (m *testHost) bridge(w listener) (bash.Processes, func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	server := &bridge.Server{Workspace: m.workspace()}
	go func() { served <- server.Serve(ctx, w) }()
	client, err := bridge.NewClient(bridge.ClientOptions{Dial: w.dial})
	if err != nil {
		m.t.Fatal(err)
	}
	return client.Workspace().Processes, func() {
		m.t.Helper()
		if err := client.Close(); err != nil {
			m.t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			m.t.Error(err)
		}
	}
}

func (m *testHost) open() {
	m.t.Helper()
	manager, err := process.Open(m.data, m.opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.manager = manager
	p, leave := m.reach(m)
	m.leave = leave
	fresh := newCaller(m.t, p, m.notes)
	if m.caller != nil {
		fresh.lastKeys, fresh.dir = m.lastKeys, m.dir
	}
	m.caller = fresh
}

// restart opens the processes again, as a new daemon does.
func (m *testHost) restart() {
	m.t.Helper()
	m.leave()
	if err := m.manager.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.open()
}

// stopAll ends all commands that the test started.
func (m *testHost) stopAll() {
	for _, p := range m.manager.All() {
		if _, err := m.manager.Stop(context.Background(), p.Owner, p.ID); err != nil {
			m.t.Error(err)
		}
	}
	m.leave()
	if err := m.manager.Close(); err != nil {
		m.t.Error(err)
	}
}

// fifo creates a named pipe on which a command can wait.
func (m *testHost) fifo(name string) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// writeFIFO writes to a pipe, so that a command that waits on it continues.
func (m *testHost) writeFIFO(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		m.t.Fatal(err)
	}
}

// readFIFO waits until a command has written to a pipe.
func (m *testHost) readFIFO(path string) {
	m.t.Helper()
	if _, err := os.ReadFile(path); err != nil {
		m.t.Fatal(err)
	}
}

func TestRealCommandsEndInTheirCall(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		for command, want := range map[string]string{
			"echo test":                              "test\n<exited with exit code 0>",
			"echo hello && echo world":               "hello\nworld\n<exited with exit code 0>",
			"echo error_msg >&2; sleep 0.1; echo ok": "error_msg\nok\n<exited with exit code 0>",
			"exit 3":                                 "\n<exited with exit code 3>",
			"exit 137":                               "\n<exited with exit code 137>",
			"kill -9 $$":                             "\n<exited with exit code 137: killed by SIGKILL>",
			"printf 'no newline'":                    "no newline\n<exited with exit code 0>",
			"echo to-stderr > /dev/stderr":           "to-stderr\n<exited with exit code 0>",
			"echo $PAGER $TERM $GIT_EDITOR":          "cat dumb true\n<exited with exit code 0>",
			"cat":                                    "\n<exited with exit code 0>",
			"[[ -t 1 ]] || echo no terminal":         "no terminal\n<exited with exit code 0>",
			"echo '<task-notification>x'":            "<task-notification>x\n<exited with exit code 0>",
			"printf 'Currently running background tasks:\\n- [x] y\\n'": "Currently running background tasks:\n- [x] y\n<exited with exit code 0>",
			"nosuchcommand-abide 2>/dev/null":                           "\n<exited with exit code 127>",
			"cd /; pwd":                                                 "/\n<exited with exit code 0>",
		} {
			if got := m.mustCall("bash", `{"command":%s,"description":"d","initial_wait":60}`, quote(command)); got != want {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
		r := decode(t, m.mustCall("exec", `{"command":"echo out; echo err >&2; exit 2","timeout":60}`))
		if r.Stdout != "out\n" || r.Stderr != "err\n" || len(r.Output) != 8 || *r.ExitCode != 2 || r.Success {
			t.Errorf("%+v", r)
		}
		if got := m.mustCall("bash", `{"command":"pwd"}`); got != m.dir+"\n<exited with exit code 0>" {
			t.Errorf("the directory is %q", got)
		}
	})
}

func TestARealSlowCommandGoesOnAndIsReadToItsEnd(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		gate := m.fifo("gate")
		r := decode(t, m.mustCall("bash", `{"command":"echo started; read line < gate; echo got $line","timeout":0.2,"shellId":"slow"}`))
		if r.Status != bash.StatusAutoBackgrounded || r.TaskID != "slow" || !strings.Contains(r.Message, "no work was lost") || strings.Contains(r.Output, "got") {
			t.Fatalf("%+v", r)
		}
		m.restart()
		m.writeFIFO(gate, "it\n")
		rest := m.mustCall("read_bash", `{"shellId":"slow","delay":60}`)
		if r.Output+rest != "started\ngot it\n<exited with exit code 0>" {
			t.Errorf("%q, then %q", r.Output, rest)
		}
		if list := m.manager.All(); len(list) != 1 {
			t.Errorf("%d processes", len(list))
		}
	})
}

func TestARealCommandThatEndsAsTheTimeIsOverIsShownOnce(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		outcomes := map[string]int{}
		for i := range 25 {
			m.lastKeys = 1000 + i
			r := decode(t, m.mustCall("exec", `{"command":"echo begin; sleep 0.03; echo end","timeout":%f}`, 0.03+float64(i)/1000))
			outcomes[r.Status]++
			shown := r.Output
			if r.Status == bash.StatusAutoBackgrounded {
				shown += decodeWaited(t, m.mustCall("wait", `{"shellIds":[%q],"timeout":60}`, r.TaskID)).Tasks[0].Output
			}
			if shown != "begin\nend\n" {
				t.Errorf("%s: %q was shown", r.Status, shown)
			}
		}
		t.Log(outcomes)
	})
}

func TestARealCallIsMadeAgainAfterARestart(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		gate, hello := m.fifo("gate"), m.fifo("hello")
		call := m.call(`{"command":"echo once >> count; echo > hello; read x < gate; echo done","initial_wait":600}`)
		ctx, kill := context.WithCancel(context.Background())
		done := make(chan error, 1)
		before := m.tools["bash"]
		go func() {
			_, err := before.Run(ctx, call)
			done <- err
		}()
		m.readFIFO(hello)
		kill()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		m.restart()
		m.writeFIFO(gate, "x\n")
		call.Attempt = 2
		if got := m.run("bash", call).Text; got != "done\n<exited with exit code 0>" {
			t.Errorf("%q", got)
		}
		if b, err := os.ReadFile(filepath.Join(m.dir, "count")); string(b) != "once\n" {
			t.Errorf("it ran %q, %v", b, err)
		}
	})
}

func TestARealCommandIsListedAndStoppedAfterACancelledCall(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		m.fifo("gate")
		hello := m.fifo("hello")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		call := m.call(`{"command":"echo > hello; read x < gate","description":"Wait for the gate","initial_wait":600}`)
		go func() {
			_, err := m.tools["bash"].Run(ctx, call)
			done <- err
		}()
		m.readFIFO(hello)
		cancel()
		<-done
		m.restart()
		tasks, err := m.c.Running(t.Context(), m.session)
		if err != nil || len(tasks) != 1 || tasks[0].Description() != "Wait for the gate" {
			t.Fatalf("%+v, %v", tasks, err)
		}
		if got := m.mustCall("stop_bash", `{"shellId":%q}`, tasks[0].ID); !strings.Contains(got, "stopped>") || !strings.Contains(got, "SIGTERM") {
			t.Errorf("%q", got)
		}
		if info := m.manager.All()[0]; !info.Gone || info.State != process.Killed || syscall.Kill(info.PID, 0) == nil {
			t.Errorf("it is %+v", info)
		}
		if got := m.mustCall("stop_bash", `{"shellId":%q}`, tasks[0].ID); !strings.Contains(got, "stopped>") {
			t.Errorf("stopped again: %q", got)
		}
	})
}

func TestARealChildThatLivesOnIsNotedAndCanBeStopped(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		r := m.run("bash", m.call(`{"command":"sleep 1000 & echo ok","initial_wait":60,"shellId":"a"}`))
		if !strings.HasPrefix(r.Text, "ok\n<exited with exit code 0>\n<note: The command has ended, but a process that it started is still running.") {
			t.Errorf("%q", r.Text)
		}
		m.mustCall("stop_bash", `{"shellId":"a"}`)
		if info := m.manager.All()[0]; !info.Gone || info.Exit.Code != 0 {
			t.Errorf("%+v", info)
		}
	})
}

func TestARealCommandThatCannotStartIsNotStarted(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		for _, args := range []string{`{"command":"true","cwd":"/no/such/place"}`, `{"command":"true","cwd":"/no/such/place","run_in_background":true}`} {
			for _, name := range []string{"bash", "exec"} {
				if got := m.mustFail(name, args); !strings.Contains(got, "did not start") || !strings.Contains(got, "/no/such/place") {
					t.Errorf("%s: %q", args, got)
				}
			}
		}
		if got := m.mustCall("list_bash", `{}`); got != "<no active shell sessions>" {
			t.Errorf("%q", got)
		}
	})
}

func TestNothingRealStartsWithoutAShell(t *testing.T) {
	onEachWorkspace(t, process.Options{Shell: "/no/such/shell"}, func(t *testing.T, m *testHost) {
		for _, args := range []string{`{"command":"true"}`, `{"command":"true","run_in_background":true}`} {
			if got := m.mustFail("bash", args); !strings.Contains(got, "did not start") {
				t.Errorf("%q", got)
			}
		}
	})
}

func TestRealProcessesHaveALimit(t *testing.T) {
	onEachWorkspace(t, process.Options{MaxRunning: 2}, func(t *testing.T, m *testHost) {
		m.fifo("gate")
		for range 2 {
			m.mustCall("bash", `{"command":"read x < gate &"}`)
		}
		if got := m.mustFail("bash", `{"command":"true"}`); !strings.Contains(got, "2 is the most") {
			t.Errorf("%q", got)
		}
	})
}

func TestARealProgramReadsInput(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		m.mustCall("bash", `{"command":"while read -r x; do echo \"you said $x\"; done; echo bye","mode":"async","stdin":true,"shellId":"echo"}`)
		if got := m.mustCall("write_bash", `{"shellId":"echo","input":"hello{enter}","delay":60}`); !strings.HasPrefix(got, "you said hello\n<command with shellId: echo is still running") {
			t.Errorf("%q", got)
		}
		m.restart()
		m.mustCall("write_bash", `{"shellId":"echo","input":"again\n","eof":true,"delay":0}`)
		got := decodeWaited(t, m.mustCall("wait", `{"shellIds":["echo"],"timeout":60}`))
		if got.Reason != "completed" || got.Tasks[0].Offset != int64(len("you said hello\nyou said again\nbye\n")) {
			t.Errorf("%+v", got)
		}
	})
}

func TestARealQuestionOnATerminalIsNoticed(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		for i, words := range []string{"Password:", "anything>"} {
			id := fmt.Sprint("ask", i)
			m.mustCall("bash", `{"command":"read -p '%s ' -s x; echo; echo \"<$x>\"","mode":"async","tty":true,"shellId":"%s"}`, words, id)
			w := decodeWaited(t, m.mustCall("wait", `{"shellIds":["%s"],"timeout":60}`, id))
			if w.Reason != "needs_input" || w.Tasks[0].NeedsInput != words {
				t.Fatalf("%+v", w)
			}
			got := m.mustCall("write_bash", `{"shellId":"%s","input":"secret{enter}","delay":0}`, id)
			if got += m.mustCall("read_bash", `{"shellId":"%s","delay":60}`, id); !strings.Contains(got, "<secret>") || !strings.HasSuffix(got, "<exited with exit code 0>") {
				t.Errorf("%q", got)
			}
		}
	})
}

func TestMuchRealOutputIsBoundedAndCounted(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		const lines = 300000
		got := m.mustCall("bash", `{"command":"seq 1 %d; echo the last line","initial_wait":120,"shellId":"a"}`, lines)
		if !strings.HasPrefix(got, "1\n2\n3\n") || !strings.HasSuffix(got, "\nthe last line\n<exited with exit code 0>") || len(got) > process.MaxHeadBytes+process.MaxTailBytes+200 {
			t.Errorf("%d bytes, ending %q", len(got), got[len(got)-60:])
		}
		total := len("the last line\n")
		for i := 1; i <= lines; i++ {
			total += len(fmt.Sprintln(i))
		}
		if mark := fmt.Sprintf("... [omitted %d bytes] ...", total-process.MaxHeadBytes-process.MaxTailBytes); !strings.Contains(got, mark) {
			t.Errorf("%s is not there", mark)
		}
		if page := m.mustCall("read_bash", `{"shellId":"a","offset":%d}`, 16384); !strings.HasSuffix(page, fmt.Sprintf("<bytes 16384 to 49152 of %d; use offset 49152 to go on>", total)) {
			t.Errorf("%q", page[len(page)-80:])
		}
	})
}

func TestARealServerIsWaitedFor(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		gate := m.fifo("gate")
		m.fifo("end")
		m.mustCall("bash", `{"command":"read x < gate; echo listening on $x; read y < end","mode":"async","shellId":"web"}`)
		if w := decodeWaited(t, m.mustCall("wait", `{"shellIds":["web"],"until":"quiet","quiet":0.1,"timeout":60}`)); w.Reason != "quiet" {
			t.Errorf("%+v", w)
		}
		m.writeFIFO(gate, "80\n")
		if w := decodeWaited(t, m.mustCall("wait", `{"shellIds":["web"],"until":"output","pattern":"listening on \\d+","timeout":60}`)); w.Reason != "matched" || w.Tasks[0].Output != "listening on 80\n" {
			t.Errorf("%+v", w)
		}
		l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if w := decodeWaited(t, m.mustCall("wait", `{"shellIds":["web"],"until":"port","port":%d,"timeout":60}`, l.Addr().(*net.TCPAddr).Port)); w.Reason != "port_open" {
			t.Errorf("%+v", w)
		}
	})
}

func TestWatchReportsARealTaskAcrossARestart(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		gate := m.fifo("gate")
		m.mustCall("bash", `{"command":"read x < gate; echo got $x; exit 5","mode":"async","shellId":"a"}`)
		key := m.manager.All()[0].Key
		ctx, kill := context.WithCancel(context.Background())
		done := make(chan error, 1)
		before := m.c
		go func() {
			_, err := before.Watch(ctx, "s1", key, "")
			done <- err
		}()
		kill()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		m.restart()
		m.writeFIFO(gate, "it\n")
		news, err := m.c.Watch(t.Context(), "s1", key, "")
		if err != nil || news.Status != event.TaskFailed || !news.Ended || !strings.Contains(news.Text, "got it") || !strings.Contains(news.Text, "<exit-code>5</exit-code>") {
			t.Errorf("%+v, %v", news, err)
		}
	})
}

func TestRealTasksOfAnotherSessionDoNotExist(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		m.fifo("gate")
		m.mustCall("bash", `{"command":"read x < gate &","shellId":"mine"}`)
		id := string(m.manager.All()[0].ID)
		m.session = "s2"
		for _, name := range []string{"read_bash", "write_bash", "stop_bash", "wait"} {
			for _, task := range []string{"mine", id} {
				if got := m.mustFail(name, fmt.Sprintf(`{"shellId":%q,"input":"x"}`, task)); !strings.Contains(got, "not found") || !strings.Contains(got, "<no active shell sessions>") {
					t.Errorf("%s: %q", name, got)
				}
			}
		}
		if list, err := m.c.Tasks(t.Context(), m.session); len(list) != 0 || err != nil {
			t.Errorf("%+v, %v", list, err)
		}
	})
}
