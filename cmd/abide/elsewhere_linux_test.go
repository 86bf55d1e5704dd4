package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// An elsewhere is a machine with the engine, and another one with the files and commands
// of its sessions, which the engine calls box.
type elsewhere struct {
	t      *testing.T
	dir    string   // folder of the engine
	there  string   // folder of the other machine; src in it is served
	args   []string // arguments of abide workspace, beside the folder
	env    []string // further environment of abide workspace
	serves *program
}

// newElsewhere starts a workspace on a Unix socket.
func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := newMachines(t)
	socket := filepath.Join(e.there, "w.sock")
	e.args = []string{"--listen", "unix:" + socket}
	e.configure("[workspaces.box]\naddress = \"unix:" + socket + "\"\n")
	e.serve()
	return e
}

// newSecureElsewhere starts a workspace over TCP with TLS and a token.
func newSecureElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := newMachines(t)
	certificate(t, e.there)
	must(t, os.WriteFile(filepath.Join(e.there, "token"), []byte("a secret\n"), 0o600))
	e.args = []string{"--listen", "tcp:" + steadyAddress(t), "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "token"}
	address := e.serve()
	e.configure("[workspaces.box]\naddress = \"" + address + "\"\ntls_ca = \"" + filepath.Join(e.there, "cert.pem") + "\"\ntoken_file = \"" + filepath.Join(e.there, "token") + "\"\n")
	return e
}

// steadyAddress returns an address at which a program can listen, end and listen again. Its
// port is below those that the system hands out by itself (32768 and up), one of which
// another connection could get in between.
func steadyAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(22000)))
		if err == nil {
			must(t, l.Close())
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func newMachines(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{t: t, dir: t.TempDir(), there: t.TempDir()}
	must(t, os.MkdirAll(filepath.Join(e.there, "src"), 0o755))
	must(t, os.MkdirAll(filepath.Join(e.dir, "home"), 0o700))
	must(t, os.WriteFile(filepath.Join(e.there, "src", "f"), []byte("text there\n"), 0o644))
	return e
}

// configure writes the configuration of the engine. Its patience is short.
func (e *elsewhere) configure(text string) {
	e.t.Helper()
	must(e.t, os.WriteFile(filepath.Join(e.dir, "home", "config.toml"), []byte(text+"[workspace]\npatience = \"200ms\"\n"), 0o600))
}

// serve starts the workspace and returns its address.
func (e *elsewhere) serve() string {
	e.t.Helper()
	e.serves = command(e.t, e.there, append([]string{"workspace", "--dir", "src"}, e.args...)...)
	e.serves.Env = append(append(e.serves.Env, "PLACE=there"), e.env...)
	e.serves.begin()
	return e.serves.await(`^listening on (\S+)\n`)[1]
}

// kill kills the workspace. Its commands go on.
func (e *elsewhere) kill() {
	e.t.Helper()
	must(e.t, syscall.Kill(e.serves.pid(), syscall.SIGKILL))
	e.serves.ends()
}

// command prepares a run of the program on the machine of the engine, with keys and
// variables that only it has.
func (e *elsewhere) command(args ...string) *program {
	p := command(e.t, e.dir, args...)
	p.Env = append(p.Env, "OPENAI_API_KEY=sk-of-the-engine", "PLACE=here", "ONLY_HERE=secret")
	return p
}

// run makes a run end, and returns what it prints and its exit code.
func (e *elsewhere) run(args ...string) (stdout, stderr string, code int) {
	e.t.Helper()
	p := e.command(append([]string{"run", "--model", "offline", "--yolo"}, args...)...)
	out, err := p.Output()
	if p.ProcessState == nil {
		e.t.Fatal(err)
	}
	return string(out), p.stderr.String(), p.ProcessState.ExitCode()
}

// answer returns the answer of a run that succeeds.
func (e *elsewhere) answer(args ...string) string {
	e.t.Helper()
	out, stderr, code := e.run(args...)
	if code != 0 {
		e.t.Fatalf("%q: exit code %d, %s", args, code, stderr)
	}
	return out
}

// last returns the id of the newest session.
func (e *elsewhere) last() event.SessionID {
	e.t.Helper()
	c := e.engine()
	list, err := c.client.List(e.t.Context(), "")
	must(e.t, err)
	c.stop()
	return list[0].SessionID
}

// A servedEngine is an engine with a client.
type servedEngine struct {
	*program
	client *client.Client
}

// engine starts an engine and connects to it.
func (e *elsewhere) engine() *servedEngine {
	e.t.Helper()
	p := e.command("serve", "--listen", "127.0.0.1:0")
	p.begin()
	address := p.await(`^listening on (\S+)\n`)[1]
	token, err := os.ReadFile(p.await(`^token in (\S+)\n`)[1])
	must(e.t, err)
	c, err := dial(e.t, address, strings.TrimSpace(string(token)))
	must(e.t, err)
	return &servedEngine{p, c}
}

func (s *servedEngine) stop() {
	s.t.Helper()
	must(s.t, s.Process.Signal(syscall.SIGTERM))
	s.ends()
}

// kill kills the engine as a crash would.
func (s *servedEngine) kill() {
	s.t.Helper()
	must(s.t, syscall.Kill(s.pid(), syscall.SIGKILL))
	s.ends()
}

// create begins a session in the workspace box.
func (s *servedEngine) create() (event.SessionID, *client.Stream) {
	s.t.Helper()
	id := event.SessionID(event.NewID())
	stream := s.client.Watch(id)
	_, err := s.client.Create(s.t.Context(), api.OpenParams{SessionID: id, Model: "offline", Abide: &api.OpenAbide{Approve: "all", Workspace: "box"}})
	must(s.t, err)
	return id, stream
}

// resume comes back to a session.
func (s *servedEngine) resume(id event.SessionID) *client.Stream {
	s.t.Helper()
	stream := s.client.Watch(id)
	_, err := s.client.Resume(s.t.Context(), api.OpenParams{SessionID: id, Abide: &api.OpenAbide{Keep: true}})
	must(s.t, err)
	return stream
}

func (s *servedEngine) send(id event.SessionID, prompt string) {
	s.t.Helper()
	_, err := s.client.Send(s.t.Context(), api.SendParams{SessionID: id, Prompt: prompt})
	must(s.t, err)
}

// awaitEvent waits for an event of a type that contains a text.
func awaitEvent(t *testing.T, s *client.Stream, kind event.Type, text string) event.Event {
	t.Helper()
	for {
		e, err := s.Next(t.Context())
		must(t, err)
		if e.Type == kind && strings.Contains(string(e.Bytes), text) {
			return e
		}
	}
}

// notifications counts what the model was told about tasks.
func (s *servedEngine) notifications(id event.SessionID) (n int) {
	s.t.Helper()
	for e, err := range s.client.Events(s.t.Context(), id, 0) {
		must(s.t, err)
		if e.Type == event.SystemNotification {
			n++
		}
	}
	return n
}

// background makes a session run a command in the background that ends with a status
// when there is a file named go.
func (s *servedEngine) background(id event.SessionID, stream *client.Stream) {
	s.t.Helper()
	s.send(id, "Run `echo up; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 7` in the background")
	awaitEvent(s.t, stream, event.SessionIdle, "")
}

func (e *elsewhere) letGo() {
	e.t.Helper()
	must(e.t, os.WriteFile(filepath.Join(e.there, "src", "go"), nil, 0o644))
}

func TestASessionWorksInItsWorkspace(t *testing.T) {
	for name, machines := range map[string]func(*testing.T) *elsewhere{"Unix": newElsewhere, "TCPWithTLSAndToken": newSecureElsewhere} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := machines(t)
			src := filepath.Join(e.there, "src")
			out, stderr, _ := e.run("--workspace", "box", "Run `pwd; cat f; env`")
			if !strings.Contains(out, src+"\ntext there\n") || !strings.Contains(out, "PLACE=there") || !strings.Contains(stderr, "works in the workspace box, in "+src) {
				t.Errorf("%s\n%s", out, stderr)
			}
			for _, secret := range []string{"sk-of-the-engine", "ONLY_HERE", "PLACE=here", "a secret"} {
				if strings.Contains(out, secret) {
					t.Errorf("%s reached the workspace:\n%s", secret, out)
				}
			}
			id := string(e.last())
			if got := e.answer("--resume", id, `Use view with {"path":"`+src+`/f"}`); !strings.Contains(got, "text there") {
				t.Errorf("view: %s", got)
			}
			e.answer("--resume", id, `Use create with {"path":"`+src+`/made","file_text":"made there\n"}`)
			if b, err := os.ReadFile(filepath.Join(src, "made")); string(b) != "made there\n" {
				t.Errorf("created %q, %v", b, err)
			}
			if got := e.answer("--resume", id, `Use grep with {"pattern":"made th"}`); !strings.Contains(got, "made") {
				t.Errorf("grep: %s", got)
			}
			if got := output(t, e.dir, "sessions", "list"); !strings.Contains(got, "[box]") {
				t.Errorf("the list: %s", got)
			}
			if got := output(t, e.dir, "sessions", "show", id); !strings.Contains(got, "in "+src+"  of the workspace box") {
				t.Errorf("show: %s", got)
			}
			if _, stderr, code := e.run("--resume", id, "--workspace", "local", "Run `pwd`"); code != 1 || !strings.Contains(stderr, "keeps its workspace for life: session "+id+" works in box, not in local") {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			fork := strings.TrimSpace(output(t, e.dir, "sessions", "fork", id, "--quiet"))
			if got := e.answer("--resume", fork[strings.LastIndexByte(fork, ' ')+1:], "Run `echo $PLACE`"); !strings.HasPrefix(got, "there\n") {
				t.Errorf("a fork runs %q", got)
			}
			work := `Use task with {"name":"n","description":"d","agent_type":"general-purpose","prompt":"Run ` + "`echo agent $PLACE`" + `"}`
			if got := e.answer("--resume", id, work); !strings.Contains(got, "agent there") {
				t.Errorf("an agent runs %q", got)
			}
			c := e.engine()
			_, err := c.client.Rewind(t.Context(), api.RewindParams{SessionID: event.SessionID(id), EventID: firstPrompt(t, c, event.SessionID(id))})
			must(t, err)
			c.stop()
			if _, err := os.Stat(filepath.Join(src, "made")); !os.IsNotExist(err) {
				t.Errorf("what was created is still there after the rewind: %v", err)
			}
			if got := e.answer("Run `echo $PLACE`"); !strings.HasPrefix(got, "here\n") {
				t.Errorf("a session without a workspace runs %q", got)
			}
		})
	}
}

// firstPrompt returns the event of the first prompt of a session.
func firstPrompt(t *testing.T, s *servedEngine, id event.SessionID) string {
	t.Helper()
	for e, err := range s.client.Events(t.Context(), id, 0) {
		must(t, err)
		if e.Type == event.UserMessage {
			head, err := e.Head()
			must(t, err)
			return head.ID
		}
	}
	t.Fatal("there is no prompt")
	return ""
}

// A rewind that could not restore the files takes nothing back.
func TestARewindWaitsForTheWorkspace(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	made := filepath.Join(e.there, "src", "made")
	e.answer("--workspace", "box", `Use create with {"path":"`+made+`","file_text":"made there\n"}`)
	id := e.last()
	engine := e.engine()
	rewind := func(mode string) error {
		_, err := engine.client.Rewind(t.Context(), api.RewindParams{SessionID: id, EventID: firstPrompt(t, engine, id), Mode: mode})
		return err
	}
	e.kill()
	if err := rewind(""); err == nil || !strings.Contains(err.Error(), "nothing was taken back") {
		t.Errorf("while the workspace is away: %v", err)
	}
	e.serve()
	must(t, rewind(""))
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("what was created is still there after the rewind: %v", err)
	}
	e.kill()
	must(t, rewind(api.ConversationOnly)) // it was taken back already
	engine.stop()
}

func TestAWorkspaceThatCannotBeUsedIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	e := newSecureElsewhere(t)
	ca, wrong := filepath.Join(e.there, "cert.pem"), filepath.Join(e.dir, "wrong")
	must(t, os.WriteFile(wrong, []byte("wrong\n"), 0o600))
	for want, text := range map[string]string{
		"there is no workspace box in the configuration":       "",
		"does not accept the token; the token in ":             "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntls_ca = \"" + ca + "\"\ntoken_file = \"" + wrong + "\"\n",
		"cannot be read: " + ca + " holds no token":            "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntls_ca = \"" + ca + "\"\ntoken_file = \"" + ca + "\"\n",
		"does not accept the token; a request without a token": "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntls_ca = \"" + ca + "\"\n",
		"is not trusted (": "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntls_ca = \"" + ca + "\"\ntls_server_name = \"other\"\n",
		"cannot be reached (connect: no such file or directory); start": "[workspaces.box]\naddress = \"unix:none\"\n",
		"the certificates for the workspace box cannot be read":         "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntls_ca = \"none\"\n",
		"the token of the workspace box cannot be read":                 "[workspaces.box]\naddress = \"" + e.args[1] + "\"\ntoken_file = \"none\"\n",
		"has no address: set workspaces.box.address":                    "[workspaces.box]\ndir = \"/\"\n",
	} {
		e.configure(text)
		wantCode := 1
		if text == "" {
			wantCode = 2 // a mistake on the command line
		}
		if _, stderr, code := e.run("--workspace", "box", "Run `pwd`"); code != wantCode || !strings.Contains(stderr, want) || !strings.Contains(stderr, "box") {
			t.Errorf("exit code %d, want %q: %s", code, want, stderr)
		}
		check := e.command("workspace", "check", "box")
		out, err := check.Output()
		if err == nil || check.ProcessState.ExitCode() != 1 || !strings.Contains(check.stderr.String(), want) {
			t.Errorf("check: %v, %s, %s", err, out, check.stderr)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(e.there, "home", "workspace", "processes")); err == nil {
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "p") {
				t.Errorf("something ran: %s", entry.Name())
			}
		}
	}
}

func TestAnotherWorkspaceAtTheSameAddressIsRefused(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	e.answer("--workspace", "box", "Run `pwd`")
	id := string(e.last())
	e.kill()
	identity := filepath.Join(e.there, "home", "workspace", "identity")
	was, err := os.ReadFile(identity)
	must(t, err)
	must(t, os.Remove(identity))
	e.serve()
	got := e.answer("--resume", id, "Run `touch ran`")
	if !strings.Contains(got, "it is another workspace than before") || !strings.Contains(got, "begin a new session") {
		t.Errorf("it answers %s", got)
	}
	if _, err := os.Stat(filepath.Join(e.there, "src", "ran")); !os.IsNotExist(err) {
		t.Errorf("the command ran: %v", err)
	}
	e.kill()
	must(t, os.WriteFile(identity, was, 0o600))
	e.serve()
	e.answer("--resume", id, "Run `touch ran`")
	if _, err := os.Stat(filepath.Join(e.there, "src", "ran")); err != nil {
		t.Errorf("the workspace is back: %v", err)
	}
}

func TestATaskElsewhereIsFoundAgainAfterTheEngineWasKilled(t *testing.T) {
	for name, machines := range map[string]func(*testing.T) *elsewhere{"Unix": newElsewhere, "TCPWithTLSAndToken": newSecureElsewhere} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := machines(t)
			first := e.engine()
			id, stream := first.create()
			first.background(id, stream)
			first.kill()
			second := e.engine()
			stream = second.resume(id)
			e.letGo()
			awaitEvent(t, stream, event.SystemNotification, "exit-code>7<")
			awaitEvent(t, stream, event.SessionIdle, "")
			second.send(id, "Reply with exactly: DONE")
			awaitEvent(t, stream, event.AssistantMessage, "DONE")
			second.kill()
			third := e.engine()
			third.send(id, "Reply with exactly: AGAIN")
			if n := third.notifications(id); n != 1 {
				t.Errorf("the model was notified %d times", n)
			}
			third.stop()
		})
	}
}

func TestATaskWhoseWorkspaceIsAwayIsUnreachableAndNotLost(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	engine := e.engine()
	id, stream := engine.create()
	engine.background(id, stream)
	e.kill()
	task := theOnlyTask(t, engine.client, id)
	if task.Status != api.TaskUnreachable || !strings.Contains(task.Command, "exit 7") || !strings.Contains(task.Reason, "workspace box") || task.Started == "" {
		t.Errorf("%+v", task)
	}
	_, err := engine.client.StopTask(t.Context(), api.TaskParams{SessionID: id, TaskID: task.TaskID})
	if err == nil || !strings.Contains(err.Error(), "abide stop --give-up "+task.TaskID) {
		t.Errorf("stop: %v", err)
	}
	if got := output(t, e.dir, "status"); !strings.Contains(got, "0 running, 1 unreachable\n") {
		t.Errorf("status: %s", got)
	}
	// An engine that starts does not wait for it, and other sessions go on.
	engine.kill()
	engine = e.engine()
	if got := theOnlyTask(t, engine.client, id); got.Status != api.TaskUnreachable || got.TaskID != task.TaskID {
		t.Errorf("after a crash: %+v", got)
	}
	other := event.SessionID(event.NewID())
	watched := engine.client.Watch(other)
	_, err = engine.client.Create(t.Context(), api.OpenParams{SessionID: other, Model: "offline", Abide: &api.OpenAbide{Approve: "all"}})
	must(t, err)
	engine.send(other, "Run `echo $PLACE`")
	awaitEvent(t, watched, event.AssistantMessage, "here")
	stream = engine.resume(id)
	for range 3 { // calls wait until they are out of patience, and so does whoever watches the task
		engine.send(id, "Run `pwd`")
		awaitEvent(t, stream, event.ToolComplete, "cannot be reached")
		awaitEvent(t, stream, event.SessionIdle, "")
	}
	if n := engine.notifications(id); n != 0 || theOnlyTask(t, engine.client, id).Status != api.TaskUnreachable {
		t.Errorf("the model was notified %d times while nobody knows anything", n)
	}
	e.letGo()
	e.serve()
	awaitEvent(t, stream, event.SystemNotification, "exit-code>7<")
	awaitEvent(t, stream, event.SessionIdle, "")
	if n := engine.notifications(id); n != 1 {
		t.Errorf("the model was notified %d times", n)
	}
	if got := theOnlyTask(t, engine.client, id); got.Status != event.TaskFailed || got.ExitCode == nil || *got.ExitCode != 7 || got.TaskID != task.TaskID {
		t.Errorf("at the end: %+v", got)
	}
	out, err := engine.client.TaskOutput(t.Context(), api.TaskOutputParams{SessionID: id, TaskID: task.TaskID})
	if string(out.Data) != "up\nover\n" || err != nil {
		t.Errorf("output %q, %v", out.Data, err)
	}
	engine.stop()
	// An engine that has not used the session yet knows nothing of what has ended there, and asks.
	if got := output(t, e.dir, "ps", "--all", string(id)); !strings.Contains(got, task.TaskID) {
		t.Errorf("the commands of the session are %q", got)
	}
	if got := output(t, e.dir, "logs", "--session", string(id), task.TaskID); got != "up\nover\n" {
		t.Errorf("the output is %q", got)
	}
	p := e.command("logs", task.TaskID)
	if _, err := p.Output(); err == nil || !strings.Contains(p.stderr.String(), "abide ps --all SESSION") {
		t.Errorf("%v, %s", err, p.stderr)
	}
}

func theOnlyTask(t *testing.T, c *client.Client, id event.SessionID) api.Task {
	t.Helper()
	one, err := c.Tasks(t.Context(), api.TasksParams{SessionID: id, All: true})
	must(t, err)
	all, err := c.Tasks(t.Context(), api.TasksParams{All: true})
	must(t, err)
	found := 0
	for _, task := range all.Tasks {
		if task.SessionID == id {
			found++
		}
	}
	if len(one.Tasks) != 1 || found != 1 {
		t.Fatalf("%d tasks of the session, and %d in the list of all", len(one.Tasks), found)
	}
	return one.Tasks[0]
}

func TestATaskWhoseWorkspaceIsAwayCanBeGivenUp(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	engine := e.engine()
	id, stream := engine.create()
	engine.background(id, stream)
	engine.send(id, "Run `echo over`") // what has ended is not unreachable
	awaitEvent(t, stream, event.SessionIdle, "")
	e.kill()
	name := theOnlyTask(t, engine.client, id).TaskID
	if got := output(t, e.dir, "stop", "--give-up", name); got != name+" lost\n" {
		t.Errorf("stop says %q", got)
	}
	awaitEvent(t, stream, event.SystemNotification, "given up")
	awaitEvent(t, stream, event.SessionIdle, "")
	e.serve()
	output(t, e.dir, "audit", "--workspace", filepath.Join(e.there, "home")) // it runs there, and nothing is broken
	e.letGo()
	connected := connect(t, bridge.ClientOptions{Address: e.args[1]})
	list, err := connected.Processes.List(t.Context(), process.Owner(id))
	must(t, err)
	_, err = connected.Processes.Wait(t.Context(), process.Owner(id), list[0].ID)
	must(t, err)
	engine.send(id, "Reply with exactly: DONE")
	awaitEvent(t, stream, event.AssistantMessage, "DONE")
	engine.kill()
	engine = e.engine()
	stream = engine.resume(id)
	engine.send(id, "Reply with exactly: AGAIN")
	awaitEvent(t, stream, event.AssistantMessage, "AGAIN")
	if n := engine.notifications(id); n != 1 {
		t.Errorf("the model was notified %d times", n)
	}
	output(t, e.dir, "audit", "--workspace", filepath.Join(e.there, "home")) // it has ended there
	engine.stop()
}

func TestAnAbortDoesNotWaitForAWorkspaceThatIsAway(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	must(t, os.WriteFile(filepath.Join(e.dir, "home", "config.toml"), []byte("[workspaces.box]\naddress = \""+e.args[1]+"\"\n[workspace]\npatience = \"1h\"\n"), 0o600))
	engine := e.engine()
	id, stream := engine.create()
	up := filepath.Join(e.there, "src", "up")
	must(t, syscall.Mkfifo(up, 0o600))
	engine.send(id, `Use bash with {"command":"echo up >up; while [ ! -e go ]; do sleep 0.02; done; echo x >ended","description":"Wait","initial_wait":600}`)
	_, err := os.ReadFile(up) // the command runs
	must(t, err)
	e.kill()
	task := theOnlyTask(t, engine.client, id)
	if task.Status != api.TaskUnreachable || !strings.Contains(task.Command, "echo up") {
		t.Errorf("the command that the turn waits for is %+v", task)
	}
	if _, err := engine.client.StopTask(t.Context(), api.TaskParams{SessionID: id, TaskID: task.TaskID, GiveUp: true}); err == nil || !strings.Contains(err.Error(), "abide stop "+string(id)) {
		t.Errorf("stop: %v", err)
	}
	if _, err := engine.client.Abort(t.Context(), api.AbortParams{SessionID: id, Reason: "user_initiated"}); err != nil {
		t.Errorf("abort: %v", err)
	}
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.send(id, "Run `pwd`") // waits for the workspace
	awaitEvent(t, stream, event.ToolStart, "pwd")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := engine.client.Abort(ctx, api.AbortParams{SessionID: id, Reason: "user_initiated"}); err != nil {
		t.Errorf("abort: %v", err)
	}
	awaitEvent(t, stream, event.SessionIdle, "")
	// What was stopped is stopped when the workspace is back.
	e.serve()
	ws := connect(t, bridge.ClientOptions{Address: e.args[1]})
	list, err := ws.Processes.List(t.Context(), process.Owner(id))
	must(t, err)
	if info, err := ws.Processes.Wait(t.Context(), process.Owner(id), list[0].ID); err != nil || info.State != process.Killed {
		t.Errorf("%+v, %v", info, err)
	}
	for theOnlyTask(t, engine.client, id).Status != event.TaskKilled {
		awaitEvent(t, stream, event.TasksChanged, "")
	}
	if _, err := os.Stat(filepath.Join(e.there, "src", "ended")); !os.IsNotExist(err) {
		t.Errorf("the command went on to its end: %v", err)
	}
	engine.stop()
}

// A command that a call waits for is not forgotten when the call cannot wait any longer.
func TestACommandWhoseWorkspaceGoesAwayBecomesATask(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	engine := e.engine()
	id, stream := engine.create()
	up := filepath.Join(e.there, "src", "up")
	must(t, syscall.Mkfifo(up, 0o600))
	engine.send(id, "Run `echo up >up; while [ ! -e go ]; do sleep 0.02; done; exit 7`")
	_, err := os.ReadFile(up) // the command runs
	must(t, err)
	e.kill()
	awaitEvent(t, stream, event.ToolComplete, "The workspace cannot be reached")
	awaitEvent(t, stream, event.SessionIdle, "")
	if task := theOnlyTask(t, engine.client, id); task.Status != api.TaskUnreachable {
		t.Errorf("%+v", task)
	}
	engine.kill()
	engine = e.engine()
	stream = engine.resume(id)
	e.letGo()
	e.serve()
	awaitEvent(t, stream, event.SystemNotification, "exit-code>7<")
	awaitEvent(t, stream, event.SessionIdle, "")
	if n := engine.notifications(id); n != 1 {
		t.Errorf("the model was notified %d times", n)
	}
	engine.stop()
}

// The workspace is away when a session is deleted. Its command is ended when the workspace is
// back, by the same engine or by the next one.
func TestADeletedSessionLeavesNoCommandElsewhere(t *testing.T) {
	for name, restart := range map[string]bool{"SameEngine": false, "NextEngine": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newElsewhere(t)
			engine := e.engine()
			id, stream := engine.create()
			engine.background(id, stream)
			e.kill()
			_, err := engine.client.Delete(t.Context(), id)
			must(t, err)
			if restart {
				engine.stop()
			}
			e.serve()
			if restart {
				engine = e.engine()
			}
			ws := connect(t, bridge.ClientOptions{Address: e.args[1]})
			list, err := ws.Processes.List(t.Context(), process.Owner(id))
			must(t, err)
			info, err := ws.Processes.Wait(t.Context(), process.Owner(id), list[0].ID)
			if err != nil || info.Exit == nil || info.Exit.Signal == "" {
				t.Errorf("%+v, %v", info, err)
			}
			engine.stop()
		})
	}
}

// A command has ended elsewhere while no engine was there. A run that is over after one answer
// tells the model, once.
func TestAShortRunLearnsHowACommandElsewhereEnded(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	engine := e.engine()
	id, stream := engine.create()
	engine.background(id, stream)
	engine.stop()
	ws := connect(t, bridge.ClientOptions{Address: e.args[1]})
	list, err := ws.Processes.List(t.Context(), process.Owner(id))
	must(t, err)
	e.letGo()
	_, err = ws.Processes.Wait(t.Context(), process.Owner(id), list[0].ID)
	must(t, err)
	for _, word := range []string{"FIRST", "SECOND"} {
		if got := e.answer("--resume", string(id), "Reply with exactly: "+word); got != word+"\n" {
			t.Errorf("it answers %q", got)
		}
		out, err := e.command("sessions", "export", string(id)).Output()
		must(t, err)
		log := string(out)
		told := strings.Index(log, `"type":"system.notification"`)
		if n := strings.Count(log, `"type":"system.notification"`); n != 1 || !strings.Contains(log, "exit-code>7<") || told > strings.LastIndex(log, `"content":"FIRST"`) {
			t.Errorf("after %s the model was told %d times: %s", word, n, log)
		}
	}
}

func TestWorkspacesAreListedAndChecked(t *testing.T) {
	t.Parallel()
	e := newSecureElsewhere(t)
	if got := output(t, e.dir, "workspace", "list"); !strings.Contains(got, "local *") || !strings.Contains(got, e.args[1]) {
		t.Errorf("%s", got)
	}
	identity, err := os.ReadFile(filepath.Join(e.there, "home", "workspace", "identity"))
	must(t, err)
	got := output(t, e.dir, "workspace", "check")
	for _, want := range []string{"box", strings.TrimSpace(string(identity)), " ms", "same", "iB", filepath.Join(e.there, "src")} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
	if got := output(t, e.dir, "doctor"); !strings.Contains(got, "workspace box") {
		t.Errorf("doctor: %s", got)
	}
	engine := e.engine()
	list, err := engine.client.Workspaces(t.Context())
	if err != nil || len(list.Workspaces) != 2 || list.Workspaces[0].Name != "local" || !list.Workspaces[0].Default || list.Workspaces[1].Name != "box" {
		t.Errorf("%+v, %v", list, err)
	}
	engine.stop()
	e.kill()
	check := e.command("workspace", "check", "--json")
	out, err := check.Output()
	if err == nil || check.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), `"usable":false`) || !strings.Contains(string(out), "cannot be reached") {
		t.Errorf("%v: %s", err, out)
	}
}

// An engine that runs for long takes part in what changes: a workspace that is new in the
// configuration, and a token that is another one.
func TestAnEngineReadsTheConfigurationOfWorkspacesAgain(t *testing.T) {
	t.Parallel()
	e := newSecureElsewhere(t)
	text, err := os.ReadFile(filepath.Join(e.dir, "home", "config.toml"))
	must(t, err)
	e.configure("")
	engine := e.engine()
	must(t, os.WriteFile(filepath.Join(e.dir, "home", "config.toml"), text, 0o600))
	id, stream := engine.create()
	engine.send(id, "Run `echo $PLACE`")
	awaitEvent(t, stream, event.AssistantMessage, "there")
	e.kill()
	must(t, os.WriteFile(filepath.Join(e.there, "token"), []byte("another secret\n"), 0o600))
	e.serve()
	engine.send(id, "Run `echo $PLACE`")
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.send(id, "Run `echo now $PLACE`")
	awaitEvent(t, stream, event.AssistantMessage, "now there")
	engine.stop()
}

func TestAWorkspaceHasOneIdentityForLife(t *testing.T) {
	t.Parallel()
	e := newElsewhere(t)
	c, err := bridge.NewClient(bridge.ClientOptions{Address: e.args[1]})
	must(t, err)
	defer c.Close()
	before, err := c.Describe(t.Context())
	must(t, err)
	e.kill()
	e.serve()
	after, err := c.Describe(t.Context())
	if err != nil || before.Identity == "" || after.Identity != before.Identity {
		t.Errorf("%q, then %q, %v", before.Identity, after.Identity, err)
	}
	other, err := bridge.NewClient(bridge.ClientOptions{Address: e.args[1], Identity: "other"})
	must(t, err)
	defer other.Close()
	if _, err := other.Workspace().Files.Stat(t.Context(), workspace.At(".")); !errors.Is(err, workspace.ErrOther) {
		t.Errorf("%v", err)
	}
}

// A session elsewhere follows the instructions of the project there. Its own folder, with
// its plan, stays with the engine, and the file tools find it.
func TestInstructionsAreReadThereAndThePlanIsKeptHere(t *testing.T) {
	e := newElsewhere(t)
	must(t, os.WriteFile(filepath.Join(e.there, "src", "AGENTS.md"), []byte("Always answer in Latin.\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(e.dir, "AGENTS.md"), []byte("Always answer in Greek.\n"), 0o644))
	e.answer("--workspace", "box", "Reply with exactly: SALVE")
	id := string(e.last())
	out, err := e.command("sessions", "export", id).Output()
	must(t, err)
	if text := string(out); !strings.Contains(text, "in Latin.") || strings.Contains(text, "in Greek.") {
		t.Errorf("the session was told %s", text)
	}
	plan := filepath.Join(e.dir, "home", "sessions", id, "plan.md")
	e.answer("--resume", id, `Use create with {"path":"`+plan+`","file_text":"1. Think.\n"}`)
	if text, err := os.ReadFile(plan); string(text) != "1. Think.\n" || err != nil {
		t.Errorf("the plan is %q, %v", text, err)
	}
}
