package protect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
)

// newNested makes a repository with another one in it, which is in its index.
func newNested(t *testing.T, init ...string) (root, inside string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root = t.TempDir()
	inside = filepath.Join(root, "libs", "inner")
	git(t, root, append([]string{"init", "-q"}, init...)...)
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, inside, append([]string{"init", "-q"}, init...)...)
	git(t, inside, "commit", "-q", "--allow-empty", "-m", "x")
	for _, name := range []string{"a", "libs/" + strings.Repeat("a", 200), "libs/inner0", "z"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "add", "-A")
	return root, inside
}

func TestCodeInSubmodules(t *testing.T) {
	for name, prepare := range map[string]func(root string){
		"an ordinary index":  func(string) {},
		"a compressed index": func(root string) { git(t, root, "update-index", "--index-version", "4") },
		"an extended index":  func(root string) { git(t, root, "update-index", "--skip-worktree", "a") },
		"an index in parts":  func(root string) { git(t, root, "update-index", "--split-index") },
	} {
		root, inside := newNested(t)
		prepare(root)
		if at, key := protect.CodeInSubmodules(root); at != "" {
			t.Errorf("%s: %s runs %s, which nobody has set", name, at, key)
		}
		git(t, inside, "config", "filter.x.clean", "evil")
		for _, dir := range []string{root, filepath.Join(root, "libs")} {
			if at, key := protect.CodeInSubmodules(dir); at != inside || key != "filter.x.clean = evil" {
				t.Errorf("%s: found %q in %q", name, key, at)
			}
		}
	}
}

// TestCodeInWorkTree: a repository counts that is not in the index yet, and none that is
// kept in the folder of the repository itself.
func TestCodeInWorkTree(t *testing.T) {
	root, inside := newNested(t)
	git(t, root, "rm", "-q", "-r", "-f", "--cached", "libs")
	git(t, root, "commit", "-q", "-m", "x")
	git(t, root, "config", "core.pager", "mine")
	git(t, root, "worktree", "add", "-q", filepath.Join(root, "trees", "other"))
	if at, key := protect.CodeInWorkTree(root); at != "" {
		t.Errorf("%s runs %s, which nobody has set", at, key)
	}
	git(t, inside, "config", "filter.x.clean", "evil")
	if at, key := protect.CodeInSubmodules(root); at != "" {
		t.Errorf("%s runs %s, but is not in the index", at, key)
	}
	for _, dir := range []string{root, filepath.Join(root, "libs")} {
		if at, key := protect.CodeInWorkTree(dir); at != inside || key != "filter.x.clean = evil" {
			t.Errorf("found %q in %q", key, at)
		}
	}
	if at, key := protect.CodeInWorkTree(t.TempDir()); at != "" {
		t.Errorf("outside of a repository: found %q in %q", key, at)
	}
}

func TestCodeInSubmodulesOfOtherHashes(t *testing.T) {
	root, inside := newNested(t, "--object-format=sha256")
	git(t, inside, "config", "filter.x.clean", "evil")
	if at, _ := protect.CodeInSubmodules(root); at != inside {
		t.Errorf("found %q", at)
	}
}

// TestCodeInSubmodulesOfSubmodules: git runs from one repository in the next.
func TestCodeInSubmodulesOfSubmodules(t *testing.T) {
	for name, own := range map[string]bool{"of a repository": false, "of a submodule that git keeps": true} {
		root, inside := newNested(t)
		if own {
			git(t, root, "rm", "-q", "-f", "--cached", "libs/inner")
			git(t, root, "submodule", "--quiet", "add", inside, "own")
			inside = filepath.Join(root, "own")
		}
		deep := filepath.Join(inside, "deep")
		git(t, root, "init", "-q", deep)
		git(t, deep, "commit", "-q", "--allow-empty", "-m", "x")
		git(t, inside, "add", "deep")
		if at, key := protect.CodeInSubmodules(root); at != "" {
			t.Errorf("%s: found %q in %q", name, key, at)
		}
		git(t, deep, "config", "filter.x.clean", "evil")
		if at, key := protect.CodeInSubmodules(root); at != deep || key != "filter.x.clean = evil" {
			t.Errorf("%s: found %q in %q", name, key, at)
		}
	}
}

// TestALongConfigurationMayRunCode hides a setting behind more bytes than are read.
func TestALongConfigurationMayRunCode(t *testing.T) {
	root, inside := newNested(t)
	long := "[user]\nname = " + strings.Repeat("x", 1<<20) + "\n[filter \"x\"]\nclean = evil\n"
	if err := os.WriteFile(filepath.Join(inside, ".git", "config"), []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	if at, _ := protect.CodeInSubmodules(root); at != inside {
		t.Errorf("found %q", at)
	}
}

// TestSubmodulesInACircleAreLookedAtOnce has a repository inside whose folder of git is that
// of the repository around it.
func TestSubmodulesInACircleAreLookedAtOnce(t *testing.T) {
	root, inside := newNested(t)
	if err := os.RemoveAll(filepath.Join(inside, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inside, ".git"), []byte("gitdir: ../../.git\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if at, key := protect.CodeInSubmodules(root); at != "" {
		t.Errorf("found %q in %q", key, at)
	}
}

// TestOwnSubmodulesMayRunCode has a submodule as git makes it: what it may run is in .git.
func TestOwnSubmodulesMayRunCode(t *testing.T) {
	root, inside := newNested(t)
	git(t, root, "rm", "-q", "-f", "--cached", "libs/inner")
	git(t, root, "submodule", "--quiet", "add", inside, "own")
	git(t, filepath.Join(root, "own"), "config", "filter.x.clean", "mine")
	git(t, inside, "config", "filter.x.clean", "evil") // git does not run there
	if at, key := protect.CodeInSubmodules(root); at != "" {
		t.Errorf("found %q in %q", key, at)
	}
}

// TestABrokenIndexHasNoSubmodules reads indexes that end too early.
func TestABrokenIndexHasNoSubmodules(t *testing.T) {
	root, inside := newNested(t)
	git(t, root, "update-index", "--index-version", "4")
	git(t, inside, "config", "filter.x.clean", "evil")
	path := filepath.Join(root, ".git/index")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		protect.CodeInSubmodules(root)
	}
}

func TestSettingsThatMoveTheWorkTreeRunCode(t *testing.T) {
	for text, want := range map[string]bool{
		"[core]\nworktree = /home/me":      true,
		"[core]\nworkTree = ../..":         true,
		"[core]\nworktree = ../../":        true,
		"[core]\nworktree = ../../../own":  false,
		"[http]\nproxy = http://a.example": true,
		"[http]\nsslVerify = false":        true,
		"[http]\npostBuffer = 1":           false,
	} {
		if got := len(protect.CodeKeys([]byte(text))) > 0; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !protect.RunsCode("core.worktree") {
		t.Error("core.worktree can be set unasked")
	}
}
