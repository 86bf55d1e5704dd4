package approval_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

// sensibleRules are rules as a person may write them for a project.
var sensibleRules = event.PermissionRules{
	Allow: []string{
		"read-only", "bash(git status *)", "bash(git log *)", "bash(git diff *)", "bash(git add *)", "bash(git commit *)", "bash(go build *)", "bash(go test *)", "bash(go vet *)",
		"bash(gofmt *)", "bash(npm test *)", "bash(npm run *)", "bash(npm ci)", "bash(npx tsc *)", "bash(pytest *)", "bash(python3 -m pytest *)",
		"bash(cargo build:*)", "bash(cargo test:*)", "bash(cargo check:*)", "bash(make *)", "bash(ruff check *)", "bash(mkdir -p *)", "bash(ls *)", "bash(rg *)", "bash(tree *)",
		"bash(jq *)", "bash(sort *)", "bash(find *)", "bash(echo *)", "bash(cat *)",
	},
	Deny: []string{"bash(sudo *)", "bash(git push *)", "read(**/id_rsa)", "read(.env)"},
}

// project returns the surroundings of a session in a new project.
func project(t testing.TB) approval.Surroundings {
	home := t.TempDir()
	for _, dir := range []string{".git", "src", "internal", "evil", "build/out"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scope.New([]scope.Rule{{Target: home, Mode: scope.Write}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	protected := func(path string) (string, bool) {
		return "it runs code", strings.Contains(path, "/.git/") || strings.HasSuffix(path, "/.bashrc")
	}
	return approval.Surroundings{Dir: home, Home: home, SearchPath: "/usr/local/bin:/usr/bin:/bin", Scope: s, Protected: protected}
}

// readLine returns the request to run a command line.
func readLine(line string, in approval.Surroundings) *approval.Request {
	r := &approval.Request{Kind: approval.Shell, Tool: "bash"}
	r.ReadCommand(shell.Parse(line), in)
	return r
}

// A corpusLine is a command line with the verdict that it must get.
type corpusLine struct {
	verdict string
	line    string
	hostile bool
}

func readCorpus(t testing.TB) []corpusLine {
	f, err := os.Open("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var list []corpusLine
	hostile := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "#"); ok {
			hostile = hostile || text == " hostile"
			continue
		}
		verdict, text, _ := strings.Cut(lines.Text(), " ")
		c := corpusLine{verdict: verdict, hostile: hostile}
		if err := json.Unmarshal([]byte(text), &c.line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, c)
	}
	return list
}

func verdictName(v approval.Verdict) string {
	return map[approval.Verdict]string{approval.Ask: "ask", approval.Allow: "scope", approval.Grant: "allow", approval.Deny: "deny"}[v]
}

func TestCorpus(t *testing.T) {
	in := project(t)
	count := map[bool]map[string]int{true: {}, false: {}}
	for _, c := range readCorpus(t) {
		d := approval.Judge(approval.Workspace, sensibleRules, nil, readLine(c.line, in))
		if got := verdictName(d.Verdict); got != c.verdict {
			t.Errorf("%q: %s, want %s (%s, %s)", c.line, got, c.verdict, d.Rules, d.Reason)
		}
		if d.Verdict == approval.Grant && d.Judged == nil {
			t.Errorf("%q is allowed without the words to run", c.line)
		}
		count[c.hostile][c.verdict]++
	}
	ordinary := count[false]["allow"] + count[false]["ask"]
	if ordinary < 150 || count[false]["allow"]*10 < ordinary*9 {
		t.Errorf("%d of %d ordinary lines are allowed", count[false]["allow"], ordinary)
	}
	if n := count[true]["ask"] + count[true]["deny"]; n < 150 || count[true]["allow"] > 0 {
		t.Errorf("%d hostile lines are not allowed, %d are", n, count[true]["allow"])
	}
}

// TestHostileLines judges the lines of hostile.txt, whose head describes them.
func TestHostileLines(t *testing.T) {
	in := project(t)
	var err error
	if in.Scope, err = scope.New([]scope.Rule{{Target: in.Home, Mode: scope.Read}}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "id_rsa", ".env", "sub/a", "evil/.git/HEAD", "outer/deep/.git/HEAD"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(in.Home, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(in.Home, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rules event.PermissionRules
	for row := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(row, "\n"), "\t", 3)
		if strings.HasPrefix(row, "#") || len(fields) < 2 {
			continue
		}
		if fields[0] == "rules" {
			rules = event.PermissionRules{}
			if err := json.Unmarshal([]byte(fields[1]), &rules); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var line string
		if err := json.Unmarshal([]byte(fields[1]), &line); err != nil {
			t.Fatalf("%s: %v", fields[1], err)
		}
		d := approval.Judge(approval.AskAlways, rules, nil, readLine(line, in))
		if got := verdictName(d.Verdict); got != fields[0] && (got != "deny" || fields[0] != "ask") {
			t.Errorf("%q: %s, want %s: %s (%s, %s)", line, got, fields[0], fields[2], d.Rules, d.Reason)
		}
	}
}
