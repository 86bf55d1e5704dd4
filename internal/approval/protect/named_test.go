package protect_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
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

// TestFilesThatTheEnvironmentNamesAreProtected: programs read them in place of those in the
// home directory.
func TestFilesThatTheEnvironmentNamesAreProtected(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir+"/home")
	t.Setenv("GIT_CONFIG_GLOBAL", dir+"/dots/gitconfig")
	t.Setenv("GOENV", dir+"/dots/goenv")
	t.Setenv("BASH_ENV", "relative/x")
	t.Setenv("KUBECONFIG", dir+"/dots/kube1:"+dir+"/dots/kube2")
	t.Setenv("PIP_CONFIG_FILE", "/dev/null")
	list := protect.ForUser(dir + "/data")
	for name, want := range map[string]bool{"gitconfig": true, "goenv": true, "kube2": true, "other": false} {
		if reason, ok := list.Protected(dir + "/dots/" + name); ok != want {
			t.Errorf("%s: protected %v (%s), want %v", name, ok, reason, want)
		}
	}
	if reason, ok := list.Protected("/dev/null"); ok {
		t.Errorf("the device is protected: %s", reason)
	}
	targets, _, err := list.Watched(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, isGit := range map[string]bool{"gitconfig": true, "goenv": false} {
		if !slices.Contains(targets, protect.Target{Path: dir + "/dots/" + name, Git: isGit}) {
			t.Errorf("%s is not looked at", name)
		}
	}
}

// TestFilesThatTheEnvironmentOfASessionNamesAreProtected: the client of a session has another
// environment than the process that protects the files.
func TestFilesThatTheEnvironmentOfASessionNamesAreProtected(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := protect.New(protect.Options{Homes: []string{dir + "/home"}})
	list := own.For([]string{
		"HOME=" + dir + "/other", "ZDOTDIR=" + dir + "/zsh", "XDG_CONFIG_HOME=" + dir + "/xdg",
		"GOENV=" + dir + "/earlier", "GOENV=" + dir + "/goenv", "GIT_CONFIG_GLOBAL=" + dir + "/git", "BASH_ENV=x", "ENV",
	})
	for name, want := range map[string]bool{
		"home/.bashrc": true, "other/.bashrc": true, "zsh/.zshrc": true, "xdg/fish/config.fish": true, "goenv": true, "git": true,
		"earlier": false, "x": false, "other/a": false,
	} {
		if reason, ok := list.Protected(filepath.Join(dir, name)); ok != want {
			t.Errorf("%s: protected %v (%s), want %v", name, ok, reason, want)
		}
	}
	targets, _, err := list.Watched(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(targets, protect.Target{Path: dir + "/git", Git: true}) {
		t.Error("what the environment of a session names is not looked at")
	}
	if _, ok := own.Protected(dir + "/goenv"); ok {
		t.Error("another session's environment counts everywhere")
	}
	bare := own.For([]string{"HOME=/", "XDG_CONFIG_HOME=relative", "ZDOTDIR=../x"})
	if reason, ok := bare.Protected("/.bashrc"); ok {
		t.Errorf("the root is taken for a home: %s", reason)
	}
}
