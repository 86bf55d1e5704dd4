package main

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

// A relayedProgram program is one that another process is the engine for, with a client
// of its own.
type relayedProgram struct {
	*program
	engine *program
	client *client.Client
	said   *bufio.Reader // its stderr
}

// relay starts an engine and a program that serves a client through it.
func relay(t *testing.T, dir string, tcp bool) *relayedProgram {
	t.Helper()
	r := &relayedProgram{engine: start(t, dir, "serve")}
	r.engine.await("serves .*engine")
	if tcp {
		served := serveTCP(t, dir)
		served.engine = r.engine
		return served
	}
	r.program = command(t, dir, "--headless", "--log-level", "warning", "--stdio")
	r.listen()
	in, err := r.StdinPipe()
	must(t, err)
	out, err := r.StdoutPipe()
	must(t, err)
	r.out = bufio.NewReader(strings.NewReader(""))
	must(t, r.Start())
	r.client = client.New(duplex{out, in}, client.Options{})
	t.Cleanup(func() { r.client.Close() })
	_, err = r.client.Connect(t.Context(), "")
	must(t, err)
	return r
}

// serveTCP starts a program that serves a client over TCP.
func serveTCP(t *testing.T, dir string) *relayedProgram {
	t.Helper()
	r := &relayedProgram{program: command(t, dir, "serve", "--log-level", "warning", "--listen", "127.0.0.1:0")}
	r.listen()
	r.begin()
	address := r.await(`^listening on (\S+)\n`)[1]
	r.await(`^token in `)
	token, err := os.ReadFile(filepath.Join(dir, "home", "token"))
	must(t, err)
	r.client, err = dial(t, address, strings.TrimSpace(string(token)))
	must(t, err)
	return r
}

// listen lets the test read the standard error of a program while it runs.
func (r *relayedProgram) listen() {
	r.t.Helper()
	r.Stderr = nil
	pipe, err := r.StderrPipe()
	must(r.t, err)
	r.said = bufio.NewReader(pipe)
}

// awaitLine waits for a line on stderr.
func (r *relayedProgram) awaitLine(pattern string) string {
	r.t.Helper()
	for {
		line, err := r.said.ReadString('\n')
		if regexp.MustCompile(pattern).MatchString(line) {
			return line
		}
		if err != nil {
			r.t.Fatalf("stderr ends without %s: %v, after %q", pattern, err, line)
		}
	}
}

// kill kills the engine with SIGKILL.
func (p *program) kill() {
	p.t.Helper()
	must(p.t, p.Process.Kill())
	p.ends()
}

// stop stops a program, and returns when it has stopped.
func (p *program) stop() {
	p.t.Helper()
	must(p.t, p.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil)
	must(p.t, err)
}

// setVersion sets the version of the store's format.
func setVersion(t *testing.T, dir string, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "home", "abide.db"))
	must(t, err)
	defer db.Close()
	_, err = db.Exec(fmt.Sprintf("PRAGMA busy_timeout = 5000; PRAGMA user_version = %d", version))
	must(t, err)
}

// setRoom limits the size of the files of a process, which stands for a full disk: to
// fill one takes a file system of its own.
func setRoom(t *testing.T, p *program, bytes uint64) {
	t.Helper()
	must(t, unix.Prlimit(p.pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil))
}

func TestARelayThatCannotTakeOverForNowTriesAgain(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		t.Run(fmt.Sprint("tcp ", tcp), func(t *testing.T) {
			t.Parallel()
			r := relay(t, t.TempDir(), tcp)
			setRoom(t, r.program, 4096)
			answered := make(chan error, 1)
			r.engine.kill()
			go func() {
				_, err := r.client.List(t.Context(), "")
				answered <- err
			}()
			line := r.awaitLine("waiting for an engine")
			if !strings.Contains(line, "abide.db: the disk ") || !strings.Contains(line, "trying again") {
				t.Errorf("people are told %q", line)
			}
			for range 5 { // five attempts, a second apart: a final error would have been reported by then
				r.awaitLine("could not take over from the engine that ended; trying again")
			}
			select {
			case err := <-answered:
				t.Fatalf("without room the client was told %v", err)
			default:
			}
			setRoom(t, r.program, unix.RLIM_INFINITY)
			if err := <-answered; err != nil {
				t.Errorf("with room again the client was told %v", err)
			}
			must(t, r.Process.Signal(syscall.SIGTERM))
			r.Wait()
		})
	}
}

// relayedRun starts a run whose engine is another process and has asked the model,
// which answers whoever asks it again.
func relayedRun(t *testing.T, dir string) (r *relayedProgram, session string) {
	t.Helper()
	engine := start(t, dir, "serve")
	engine.await("serves .*engine")
	model := newProvider(t)
	r = &relayedProgram{engine: engine, program: command(t, dir, "run", "--model", "m", "hello")}
	r.Env = append(r.Env, "OPENAI_BASE_URL="+model.url)
	r.listen()
	r.begin()
	session = strings.Fields(r.awaitLine("^session "))[1]
	<-model.asked
	model.answer.Store(true)
	return r, session
}

func TestARunGoesOnWhenItsRelayHasRoomAgain(t *testing.T) {
	dir := t.TempDir()
	r, session := relayedRun(t, dir)
	setRoom(t, r.program, 4096)
	r.engine.kill()
	r.awaitLine("waiting for an engine")
	setRoom(t, r.program, unix.RLIM_INFINITY)
	if out, code := r.ends(); code != 0 || out != "I took my time\n" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	log := output(t, dir, "sessions", "show", "--json", "--all", session)
	for kind, want := range map[string]int{`"user.message"`: 1, `"assistant.message"`: 1, `"session.idle"`: 1} {
		if got := strings.Count(log, kind); got != want {
			t.Errorf("the log has %d times %s, want %d:\n%s", got, kind, want, log)
		}
	}
}

func TestARelayThatCanNeverTakeOverSaysSoAndEnds(t *testing.T) {
	for name, c := range map[string]struct {
		hurt func(t *testing.T, dir string)
		want string
	}{
		"newer": {func(t *testing.T, dir string) { setVersion(t, dir, 99) },
			`abide\.db has version 99, this abide knows versions up to \d+: use a newer abide, or another data folder`},
		"damaged": {func(t *testing.T, dir string) {
			for _, side := range []string{"-wal", "-shm"} {
				must(t, os.Remove(filepath.Join(dir, "home", "abide.db"+side)))
			}
			must(t, os.WriteFile(filepath.Join(dir, "home", "abide.db"), []byte(strings.Repeat("no", 8192)), 0o600))
		}, `abide\.db: it is not an abide store: choose another data folder, or move the file away`},
		"deleted": {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "home"))) },
			`data folder \S+home was deleted, moved, replaced or unmounted`},
		"made anew": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "home")))
			must(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
		}, `data folder \S+home was deleted, moved, replaced or unmounted`},
	} {
		for _, tcp := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", tcp ", tcp), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				r := relay(t, dir, tcp)
				r.engine.stop() // it is not to notice before it dies
				c.hurt(t, dir)
				r.engine.kill()
				_, err := r.client.List(t.Context(), "")
				if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
					t.Errorf("the client was told %v", err)
				}
				<-r.client.Done()
				r.awaitLine("^abide: .*" + c.want)
				r.Wait()
				if code := r.ProcessState.ExitCode(); code != 3 {
					t.Errorf("exit code %d, want 3", code)
				}
			})
		}
	}
}

func TestAStoppedEngineIsNamed(t *testing.T) {
	for name, args := range map[string][]string{
		"run": {"run", "hello"}, "list": {"sessions", "list"}, "ps": {"ps"}, "serve": {"serve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			engine := start(t, dir, "serve")
			engine.await("serves .*engine")
			engine.stop()
			r := &relayedProgram{program: command(t, dir, args...)}
			r.listen()
			r.begin()
			want := fmt.Sprintf("abide: process %d holds the data folder %s and is stopped: resume it with kill -CONT %[1]d\n",
				engine.Process.Pid, filepath.Join(dir, "home"))
			if line := r.awaitLine("."); line != want {
				t.Errorf("people are told %q, want %q", line, want)
			}
			must(t, engine.Process.Signal(syscall.SIGCONT))
			if name == "serve" {
				must(t, r.Process.Signal(syscall.SIGTERM))
			}
			rest, err := r.said.ReadString(0)
			if strings.Contains(rest, "holds the data folder") {
				t.Errorf("it is said again: %q (%v)", rest, err)
			}
			if _, code := r.ends(); code != 0 && name != "serve" {
				t.Errorf("exit code %d; stderr: %s", code, rest)
			}
		})
	}
}

func TestAnEngineThatIsStoppedDuringATurnIsNamed(t *testing.T) {
	dir := t.TempDir()
	r, _ := relayedRun(t, dir)
	r.engine.stop()
	r.awaitLine(fmt.Sprintf("abide: process %d holds the data folder .* and is stopped", r.engine.Process.Pid))
	r.engine.kill()
	if out, code := r.ends(); code != 0 || out != "I took my time\n" {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
}

func TestAnEngineWhoseFolderIsGoneEnds(t *testing.T) {
	for name, hurt := range map[string]func(dir string) error{
		"deleted":   os.RemoveAll,
		"moved":     func(dir string) error { return os.Rename(dir, dir+".old") },
		"made anew": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
		"database":  func(dir string) error { return os.Remove(filepath.Join(dir, "abide.db")) },
	} {
		for _, busy := range []bool{true, false} {
			if name == "database" && !busy {
				continue // it is noticed when something is to be stored
			}
			t.Run(fmt.Sprint(name, ", busy ", busy), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				r := serveTCP(t, dir)
				must(t, hurt(filepath.Join(dir, "home")))
				if busy {
					_, err := r.client.Create(t.Context(), api.OpenParams{})
					if err == nil || !strings.Contains(err.Error(), "was deleted, moved") {
						t.Errorf("the client was told %v", err)
					}
				}
				r.awaitLine(`^abide: .* was deleted, moved.*: put it back`)
				r.ends()
				if code := r.ProcessState.ExitCode(); code != 3 {
					t.Errorf("exit code %d, want 3", code)
				}
			})
		}
	}
}

func TestATCPServerThatCannotWriteSaysSoAndFails(t *testing.T) {
	r := serveTCP(t, t.TempDir())
	setRoom(t, r.program, 4096)
	if _, err := r.client.Create(t.Context(), api.OpenParams{}); err == nil || !strings.Contains(err.Error(), "the disk reports an error") {
		t.Errorf("the client was told %v", err)
	}
	r.awaitLine("^abide: .*the disk reports an error")
	if _, code := r.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
