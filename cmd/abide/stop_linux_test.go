package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

// A countingProvider is the offline model behind HTTP. It keeps what it was asked.
type countingProvider struct {
	model http.Handler
	url   string
	mu    sync.Mutex
	asked []string
}

func newCountingProvider(t *testing.T) *countingProvider {
	p := &countingProvider{model: openaitest.Handler(offline.Model{}, openaitest.Options{})}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL + "/v1"
	return p
}

func (p *countingProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, string(body))
	p.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	p.model.ServeHTTP(w, r)
}

// about counts the requests that contain a text.
func (p *countingProvider) about(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, body := range p.asked {
		if strings.Contains(body, text) {
			n++
		}
	}
	return n
}

// A desk is a person's place: a folder, a model and commands that tell when they run.
type desk struct {
	t     *testing.T
	dir   string
	model *countingProvider
	up    *os.File // gets a line from each command that runs
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, dir: t.TempDir(), model: newCountingProvider(t)}
	must(t, syscall.Mkfifo(filepath.Join(d.dir, "up"), 0o600))
	var err error
	d.up, err = os.OpenFile(filepath.Join(d.dir, "up"), os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { d.up.Close() })
	return d
}

// beating is a command that counts itself and writes to a file as long as it runs, some
// minutes at most. It tells when it does. The numbers are expanded before: bash that gets SIGINT
// while it expands $() may fail to run the trap.
const beating = "echo $$ >>pids; set -- $(seq 5000); trap %q INT; echo up >up; for i; do echo x >>beats; sleep 0.05; done"

// prompt makes the model run a command that does something on SIGINT.
func beatingPrompt(onINT string) string { return "Run `" + fmt.Sprintf(beating, onINT) + "`" }

// program prepares a run of the program with the model.
func (d *desk) program(x *terminal, args ...string) *program {
	p := x.start(d.dir, "abide", args...)
	p.Env = append(p.Env, "OPENAI_BASE_URL="+d.model.url, "OPENAI_API_KEY=k")
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return p
}

// run starts a run at a terminal, and waits until its command runs.
func (d *desk) run(args ...string) (*terminal, *program) {
	d.t.Helper()
	x := newTerminal(d.t)
	p := d.program(x, append([]string{"run", "--yolo", "--model", "m"}, args...)...)
	must(d.t, p.Start())
	_, err := d.up.Read(make([]byte, 3))
	must(d.t, err)
	return x, p
}

// output runs the program to its end in a folder, and returns its stdout.
func (d *desk) output(dir string, args ...string) string {
	d.t.Helper()
	p := command(d.t, d.dir, args...)
	p.Dir = dir
	p.Env = append(p.Env, "OPENAI_BASE_URL="+d.model.url, "OPENAI_API_KEY=k")
	out, err := p.Output()
	if err != nil {
		d.t.Fatalf("abide %s: %v; stderr: %s", strings.Join(args, " "), err, p.stderr)
	}
	return string(out)
}

// checkStopped checks that no command runs, and that nothing happens any more in the
// session whatever program is used next.
func (d *desk) checkStopped(prompt string) {
	d.t.Helper()
	for _, word := range strings.Fields(d.read("pids")) {
		pid, err := strconv.Atoi(word)
		must(d.t, err)
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			d.t.Errorf("the command %d runs on: %v", pid, err)
		}
	}
	ran, beats, asked := d.read("pids"), d.read("beats"), d.model.about(prompt)
	if got := d.output(d.t.TempDir(), "run", "--model", "m", "Reply with exactly: OTHER"); got != "OTHER\n" {
		d.t.Errorf("another session answers %q", got)
	}
	serve := command(d.t, d.dir, "serve")
	serve.Env = append(serve.Env, "OPENAI_BASE_URL="+d.model.url, "OPENAI_API_KEY=k")
	serve.begin()
	serve.await("serves ")
	if got := d.output(d.dir, "run", "--model", "m", "Reply with exactly: THIRD"); got != "THIRD\n" {
		d.t.Errorf("a third session answers %q", got)
	}
	must(d.t, serve.Process.Signal(syscall.SIGTERM))
	serve.ends()
	if d.read("pids") != ran || d.read("beats") != beats || d.model.about(prompt) != asked {
		d.t.Errorf("what was stopped goes on: %d requests more", d.model.about(prompt)-asked)
	}
}

func (d *desk) read(name string) string {
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	return string(b)
}

// startServe starts an engine that stays.
func (d *desk) startServe() *program {
	d.t.Helper()
	engine := command(d.t, d.dir, "serve")
	engine.begin()
	engine.await("serves .*engine")
	return engine
}

// A person stops the work with Ctrl-C, whoever is the engine. It stays stopped when
// abide is used for something else.
func TestCtrlCStopsTheTurnAndItsCommandForGood(t *testing.T) {
	for _, serves := range []bool{false, true} {
		t.Run(fmt.Sprintf("serve=%v", serves), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			if serves {
				engine := d.startServe()
				defer engine.Process.Signal(syscall.SIGTERM)
			}
			x, p := d.run(beatingPrompt("exit 9"))
			x.typed("\x03")
			shown := x.await(`interrupted: stopped the turn and 1 command: .* \(killed.*to go on: abide run --resume \S+`)
			if code := x.awaitExit(p); code != 130 {
				t.Errorf("exit code %d, want 130: %s", code, shown)
			}
			d.checkStopped("pids")
			if got := d.output(d.dir, "sessions", "list"); !strings.Contains(got, "  idle  ") || strings.Contains(got, "running") {
				t.Errorf("the sessions are\n%s", got)
			}
		})
	}
}

func TestCtrlCStopsAModelThatAnswers(t *testing.T) {
	for _, serves := range []bool{false, true} {
		t.Run(fmt.Sprintf("serve=%v", serves), func(t *testing.T) {
			t.Parallel()
			dir, model := t.TempDir(), newProvider(t)
			if serves {
				engine := start(t, dir, "serve")
				engine.await("serves .*engine")
			}
			x := newTerminal(t)
			p := x.start(dir, "abide", "run", "--model", "m", "hello")
			p.Env = append(p.Env, "OPENAI_BASE_URL="+model.url)
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			must(t, p.Start())
			<-model.asked
			x.typed("\x03")
			id := regexp.MustCompile(`--resume (\S+) `).FindStringSubmatch(x.await(`interrupted: stopped the turn\r\nto go on: .*…"`))[1]
			if code := x.awaitExit(p); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			model.answer.Store(true)
			if got := output(t, dir, "abort", id); !strings.Contains(got, "no turn was running") {
				t.Errorf("the session is not idle: %s", got)
			}
			resume := command(t, dir, "run", "--resume", id, "Go on")
			resume.Env = append(resume.Env, "OPENAI_BASE_URL="+model.url)
			if got, err := resume.Output(); err != nil || string(got) != "I took my time\n" {
				t.Errorf("the next message is answered with %q, %v; %s", got, err, resume.stderr)
			}
		})
	}
}

// slowPrompt makes the model run a command that tells when it gets SIGINT, and then ends
// when it may.
const slowPrompt = "Run `echo $$ >>pids; trap 'echo int >up; while [ ! -e go ]; do sleep 0.01; done; exit 9' INT; echo up >up; while :; do sleep 0.05; done`"

// The engine stores that the turn is stopped, and is killed before it can say so. The next
// one, which is asked again, finds that everything is over.
func TestAStopSaysWhatItStoppedAlthoughTheEngineWasKilled(t *testing.T) {
	t.Run("Ctrl-C", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		engine := d.startServe()
		x, p := d.run(slowPrompt)
		x.typed("\x03")
		d.replaceEngine(engine, p)
		if shown := x.await(`interrupted: .*to go on`); !strings.Contains(shown, "interrupted: stopped the turn") {
			t.Errorf("it says %q", shown)
		}
		if code := x.awaitExit(p); code != 130 {
			t.Errorf("exit code %d, want 130", code)
		}
		d.checkStopped("pids")
	})
	for _, name := range []string{"abort", "stop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			engine := d.startServe()
			id := d.detach(slowPrompt)
			p := start(t, d.dir, name, id)
			d.replaceEngine(engine, p)
			if out, code := p.ends(); code != 0 || !strings.Contains(out, "is idle: stopped the turn") {
				t.Errorf("exit code %d, and it says %q; stderr: %s", code, out, p.stderr)
			}
			if got := d.output(d.dir, name, id); !strings.Contains(got, "no turn was running") {
				t.Errorf("the second time it says %q", got)
			}
			d.checkStopped("pids")
		})
	}
}

// The engine is the run that is stopped from elsewhere. The run ends when its turn does,
// and whoever stops it is told all the same which command was ended, however long that
// takes.
func TestAStopOfTheRunThatIsTheEngineNamesItsCommand(t *testing.T) {
	for _, verb := range []string{"stop", "abort"} {
		for name, prompt := range map[string]string{"quick": beatingPrompt("exit 9"), "slow": slowPrompt} {
			t.Run(verb+"/"+name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				x, run := d.run(prompt)
				p := start(t, d.dir, verb, d.sessionOf())
				if name == "slow" {
					_, err := d.up.Read(make([]byte, 4)) // the command gets SIGINT
					must(t, err)
				}
				x.await("the turn was stopped by another client")
				if code := x.awaitExit(run); code != 1 {
					t.Errorf("exit code %d of the run, want 1", code)
				}
				must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
				if out, code := p.ends(); code != 0 || !strings.Contains(out, "is idle: stopped the turn and 1 command: echo $$") {
					t.Errorf("exit code %d, and it says %q; stderr: %s", code, out, p.stderr)
				}
				d.checkStopped("pids")
			})
		}
	}
}

// replaceEngine kills the engine while it stops the command of slowPrompt for a program.
// That program goes on, and becomes the engine, when the command has ended.
func (d *desk) replaceEngine(engine, p *program) {
	d.t.Helper()
	_, err := d.up.Read(make([]byte, 4)) // the command gets SIGINT, so the stop is stored
	must(d.t, err)
	waits := p.pid()
	must(d.t, syscall.Kill(waits, syscall.SIGSTOP))
	engine.kill()
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(d.read("pids")) + "/stat")
	must(d.t, err)
	parent, err := strconv.Atoi(strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))[2])
	must(d.t, err)
	keeper := watch(d.t, parent)
	must(d.t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	keeper.await()
	must(d.t, syscall.Kill(waits, syscall.SIGCONT))
}

// The command ignores what it is told, so stopping it takes time. A person who does not
// want to wait leaves, and it is ended all the same.
func TestASecondCtrlCLeavesAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	must(t, syscall.Mkfifo(filepath.Join(d.dir, "alive"), 0o600))
	alive, err := os.OpenFile(filepath.Join(d.dir, "alive"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer alive.Close()
	x, p := d.run("Run `exec 9>alive; trap '' INT TERM; echo up >up; for i in $(seq 5000); do sleep 0.05; done`")
	x.typed("\x03")
	x.await(`stopping; press Ctrl-C again to leave at once`)
	x.typed("\x03")
	x.await(`left at once; the turn is stopped, and its commands are being ended`)
	if code := x.awaitExit(p); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if _, err := io.ReadAll(alive); err != nil { // the reading ends when no process has it open
		t.Error(err)
	}
}

// interruptSilent stops a turn with Ctrl-C while its engine does not answer.
func (d *desk) interruptSilent() (engine *program, x *terminal, p *program) {
	d.t.Helper()
	engine = d.startServe()
	x, p = d.run(beatingPrompt("exit 9"))
	engine.stop()
	x.typed("\x03")
	x.await(`stopping; press Ctrl-C again`)
	return engine, x, p
}

// checkSilent lets the engine answer again, and checks that the turn can be stopped.
func (d *desk) checkSilent(engine *program) {
	d.t.Helper()
	must(d.t, engine.Process.Signal(syscall.SIGCONT))
	d.output(d.dir, "abort", d.sessionOf())
	must(d.t, engine.Process.Signal(syscall.SIGTERM))
	engine.ends()
	d.checkStopped("pids")
}

// The engine does not answer, so nobody knows whether the turn is stopped.
func TestASecondCtrlCSaysThatNothingIsKnown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	engine, x, p := d.interruptSilent()
	x.typed("\x03")
	x.await(`it is not known whether the turn was stopped; to make sure: abide abort \S+`)
	if code := x.awaitExit(p); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	d.checkSilent(engine)
}

// The engine does not answer, and the person who waits for it kills the run.
func TestARunThatIsKilledWhileItStopsItsTurnEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	engine, _, p := d.interruptSilent()
	run := watch(t, p.pid())
	must(t, p.Process.Kill())
	run.await()
	d.checkSilent(engine)
}

// Leaving is not stopping: the turn goes on in the engine that stays, or waits.
func TestWhoeverLeavesDoesNotStopTheTurn(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(x *terminal, p *program)
		code  int
	}{
		"quit":    {func(x *terminal, _ *program) { x.typed("\x1c") }, 131},
		"hang up": {func(x *terminal, _ *program) { x.hangUp() }, 129},
		"TERM":    {func(_ *terminal, p *program) { _ = p.Process.Signal(syscall.SIGTERM) }, 143},
	} {
		for _, serves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/serve=%v", name, serves), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				if serves {
					engine := d.startServe()
					defer engine.Process.Signal(syscall.SIGTERM)
				}
				x, p := d.run("Run `echo up >up; while [ ! -e go ]; do sleep 0.01; done; echo done`, then reply with the result")
				c.leave(x, p)
				if name != "hang up" {
					want := map[bool]string{false: `to continue: abide run --resume \S+ \(to drop`, true: `the turn goes on; to follow it: abide run --resume \S+ \(to stop`}[serves]
					x.await(want)
				}
				if p.Wait(); p.ProcessState.ExitCode() != c.code {
					t.Errorf("exit code %d, want %d", p.ProcessState.ExitCode(), c.code)
				}
				must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
				if got := d.output(d.dir, "run", "--continue"); !strings.Contains(got, "done") {
					t.Errorf("the turn ends with %q", got)
				}
			})
		}
	}
}

// hangUp closes the terminal, as closing its window does.
func (x *terminal) hangUp() { x.keys.Close() }

// detach leaves a turn to the engine, and waits until its command runs.
func (d *desk) detach(prompt string) (id string) {
	d.t.Helper()
	id = strings.TrimSpace(d.output(d.dir, "run", "--yolo", "--model", "m", "--detach", prompt))
	_, err := d.up.Read(make([]byte, 3))
	must(d.t, err)
	return id
}

func TestADetachedRunLeavesTheTurnToTheEngine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	engine := d.startServe()
	defer engine.Process.Signal(syscall.SIGTERM)
	id := d.detach(beatingPrompt("exit 9"))
	got := d.output(d.dir, "abort", id)
	if !strings.Contains(got, "stopped the turn and 1 command: ") {
		t.Errorf("abort says %q", got)
	}
	must(t, engine.Process.Signal(syscall.SIGTERM))
	engine.ends()
	d.checkStopped("pids")
}

// A script has started the run in the background and ignores Ctrl-C for it.
func TestAnIgnoredCtrlCStaysIgnored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	x := newTerminal(t)
	p := d.program(x, "-c", `trap "" INT; exec abide run --yolo --model m "$1"`, "sh",
		"Run `echo up >up; while [ ! -e go ]; do sleep 0.01; done; echo done`, then reply with the result")
	p.Path, p.Args[0] = "/bin/sh", "sh"
	must(t, p.Start())
	_, err := d.up.Read(make([]byte, 3))
	must(t, err)
	x.typed("\x03")
	must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	x.await("done")
	if code := x.awaitExit(p); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestStopTakesASessionOrACommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	engine := d.startServe()
	defer engine.Process.Signal(syscall.SIGTERM)
	d.output(d.dir, "run", "--yolo", "--model", "m", "Run `echo $$ >>pids; exec sleep 1000` in the background")
	task := regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(d.output(d.dir, "ps", "--json"))[1]
	id := strings.TrimSpace(d.output(d.dir, "run", "--continue", "--yolo", "--detach", beatingPrompt("exit 9")))
	_, err := d.up.Read(make([]byte, 3))
	must(t, err)
	if got := d.output(d.dir, "stop", id); !strings.Contains(got, "is idle: stopped the turn and 1 command: ") {
		t.Errorf("stop SESSION says %q", got)
	}
	if got := d.output(d.dir, "ps"); !strings.Contains(got, task) {
		t.Errorf("the command in the background is gone: %s", got)
	}
	if got := d.output(d.dir, "stop", "--all", id[:13]); !strings.Contains(got, "no turn was running") || !strings.Contains(got, task+" killed") {
		t.Errorf("stop --all SESSION says %q", got)
	}
	for _, c := range []struct{ args, want string }{
		{"stop nothing-like-it", "there is no session or task nothing-like-it"},
		{"stop --all " + task, "--all is for a session"},
	} {
		p := command(t, d.dir, strings.Fields(c.args)...)
		if err := p.Run(); err == nil || p.ProcessState.ExitCode() != 2 || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("abide %s: %v, %s", c.args, err, p.stderr)
		}
	}
	must(t, engine.Process.Signal(syscall.SIGTERM))
	engine.ends()
	d.checkStopped("pids")
}

// sessionOf returns the id of the only session.
func (d *desk) sessionOf() string {
	d.t.Helper()
	return regexp.MustCompile(`"sessionId":"([^"]+)"`).FindStringSubmatch(d.output(d.dir, "sessions", "list", "--json"))[1]
}

// taskOf returns the id of the only command that runs.
func (d *desk) taskOf() string {
	d.t.Helper()
	return regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(d.output(d.dir, "ps", "--json"))[1]
}

// awaitReport waits until the log of a session has the end of a command.
func (d *desk) awaitReport(id string) {
	d.t.Helper()
	for !strings.Contains(d.output(d.dir, "sessions", "export", id), `"type":"task.reported"`) {
		if d.t.Context().Err() != nil {
			d.t.Fatal("the end of the command is not reported")
		}
	}
}

// A person stops a session that rests while its commands run in the background. Their
// end begins no turn, whether they are stopped with the session or end by themselves.
func TestAStopOfASessionAtRestHolds(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, serves := range []bool{false, true} {
			t.Run(fmt.Sprintf("all=%v/serve=%v", all, serves), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				const prompt = "Run `echo $$ >>pids; while [ ! -e go ]; do sleep 0.01; done; exit 3` in the background"
				engine := command(t, d.dir, "serve")
				if serves {
					engine.Env = append(engine.Env, "OPENAI_BASE_URL="+d.model.url, "OPENAI_API_KEY=k")
					engine.begin()
					engine.await("serves .*engine")
				}
				d.output(d.dir, "run", "--yolo", "--model", "m", prompt)
				id, asked := d.sessionOf(), d.model.about("pids")
				if all {
					if got := d.output(d.dir, "stop", "--all", id); !strings.Contains(got, "no turn was running") || !strings.Contains(got, "killed") {
						t.Errorf("stop --all says %q", got)
					}
				} else {
					d.output(d.dir, "stop", id)
					task := d.taskOf()
					must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
					d.output(d.dir, "logs", "-f", task) // the command logs returns when the task has ended
				}
				if serves {
					d.awaitReport(id)
					must(t, engine.Process.Signal(syscall.SIGTERM))
					engine.ends()
				}
				d.checkStopped("pids")
				if n := d.model.about("pids") - asked; n != 0 {
					t.Errorf("%d requests were made after the stop", n)
				}
				d.output(d.dir, "run", "--resume", id, "Reply with exactly: GOES ON")
				want := map[bool]string{false: "exit-code", true: "killed"}[all]
				if d.model.about("GOES ON") != 1 || d.model.about(want) == 0 {
					t.Errorf("the next message does not bring the news of the command")
				}
			})
		}
	}
}

// A prompt waits behind the turn that is stopped. abide stop keeps it as Ctrl-C does,
// abide abort drops it, and both say so.
func TestStopKeepsWhatWaitsAndAbortDropsIt(t *testing.T) {
	for verb, says := range map[string]string{
		"stop":  "1 queued prompt is kept and waits",
		"abort": "; dropped 1 queued prompt\n",
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			engine := d.startServe()
			defer engine.Process.Signal(syscall.SIGTERM)
			id := d.detach(beatingPrompt("exit 9"))
			d.output(d.dir, "run", "--resume", id, "--detach", "Reply with exactly: WAITED")
			p := command(t, d.dir, verb, id)
			out, err := p.Output()
			if got := string(out) + p.stderr.String(); err != nil || !strings.Contains(got, says) {
				t.Errorf("abide %s says %q, %v", verb, got, err)
			}
			if d.model.about("WAITED") != 0 {
				t.Error("what waited goes on")
			}
			p = command(t, d.dir, "run", "--resume", id)
			out, _ = p.Output() // the news of the command that was stopped may be answered, too
			if kept := d.model.about("WAITED") > 0; kept != (verb == "stop") {
				t.Errorf("--resume answers %q; %s", out, p.stderr)
			}
		})
	}
}
