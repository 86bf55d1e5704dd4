package approval_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// TestFilesThatShowHiddenNames has rg search a folder with a file that says that a denied
// file is to be searched.
func TestFilesThatShowHiddenNames(t *testing.T) {
	in := project(t)
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(in.Home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules := event.PermissionRules{Allow: []string{"bash(rg *)"}, Deny: []string{"read(.env)"}}
	judge := func() string {
		return verdictName(approval.Judge(approval.AskAlways, rules, nil, readLine("rg KEY", in)).Verdict)
	}
	put(".env", "KEY=1\n")
	put(".gitignore", ".env*\n!.env.example\n")
	if got := judge(); got != "allow" {
		t.Errorf("with a file that shows another name: %s", got)
	}
	put(".ignore", "!.env\n")
	if got := judge(); got != "ask" {
		t.Errorf("with a file that shows the denied name: %s", got)
	}
}
