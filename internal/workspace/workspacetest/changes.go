package workspacetest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
)

// changesTests are the tests of what git knows.
var changesTests = map[string]func(*testing.T, *Fixture){
	"ChangesAreThoseThatGitKnows":  changes,
	"WithoutARepositoryNoneChange": noChanges,
}

// git runs git in the folder of the workspace.
func (p *Fixture) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v, %s", args, err, out)
	}
}

func changes(t *testing.T, p *Fixture) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	p.put(t, "modified", "one\ntwo\n")
	p.put(t, "deleted", "x\n")
	p.put(t, "old", strings.Repeat("some text that is long enough\n", 10))
	p.put(t, "space", "a b\n")
	p.put(t, "sub/f", "x\n")
	p.git(t, "init", "-q", "-b", "main")
	p.git(t, "add", ".")
	p.git(t, "commit", "-qm", "first")
	p.git(t, "checkout", "-qb", "work")
	p.put(t, "committed", "something else\n")
	p.git(t, "add", ".")
	p.git(t, "commit", "-qm", "second")
	p.git(t, "mv", "old", "renamed")
	p.put(t, "modified", "one\n2\n")
	p.put(t, "space", "a  b\n")
	must(t, os.Remove(p.at("deleted")))
	p.put(t, "unknown\xff", "new\n")
	p.put(t, "large", strings.Repeat("x", 300<<10))
	summary := func(r workspace.ChangesRequest) string {
		found, err := p.Changes(t.Context(), r)
		must(t, err)
		list := []string{found.Base}
		for _, f := range found.Files {
			text := f.Kind + " " + f.OldPath + ">" + f.Path
			if f.Cut != (f.Diff == "") {
				t.Errorf("%+v", f)
			}
			if f.Cut {
				text += " cut"
			}
			list = append(list, text)
		}
		return strings.Join(list, "; ")
	}
	for want, r := range map[string]workspace.ChangesRequest{
		"; deleted >deleted; modified >modified; renamed old>renamed; modified >space; added >large cut; added >unknown\uFFFD":                       {Dir: p.Dir},
		"; deleted >deleted; modified >modified; renamed old>renamed; added >large cut; added >unknown\uFFFD":                                        {Dir: p.Dir, IgnoreSpace: true},
		"main; added >committed; deleted >deleted; modified >modified; renamed old>renamed; modified >space; added >large cut; added >unknown\uFFFD": {Dir: p.Dir, Branch: true},
		"": {Dir: p.at("sub")},
	} {
		if got := summary(r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

func noChanges(t *testing.T, p *Fixture) {
	for _, r := range []workspace.ChangesRequest{{Dir: p.Dir, Branch: true}, {Dir: p.at("none")}, {}} {
		if found, err := p.Changes(t.Context(), r); err != nil || len(found.Files) > 0 || found.Base != "" {
			t.Errorf("%+v: %+v, %v", r, found, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err := p.Changes(ctx, workspace.ChangesRequest{Dir: p.Dir})
	fails(t, err, errEnough, "what is cancelled")
}
