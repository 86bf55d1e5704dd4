package difftest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

// A judge allows scripts by the rules of a session in a copy of the project.
type judge struct {
	rules event.PermissionRules
	in    approval.Surroundings
}

// newJudge returns a judge without rules. The mode is what the session may do in the
// project without a rule.
func newJudge(t testing.TB, mode scope.Mode) *judge {
	dir := t.TempDir()
	for path, content := range projectFiles {
		if rel, ok := strings.CutPrefix(path, project); ok {
			if err := writeFile(filepath.Join(dir, rel), content); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := scope.New([]scope.Rule{{Target: dir, Mode: mode}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &judge{in: approval.Surroundings{Dir: dir, Home: dir, SearchPath: "/usr/local/bin:/usr/bin:/bin", Scope: s}}
}

// generousRules allow most programs, since what a rule allows by name is what a script can
// try to hide something in.
func generousRules() event.PermissionRules {
	rules := event.PermissionRules{Allow: []string{"read-only"}, Deny: []string{"bash(sudo *)", "bash(git push *)"}}
	for _, name := range programNames {
		if !slices.Contains(notAllowed, name) {
			rules.Allow = append(rules.Allow, "bash("+name+" *)")
		}
	}
	return rules
}

// notAllowed are programs that no rule allows.
var notAllowed = []string{"sudo", "evil", "bash", "dash", "sh", "rm"}

// decide judges a script.
func (j *judge) decide(script, set string) approval.Decision {
	r := approval.Request{Kind: approval.Shell, Tool: "bash"}
	r.ReadCommand(shell.Parse(script), j.in)
	return approval.Judge(set, j.rules, nil, &r)
}

// allow reports whether the rules allow a script.
func (j *judge) allow(script string) bool {
	d := j.decide(script, approval.Workspace)
	return d.Verdict == approval.Grant && d.Judged != nil
}
