package daemon_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A lyingWorkspace has real files and processes, and changes its answers.
type lyingWorkspace struct {
	workspace.Processes
	place workspaces.Place

	mu    sync.Mutex
	asked map[string]chan struct{} // requests that are never answered; closed when there was one
	lie   func(process.Info) process.Info
}

// serveLying serves a workspace at a socket until the test ends.
func serveLying(t *testing.T) *lyingWorkspace {
	t.Helper()
	manager, err := process.Open(t.TempDir(), process.Options{Shell: process.Shell()})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ws := local.New(dir, manager)
	socket := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	w := &lyingWorkspace{Processes: ws.Processes, place: workspaces.Place{Address: "unix:" + socket, Dir: dir}, asked: make(map[string]chan struct{})}
	server := &bridge.Server{Workspace: workspace.Workspace{Files: ws.Files, Processes: w}, About: workspace.Description{Identity: "liar", Dir: dir, Env: os.Environ()}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		<-served
		for _, p := range manager.All() {
			_, _ = manager.Stop(context.Background(), p.Owner, p.ID)
		}
		_ = manager.Close()
	})
	return w
}

// silence makes the workspace stay silent when it is asked for something, and returns a
// channel that is closed when it is.
func (w *lyingWorkspace) silence(call string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[call] = make(chan struct{})
	return w.asked[call]
}

// speak ends the silence about everything.
func (w *lyingWorkspace) speak() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.asked)
}

// answer waits for ever if the workspace is silent about a call.
func (w *lyingWorkspace) answer(ctx context.Context, call string) error {
	w.mu.Lock()
	asked := w.asked[call]
	if asked != nil {
		select {
		case <-asked:
		default:
			close(asked)
		}
	}
	w.mu.Unlock()
	if asked == nil {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// tell makes the workspace lie about processes, or say the truth if lie is nil.
func (w *lyingWorkspace) tell(lie func(process.Info) process.Info) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lie = lie
}

func (w *lyingWorkspace) told(i process.Info) process.Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lie != nil {
		return w.lie(i)
	}
	return i
}

func (w *lyingWorkspace) Find(ctx context.Context, owner process.Owner, key string) (process.Info, error) {
	if err := w.answer(ctx, "find"); err != nil {
		return process.Info{}, err
	}
	i, err := w.Processes.Find(ctx, owner, key)
	return w.told(i), err
}

func (w *lyingWorkspace) List(ctx context.Context, owner process.Owner) ([]process.Info, error) {
	if err := w.answer(ctx, "list"); err != nil {
		return nil, err
	}
	list, err := w.Processes.List(ctx, owner)
	for i := range list {
		list[i] = w.told(list[i])
	}
	return list, err
}

func (w *lyingWorkspace) MarkSeen(ctx context.Context, owner process.Owner, id process.ID) error {
	if err := w.answer(ctx, "seen"); err != nil {
		return err
	}
	return w.Processes.MarkSeen(ctx, owner, id)
}

func (w *lyingWorkspace) Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	if err := w.answer(ctx, "stop"); err != nil {
		return process.Info{}, err
	}
	i, err := w.Processes.Stop(ctx, owner, id)
	return w.told(i), err
}

func withLiar(w *lyingWorkspace) func(*daemon.Config) {
	return func(c *daemon.Config) {
		c.Workspaces = workspaces.Options{Named: map[string]workspaces.Place{"box": w.place}, Patience: time.Second}
	}
}

// sleeper starts a background command that does not end, in a workspace.
func sleeper(s *testDaemon, id, place string) *testSession {
	s.t.Helper()
	a := s.newSession(id, does("go", "Gone.", one("bash", rule{"command": "sleep 1000", "description": "Sleep", "shellId": "z", "mode": "async"}))...)
	if place != "" {
		a.with("abide", rule{"workspace": place})
	}
	a.create()
	a.ask("go")
	return a
}

// awaitEnd waits until a channel is closed, for a limited time: what is tested here is whether
// something ends at all.
func awaitEnd(t *testing.T, what string, end <-chan struct{}) {
	t.Helper()
	select {
	case <-end:
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
	}
}

// stopSoon closes the daemon and opens it again, for the end of the test.
func (s *testDaemon) stopSoon() {
	s.t.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.node.Close()
	}()
	awaitEnd(s.t, "the engine", closed)
	s.open()
}

// A workspace that answers with the process of another session must not get the engine to
// read or stop that one, which may run on this machine.
func TestAWorkspaceCannotNameTheProcessOfAnotherSession(t *testing.T) {
	w := serveLying(t)
	s := newTestDaemon(t, withLiar(w))
	mine := sleeper(s, "mine", "")
	pid := mine.tasks()["z"].PID
	key := stored[event.ToolBegunData](mine, event.ToolBegun)[0].Key
	theirs := sleeper(s, "theirs", "box")
	w.tell(func(i process.Info) process.Info {
		i.Owner, i.ID, i.Key = "mine", process.IDOf("mine", key), key
		return i
	})
	for method, params := range map[string]any{
		api.TaskOutput: api.TaskOutputParams{SessionID: "theirs", TaskID: "z"}, api.TaskStop: api.TaskParams{SessionID: "theirs", TaskID: "z"},
		api.Tasks: api.TasksParams{SessionID: "theirs", All: true},
	} {
		var answer json.RawMessage
		if err := theirs.Call(t.Context(), method, params, &answer); err == nil {
			t.Errorf("%s is answered with %s", method, answer)
		}
	}
	theirs.must(api.SessionAbort, api.AbortParams{SessionID: "theirs"}, nil)
	if syscall.Kill(pid, 0) != nil {
		t.Error("the command of another session was stopped")
	}
	w.tell(nil)
}

// A workspace that gives signs of life and answers nothing else holds up neither the end of
// the engine nor a deletion.
func TestASilentWorkspaceDoesNotHoldUpTheEndOfTheEngine(t *testing.T) {
	for _, call := range []string{"list", "stop", "seen"} {
		t.Run(call, func(t *testing.T) {
			w := serveLying(t)
			s := newTestDaemon(t, withLiar(w))
			theirs := sleeper(s, "theirs", "box")
			asked := w.silence(call)
			deleted := make(chan struct{})
			go func() {
				defer close(deleted)
				_ = theirs.Call(context.Background(), api.SessionDelete, rule{"sessionId": "theirs"}, nil) // the engine may end first
			}()
			awaitEnd(t, "the wait for the workspace", asked)
			s.stopSoon()
			awaitEnd(t, "the deletion", deleted)
			w.speak()
		})
	}
}

// The same while the workspace is told that the end of a task was reported.
func TestASilentWorkspaceIsToldOfReportsWhileNobodyWaits(t *testing.T) {
	w := serveLying(t)
	s := newTestDaemon(t, withLiar(w))
	asked := w.silence("seen")
	a := s.newSession("theirs", append(does("go", "Gone.", one("bash", rule{"command": "true", "description": "True", "shellId": "z", "mode": "async"})), says("A background", "Seen."))...).with("abide", rule{"workspace": "box"}).create()
	a.send("go", "")
	awaitEnd(t, "the wait for the workspace", asked)
	s.stopSoon()
	w.speak()
}

// An abort tells which commands it has stopped, if the workspace says so.
func TestAnAbortDoesNotWaitForTheNamesOfCommands(t *testing.T) {
	w := serveLying(t)
	s := newTestDaemon(t, withLiar(w))
	s.work = w.place.Dir
	up := s.gate("up")
	s.gate("never")
	a := s.newSession("theirs", does("go", "Gone.", one("bash", rule{"command": "echo up >up; read x <never", "description": "Wait", "initial_wait": 600}))...).with("abide", rule{"workspace": "box"}).create()
	a.send("go", "")
	up.await(1)
	w.silence("list")
	var r api.AbortResult
	a.must(api.SessionAbort, api.AbortParams{SessionID: "theirs"}, &r)
	if !r.Success || !r.Turn {
		t.Errorf("the abort is answered with %+v", r)
	}
	w.speak()
}
