package process

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// programs are programs that people use, each with a script that uses it in the working
// directory of a confined command. The folder above it is not writable.
var programs = []struct {
	name   string
	needs  []string
	script string
}{
	{"git: commit, hooks, branches, merge, gc", []string{"git"}, `
git init -q . && git config user.name a && git config user.email a@b
printf '#!/bin/sh\necho hook > hooked\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit
echo 1 > f && git add f && git commit -qm one && [ -e hooked ]
git checkout -qb other && echo 2 > f && git commit -qam two && git checkout -q - && git merge -q other
git stash list && git gc -q --prune=now && git fsck`},
	{"git: commit in a linked worktree", []string{"git"}, `
cd "$WORKTREE" && echo 1 > new && git add new && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | grep one && git gc -q`},
	{"git: a worktree inside", []string{"git"}, `
git init -q . && git -c user.name=a -c user.email=a@b commit -qm one --allow-empty && git worktree add -q inside && cd inside && git status && cd .. && git worktree remove inside`},
	{"go: test", []string{"go"}, `
printf 'module m\n\ngo 1.20\n' > go.mod
printf 'package m\n\nimport ("os"; "testing")\n\nfunc Test(t *testing.T) { os.WriteFile(t.TempDir()+"/x", nil, 0o600) }\n' > m_test.go
go env GOCACHE | grep /cache/ && echo x > "$(go env GOCACHE).writable"
export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOCACHE=$SHARED_GOCACHE && go test ./...`},
	{"npm: install", []string{"npm", "node"}, `
mkdir dep && echo '{"name":"dep","version":"1.0.0","bin":{"dep":"dep.js"}}' > dep/package.json && printf '#!/usr/bin/env node\nconsole.log("dep")\n' > dep/dep.js
echo '{"name":"m","version":"1.0.0","dependencies":{"dep":"file:./dep"},"scripts":{"postinstall":"echo done > installed","test":"node -e 0"}}' > package.json
npm install --offline --no-audit --no-fund && [ -e installed ] && npm test && npx --no-install dep | grep dep`},
	{"make", []string{"make"}, `
printf 'all: out\nout: in\n\tcp in out\n' > Makefile && echo x > in && make -j2 && [ -e out ]`},
	{"python", []string{"python3"}, `
python3 -c '
import multiprocessing, sqlite3, subprocess, tempfile
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as p: assert p.map(abs, [-1, 2]) == [1, 2]
    with tempfile.NamedTemporaryFile() as f: f.write(b"x")
    sqlite3.connect("db").execute("create table t (a)")
    subprocess.run(["true"], check=True)
'`},
	{"pip: install", []string{"python3"}, `
python3 -c '
import zipfile
with zipfile.ZipFile("m-1.0-py3-none-any.whl", "w") as z:
    z.writestr("m.py", "x = 1")
    z.writestr("m-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: m\nVersion: 1.0\n")
    z.writestr("m-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("m-1.0.dist-info/RECORD", "")
' && PYTHON=$(python3 -c 'import sys; print(sys.executable)') && $PYTHON -m pip --disable-pip-version-check install -q --no-index --no-deps --target=lib m-1.0-py3-none-any.whl && PYTHONPATH=lib $PYTHON -c 'import m'`},
	{"ssh-agent", []string{"ssh-agent", "ssh-add", "ssh-keygen"}, `
eval "$(ssh-agent -s -a "$PWD/agent")" && ssh-keygen -q -t ed25519 -N '' -f key && ssh-add -q key && ssh-add -l | grep ED25519 && ssh-agent -k`},
	{"a socket of an agent outside", []string{"ssh-agent", "ssh-add"}, `ssh-add -l || [ $? = 1 ]`}, // 1 means that it has no keys
	{"a terminal of its own", []string{"script"}, `script -qec 'tty | grep /dev/pts' /dev/null`},
	{"cc: a program", []string{"cc"}, `echo 'int main(void) { return 0; }' > m.c && cc -o m m.c && ./m`},
}

// TestProgramsWorkInTheSandbox runs programs that people use in confined commands.
func TestProgramsWorkInTheSandbox(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, dir := range []string{"tmp", "home", "data", "repo"} {
		must(t, os.Mkdir(filepath.Join(base, dir), 0o700))
	}
	shared, isNew := goCache()
	s := sandbox.Open(sandbox.Options{
		Writable: []string{shared}, // otherwise all of the library is compiled
		Hidden:   []string{base + "/data"}, Temp: []string{base + "/tmp", "/dev/shm"}, Cache: base + "/cache", Home: base + "/home",
	})
	t.Cleanup(s.Close)
	m := open(t, base+"/processes", Options{Sandbox: s, Shell: Shell()})
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for _, name := range p.needs {
				if _, err := exec.LookPath(name); err != nil {
					t.Skipf("skipped: there is no %s here", name)
				}
			}
			if isNew && slices.Contains(p.needs, "go") && !required("users") {
				t.Skip("skipped: all of the library would be compiled; ABIDE_REQUIRE=users does it")
			}
			if _, err := user.Current(); err != nil && slices.Contains(p.needs, "ssh-keygen") {
				t.Skipf("skipped: ssh-keygen needs a user with a name: %v", err)
			}
			work := filepath.Join(base, "work")
			must(t, os.RemoveAll(work))
			must(t, os.Mkdir(work, 0o755))
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base + "/home", "TMPDIR=" + base + "/tmp", "LC_ALL=C.UTF-8", "SHARED_GOCACHE=" + shared}
			spec := Spec{Key: p.name, Owner: me, Command: "set -e\n" + p.script, Dir: work, Env: env}
			if strings.Contains(p.script, "$WORKTREE") {
				spec.Root = worktree(t, base)
				spec.Env = append(env, "WORKTREE="+spec.Root)
			}
			if strings.Contains(p.name, "agent outside") {
				spec.Env = append(env, "SSH_AUTH_SOCK="+startAgent(t, base))
			}
			info := run(t, m, spec)
			if info.Profile != sandbox.Workspace || info.Exit == nil || info.Exit.Code != 0 {
				t.Errorf("it ended with %+v in profile %q, and printed\n%s", info.Exit, info.Profile, all(t, m, info.ID, Both))
			}
		})
	}
}

// TestProgramsWorkInTheSandboxOfAnOrdinaryUser does the same as a user without rights.
func TestProgramsWorkInTheSandboxOfAnOrdinaryUser(t *testing.T) {
	runAsOrdinaryUser(t, "TestProgramsWorkInTheSandbox")
}

// goCache returns the folder for compiled packages of the user, and whether it was made for
// this test; a folder that is there in every case if there is no go.
func goCache() (dir string, isNew bool) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return os.TempDir(), false
	}
	dir = strings.TrimSpace(string(out))
	_, err = os.Stat(dir)
	_ = os.MkdirAll(dir, 0o755) // a folder that is not there is found by the test of go
	return dir, err != nil
}

// worktree makes a repository with a linked worktree, and returns the worktree.
func worktree(t *testing.T, base string) string {
	t.Helper()
	at := filepath.Join(base, "linked")
	for _, args := range [][]string{
		{"init", "-q", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", "--allow-empty"}, {"worktree", "add", "-q", at},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(base, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return at
}

// startAgent starts an agent for keys outside of the sandbox, and returns its socket.
func startAgent(t *testing.T, base string) string {
	t.Helper()
	socket := filepath.Join(base, "agent")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	_, err = out.Read(make([]byte, 1)) // it prints when it listens
	must(t, err)
	return socket
}

// TestALinkedRepositoryHasToNameItsWorktree: the file .git can be written by a command, so
// it must not make another repository writable.
func TestALinkedRepositoryHasToNameItsWorktree(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	p.reset()
	victim := filepath.Join(p.base, "victim/.git")
	must(t, os.MkdirAll(victim+"/worktrees/x", 0o755))
	must(t, os.MkdirAll(victim+"/modules/x", 0o755))
	must(t, os.WriteFile(victim+"/worktrees/x/gitdir", []byte("/elsewhere/.git\n"), 0o644))
	must(t, os.WriteFile(victim+"/modules/x/config", []byte("[core]\n\tworktree = ../../../other\n"), 0o644))
	must(t, os.Symlink(victim+"/worktrees/x", p.base+"/tmp/x"))
	targets := []string{victim, victim + "/worktrees/x", victim + "/modules/x", "../victim/.git/worktrees/x", p.base + "/tmp/x", p.base + "/tmp/none", "/"}
	for i, target := range targets {
		must(t, os.WriteFile(p.Work+"/.git", []byte("gitdir: "+target+"\n"), 0o644))
		info := run(t, p.m, Spec{Key: "git" + itoa(i), Owner: me, Dir: p.Work, Command: "echo x > " + victim + "/escaped || echo x > " + victim + "/worktrees/x/escaped || echo x > " + victim + "/modules/x/escaped"})
		if info.Exit == nil || info.Exit.Code == 0 {
			t.Errorf("a file .git with %s made the repository of somebody else writable", target)
		}
	}
	// A folder that only has the name of worktrees is none.
	named := filepath.Join(p.base, "worktrees/x")
	must(t, os.MkdirAll(named, 0o755))
	must(t, os.WriteFile(named+"/.git", []byte("gitdir: "+named+"\n"), 0o644))
	must(t, os.WriteFile(named+"/gitdir", []byte(named+"/.git\n"), 0o644))
	if info := run(t, p.m, Spec{Key: "named", Owner: me, Dir: named, Command: "echo x > " + p.base + "/escaped"}); info.Exit == nil || info.Exit.Code == 0 {
		t.Error("a working directory in a folder called worktrees made the folder above writable")
	}
	// The true one is writable, and stays the only one.
	must(t, os.MkdirAll(victim+"/objects", 0o755))
	must(t, os.MkdirAll(victim+"/refs", 0o755))
	must(t, os.WriteFile(victim+"/HEAD", []byte("ref: refs/heads/main\n"), 0o644))
	must(t, os.WriteFile(victim+"/worktrees/x/gitdir", []byte(p.Work+"/.git\n"), 0o644))
	must(t, os.WriteFile(p.Work+"/.git", []byte("gitdir: "+victim+"/worktrees/x\n"), 0o644))
	if info := run(t, p.m, Spec{Key: "true one", Owner: me, Dir: p.Work, Command: "echo x > " + victim + "/written && ! echo x > " + p.Out + "/new"}); info.Exit == nil || info.Exit.Code != 0 {
		t.Errorf("the repository of the worktree is not writable: %s", all(t, p.m, info.ID, Both))
	}
}

// TestASandboxSaysWhatItCannotHold tells what happens where a sandbox holds little or
// nothing.
func TestASandboxSaysWhatItCannotHold(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	home, data := base+"/home", base+"/home/data"
	must(t, os.MkdirAll(data, 0o755))
	must(t, os.Mkdir(base+"/work", 0o755))
	kernel := func(abi int) func() int { return func() int { return abi } }
	for _, c := range []struct {
		name    string
		options sandbox.Options
		dir     string
		fails   string // what the error says; empty if the command runs
		warns   string
		profile sandbox.Profile
	}{
		{"no Landlock, auto", sandbox.Options{ABI: kernel(0)}, base, "", "commands are not confined: this kernel has no Landlock", sandbox.None},
		{"no Landlock, require", sandbox.Options{ABI: kernel(0), Mode: sandbox.Require}, base, "no Landlock", "", ""},
		{"an old Landlock, require", sandbox.Options{ABI: kernel(2), Mode: sandbox.Require}, base, "Linux 6.2", "", ""},
		{"off", sandbox.Options{Mode: sandbox.Off}, base, "", "", sandbox.None},
		{"the root of all files", sandbox.Options{}, "/", "", "is the root of all files", sandbox.Workspace},
		{"the root of all files, require", sandbox.Options{Mode: sandbox.Require}, "/", "is the root of all files", "", ""},
		{"the home folder", sandbox.Options{Home: home}, home, "", "contains your home folder", sandbox.Workspace},
		{"the home folder, require", sandbox.Options{Home: home, Mode: sandbox.Require}, home, "contains your home folder", "", ""},
		{"the data folder", sandbox.Options{Hidden: []string{data}}, home, "", "contains the data folder", sandbox.Workspace},
		{"settings with the home folder", sandbox.Options{Home: home, Writable: []string{home}}, base + "/work", "", "commands.writable names " + home + ", which contains your home folder", sandbox.Workspace},
		{"settings with the data folder, require", sandbox.Options{Hidden: []string{data}, Writable: []string{home}, Mode: sandbox.Require}, base + "/work", "which contains the data folder", "", ""},
		{"a path that is not there", sandbox.Options{Writable: []string{base + "/none"}}, base, "", base + "/none, which is not there", sandbox.Workspace},
	} {
		t.Run(c.name, func(t *testing.T) {
			if sandbox.Kernel() == 0 && c.profile == sandbox.Workspace {
				skipOrFail(t, "landlock", "this kernel has no Landlock")
			}
			var warned []string
			c.options.Warn = func(text string) { warned = append(warned, text) }
			s := sandbox.Open(c.options)
			t.Cleanup(s.Close)
			m := open(t, t.TempDir(), Options{Sandbox: s})
			for _, key := range []string{"a", "b"} {
				info, _, err := m.Start(t.Context(), Spec{Key: key, Owner: me, Command: "true", Dir: c.dir})
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("the error is %v", err)
					}
					continue
				}
				must(t, err)
				if info.Profile != c.profile {
					t.Errorf("the profile is %q", info.Profile)
				}
				_, err = m.WaitGone(t.Context(), me, info.ID)
				must(t, err)
			}
			told := slices.ContainsFunc(warned, func(text string) bool { return strings.Contains(text, c.warns) })
			if c.warns == "" && len(warned) > 0 || c.warns != "" && (len(warned) != 1 || !told) {
				t.Errorf("it warned %q", warned)
			}
		})
	}
}

// TestAPathThatCommandsMayWriteCountsWhenItIsThere makes a path of the settings after the
// first command, and replaces the working directory between two.
func TestAPathThatCommandsMayWriteCountsWhenItIsThere(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	work, later := base+"/work", base+"/later"
	s := sandbox.Open(sandbox.Options{Writable: []string{later}, Hidden: []string{base + "/data"}, Temp: []string{}})
	t.Cleanup(s.Close)
	m := open(t, base+"/processes", Options{Sandbox: s})
	works := func(key, command string, want bool) {
		t.Helper()
		info := run(t, m, Spec{Key: key, Owner: me, Command: command, Dir: work})
		if got := info.Exit != nil && info.Exit.Code == 0; got != want {
			t.Errorf("%s: it worked: %v; %s", command, got, all(t, m, info.ID, Both))
		}
	}
	must(t, os.Mkdir(work, 0o755))
	works("1", "mkdir "+later, false)
	must(t, os.Mkdir(later, 0o755))
	works("2", "echo x > "+later+"/x", true)
	must(t, os.RemoveAll(work))
	must(t, os.Mkdir(work, 0o755))
	works("3", "echo x > x", true)
	must(t, os.WriteFile(base+"/neighbour", []byte("x"), 0o644))
	works("4", "cat "+base+"/neighbour", true)
}

// TestALinkThatACommandMadeGivesNoRights: a command can put a link in the place of a folder
// for temporary files or of the settings, if that is in a folder that it may change. What the
// link leads to is not writable for the next one.
func TestALinkThatACommandMadeGivesNoRights(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	for _, test := range []struct {
		name     string
		temp     string   // TMPDIR of the commands
		writable []string // folders of the settings
		link     string   // where the first command puts a link
		warns    bool
	}{
		{"TMPDIR in the working directory", "/work/mine", nil, "/work/mine", false},
		{"TMPDIR in a temporary folder", "/tmp/a/b", nil, "/tmp/a", false},
		{"a path of the settings", "", []string{"/work/sub/mine"}, "/work/sub", true},
		{"a path of the settings in another one", "", []string{"/given/mine", "/given"}, "/given/mine", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.reset()
			must(t, os.MkdirAll(p.Out+"/b", 0o755))
			must(t, os.MkdirAll(p.Out+"/mine", 0o755))
			var warned []string
			o := sandbox.Options{Hidden: []string{p.Data}, Temp: []string{p.base + "/tmp"}, Warn: func(text string) { warned = append(warned, text) }}
			for _, path := range test.writable {
				o.Writable = append(o.Writable, p.base+path)
				must(t, os.MkdirAll(p.base+path, 0o755))
			}
			s := sandbox.Open(o)
			t.Cleanup(s.Close)
			m := open(t, t.TempDir(), Options{Sandbox: s})
			env := append(PlainEnv(), "TMPDIR="+p.base+test.temp)
			link := p.base + test.link
			made := run(t, m, Spec{Key: "link", Owner: me, Dir: p.Work, Env: env, Command: "rm -rf " + link + " && ln -s " + p.Out + " " + link})
			if made.Exit == nil || made.Exit.Code != 0 {
				t.Fatalf("no link was made: %s", all(t, m, made.ID, Both))
			}
			run(t, m, Spec{Key: "use", Owner: me, Dir: p.Work, Env: env, Command: "echo x > " + p.Out + "/escaped; echo x > " + p.Out + "/b/escaped; echo x > " + p.Out + "/mine/escaped"})
			for _, name := range []string{"/escaped", "/b/escaped", "/mine/escaped"} {
				if _, err := os.Stat(p.Out + name); err == nil {
					t.Errorf("the command has written %s", name)
				}
			}
			if test.warns != (len(warned) > 0) {
				t.Errorf("it warned %q", warned)
			}
		})
	}
}

// TestAHiddenFileNeedNotBeThereYet hides files in a folder that commands may read, such as a
// key file outside the data folder. They are made after the first command, and named by a link.
func TestAHiddenFileNeedNotBeThereYet(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	p.reset()
	must(t, os.Symlink(p.Out, p.base+"/link"))
	s := sandbox.Open(sandbox.Options{Hidden: []string{p.base + "/link/key"}, Temp: []string{p.base + "/tmp"}})
	t.Cleanup(s.Close)
	m := open(t, p.base+"/hiding", Options{Sandbox: s})
	script := "cat ../out/file && ! cat ../out/key && ! cp ../out/key . && ! ln ../out/key ."
	for _, profile := range []sandbox.Profile{sandbox.Workspace, sandbox.Sealed} {
		if profile == sandbox.Sealed && !p.canSeal(t) {
			continue
		}
		run(t, m, Spec{Key: "before " + string(profile), Owner: me, Dir: p.Work, Command: script, Profile: profile})
		must(t, os.WriteFile(p.Out+"/key", []byte("secret"), 0o600))
		info := run(t, m, Spec{Key: "after " + string(profile), Owner: me, Dir: p.Work, Command: script, Profile: profile})
		if printed := all(t, m, info.ID, Both); info.Profile != profile || strings.Contains(printed, "secret") || !strings.Contains(printed, "text") {
			t.Errorf("%s: it ended with %+v, and printed %s", profile, info.Exit, printed)
		}
		must(t, os.Remove(p.Out+"/key"))
	}
}

// TestARepositoryThatWasDecidedIsNotReplaced: a command may remove the repository of its
// working directory. The one above becomes writable for a command whose repository is looked
// for then, and not for one whose repository was decided before.
func TestARepositoryThatWasDecidedIsNotReplaced(t *testing.T) {
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	p.reset()
	above := filepath.Join(p.base, ".git")
	must(t, os.Mkdir(above, 0o755))
	must(t, os.Mkdir(p.Work+"/.git", 0o755))
	decided := sandbox.FindRepository(p.Work)
	run(t, p.m, Spec{Key: "remove", Owner: me, Dir: p.Work, Command: "rmdir .git", Repository: &decided})
	for _, test := range []struct {
		name       string
		repository *sandbox.Repository
		writes     bool
	}{{"decided", &decided, false}, {"looked for", nil, true}} {
		file := filepath.Join(above, test.name)
		run(t, p.m, Spec{Key: test.name, Owner: me, Dir: p.Work, Command: "echo x > '" + file + "'", Repository: test.repository})
		if _, err := os.Stat(file); (err == nil) != test.writes {
			t.Errorf("the repository is %s: the command has written the one above: %v", test.name, err == nil)
		}
	}
}
