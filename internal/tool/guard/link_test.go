package guard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// link puts a link in the place of a folder, which is removed or kept under another name.
func (f *fixture) link(path, to string) {
	f.t.Helper()
	_ = os.MkdirAll(filepath.Dir(path), 0o755) // a failure shows below
	_ = os.RemoveAll(path)
	if err := os.Symlink(to, path); err != nil {
		f.t.Fatal(err)
	}
}

// TestLinksInThePlaceOfFolders: a link there gives the protected names to other files, now
// or later.
func TestLinksInThePlaceOfFolders(t *testing.T) {
	for _, test := range []struct {
		name, path string
		hook       bool // a hook is in the folder that the link leads to
		dangling   bool
	}{
		{name: "hooks, without any", path: ".git/hooks"},
		{name: "hooks", path: ".git/hooks", hook: true},
		{name: "hooks that are nowhere", path: ".git/hooks", dangling: true},
		{name: "a folder above", path: ".git/info"},
		{name: "a folder that was not there", path: ".husky", hook: true},
		{name: "a folder that was not there, without files", path: ".husky"},
		{name: "a folder of settings", path: ".vscode"},
		{name: "a folder above that was not there", path: ".github"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			hook := f.project + "/.git/hooks/pre-commit"
			f.write(hook, "mine\n")
			f.write(f.project+"/.git/info/attributes", "* text\n")
			call, path := f.call(), filepath.Join(f.project, test.path)
			r := f.run(call, func() {
				to := filepath.Join(f.project, "evil")
				if !test.dangling {
					f.write(to+"/other", "x")
				}
				if test.hook {
					f.write(to+"/pre-commit", "evil\n")
				}
				f.link(path, to)
			})
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
				t.Errorf("the link is still there")
			}
			if !strings.Contains(string(r.Review), test.path) {
				t.Errorf("nobody is asked: %s", r.Review)
			}
			f.want(hook, "mine\n")
			f.want(f.project+"/.git/info/attributes", "* text\n")
			if test.hook {
				f.want(f.project+"/evil/pre-commit", "evil\n")
			}
			f.answer(call, r, false)
			if _, err := os.Readlink(path); err == nil {
				t.Error("after no, the link is there")
			}
		})
	}
}

// TestALinkThatAPersonAllows is made again.
func TestALinkThatAPersonAllows(t *testing.T) {
	f := newFixture(t)
	call, path := f.call(), f.project+"/.vscode"
	f.write(path+"/other", "x") // a folder that is there is made again, and gives way to the link
	r := f.run(call, func() {
		f.write(f.project+"/settings/x", "x")
		f.link(path, "settings")
	})
	f.answer(call, r, true)
	if to, err := os.Readlink(path); err != nil || to != "settings" {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if r := f.run(f.call(), nil); r.Review != nil {
		t.Errorf("it is asked about again: %s", r.Review)
	}
}

// TestLinksThatWereThereBefore are the user's own, as in a repository of settings.
func TestLinksThatWereThereBefore(t *testing.T) {
	f := newFixture(t)
	f.write(f.home+"/dotfiles/vscode/settings.json", "{}\n")
	f.link(f.home+"/.config", "dotfiles")
	f.link(f.project+"/.vscode", f.home+"/dotfiles/vscode")
	if r := f.run(f.call(), func() { f.write(f.project+"/x", "x") }); r.Review != nil {
		t.Errorf("it is asked about: %s", r.Review)
	}
	r := f.run(f.call(), func() { f.link(f.project+"/.vscode", f.project) })
	if to, _ := os.Readlink(f.project + "/.vscode"); to != f.home+"/dotfiles/vscode" || r.Review == nil {
		t.Errorf("the link leads to %q", to)
	}
	f.want(f.home+"/dotfiles/vscode/settings.json", "{}\n")
}

// TestALinkInALink: neither gives a hook to git.
func TestALinkInALink(t *testing.T) {
	f := newFixture(t)
	hook := f.project + "/.git/hooks/pre-commit"
	f.write(hook, "mine\n")
	f.run(f.call(), func() {
		if err := os.Rename(f.project+"/.git", f.project+"/moved"); err != nil {
			t.Fatal(err)
		}
		f.link(f.project+"/.git", "moved")
		f.link(f.project+"/moved/hooks", "../evil")
		f.write(f.project+"/evil/pre-commit", "evil\n")
	})
	if _, err := os.Readlink(f.project + "/.git"); err == nil {
		t.Error(".git is a link")
	}
	f.want(hook, "none") // its folder is gone, and is not made again
}
