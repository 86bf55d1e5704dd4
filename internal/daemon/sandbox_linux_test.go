package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// TestAWorkingDirectoryThatBecameALinkIsNotUsed: a command can put a link in the place of
// the working directory. What it leads to would be writable for the next command.
func TestAWorkingDirectoryThatBecameALinkIsNotUsed(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	s := newTestDaemon(t)
	victim := t.TempDir()
	rules := append(does("begin", "Done.", one("exec", rule{"command": "echo one > one"})), does("go on", "Done.", one("exec", rule{"command": "echo two > two"}))...)
	a := s.newSession("s", rules...).with("availableTools", []string{"exec"}).create()
	a.ask("begin")
	if _, err := os.Stat(filepath.Join(s.work, "one")); err != nil {
		t.Error(err)
	}
	s.stop()
	for _, err := range []error{os.RemoveAll(s.work), os.Symlink(victim, s.work)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.open() // what it led to is not forgotten with the engine
	a.resume()
	a.ask("go on")
	if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
		t.Errorf("a command ran in %s, and left %v, %v", victim, left, err)
	}
	if text := result(t, a.model.request(t, 4), 2); !strings.Contains(text, "leads to "+victim+" now") {
		t.Errorf("the model reads %s", text)
	}
}
