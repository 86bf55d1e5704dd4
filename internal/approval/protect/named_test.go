package protect_test

import (
	"path/filepath"
	"testing"
)

// TestFilesThatConfigurationNamesAreProtected writes what the configuration of git makes
// git run, though neither its name nor its folder says so.
func TestFilesThatConfigurationNamesAreProtected(t *testing.T) {
	f := newFixture(t)
	config := "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../team.gitconfig\n"
	write(t, filepath.Join(f.project, ".git/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(f.project, ".git/config"), config)
	write(t, filepath.Join(f.project, "src/a"), "a")
	write(t, filepath.Join(f.home, ".gitconfig"), "[include]\n\tpath = dotfiles/git.inc\n")
	for name, want := range map[string]bool{
		"scripts/hooks/pre-commit":        true,
		"scripts/Hooks/Pre-Commit":        true,
		"src/../scripts/hooks/post-merge": true,
		"team.gitconfig":                  true,
		"scripts/hooks/README.md":         false,
		"scripts/build.sh":                false,
		"src/a":                           false,
	} {
		if reason, got := f.list.Protected(filepath.Join(f.project, name)); got != want {
			t.Errorf("%s: protected %v (%s), want %v", name, got, reason, want)
		}
	}
	if _, got := f.list.Protected(filepath.Join(f.home, "dotfiles/git.inc")); !got {
		t.Error("a file that the user's configuration includes can be written unasked")
	}
}
