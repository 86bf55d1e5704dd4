package daemon

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// TestTheEnvironmentOfASessionNamesProtectedFiles: the engine has another environment than
// the client of a session, whose commands run with the client's.
func TestTheEnvironmentOfASessionNamesProtectedFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here := local.New(dir, nil)
	s := scopes{files: func(event.SessionID) (workspace.Files, error) { return here.Files, nil }, targets: targetsIn(t.TempDir()), protected: protect.List{}, cached: make(map[event.SessionID]cachedScope)}
	path := filepath.Join(dir, "goenv")
	for _, env := range [][]string{nil, {"GOENV=" + path}, {"GOENV=" + path + "2"}} {
		call := tool.Call{Session: "s", Env: env, Scope: event.ScopeRules{Allow: []event.ScopeRule{{Target: dir, Permission: "write"}}}}
		at, err := s.of(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		found, err := at.Judge(path, scope.Write)
		if want := len(env) > 0 && env[0] == "GOENV="+path; err != nil || (found.Protected != "") != want {
			t.Errorf("%q: protected because of %q, %v", env, found.Protected, err)
		}
		_, listed := s.protectedIn("s").Protected(path)
		if listed != (found.Protected != "") {
			t.Errorf("%q: commands are looked after: %v", env, listed)
		}
	}
}

// TestCommandsAreLookedAfterWithTheEnvironmentOfTheirSession: what the client's environment
// names is looked at around commands of its session, and not around those of others.
func TestCommandsAreLookedAfterWithTheEnvironmentOfTheirSession(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	f, err := folder.Open(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := openTools(f, Commands{}, workspaces.New(workspaces.Options{}), nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tools.close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "goenv")
	tools.scopes.cached["s"] = cachedScope{protected: tools.protected.For([]string{"GOENV=" + path})}
	for id, want := range map[event.SessionID]bool{"s": true, "other": false} {
		at, _, err := tools.workspaces.guarded(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := at.Survey(t.Context(), workspace.SurveyRequest{Dirs: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(seen.Targets, func(target workspace.SurveyTarget) bool { return target.Path == path }); got != want {
			t.Errorf("session %s: looked at %v, want %v", id, got, want)
		}
	}
}
