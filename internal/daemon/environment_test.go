package daemon

import (
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
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
	s := scopes{files: func(event.SessionID) (workspace.Files, error) { return here.Files, nil }, protected: protect.List{}, cached: make(map[event.SessionID]cachedScope)}
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
