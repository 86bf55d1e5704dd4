package bridge_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

// withFence returns a function that returns a fence.
func withFence(session string, era, number int64) func(context.Context) (workspace.Fence, error) {
	return func(context.Context) (workspace.Fence, error) {
		return workspace.Fence{Session: session, Era: era, Number: number}, nil
	}
}

// sharedWorkspace is a workspace that notes fences in a folder.
type sharedWorkspace struct {
	memory *bridgetest.Memory
	ws     workspace.Workspace
	folder string
}

// serve serves the workspace, as after a restart.
func (s *sharedWorkspace) serve(t *testing.T) (stop func()) {
	t.Helper()
	server := &bridge.Server{Workspace: s.ws, Fences: s.folder}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served, l := make(chan error, 1), s.memory.Listen()
	go func() { served <- server.Serve(ctx, l) }()
	return func() {
		cancel()
		must(t, <-served)
	}
}

// changesOf returns all that can be changed in a workspace: files below a folder, and a process.
func changesOf(ws workspace.Workspace, dir string, p process.Info) map[string]func(context.Context) error {
	path := workspace.At(filepath.Join(dir, "file"))
	return map[string]func(context.Context) error{
		"WriteFile": func(ctx context.Context) error {
			return ws.Files.WriteFile(ctx, path, []byte("stale"), workspace.WriteOptions{})
		},
		"Create": func(ctx context.Context) error {
			d, err := ws.Files.Create(ctx, path, workspace.WriteOptions{})
			if err != nil {
				return err
			}
			defer d.Close()
			_, err = d.Write([]byte("stale"))
			return errors.Join(err, d.Commit())
		},
		"Mkdir": func(ctx context.Context) error { return ws.Files.Mkdir(ctx, workspace.At(filepath.Join(dir, "new"))) },
		"Rename": func(ctx context.Context) error {
			return ws.Files.Rename(ctx, path, workspace.At(filepath.Join(dir, "moved")))
		},
		"Delete": func(ctx context.Context) error { return ws.Files.Delete(ctx, path, false) },
		"Apply": func(ctx context.Context) error {
			return ws.Files.Apply(ctx, scope.Data{}.Scope(), workspace.Change{Path: path.Name, New: []byte("stale")})
		},
		"Start": func(ctx context.Context) error {
			_, _, err := ws.Processes.Start(ctx, process.Spec{Key: "another", Owner: p.Owner, Command: "touch " + filepath.Join(dir, "started")})
			return err
		},
		"WriteStdin": func(ctx context.Context) error {
			return ws.Processes.WriteStdin(ctx, p.Owner, p.ID, process.Input{Data: []byte("stale"), Close: true})
		},
		"Resize": func(ctx context.Context) error {
			return ws.Processes.Resize(ctx, p.Owner, p.ID, process.Size{Rows: 1, Cols: 1})
		},
		"Signal":    func(ctx context.Context) error { return ws.Processes.Signal(ctx, p.Owner, p.ID, syscall.SIGKILL) },
		"Stop":      func(ctx context.Context) error { _, err := ws.Processes.Stop(ctx, p.Owner, p.ID); return err },
		"Interrupt": func(ctx context.Context) error { _, err := ws.Processes.Interrupt(ctx, p.Owner, p.ID); return err },
		"MarkSeen":  func(ctx context.Context) error { return ws.Processes.MarkSeen(ctx, p.Owner, p.ID) },
	}
}

// A server that others have taken for dead changes nothing in a workspace any more, once the next
// server of the session has changed something there. The workspace remembers that.
func TestAStaleServerChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := &sharedWorkspace{memory: new(bridgetest.Memory), ws: local.New(dir, workspacetest.Manager(t, filepath.Join(t.TempDir(), "processes"))), folder: filepath.Join(t.TempDir(), "fences")}
	stop := s.serve(t)
	c := client(t, bridge.ClientOptions{Dial: s.memory.Dial})
	stale, next := c.For(withFence("s", 1, 5)), c.For(withFence("s", 1, 6))
	file := filepath.Join(dir, "file")
	must(t, stale.Files.WriteFile(t.Context(), workspace.At(file), []byte("first"), workspace.WriteOptions{}))
	p, _, err := stale.Processes.Start(t.Context(), process.Spec{Key: "k", Owner: "s", Command: "cat", Stdin: true})
	must(t, err)
	defer s.ws.Processes.Stop(context.WithoutCancel(t.Context()), p.Owner, p.ID)
	must(t, next.Files.WriteFile(t.Context(), workspace.At(file), []byte("second"), workspace.WriteOptions{}))
	for range 2 { // also after a restart of the workspace
		for name, change := range changesOf(stale, dir, p) {
			if err := change(t.Context()); !errors.Is(err, workspace.ErrFenced) {
				t.Errorf("%s of a stale server: %v", name, err)
			}
		}
		if text, err := stale.Files.ReadFile(t.Context(), workspace.At(file)); err != nil || string(text) != "second" {
			t.Errorf("a stale server reads %q, %v", text, err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Errorf("in the workspace are %v, %v", names, err)
		}
		if info, err := next.Processes.Get(t.Context(), p.Owner, p.ID); err != nil || info.Gone || info.Seen {
			t.Errorf("the process is %+v, %v", info, err)
		}
		stop()
		stop = s.serve(t)
	}
	defer stop()
	for what, ws := range map[string]workspace.Workspace{
		"the same server": next, "another session": c.For(withFence("other", 1, 1)), "another era": c.For(withFence("s", 2, 1)), "a server alone": c.Workspace(),
	} {
		must(t, ws.Files.WriteFile(t.Context(), workspace.At(filepath.Join(dir, what)), nil, workspace.WriteOptions{}))
	}
	if err := next.Files.WriteFile(t.Context(), workspace.At(file), nil, workspace.WriteOptions{}); !errors.Is(err, workspace.ErrFenced) {
		t.Errorf("a server of an earlier era: %v", err)
	}
}

// A file that a server has begun to write, and a stream with a process, change nothing either.
func TestAStreamOfAStaleServerChangesNothing(t *testing.T) {
	dir := t.TempDir()
	s := &sharedWorkspace{memory: new(bridgetest.Memory), ws: local.New(dir, workspacetest.Manager(t, filepath.Join(t.TempDir(), "processes")))}
	defer s.serve(t)()
	c := client(t, bridge.ClientOptions{Dial: s.memory.Dial})
	stale, next := c.For(withFence("a session/with\nany name", 1, 5)), c.For(withFence("a session/with\nany name", 1, 6))
	file := workspace.At(filepath.Join(dir, "file"))
	draft, err := stale.Files.Create(t.Context(), file, workspace.WriteOptions{})
	must(t, err)
	_, err = draft.Write([]byte("stale"))
	must(t, err)
	must(t, next.Files.WriteFile(t.Context(), file, []byte("next"), workspace.WriteOptions{}))
	if err := draft.Commit(); !errors.Is(err, workspace.ErrFenced) {
		t.Errorf("a stale file: %v", err)
	}
	must(t, draft.Close())
	if text, err := os.ReadFile(file.Name); err != nil || string(text) != "next" {
		t.Errorf("the file says %q, %v", text, err)
	}
}

// A change of the next server waits for those under way, and lower fences begin no more.
func TestTheNextServerWaitsForChangesUnderWay(t *testing.T) {
	dir := t.TempDir()
	slow := &slowFiles{Files: local.New(dir, nil).Files, begun: make(chan struct{}), goOn: make(chan struct{})}
	s := &sharedWorkspace{memory: new(bridgetest.Memory), ws: workspace.Workspace{Files: slow}}
	defer s.serve(t)()
	c := client(t, bridge.ClientOptions{Dial: s.memory.Dial})
	stale, next := c.For(withFence("s", 1, 5)), c.For(withFence("s", 1, 6))
	file := workspace.At(filepath.Join(dir, "file"))
	first := make(chan error, 1)
	go func() { first <- stale.Files.WriteFile(t.Context(), file, []byte("first"), workspace.WriteOptions{}) }()
	<-slow.begun
	second := make(chan error, 1)
	go func() { second <- next.Files.Mkdir(t.Context(), workspace.At(filepath.Join(dir, "made"))) }()
	for { // until the workspace has seen the next server
		if err := stale.Files.Mkdir(t.Context(), workspace.At(filepath.Join(dir, "stale"))); errors.Is(err, workspace.ErrFenced) {
			break
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the next server has not waited")
	}
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if err := next.Files.Mkdir(hurried, workspace.At(filepath.Join(dir, "hurried"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was cancelled: %v", err)
	}
	close(slow.goOn)
	must(t, <-first)
	must(t, <-second)
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// slowFiles write files when they are told to.
type slowFiles struct {
	workspace.Files
	begun, goOn chan struct{}
}

func (s *slowFiles) WriteFile(ctx context.Context, p workspace.Path, content []byte, o workspace.WriteOptions) error {
	close(s.begun)
	<-s.goOn
	return s.Files.WriteFile(ctx, p, content, o)
}

// Without a fence nothing is asked, and the reason is that of whoever has none.
func TestWithoutAFenceNothingIsAsked(t *testing.T) {
	c := client(t, bridge.ClientOptions{Dial: new(bridgetest.Memory).Dial})
	reason := errors.New("another server works on the session")
	ws := c.For(func(context.Context) (workspace.Fence, error) { return workspace.Fence{}, reason })
	for name, change := range changesOf(ws, t.TempDir(), process.Info{Owner: "s", ID: "p"}) {
		if err := change(t.Context()); !errors.Is(err, reason) || workspace.Unusable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What changes something is fenced, at both ends.
func TestEveryChangeIsFenced(t *testing.T) {
	of := map[string]string{"WriteStdin": "Stdin", "Interrupt": "Stop", "Create": "WriteRaw"} // methods with other names
	want := []string{"Exec", "Restore"}                                                       // clients only attach with Exec
	for name := range changesOf(workspace.Workspace{}, "", process.Info{}) {
		want = append(want, cmp.Or(of[name], name))
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(bridge.FencedMethods())); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("fenced are %q, want %q", got, want)
	}
}
