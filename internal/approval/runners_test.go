package approval_test

import (
	"errors"
	"os"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// TestRunnersAndLinks: a link in the project that leads out of it names something elsewhere,
// and one that stays inside does not.
func TestRunnersAndLinks(t *testing.T) {
	in := project(t)
	other := t.TempDir()
	if err := errors.Join(os.Symlink(other, in.Home+"/out"), os.Symlink("src", in.Home+"/inside"), os.Symlink("/", in.Home+"/src/root")); err != nil {
		t.Fatal(err)
	}
	rules := event.PermissionRules{Allow: []string{"bash(pytest *)", "bash(python3 -m pytest *)"}}
	for line, want := range map[string]string{
		"pytest src": "allow", "pytest inside": "allow", "pytest " + in.Home + "/src": "allow", "pytest none": "allow",
		"pytest out": "ask", "pytest out/x": "ask", "pytest src/root": "ask", "pytest --ignore=out": "ask", "pytest ../x": "ask", "pytest src/../internal": "ask", "pytest -k a..b": "allow", "pytest out/none/deep.py": "ask", "pytest src/none/deep.py": "allow", "pytest src/root/../x": "ask", "pytest " + other: "ask",
		"python3 -m pytest out": "ask", "python3 -m pytest src": "allow", "cd src && pytest ../out": "ask", "cd src && pytest ../internal": "ask",
	} {
		if got := verdictName(approval.Judge(approval.AskAlways, rules, nil, readLine(line, in)).Verdict); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
