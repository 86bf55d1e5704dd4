package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
)

// A rootsTest is a session, and a folder with a repository in one with another repository.
type rootsTest struct {
	t           *testing.T
	data        *folder.Folder
	store       *eventlog.Memory
	above, work string
}

func newRootsTest(t *testing.T) *rootsTest {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := folder.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rootsTest{t: t, data: data, store: eventlog.NewMemory(), above: filepath.Join(base, ".git"), work: filepath.Join(base, "work")}
	r.mkdir(r.above)
	r.mkdir(r.work, ".git")
	r.create("s", event.SessionConfiguredData{})
	return r
}

func (r *rootsTest) mkdir(path ...string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(path...), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// create stores a session.
func (r *rootsTest) create(id event.SessionID, config event.SessionConfiguredData) {
	r.t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID()}, config)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Append(r.t.Context(), id, eventlog.Batch{Events: []event.Event{e}, Info: &eventlog.Info{}}); err != nil {
		r.t.Fatal(err)
	}
}

// tools returns the tools of an engine that has just started.
func (r *rootsTest) tools() *toolbox {
	t := &toolbox{folder: r.data, store: r.store, workspaces: newSessionWorkspaces(workspaces.New(workspaces.Options{}), nil)}
	t.family.log = r.store
	return t
}

// inWork returns the repository that a command of a session may change.
func (r *rootsTest) inWork(tools *toolbox, id event.SessionID) sandbox.Repository {
	r.t.Helper()
	place, err := tools.place(r.t.Context(), tool.Call{Session: id, Dir: r.work})
	if err != nil {
		r.t.Fatal(err)
	}
	return *place.Repository
}

// ofClient returns the repository that a command of a client may change in a folder.
func (r *rootsTest) ofClient(tools *toolbox, dir string) sandbox.Repository {
	r.t.Helper()
	spec := process.Spec{Owner: "s", Dir: dir}
	if err := tools.settle(r.t.Context(), &spec); err != nil {
		r.t.Fatal(err)
	}
	return *spec.Repository
}

// TestTheRepositoryOfASessionIsDecidedOnce: a command that removes the repository of the
// working directory gets no right to the one above, not for later commands of the
// session, nor for those of its agents and clients, nor with the next engine.
func TestTheRepositoryOfASessionIsDecidedOnce(t *testing.T) {
	r := newRootsTest(t)
	r.create("agent", event.SessionConfiguredData{Agent: &event.AgentOf{Session: "s"}})
	none, above := sandbox.Repository{}, sandbox.Repository{Path: r.above}
	first := r.tools()
	if got := r.inWork(first, "s"); got != none {
		t.Fatalf("the repository in the working directory is one elsewhere: %+v", got)
	}
	if err := os.RemoveAll(filepath.Join(r.work, ".git")); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(r.work, "sub")
	r.mkdir(sub)
	for name, tools := range map[string]*toolbox{"the same engine": first, "the next engine": r.tools()} {
		for who, got := range map[string]sandbox.Repository{
			"the session": r.inWork(tools, "s"), "its agent": r.inWork(tools, "agent"), "a client": r.ofClient(tools, r.work), "a client below": r.ofClient(tools, sub),
		} {
			if got != none {
				t.Errorf("%s: commands of %s may change %+v", name, who, got)
			}
		}
	}
	r.create("new", event.SessionConfiguredData{})
	if got := r.inWork(r.tools(), "new"); got != above {
		t.Errorf("a new session has %+v, want the repository above", got)
	}
}

// TestARepositoryBelowTheWorkingDirectoryIsItsOwn: what commands can write anyway counts.
func TestARepositoryBelowTheWorkingDirectoryIsItsOwn(t *testing.T) {
	r := newRootsTest(t)
	tools := r.tools()
	r.inWork(tools, "s")
	sub := filepath.Join(r.work, "sub")
	r.mkdir(sub)
	if got, want := r.ofClient(tools, sub), (sandbox.Repository{Path: filepath.Join(r.work, ".git")}); got != want {
		t.Errorf("a client has %+v, want %+v", got, want)
	}
}

// TestRootsOfBeforeAreCompleted: the file may have only where the folders lead to.
func TestRootsOfBeforeAreCompleted(t *testing.T) {
	r := newRootsTest(t)
	dir, err := r.data.MakeSession("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, rootsFile), []byte(`{"`+r.work+`":"`+r.work+`","/gone":"/gone"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.inWork(r.tools(), "s"); got != (sandbox.Repository{}) {
		t.Errorf("the repository is %+v", got)
	}
	if err := os.RemoveAll(filepath.Join(r.work, ".git")); err != nil {
		t.Fatal(err)
	}
	if got := r.inWork(r.tools(), "s"); got != (sandbox.Repository{}) {
		t.Errorf("the repository is decided anew: %+v", got)
	}
}
