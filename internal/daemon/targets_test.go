package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// targetsIn keeps where the rules of all sessions lead in one folder.
func targetsIn(dir string) func(context.Context, event.SessionID) (*scopeTargets, error) {
	kept := &scopeTargets{file: filepath.Join(dir, targetsFile)}
	return func(context.Context, event.SessionID) (*scopeTargets, error) { return kept, nil }
}

// A command can put a link in the place of a folder that its session may use. The next engine
// knows what the folder was.
func TestALinkInThePlaceOfAFolderAllowsNothing(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, other, later, own := filepath.Join(top, "work"), filepath.Join(top, "other"), filepath.Join(top, "later"), t.TempDir()
	for _, dir := range []string{work, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(work, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	verdict := func(path string, targets ...string) scope.Verdict {
		t.Helper()
		here := local.New(work, nil)
		engine := scopes{files: func(event.SessionID) (workspace.Files, error) { return here.Files, nil }, targets: targetsIn(own), protected: protect.List{}, cached: make(map[event.SessionID]cachedScope)}
		call := tool.Call{Session: "s"}
		for _, target := range targets {
			call.Scope.Allow = append(call.Scope.Allow, event.ScopeRule{Target: target, Permission: "write"})
		}
		is, err := engine.of(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		found, err := is.Judge(path, scope.Write)
		if err != nil {
			t.Fatal(err)
		}
		return found.Verdict
	}
	link := filepath.Join(top, "link")
	for _, path := range []string{filepath.Join(work, "f"), filepath.Join(link, "f"), filepath.Join(later, "f")} {
		if got := verdict(path, work, link, later); got != scope.Allowed {
			t.Errorf("%s: %v, want it to be allowed", path, got)
		}
	}
	if err := os.Rename(work, work+"2"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{work, later} {
		if err := os.Symlink(other, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(work, "f"), filepath.Join(link, "f"), filepath.Join(later, "f"), filepath.Join(other, "f")} {
		if got := verdict(path, work, link, later); got == scope.Allowed {
			t.Errorf("%s: a link in the place of a folder allows it", path)
		}
	}
	if got := verdict(filepath.Join(other, "f"), work, other); got != scope.Allowed {
		t.Errorf("a folder that is allowed from now on: %v", got)
	}
}
