package approval_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// makeFiles makes empty files, with their folders, below a folder.
func makeFiles(t *testing.T, home string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := errors.Join(os.MkdirAll(filepath.Join(home, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(home, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADenialOfFilesHoldsInEveryFolder: a file that is denied is denied in whatever folder
// the command runs that names it.
func TestADenialOfFilesHoldsInEveryFolder(t *testing.T) {
	in := project(t)
	makeFiles(t, in.Home, "secret/key", "secret/deep/x", "src/main.go")
	if err := errors.Join(os.Symlink("secret", filepath.Join(in.Home, "way")), os.Symlink("secret/deep", filepath.Join(in.Home, "deep"))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		deny, line string
		want       approval.Verdict
	}{
		{"secret/**", "cat secret/key", approval.Deny},
		{"secret/**", "cd secret && cat key", approval.Deny},
		{"secret/**", "tar -C secret -cf - .", approval.Deny},
		{"secret/**", "tar cf - secret", approval.Deny},
		{"secret/*", "ls secret", approval.Deny},
		{"secret/**", "cd src && cat ../secret/key", approval.Deny},
		{"secret/**", "cd src && cat main.go", approval.Grant},
		{"secret/**", "cat key", approval.Grant},
		{"secret/**", "make -C src", approval.Grant},
		{"secret/**", "tar -C src -cf - .", approval.Grant},
		{"secret/key", "cd secret && cat key", approval.Deny},
		{"secret/key", "cd secret; wc < key", approval.Deny},
		{"secret/key", "true; cd secret; cat key", approval.Deny},
		{"secret/key", "(cd secret; cat key)", approval.Deny},
		{"secret/key", "pushd secret; cat key", approval.Deny},
		{"secret/key", "pushd -n secret; cat key", approval.Deny},
		{"secret/key", "builtin cd secret; cat key", approval.Deny},
		{"secret/key", "cd -- secret; cat key", approval.Deny},
		{"secret/key", "cd src; cd ../secret; cat key", approval.Deny},
		{"secret/key", "cd way; cat key", approval.Deny},
		{"secret/key", "cd -P deep/..; cat key", approval.Deny},
		{"secret/key", "f() { cd secret; }; f; cat key", approval.Deny},
		{"secret/key", "bash -c 'cd secret; cat key'", approval.Deny},
		{"secret/key", "cd secret; bash -c 'cat key'", approval.Deny},
		{"secret/key", "sh -c 'chdir secret; cat key'", approval.Deny},
		{"secret/key", "python3 -c 'import os; os.chdir(\"secret\"); print(open(\"key\").read())'", approval.Deny},
		{"secret/key", "vim -c 'cd secret' -c 'r key' x", approval.Deny},
		{"secret/key", "python3 -c 'print(open(\"src/key\").read())'", approval.Grant},
		{"secret/key", "tar -C secret -cf - key", approval.Deny},
		{"secret/key", "tar -Csecret -cf - key", approval.Deny},
		{"secret/key", "tar --directory=secret -cf - key", approval.Deny},
		{"secret/key", "tar --directory secret -cf - key", approval.Deny},
		{"secret/key", "tar cfC - secret key", approval.Deny},
		{"secret/key", "git -C secret diff --no-index key x", approval.Deny},
		{"secret/key", "make -C secret key", approval.Deny},
		{"secret/key", "env -C secret cat key", approval.Deny},
		{"secret/key", "env --chdir=secret cat key", approval.Deny},
		{"secret/key", "sudo -D secret cat key", approval.Deny},
		{"secret/key", "pnpm --dir secret x key", approval.Deny},
		{"secret/key", "cd s*t; cat key", approval.Ask},
		{"secret/key", "cd \"$X\"; cat key", approval.Ask},
		{"secret/key", "tar -C s*t -cf - key", approval.Ask},
		{"secret/key", "find . -execdir cat key ';'", approval.Ask},
		{"secret/key", "CDPATH=secret; cd other; cat ../key", approval.Ask},
		{"secret/key", "OLDPWD=secret; cd -; cat key", approval.Ask},
		{"secret/key", strings.Repeat("cd a; cd b; cd c; ", 3) + "cat key", approval.Ask},
		{"secret/key", "cd s*c; cat main.go", approval.Grant},
		{"secret/key", "find . -execdir cat x ';'", approval.Grant},
		{"secret/key", "cd src; cat key; cd -", approval.Grant},
		{"secret/key", "grep -C 3 x src", approval.Grant},
		{os.Getenv("HOME") + "/.ssh/x", "cd; cat .ssh/x", approval.Deny},
		{os.Getenv("HOME") + "/.ssh/x", "cd ~/.ssh; cat x", approval.Deny},
	} {
		d := approval.Judge(approval.All, event.PermissionRules{Deny: []string{"read(" + test.deny + ")"}}, nil, readLine(test.line, in))
		if d.Verdict != test.want {
			t.Errorf("%q and read(%s): %s, want %s (%s)", test.line, test.deny, verdictName(d.Verdict), verdictName(test.want), d.Reason)
		}
	}
}

// TestGitInAnotherRepositoryByWayOfLinksIsAsked: git runs where links lead, and there with
// the configuration that it finds.
func TestGitInAnotherRepositoryByWayOfLinksIsAsked(t *testing.T) {
	in := project(t)
	elsewhere := t.TempDir()
	makeFiles(t, in.Home, "evil/.git/HEAD", "evil/sub/x", "src/deep/x")
	makeFiles(t, elsewhere, "x/y", ".git/HEAD")
	for name, to := range map[string]string{"link": "evil/sub", "outlink": elsewhere + "/x", "src/up": "../evil/sub", "near": "src/deep"} {
		if err := os.Symlink(to, filepath.Join(in.Home, name)); err != nil {
			t.Fatal(err)
		}
	}
	below := in
	below.Dir = filepath.Join(in.Home, "link")
	linked := in
	linked.Home = filepath.Join(t.TempDir(), "home")
	linked.Dir = linked.Home
	if err := os.Symlink(in.Home, linked.Home); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line string
		in   approval.Surroundings
		want approval.Verdict
	}{
		{"git status", in, approval.Grant},
		{"git -C src status", in, approval.Grant},
		{"git -C src/.. status", in, approval.Grant},
		{"git -C near status", in, approval.Grant},
		{"cd near && git status", in, approval.Grant},
		{"git status", linked, approval.Grant},
		{"git -C src status", linked, approval.Grant},
		{"git -C link status", in, approval.Ask},
		{"git -C link status", linked, approval.Ask},
		{"git -C ./src/up status", in, approval.Ask},
		{"git -C link/.. status", in, approval.Ask},
		{"git -C " + in.Home + "/link status", in, approval.Ask},
		{"cd link && git status", in, approval.Ask},
		{"cd src && git -C up status", in, approval.Ask},
		{"cd .. && git status", below, approval.Ask},
		{"cd link/.. && git status", in, approval.Ask},
		{"git status", below, approval.Ask},
		{"git -C .. status", below, approval.Ask},
		{"git -C outlink status", in, approval.Ask},
		{"git -C outlink/.. status", in, approval.Ask},
		{"git -C missing status", in, approval.Ask},
		{"timeout 5 git -C link status", in, approval.Ask},
		{"git -C link status || git -C link log", in, approval.Ask},
		{"git -C outlink/.. push origin", in, approval.Ask},
	} {
		rules := event.PermissionRules{Allow: []string{"bash(git *)", "read-only"}}
		if d := approval.Judge(approval.AskAlways, rules, nil, readLine(test.line, test.in)); d.Verdict != test.want {
			t.Errorf("%q in %s: %s, want %s (%s)", test.line, test.in.Dir, verdictName(d.Verdict), verdictName(test.want), d.Reason)
		}
	}
}

// TestARepositoryThatComesLaterIsAsked: what a command moves or removes decides which
// repository git finds after it.
func TestARepositoryThatComesLaterIsAsked(t *testing.T) {
	outer := project(t)
	rules := event.PermissionRules{Allow: []string{"bash(git *)", "bash(rm *)", "bash(mv *)", "bash(cp *)"}}
	in := outer
	in.Home = filepath.Join(outer.Home, "src")
	in.Dir = in.Home
	makeFiles(t, in.Home, ".git/HEAD", ".git/index.lock", "folder/x", "links/x", "a/x")
	if err := os.Symlink("../../evil", filepath.Join(in.Home, "links/link")); err != nil {
		t.Fatal(err)
	}
	expectVerdicts(t, in, rules, map[string]string{
		"rm -rf .git && git status":           "ask",
		"rm -r ./.git/ && git status":         "ask",
		"rm .git/HEAD && git status":          "ask",
		"rm -rf .git/objects; git status":     "ask",
		"mv links a && git -C a status":       "ask",
		"git mv links a && git -C a status":   "ask",
		"cp -r links/. a && git -C a status":  "ask",
		"cp -r folder/. a && git -C a status": "allow",
		"rm .git/index.lock && git status":    "allow",
		"rm -rf folder && git status":         "allow",
		"git status && rm -rf .git":           "allow",
	})
	var many []string
	for i := range 31 {
		for j := range 100 {
			many = append(many, fmt.Sprintf("many/%d/%d", i, j))
		}
	}
	makeFiles(t, in.Home, many...)
	expectVerdicts(t, in, rules, map[string]string{"mv many a && git status": "ask", "mv many/0 a && git status": "allow"})
}

// A shell that runs may have changed its folder before: the end of a path may be the file
// that is denied. It cannot have changed to a folder that is denied as a whole.
func TestInputThatMayNameADeniedFileIsAsked(t *testing.T) {
	in := project(t)
	makeFiles(t, in.Home, "secret/key", "secret/deep/x")
	in.Fed = true
	for _, test := range []struct {
		deny, line string
		want       approval.Verdict
	}{
		{"secret/key", "cat key", approval.Ask},
		{"secret/key", "cat ./key", approval.Ask},
		{"secret/deep/x", "cat deep/x", approval.Ask},
		{"secret/key", "cat secret/key", approval.Deny},
		{"secret/key", "cat monkey", approval.Grant},
		{"secret/key", "y", approval.Grant},
		{"secret/**", "cd secret", approval.Deny},
		{"secret", "cd secret", approval.Deny},
		{"secret/**", "cat key", approval.Grant},
		{"secret", "cat key", approval.Grant},
	} {
		d := approval.Judge(approval.All, event.PermissionRules{Deny: []string{"read(" + test.deny + ")"}}, nil, readLine(test.line, in))
		if d.Verdict != test.want {
			t.Errorf("%q and read(%s): %s, want %s (%s)", test.line, test.deny, verdictName(d.Verdict), verdictName(test.want), d.Reason)
		}
	}
}
