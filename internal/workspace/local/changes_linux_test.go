package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/workspace"
)

// TestADiffRunsNoProgramThatWrites: git runs programs that the configuration of a repository
// names, which a command may have written. A filter is one that cannot be switched off.
func TestADiffRunsNoProgramThatWrites(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: there is no git")
	}
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	s := sandbox.Open(sandbox.Options{})
	t.Cleanup(s.Close)
	m, err := process.Open(filepath.Join(t.TempDir(), "processes"), process.Options{Sandbox: s, Shell: process.Shell()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v, %s", args, err, out)
		}
	}
	write("f", "one\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	write("f", "two\n")
	write(".gitattributes", "* filter=evil diff=evil\n")
	evil := "echo x >> " + mark
	for _, key := range []string{"filter.evil.clean", "core.fsmonitor", "diff.evil.textconv", "diff.external", "core.pager"} {
		git("config", key, "sh -c '"+evil+"; cat'")
	}
	found, err := New(dir, m).Files.Changes(t.Context(), workspace.ChangesRequest{Dir: dir})
	if err != nil || len(found.Files) != 2 {
		t.Errorf("the changes are %+v, %v", found, err)
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("programs of the repository have written %d lines", len(text)/2)
	}
}

// TestADiffGivesNoKeysAway: the program of a filter sees the environment of git, and what it
// prints is in the diff.
func TestADiffGivesNoKeysAway(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: there is no git")
	}
	t.Setenv("OPENAI_API_KEY", "leaked-key")
	dir := t.TempDir()
	for _, script := range []string{
		"git init -q && echo one > f && git add . && git -c user.name=a -c user.email=a@b commit -qm first",
		"git config filter.evil.clean env && echo '* filter=evil' > .gitattributes && echo two > f",
	} {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v, %s", script, err, out)
		}
	}
	found, err := New(dir, nil).Files.Changes(t.Context(), workspace.ChangesRequest{Dir: dir})
	if err != nil || !strings.Contains(fmt.Sprint(found), "PATH=") {
		t.Errorf("the filter did not run: %+v, %v", found, err)
	}
	if strings.Contains(fmt.Sprint(found), "leaked-key") {
		t.Error("the program of a filter has the key of the engine")
	}
}
