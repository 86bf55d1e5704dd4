package protect_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/approval/protect"
)

func targets(l protect.List, dirs ...string) []protect.Target {
	list, _, _ := l.Watched(dirs...)
	return list
}

// watch takes the state of everything that is watched around a folder.
func (f fixture) watch(before map[string]protect.State, dirs ...string) map[string]protect.State {
	now := make(map[string]protect.State)
	for _, t := range targets(f.list, dirs...) {
		now[t.Path] = protect.Look(t.Path, before[t.Path])
	}
	return now
}

// changed returns the paths whose states differ.
func (f fixture) changed(before, now map[string]protect.State, dirs ...string) []string {
	var list []string
	for _, t := range targets(f.list, dirs...) {
		if !t.Same(before[t.Path], now[t.Path]) {
			list = append(list, t.Path)
		}
	}
	return list
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_ALLOW_PROTOCOL=file")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// TestOrdinaryGitIsNoChange: what git itself does in ordinary work annoys nobody, and
// what makes it run code is seen.
func TestOrdinaryGitIsNoChange(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	f := newFixture(t)
	p := f.project
	other := filepath.Join(filepath.Dir(p), "other")
	steps := []struct {
		name string
		run  func()
		want []string
	}{
		{"git init", func() { git(t, p, "init", "-b", "main") }, nil},
		{"commit", func() { git(t, p, "commit", "--allow-empty", "-m", "x") }, nil},
		{"user.name", func() { git(t, p, "config", "user.name", "me") }, nil},
		{"remote", func() { git(t, p, "remote", "add", "origin", "https://example.org/x") }, nil},
		{"branch", func() { git(t, p, "checkout", "-b", "b", "--track", "main") }, nil},
		{"clone below", func() { git(t, p, "clone", ".", "below") }, nil},
		{"worktree", func() { git(t, p, "worktree", "add", "tree", "-b", "w") }, nil},
		{"submodule", func() {
			git(t, filepath.Dir(p), "init", "-b", "main", "other")
			git(t, other, "commit", "--allow-empty", "-m", "x")
			git(t, p, "-c", "protocol.file.allow=always", "submodule", "add", other, "sub")
		}, nil},
		{"a sample", func() { write(t, p+"/.git/hooks/new.sample", "x") }, nil},
		{"worktree removed", func() { git(t, p, "worktree", "remove", "--force", "tree") }, nil},

		{"hook", func() { write(t, p+"/.git/hooks/pre-commit", "x") }, []string{p + "/.git/hooks/pre-commit"}},
		{"runnable", func() { os.Chmod(p+"/.git/hooks/pre-commit", 0o755) }, []string{p + "/.git/hooks/pre-commit"}},
		{"hook of a submodule", func() { write(t, p+"/.git/modules/sub/hooks/post-checkout", "x") }, []string{p + "/.git/modules/sub/hooks/post-checkout"}},
		{"fsmonitor", func() { git(t, p, "config", "core.fsmonitor", "x") }, []string{p + "/.git/config"}},
		{"hooksPath", func() { git(t, p, "config", "core.hooksPath", "my") }, []string{p + "/.git/config"}},
		{"work tree", func() { git(t, p, "config", "core.worktree", "../../home") }, []string{p + "/.git/config"}},
		{"own work tree", func() { git(t, p, "config", "--unset", "core.worktree") }, []string{p + "/.git/config"}},
		{"work tree of a submodule", func() { git(t, p, "config", "--file", ".git/modules/sub/config", "core.worktree", "../../../../home") }, []string{p + "/.git/modules/sub/config"}},
		{"work tree of a submodule in the repository", func() { git(t, p, "config", "--file", ".git/modules/sub/config", "core.worktree", "../../hooks") }, []string{p + "/.git/modules/sub/config"}},
		{"submodule moved", func() { git(t, p, "config", "--file", ".git/modules/sub/config", "core.worktree", "../../../a/sub") }, []string{p + "/.git/modules/sub/config"}},
		{"submodule moved again", func() { git(t, p, "config", "--file", ".git/modules/sub/config", "core.worktree", "../../../sub") }, nil},
		{"hook there", func() { write(t, p+"/my/pre-push", "x") }, []string{p + "/my/pre-push"}},
		{"commondir", func() { write(t, p+"/.git/commondir", "/x") }, []string{p + "/.git/commondir"}},
		{"bashrc", func() { write(t, f.home+"/.bashrc", "x") }, []string{f.home + "/.bashrc"}},
		{"abide.toml", func() { write(t, p+"/abide.toml", "x") }, []string{p + "/abide.toml"}},
		{"trust", func() { write(t, f.data+"/trusted", p+"\n") }, []string{f.data + "/trusted"}},
		{"autostart", func() { write(t, f.home+"/.config/autostart/x.desktop", "x") }, []string{f.home + "/.config/autostart/x.desktop"}},
	}
	before := f.watch(nil, p)
	for _, step := range steps {
		step.run()
		now := f.watch(before, p)
		if got := f.changed(before, now, p); !slices.Equal(got, step.want) {
			t.Errorf("%s: changed %q, want %q", step.name, got, step.want)
		}
		if step.name == "commondir" { // git looks elsewhere while the file is there
			os.Remove(p + "/.git/commondir")
			now = before
		}
		before = now
	}
}

// TestAWorktreeWatchesItsRepository: what is run there stands in the repository that it
// belongs to.
func TestAWorktreeWatchesItsRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	f := newFixture(t)
	main := filepath.Join(filepath.Dir(f.project), "main")
	git(t, filepath.Dir(main), "init", "-b", "main", main)
	git(t, main, "commit", "--allow-empty", "-m", "x")
	git(t, main, "worktree", "add", f.project+"/w", "-b", "w")
	var paths []string
	for _, target := range targets(f.list, f.project+"/w") {
		paths = append(paths, target.Path)
	}
	for _, want := range []string{f.project + "/w/.git", main + "/.git/config", main + "/.git/hooks/pre-commit", main + "/.git/worktrees/w/commondir"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not watched", want)
		}
	}
}

// TestABareRepositoryIsWatched: a command that runs in it, or below it, uses it.
func TestABareRepositoryIsWatched(t *testing.T) {
	f := newFixture(t)
	bare := f.project + "/zr"
	write(t, bare+"/HEAD", "ref: refs/heads/main\n")
	write(t, bare+"/objects/info/x", "x")
	write(t, bare+"/refs/heads/x", "x")
	for _, dir := range []string{bare, bare + "/refs/heads"} {
		before := f.watch(nil, dir)
		write(t, bare+"/hooks/post-update", dir)
		if got := f.changed(before, f.watch(before, dir), dir); !slices.Equal(got, []string{bare + "/hooks/post-update"}) {
			t.Errorf("changed %q", got)
		}
	}
}

// TestARelativePathOfHooksBeginsAtTheWorkTree: also if the configuration is that of the
// user, or is included from elsewhere, or the work tree is not where the repository is.
func TestARelativePathOfHooksBeginsAtTheWorkTree(t *testing.T) {
	for _, config := range []string{"home/.gitconfig", "xdg/git/config", "home/.config/git/config", "home/included", "project/.git/config"} {
		f := newFixture(t)
		write(t, f.home+"/.gitconfig", "[include]\npath = included\n")
		write(t, f.project+"/.git/HEAD", "x")
		write(t, filepath.Join(filepath.Dir(f.home), config), "[core]\nhooksPath = .hk\n")
		dir := f.project + "/sub"
		before := f.watch(nil, dir)
		write(t, f.project+"/.hk/pre-commit", "x")
		if got := f.changed(before, f.watch(before, dir), dir); !slices.Equal(got, []string{f.project + "/.hk/pre-commit"}) {
			t.Errorf("%s: changed %q", config, got)
		}
	}
	f := newFixture(t)
	main := filepath.Dir(f.project) + "/main"
	write(t, main+"/.git/worktrees/w/commondir", "../..\n")
	write(t, main+"/.git/config", "[core]\nhooksPath = .hk\n")
	write(t, f.project+"/.git", "gitdir: "+main+"/.git/worktrees/w\n")
	if !slices.ContainsFunc(targets(f.list, f.project), func(t protect.Target) bool { return t.Path == f.project+"/.hk/pre-commit" }) {
		t.Error("the hooks of a worktree are not watched")
	}
}

func TestIncludedConfigurationIsWatched(t *testing.T) {
	f := newFixture(t)
	write(t, f.home+"/.gitconfig", "[include]\npath = more\n")
	write(t, f.home+"/more", "[include]\npath = more\n[user]\nname = x\n") // includes itself
	before := f.watch(nil)
	write(t, f.home+"/more", "[alias]\nx = !y\n")
	if got := f.changed(before, f.watch(before)); !slices.Equal(got, []string{f.home + "/more"}) {
		t.Errorf("changed %q", got)
	}
}

// TestReplacePutsBack walks all ways from one state to another.
func TestReplacePutsBack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/elsewhere", "elsewhere")
	makers := map[string]func(path string){
		"none":  func(path string) {},
		"file":  func(path string) { write(t, path, "text") },
		"other": func(path string) { write(t, path, "another text") },
		"run": func(path string) {
			write(t, path, "text")
			os.Chmod(path, 0o755)
		},
		"link":    func(path string) { os.Symlink(dir+"/elsewhere", path) },
		"nowhere": func(path string) { os.Symlink(dir+"/nowhere", path) },
		"empty":   func(path string) { write(t, path, "") },
	}
	for from, make := range makers {
		for to, change := range makers {
			path := filepath.Join(dir, from+"-"+to)
			target := protect.Target{Path: path}
			make(path)
			before := protect.Look(path, protect.State{})
			os.Remove(path)
			change(path)
			now := protect.Look(path, before)
			if same := target.Same(before, now); same != (from == to) {
				t.Errorf("%s to %s: same = %v", from, to, same)
			}
			if from == to {
				continue
			}
			for _, want := range []protect.State{before, now} { // the file is restored, and created again
				is := protect.Look(path, protect.State{})
				if target.Same(is, want) {
					continue
				}
				if err := protect.Replace(path, is, want); err != nil {
					t.Errorf("%s to %s: %v", from, to, err)
				}
				if got := protect.Look(path, protect.State{}); !target.Same(got, want) {
					t.Errorf("%s to %s: is %+v, want %+v", from, to, got, want)
				}
			}
			os.Remove(path)
		}
	}
	if text, _ := os.ReadFile(dir + "/elsewhere"); string(text) != "elsewhere" {
		t.Errorf("the file behind a link became %q", text)
	}
}

func TestReplaceLeavesALaterChangeAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one")
	before := protect.Look(path, protect.State{})
	write(t, path, "two")
	now := protect.Look(path, before)
	write(t, path, "three")
	if err := protect.Replace(path, now, before); !errors.Is(err, protect.ErrMoved) {
		t.Errorf("err = %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "three" {
		t.Errorf("the file is %q", text)
	}
}

// TestALinkedFileIsPutBackWhereItIs: the dot files of many people are links.
func TestALinkedFileIsPutBackWhereItIs(t *testing.T) {
	f := newFixture(t)
	write(t, f.home+"/dotfiles/bashrc", "mine")
	os.Symlink("dotfiles/bashrc", f.home+"/.bashrc")
	path := f.home + "/.bashrc"
	before := protect.Look(path, protect.State{})
	write(t, path, "theirs")
	now := protect.Look(path, before)
	if (protect.Target{}).Same(before, now) {
		t.Fatal("the change was not seen")
	}
	if err := protect.Replace(path, now, before); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(f.home + "/dotfiles/bashrc"); string(text) != "mine" {
		t.Errorf("the file is %q", text)
	}
	if _, err := os.Readlink(path); err != nil {
		t.Error("the link is gone")
	}
}

// TestLookingNeverBlocks: a pipe or a folder in the place of a file is nothing to read.
func TestLookingNeverBlocks(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{f.home + "/.bashrc", f.project + "/.git", f.project + "/abide.toml"} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.MkdirAll(f.home+"/.profile/x", 0o755)
	if err := unix.Mkfifo(f.project+"/.husky", 0o600); err != nil {
		t.Fatal(err)
	}
	before := f.watch(nil, f.project)
	if got := f.changed(nil, before, f.project); !slices.Contains(got, f.home+"/.bashrc") {
		t.Errorf("a pipe in the place of a file was not seen: %q", got)
	}
}

func TestALargeFileIsSeenAndNotPutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, string(make([]byte, protect.MaxKept+1)))
	before := protect.Look(path, protect.State{})
	write(t, path, "small")
	now := protect.Look(path, before)
	if (protect.Target{}).Same(before, now) {
		t.Error("the change was not seen")
	}
	if err := protect.Replace(path, now, before); !errors.Is(err, protect.ErrNotKept) {
		t.Errorf("err = %v", err)
	}
}

func BenchmarkLook(b *testing.B) {
	home, _ := os.UserHomeDir()
	here, _ := os.Getwd()
	list := protect.New(protect.Options{Homes: []string{home}})
	before := make(map[string]protect.State)
	for b.Loop() {
		for _, t := range targets(list, here) {
			before[t.Path] = protect.Look(t.Path, before[t.Path])
		}
	}
}

// TestAChangeRightAfterALookIsSeen: the clock of the file system is coarse, so that two
// changes may have the same time, and here they have the same length, too.
func TestAChangeRightAfterALookIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for range 200 {
		write(t, path, "aaaa")
		before := protect.Look(path, protect.State{})
		if before.Marks != [2]protect.Mark{} {
			t.Fatal("a file that has just changed is taken for known")
		}
		write(t, path, "bbbb")
		if now := protect.Look(path, before); (protect.Target{}).Same(before, now) {
			t.Fatal("it was not seen")
		}
	}
}

// TestAProjectCannotCrowdOutOtherFiles: whatever it brings along, its repository and the
// folders themselves are still looked at.
func TestAProjectCannotCrowdOutOtherFiles(t *testing.T) {
	f := newFixture(t)
	p := f.project
	for i := range 1010 {
		for _, dir := range []string{"/.husky/", "/.githooks/", "/.abide/", "/.github/hooks/"} {
			write(t, fmt.Sprintf("%s%s%04d", p, dir, i), "x")
		}
	}
	write(t, p+"/.git/HEAD", "x")
	write(t, p+"/.husky/pre-commit", "x")
	for name, change := range map[string]func(path string){
		"/.git/hooks/pre-commit": func(path string) { write(t, path, "x") },
		"/.git/config":           func(path string) { write(t, path, "[alias]\na = !b\n") },
		"/.husky":                func(path string) { write(t, path+"/zz", "x") },
		"/.githooks":             func(path string) { os.Remove(path + "/0500") },
		"/.abide":                func(path string) { write(t, path+"/0999", "y") },
		"/.github/hooks":         func(path string) { os.Chmod(path+"/0999", 0o755) },
	} {
		before := f.watch(nil, p)
		change(p + name)
		if got := f.changed(before, f.watch(before, p), p); !slices.Equal(got, []string{p + name}) {
			t.Errorf("%s: changed %q", name, got)
		}
	}
	before := f.watch(nil, p)
	write(t, p+"/.husky/pre-commit", "y") // git runs it, and so it is looked at by itself, too
	if got := f.changed(before, f.watch(before, p), p); !slices.Equal(got, []string{p + "/.husky", p + "/.husky/pre-commit"}) {
		t.Errorf("changed %q", got)
	}
	before = f.watch(nil, p)
	if got := f.changed(before, f.watch(before, p), p); len(got) > 0 {
		t.Errorf("nothing was changed, and seen is %q", got)
	}
	crowd := protect.Look(p+"/.husky", protect.State{})
	if err := protect.Replace(p+"/.husky", crowd, protect.State{}); !errors.Is(err, protect.ErrNotKept) {
		t.Errorf("err = %v", err)
	}
	if _, err := os.Stat(p + "/.husky/0000"); err != nil {
		t.Error(err)
	}
}

// TestManyPartsOfARepositoryAreAnError: they cannot all be looked at, and nobody may think
// that they are.
func TestManyPartsOfARepositoryAreAnError(t *testing.T) {
	for name, fill := range map[string]func(git string, i int){
		"submodules":      func(git string, i int) { write(t, fmt.Sprintf("%s/modules/%d/HEAD", git, i), "x") },
		"folders of them": func(git string, i int) { os.MkdirAll(fmt.Sprintf("%s/modules/a/b/%d", git, i), 0o755) },
		"worktrees":       func(git string, i int) { write(t, fmt.Sprintf("%s/worktrees/%d/HEAD", git, i), "x") },
		"included files": func(git string, i int) {
			f, _ := os.OpenFile(git+"/config", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			fmt.Fprintf(f, "[include]\npath = c%d\n", i)
			f.Close()
		},
		"a large configuration": func(git string, i int) {
			f, _ := os.OpenFile(git+"/config", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			fmt.Fprintf(f, "# %01000d\n", i)
			f.Close()
		},
	} {
		f := newFixture(t)
		git := f.project + "/.git"
		write(t, git+"/HEAD", "x")
		if _, _, err := f.list.Watched(f.project); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range 1100 {
			fill(git, i)
		}
		list, _, err := f.list.Watched(f.project)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if !slices.ContainsFunc(list, func(t protect.Target) bool { return t.Path == git+"/hooks/pre-commit" }) {
			t.Errorf("%s: the hooks are not watched", name)
		}
	}
}
