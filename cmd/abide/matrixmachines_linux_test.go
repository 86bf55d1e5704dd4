package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/client"
)

// The users of the engine and of the workspace, where the test may choose them.
const (
	engineUser    = 61001
	workspaceUser = 61002
)

// A matrix is an engine and a workspace of two users, with a wire between them.
type matrix struct {
	t     *testing.T
	root  string // has the folders of both
	here  string // folder of the engine
	there string // folder of the workspace; src in it is served
	two   bool   // true if there are two users
	args  []string
	wire  *wire

	mu     sync.Mutex
	serves *program      // the workspace; nil while it is dead
	engine *matrixEngine // the last engine
}

// matrixOptions say how an engine reaches its workspace. The zero value is a Unix socket.
type matrixOptions struct {
	tcp      bool
	patience string // workspace.patience; a minute if empty
}

// newMatrix starts a workspace, and prepares an engine.
func newMatrix(t *testing.T, o matrixOptions) *matrix {
	t.Helper()
	m := &matrix{t: t, root: sharedFolder(t), two: haveTwoUsers(t)}
	m.here, m.there = filepath.Join(m.root, "here"), filepath.Join(m.root, "there")
	m.folder(filepath.Join(m.here, "home"), engineUser)
	m.folder(filepath.Join(m.there, "src"), workspaceUser)
	address := "unix:" + filepath.Join(m.there, "w.sock")
	listen := "unix:" + filepath.Join(m.root, "wire")
	if o.tcp {
		address, listen = "tcp:"+steadyAddress(t), "tcp:"+steadyAddress(t)
	}
	m.args = []string{"workspace", "--dir", "src", "--listen", address}
	m.serve()
	m.wire = newWire(t, listen, func() string { return m.args[4] })
	text := fmt.Sprintf("[workspaces.box]\naddress = %q\n", m.wire.listen)
	if o.tcp {
		token, err := os.ReadFile(filepath.Join(m.there, "home", "workspace", "token"))
		must(t, err)
		m.write(filepath.Join(m.here, "token"), string(token), engineUser)
		text += fmt.Sprintf("token_file = %q\n", filepath.Join(m.here, "token"))
	}
	if o.patience == "" {
		o.patience = "1m"
	}
	m.write(filepath.Join(m.here, "home", "config.toml"), text+"[workspace]\npatience = \""+o.patience+"\"\n", engineUser)
	return m
}

// sharedFolder makes a folder that other users may enter.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "matrix")
	must(t, err)
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// sharedProgram returns the program, in a folder that other users may enter.
var sharedProgram = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("abide")
	if err != nil {
		return "", err
	}
	return path, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o711)
})

// haveTwoUsers reports whether the engine and the workspace can be of two users, and says so
// if they cannot. Where ABIDE_REQUIRE contains users, that is a failure.
func haveTwoUsers(t *testing.T) bool {
	t.Helper()
	reason := "this test is not run by root"
	if os.Getuid() == 0 {
		path, err := sharedProgram()
		must(t, err)
		p := command(t, "/", "version")
		p.Path, p.Err = path, nil
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: workspaceUser, Gid: workspaceUser}}
		if err = p.Run(); err == nil {
			return true
		}
		reason = fmt.Sprintf("another user cannot run %s (%v)", path, err)
	}
	if slices.Contains(strings.Split(os.Getenv("ABIDE_REQUIRE"), ","), "users") {
		t.Fatal("ABIDE_REQUIRE asks for users, and " + reason)
	}
	t.Log("the engine and the workspace are of one user: " + reason)
	return false
}

// folder makes a folder of a user.
func (m *matrix) folder(path string, user int) {
	m.t.Helper()
	must(m.t, os.MkdirAll(path, 0o755))
	for ; path != m.root; path = filepath.Dir(path) {
		m.own(path, user)
	}
}

func (m *matrix) write(path, text string, user int) {
	m.t.Helper()
	must(m.t, os.WriteFile(path, []byte(text), 0o600))
	m.own(path, user)
}

func (m *matrix) own(path string, user int) {
	m.t.Helper()
	if m.two {
		must(m.t, os.Chown(path, user, user))
	}
}

// src returns the path of a file in the workspace.
func (m *matrix) src(name string) string { return filepath.Join(m.there, "src", name) }

// program prepares a run of the program for a user.
func (m *matrix) program(name, dir string, user uint32, args ...string) *program {
	m.t.Helper()
	p := command(m.t, dir, args...)
	path, err := sharedProgram()
	must(m.t, err)
	p.Path, p.Args[0], p.Err = path, name, nil
	p.Env = append(p.Env, "HOME="+dir, "USER=", "LOGNAME=")
	p.SysProcAttr = &syscall.SysProcAttr{}
	if m.two {
		p.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	return p
}

// serve starts the workspace. It always comes back at the same address.
func (m *matrix) serve() {
	m.t.Helper()
	p := m.program("abide", m.there, workspaceUser, m.args...)
	p.Env = append(p.Env, "PLACE=there")
	p.begin()
	p.await(`^listening on (\S+)\n`)
	m.mu.Lock()
	m.serves = p
	m.mu.Unlock()
	m.t.Cleanup(func() { _ = syscall.Kill(p.Process.Pid, syscall.SIGKILL) })
}

// killWorkspace kills the workspace as a crash would. Its commands go on.
func (m *matrix) killWorkspace() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	must(m.t, m.serves.Process.Kill())
	_, _ = io.Copy(io.Discard, m.serves.out)
	_ = m.serves.Wait() // it was killed
}

// A matrixEngine is an engine with a client.
type matrixEngine struct {
	*program
	client *client.Client
	dead   chan struct{} // closed when the process has ended
}

// errDied means that an engine has died.
var errDied = errors.New("the engine has died")

// start starts an engine that dies at a write, if dies is not empty, and connects to it.
func (m *matrix) start(dies string, env ...string) (*matrixEngine, error) {
	m.t.Helper()
	p := m.program("abide-dies", m.here, engineUser, "serve", "--listen", "127.0.0.1:0")
	p.Env = append(p.Env, diesVariable+"="+dies, writesVariable+"="+m.writes(), "PLACE=here")
	p.Env = append(p.Env, env...)
	pipe, err := p.StdoutPipe()
	must(m.t, err)
	p.out = bufio.NewReader(pipe)
	must(m.t, p.Start())
	e := &matrixEngine{program: p, dead: make(chan struct{})}
	m.mu.Lock()
	m.engine = e
	m.mu.Unlock()
	address, err := e.line(`^listening on (\S+)\n`)
	if err == nil {
		err = e.connect(address)
	}
	go func() {
		_, _ = io.Copy(io.Discard, p.out)
		_ = p.Wait() // the state tells
		close(e.dead)
	}()
	m.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-e.dead
		if m.t.Failed() && p.stderr.String() != "" {
			m.t.Logf("an engine said: %s", p.stderr)
		}
	})
	return e, err
}

func (m *matrix) writes() string { return filepath.Join(m.here, "writes") }

// line reads lines until one matches, and returns its group.
func (e *matrixEngine) line(pattern string) (string, error) {
	re := regexp.MustCompile(pattern)
	for {
		line, err := e.out.ReadString('\n')
		if found := re.FindStringSubmatch(line); found != nil {
			return found[1], nil
		}
		if err != nil {
			return "", errDied
		}
	}
}

func (e *matrixEngine) connect(address string) error {
	file, err := e.line(`^token in (\S+)\n`)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	e.client, err = dial(e.t, address, strings.TrimSpace(string(token)))
	return err
}

// killed reports whether the engine has died, after an error that says so. One that ended
// in another way is a failure.
func (e *matrixEngine) killed(err error) bool {
	e.t.Helper()
	if e.client != nil {
		select {
		case <-e.client.Done():
		case <-time.After(10 * time.Second): // the error has another reason
			return false
		}
	}
	<-e.dead
	status := e.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		e.t.Fatalf("the engine ended with %v after %v: %s", e.ProcessState, err, e.stderr)
	}
	return true
}

// kill kills the engine, if it is there.
func (m *matrix) killEngine() {
	m.mu.Lock()
	e := m.engine
	m.mu.Unlock()
	_ = e.Process.Kill() // it may have ended
	<-e.dead
}

// stacks ends the engine and the workspace, and returns what they were doing: the stack of
// each goroutine.
func (m *matrix) stacks() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.engine.Process.Signal(syscall.SIGABRT) // it may have ended
	<-m.engine.dead
	_ = m.serves.Process.Signal(syscall.SIGABRT)
	_, _ = io.Copy(io.Discard, m.serves.out)
	_ = m.serves.Wait() // it was aborted
	return "the engine: " + m.engine.stderr.String() + "\nthe workspace: " + m.serves.stderr.String()
}

// stop stops the engine as a person would.
func (e *matrixEngine) stop() {
	e.t.Helper()
	must(e.t, e.Process.Signal(syscall.SIGTERM))
	<-e.dead
	if code := e.ProcessState.ExitCode(); code != 143 {
		e.t.Errorf("the engine ended with %v: %s", e.ProcessState, e.stderr)
	}
}

// audit lets the auditor look at what the engine has stored, when nobody writes to it.
func (m *matrix) audit() {
	m.t.Helper()
	report, err := audit.Run(context.WithoutCancel(m.t.Context()), filepath.Join(m.here, "home"), audit.Options{Workspaces: []string{filepath.Join(m.there, "home")}})
	must(m.t, err)
	for _, f := range report.Findings {
		m.t.Errorf("the auditor finds %s broken: %s, session %q, event %d: %s", f.Invariant, f.Rule, f.Session, f.Seq, f.Text)
	}
	for _, d := range report.Unknown {
		if d.Rule != "signal.descendants" { // only the keeper knows
			m.t.Errorf("the auditor cannot decide %s: %s, session %q, event %d: %s", d.Invariant, d.Rule, d.Session, d.Seq, d.Text)
		}
	}
}

// holds checks that a file in the workspace has exactly these bytes.
func (m *matrix) holds(name, want string) {
	m.t.Helper()
	got, err := os.ReadFile(m.src(name))
	if string(got) != want || err != nil {
		m.t.Errorf("%s has %d bytes, want %d (%.60q, want %.60q), %v", name, len(got), len(want), got, want, err)
	}
}

// lacks checks that there is no such file.
func (m *matrix) lacks(name string) {
	m.t.Helper()
	if _, err := os.Stat(m.src(name)); !errors.Is(err, fs.ErrNotExist) {
		m.t.Errorf("%s is there: %v", name, err)
	}
}
