package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/keeper"
	"go.uber.org/goleak"
)

// daemonVariable is an environment variable that makes the test program a daemon
// that can be killed: it opens the folder, starts the commands of its orders, prints
// a line for each, and waits.
const daemonVariable = "ABIDE_TEST_DAEMON"

// daemonOrders tell a killable daemon what to do.
type daemonOrders struct {
	Dir      string
	Fault    string
	FileSize uint64 // maximum size of a file; no maximum if zero
	Specs    []Spec
	Dies     bool   // true if the fault must kill the daemon; otherwise it reports an error at the end
	Then     string // action when all commands have ended and were seen: "sweep", "forget" or "abandon"
}

func TestMain(m *testing.M) {
	if text := os.Getenv(daemonVariable); text != "" {
		if err := runKillable(text); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if text := os.Getenv(escapeVariable); text != "" {
		os.Exit(runEscape(text))
	}
	goleak.VerifyTestMain(m)
}

func runKillable(text string) error {
	var o daemonOrders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	os.Unsetenv(daemonVariable)
	if o.FileSize > 0 {
		limit := syscall.Rlimit{Cur: o.FileSize, Max: o.FileSize}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	m, err := Open(o.Dir, Options{fault: o.Fault})
	if err != nil {
		return err
	}
	for _, s := range o.Specs {
		if _, _, err := m.Start(context.Background(), s); err != nil {
			return err
		}
		fmt.Println("started", s.Key)
	}
	if o.Then != "" {
		if err := removeEnded(m, o.Then); err != nil {
			return err
		}
	}
	if o.Dies {
		return errors.New("nothing has killed this daemon")
	}
	bufio.NewReader(os.Stdin).ReadString('\n') // blocks until the test kills this daemon
	return nil
}

// removeEnded waits for every command, marks it as seen, and removes it in one of the
// three ways.
func removeEnded(m *Manager, how string) error {
	for _, info := range m.All() {
		if _, err := m.WaitGone(context.Background(), me, info.ID); err != nil {
			return err
		}
		if err := m.MarkSeen(me, info.ID); err != nil {
			return err
		}
		if how == "forget" {
			return m.Forget(me, info.ID)
		}
	}
	if how == "abandon" {
		return m.Abandon(context.Background(), me)
	}
	return m.Sweep(Retention{})
}

// A killableDaemon is a daemon in a process of its own, which the test can kill.
type killableDaemon struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startKillable(t *testing.T, o daemonOrders) *killableDaemon {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	v := &killableDaemon{t: t, cmd: exec.Command("/proc/self/exe")}
	v.cmd.Env = append(os.Environ(), daemonVariable+"="+string(text))
	if _, err := v.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.cmd.Stderr = os.Stderr
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v.lines = bufio.NewScanner(out)
	t.Cleanup(v.kill)
	return v
}

// said returns the next line that the daemon printed, or "" if it is dead.
func (v *killableDaemon) said() string {
	v.lines.Scan()
	return v.lines.Text()
}

func (v *killableDaemon) await(n int) {
	v.t.Helper()
	for range n {
		if line := v.said(); !strings.HasPrefix(line, "started") {
			v.t.Fatalf("the daemon printed %q", line)
		}
	}
}

// kill ends the daemon with SIGKILL, and waits until it is dead.
func (v *killableDaemon) kill() {
	v.cmd.Process.Kill()
	v.cmd.Wait()
}

const me = Owner("tenant/session")

// open opens a manager. At the end of the test it stops all processes in the folder,
// and fails the test if one is left.
func open(t *testing.T, dir string, opts Options) *Manager {
	t.Helper()
	if opts.Grace == 0 {
		opts.Grace = 50 * time.Millisecond
	}
	m, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, m) })
	return m
}

func endAll(t *testing.T, m *Manager) {
	for _, i := range m.All() {
		if _, err := m.Stop(context.Background(), i.Owner, i.ID); err != nil && m.ctx.Err() == nil {
			t.Errorf("stop %s: %v", i.Key, err)
		}
		if left := marked(keeper.Marker + "=" + m.procs[i.ID].start.marker); len(left) > 0 && m.ctx.Err() == nil {
			t.Errorf("processes of %s are left: %v", i.Key, left)
		}
	}
	m.Close()
}

func spec(key, command string) Spec {
	return Spec{Key: key, Owner: me, Command: command, Dir: "/tmp", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
}

func withStdin(s Spec) Spec {
	s.Stdin = true
	return s
}

func start(t *testing.T, m *Manager, s Spec) Info {
	t.Helper()
	info, _, err := m.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// run starts a command and waits until it is gone.
func run(t *testing.T, m *Manager, s Spec) Info {
	t.Helper()
	info, err := m.WaitGone(t.Context(), me, start(t, m, s).ID)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// all returns all output of a stream that is kept.
func all(t *testing.T, m *Manager, id ID, stream Stream) string {
	t.Helper()
	var b strings.Builder
	for r := (ReadRequest{Stream: stream}); ; {
		c, err := m.Read(t.Context(), me, id, r)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Data) == 0 && c.Next == r.Offset {
			return b.String()
		}
		b.Write(c.Data)
		r.Offset = c.Next
	}
}

// awaitOutput blocks until a process has printed a text, and returns all output so
// far.
func awaitOutput(t *testing.T, m *Manager, id ID, want string) string {
	t.Helper()
	var b strings.Builder
	for r := (ReadRequest{Wait: true}); ; {
		c, err := m.Read(t.Context(), me, id, r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(c.Data)
		if strings.Contains(b.String(), want) {
			return b.String()
		}
		if c.End {
			t.Fatalf("it ended and printed %q, without %q", b.String(), want)
		}
		r.Offset = c.Next
	}
}

// gate creates a named pipe on which a command blocks with `read x <PATH` until the
// test calls open.
func gate(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("go\n")
		f.Close()
	}
}

func alive(pid int) bool {
	s, err := identity.StatOf(pid)
	return err == nil && s.State != 'Z'
}

// journal returns the journal of a process as text.
func journal(t *testing.T, info Info) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(info.Files.Dir, keeper.StateFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
