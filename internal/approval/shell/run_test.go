package shell_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/shell"
)

// runs returns the commands that a line runs, as text, or the error.
func runs(t *testing.T, line string) string {
	t.Helper()
	p, err := shell.ReadPlain(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	list, err := p.Commands()[0].Runs()
	if err != nil {
		return "error: " + err.Error()
	}
	var texts []string
	for _, r := range list {
		text := strings.ReplaceAll(strings.Join(r.Words, " "), shell.Unknown, "…")
		if r.Dir != "" {
			text += " in " + r.Dir
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func TestProgramsThatRunOthersAreTakenApart(t *testing.T) {
	for line, want := range map[string]string{
		"git status":                           "git status",
		"timeout 5 git status":                 "git status",
		"timeout -k 1 --signal=INT 5 ls -l":    "ls -l",
		"timeout -- 5 ls":                      "ls",
		"nice -n 5 nohup env ls":               "ls",
		"env":                                  "env",
		"command ls":                           "ls",
		"command -v ls":                        "command -v ls",
		"sudo ls":                              "sudo ls; ls",
		"xargs -0 -n 1 grep x":                 "grep x …",
		"git --no-pager -C a log":              "git log in a",
		"git --version":                        "git --version",
		"find . -name x":                       "find . -name x",
		"find . -exec grep x {} + -print":      "find . -print; grep x …",
		"find . -exec 'a{}b' ';' -exec ls ';'": "error: a command without a name",
		"find . -exec sort + -o victim ';'":    "find .; sort + -o victim",
		"sh x.sh -c y":                         "sh x.sh -c y",
		"stdbuf -oL ls":                        "ls",
		"cd x":                                 "",
		"timeout --sig=INT 5 ls":               "error: timeout with words that are not known here",
		"timeout 5":                            "error: timeout with words that are not known here",
		"timeout -k -s 5 ls":                   "error: timeout with words that are not known here",
		"nice -5 ls":                           "error: nice with words that are not known here",
		"env A=1 ls":                           "error: an assignment (A=1)",
		"env -i ls":                            "error: env with words that are not known here",
		"/usr/bin/env ls":                      "error: env, which runs another program",
		"sudo -n ls":                           "error: sudo with words that are not known here",
		"flock f ls":                           "error: flock, which runs another program",
		"busybox ls":                           "error: busybox, which runs another program",
		"sh -c ls":                             "error: a script inside the command (sh)",
		"/bin/bash":                            "error: a script inside the command (/bin/bash)",
		"xargs sh":                             "error: a script inside the command (sh)",
		"xargs git":                            "error: git with a subcommand that is not known",
		"xargs find":                           "error: find with words that are not known",
		"xargs env":                            "error: a command without a name",
		"nice cd x":                            "error: cd inside another command",
		"nice eval x":                          "error: a builtin that changes the shell (eval)",
		"git -c a=b status":                    "error: an option of git before its subcommand (-c)",
		"git -C a -C b status":                 "error: an option of git before its subcommand (-C)",
		"find . -execdir ls ';'":               "error: find with -execdir",
		"find . -exec ls":                      "error: find with -exec and no end of it",
		"printf -v x y":                        "error: a variable that printf uses",
		"test -v x":                            "error: a variable that test uses",
	} {
		if got := runs(t, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestReadOnlyIsAClosedTable(t *testing.T) {
	reads := func(line string) bool {
		p, err := shell.ReadPlain(line)
		if err != nil {
			return false
		}
		list, err := p.Commands()[0].Runs()
		return err == nil && !slices.ContainsFunc(list, func(r shell.Run) bool { return !r.ReadOnly(everything) })
	}
	for _, line := range []string{
		"ls -la", "sort -k2,2n -ru f", "sort -t , -k 1 f", "git log --oneline -5 --format=%h", "git log -S foo", "git diff HEAD~1 -- a b", "uniq -c f", "date +%s", "date -d 'now' +%s",
		"find . -name x -type f", "sed -n 1,5p f", "rg -n -g '*.go' x", "git branch --contains HEAD", "git tag -l 'v*'", "git stash show -p", "xargs cat", "git status -uno", "tree -L 2",
	} {
		if !reads(line) {
			t.Errorf("%s is not read-only", line)
		}
	}
	for _, line := range []string{
		"sort -uo victim f", "sort --outp=x f", "sort -t -o victim f", "sort -- -o", "sort -k", "git log --output=x", "git log --format --output=x", "git diff -O x", "git branch x", "git tag x", "git stash",
		"uniq a b", "date 0101", "date -s x", "find . -delete", "find -- -x", "sed -n 1p -i f", "sed -ne 1p f", "rg --pre=x y", "rg --pre x y", "xargs sort", "xargs git log", "git", "git status --unknown", "git log --oneli",
		"make", "go version", "npm ls", "file -C", "tree -o x", "jq --unknown", "git config x y", "git remote update", "git status -x", "sort -n:", "git log -:",
	} {
		if reads(line) {
			t.Errorf("%s is read-only", line)
		}
	}
}

// TestProgramsInFrontAreTrusted: a program that runs another one is looked for in PATH, and
// for it so is what the shell would run itself.
func TestProgramsInFrontAreTrusted(t *testing.T) {
	for line, asked := range map[string]string{
		"echo x":                      "",
		"ls":                          "ls",
		"command echo x":              "",
		"command ls":                  "ls",
		"command -v ls":               "",
		"timeout 5 ls":                "timeout ls",
		"timeout 5 echo x":            "timeout echo",
		"nice -n 5 test -f x":         "nice test",
		"env type x":                  "env type",
		"command env pwd":             "env pwd",
		"timeout 5 command -v ls":     "timeout command",
		"timeout 5 command echo x":    "timeout command echo",
		"stdbuf -oL nohup env true":   "stdbuf nohup env true",
		"xargs echo":                  "xargs echo",
		"find . -exec test -f {} ';'": "find find test",
	} {
		p, err := shell.ReadPlain(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list, err := p.Commands()[0].Runs()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var names []string
		for _, run := range list {
			if !run.ReadOnly(func(name string) bool { names = append(names, name); return true }) {
				t.Errorf("%s: %q is not read-only", line, run.Words)
			}
		}
		if got := strings.Join(names, " "); got != asked {
			t.Errorf("%s: trust is asked for %q, want %q", line, got, asked)
		}
	}
}

func TestOnlyProgramsOfTheSystemAreTrusted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ls", "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const system = "/usr/local/bin:/usr/bin:/bin"
	for _, test := range []struct {
		path, name string
		want       bool
	}{
		{system, "ls", true},
		{system, "/bin/ls", true},
		{system, "mine", false},
		{dir + ":" + system, "ls", false},
		{system + ":" + dir, "ls", true},
		{system + ":" + dir, "mine", false},
		{".:" + system, "ls", false},
		{":" + system, "ls", false},
		{"", "ls", false},
		{system, "./ls", false},
		{system, "/bin/../bin/ls", false},
		{system, dir + "/ls", false},
		{system, "nothing-has-this-name", false},
	} {
		if got := shell.Trusted(test.path)(test.name); got != test.want {
			t.Errorf("PATH=%s, %s: trusted = %v, want %v", test.path, test.name, got, test.want)
		}
	}
}

// TestGitIsHeldStill runs git in a repository whose configuration names programs.
func TestGitIsHeldStill(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	evil := filepath.Join(dir, "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho ran >> '"+dir+"/ran'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	run := func(env []string, args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run(env, "init", "-q", repo)
	for _, args := range [][]string{{"core.fsmonitor", evil}, {"core.pager", evil}, {"core.hooksPath", filepath.Join(repo, "hooks")}, {"core.editor", evil}, {"rebase.instructionFormat", "%s%nexec " + evil}} {
		run(env, "-C", repo, "config", args[0], args[1])
	}
	if err := os.MkdirAll(filepath.Join(repo, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"pre-commit", "post-commit", "commit-msg", "post-checkout"} {
		if err := os.Symlink(evil, filepath.Join(repo, "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	still := shell.HoldStill(append(env, "BASH_ENV="+evil, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0="+evil, "BASH_FUNC_ls%%=() { "+evil+"; }"))
	run(still, "-C", repo, "status")
	run(still, "-C", repo, "add", "-A")
	run(still, "-C", repo, "commit", "-qm", "x")
	run(still, "-C", repo, "log", "-p")
	run(still, "-C", repo, "checkout", "-qb", "y")
	run(still, "-C", repo, "rebase", "-q", "-f", "--root")
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
		t.Errorf("programs of the configuration ran: %s", ran)
	}
	cmd := exec.Command("bash", "-c", "ls / >/dev/null")
	cmd.Env = still
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("bash: %s, %v", out, err)
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
		t.Errorf("programs of the environment ran: %s", ran)
	}
	run(env, "-C", repo, "status")
	if _, err := os.ReadFile(filepath.Join(dir, "ran")); err != nil {
		t.Error("the trap of this test does not work")
	}
}

// TestGitSignsWithNoProgramOfTheConfiguration: whatever makes a signature or looks at one
// runs the usual programs, and none that the configuration names.
func TestGitSignsWithNoProgramOfTheConfiguration(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	evil, repo, bin, ran := filepath.Join(dir, "evil"), filepath.Join(dir, "repo"), filepath.Join(dir, "bin"), filepath.Join(dir, "ran")
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	run := func(env []string, args ...string) error {
		cmd := exec.Command(git, append([]string{"-C", repo}, args...)...)
		cmd.Env = env
		return cmd.Run()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(os.Mkdir(repo, 0o755), os.Mkdir(bin, 0o755)))
	for _, program := range []string{evil, bin + "/gpg", bin + "/gpgsm", bin + "/ssh-keygen", bin + "/ssh-add"} { // none of them signs anything
		must(os.WriteFile(program, []byte("#!/bin/sh\nbasename \"$0\" >> '"+ran+"'\nexit 1\n"), 0o755))
	}
	must(errors.Join(run(env, "init", "-q"), run(env, "commit", "-q", "--allow-empty", "-m", "x")))
	for _, c := range []struct{ format, key, usual string }{
		{"openpgp", "gpg.program", "gpg"},
		{"openpgp", "gpg.openpgp.program", "gpg"},
		{"x509", "gpg.x509.program", "gpgsm"},
		{"ssh", "gpg.ssh.program", "ssh-keygen"},
		{"ssh", "gpg.ssh.defaultKeyCommand", "ssh-add"},
	} {
		must(errors.Join(run(env, "config", "gpg.format", c.format), run(env, "config", c.key, evil), run(env, "config", "user.signingKey", evil)))
		if c.usual == "ssh-add" {
			must(run(env, "config", "--unset", "user.signingKey"))
		}
		for _, args := range [][]string{{"commit", "-S", "--allow-empty", "-m", "x"}, {"tag", "-f", "-s", "-m", "x", "v1"}} {
			for want, env := range map[string][]string{c.usual: shell.HoldStill(env), "evil": env} {
				_ = run(env, args...) // it fails, because nothing signs
				if name, err := os.ReadFile(ran); err != nil || strings.TrimSpace(string(name)) != want {
					t.Errorf("%s: git %s runs %q, want %s (%v)", c.key, args[0], name, want, err)
				}
				_ = os.Remove(ran) // the next one begins without it
			}
		}
		must(run(env, "config", "--unset", c.key))
	}
}

// TestGitStaysInItsRepository: status does not look into submodules, and fetch runs no
// program to look into the repository that it borrows objects from.
func TestGitStaysInItsRepository(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	run := func(env []string, args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	still := shell.HoldStill(env)
	run(env, "init", "-q", "other")
	run(env, "-C", "other", "commit", "-q", "--allow-empty", "-m", "x")
	run(env, "init", "-q", "repo")
	run(env, "-C", "repo", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", dir+"/other", "sub")
	run(env, "-C", "repo", "commit", "-qm", "x")
	run(env, "-C", "repo/sub", "commit", "-q", "--allow-empty", "-m", "y")
	run(env, "-C", "repo", "add", "sub")
	run(env, "-C", "repo", "config", "status.submoduleSummary", "true")
	if out := run(env, "-C", "repo", "status"); !strings.Contains(out, "Submodule changes") {
		t.Fatalf("the trap of this test does not work: %s", out)
	}
	if out := run(still, "-C", "repo", "status"); strings.Contains(out, "Submodule changes") {
		t.Errorf("status looks into submodules: %s", out)
	}

	evil := filepath.Join(dir, "evil")
	if err := errors.Join(os.WriteFile(evil, []byte("#!/bin/sh\necho ran >> '"+dir+"/ran'\n"), 0o755),
		os.WriteFile(filepath.Join(dir, "repo/.git/objects/info/alternates"), []byte(dir+"/other/.git/objects\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	run(env, "-C", "repo", "config", "core.alternateRefsCommand", evil)
	run(still, "-C", "repo", "fetch", "-q", dir+"/other")
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("fetch runs a program of the configuration")
	}
	run(env, "-C", "repo", "fetch", "-q", dir+"/other")
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Error("the second trap of this test does not work")
	}
}
