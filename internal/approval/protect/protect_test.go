package protect_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/protect"
)

// A fixture is a home, a data folder and a project in a temporary folder.
type fixture struct {
	home, data, project string
	list                protect.List
}

func newFixture(t *testing.T) fixture {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{home: filepath.Join(dir, "home"), data: filepath.Join(dir, "data"), project: filepath.Join(dir, "project")}
	for _, d := range []string{f.home, f.data, f.project} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.list = protect.New(protect.Options{Homes: []string{f.home}, Data: f.data, Config: filepath.Join(dir, "xdg"), Files: []string{filepath.Join(dir, "own.toml")}})
	return f
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWhatRunsCodeByItselfIsProtected: programs take from these files what they run, or where
// code comes from, without a word of it on their command line.
func TestWhatRunsCodeByItselfIsProtected(t *testing.T) {
	f := newFixture(t)
	xdg := filepath.Join(filepath.Dir(f.home), "xdg")
	for _, path := range []string{
		xdg + "/go/env", xdg + "/pip/pip.conf",
		f.home + "/.config/go/env", f.home + "/.config/pip/pip.conf", f.home + "/.pip/pip.conf", f.home + "/.m2/settings.xml", f.home + "/.gradle/gradle.properties",
		f.home + "/.docker/cli-plugins/docker-x", f.home + "/.lessfilter", f.home + "/.nanorc", f.home + "/.ripgreprc", f.home + "/.netrc", f.home + "/.rhosts",
		f.home + "/.config/sway/config", f.home + "/.subversion/config", f.home + "/.local/lib/python3.13/site-packages/x.pth", f.home + "/.pyenv/shims/python",
		f.home + "/.local/share/bash-completion/completions/git", f.home + "/.forward",
		f.project + "/.pre-commit-config.yaml", f.project + "/lefthook.yml", f.project + "/.hg/hgrc", f.project + "/mise.toml", f.project + "/.config/mise/config.toml",
		f.project + "/.vimrc", f.project + "/.helix/languages.toml", f.project + "/.Rprofile", f.project + "/sub/.ghci", f.project + "/.venv/bin/python",
		f.project + "/node_modules/.bin/tsc", f.project + "/opencode.jsonc", f.project + "/.kiro/hooks/x", f.project + "/team.code-workspace",
		f.project + "/.sl/config", f.project + "/.mise.local.toml", f.project + "/.mise/config.toml", f.project + "/mise/config.toml", f.project + "/.config/mise.toml",
		f.project + "/lefthook.toml", f.project + "/.lefthook.yaml", f.project + "/lefthook-local.json", f.project + "/.lefthook/pre-commit/x.sh",
		xdg + "/jj/config.toml", f.home + "/.config/jj/config.toml", f.home + "/.config/gdb/gdbinit", f.home + "/.config/wezterm/wezterm.lua", f.home + "/.wezterm.lua", f.home + "/.config/kitty/kitty.conf",
		f.home + "/.local/share/nvim/site/plugin/x.lua", f.home + "/.local/share/fish/vendor_conf.d/x.fish", f.home + "/.julia/config/startup.jl", f.home + "/.jupyter/jupyter_server_config.py",
		f.home + "/.doom.d/init.el", f.home + "/.spacemacs", f.home + "/.config/goose/config.yaml", f.home + "/.config/amp/settings.json", f.home + "/.config/crush/crush.json",
		"/home/another/.bashrc", "/home/another/.ssh/authorized_keys", "/root/.profile", "/Users/another/.zshrc",
		"/usr/bin/ls", "/lib/systemd/system/x.service", "/proc/sys/kernel/core_pattern", "/private/etc/hosts", "/Library/LaunchDaemons/x.plist",
	} {
		if reason, ok := f.list.Protected(path); !ok || reason == "" {
			t.Errorf("%s is not protected", path)
		}
	}
	for _, path := range []string{
		f.home + "/.config/gopls/x", f.project + "/node_modules/x/index.js", f.project + "/venv/lib/x.py", f.project + "/.config/mised", f.project + "/mise/x.go", f.project + "/docs/lefthook.md",
		f.home + "/.local/share/nvim/shada/main.shada",
		"/home/another/project/x", "/home/app/bin/rails", "/home/app", "/rooted/.profile", "/usr/src/app/x", "/usr/share/x", "/opt/app/bin/x", "/proc/1/fd/1", "/system/x",
	} {
		if reason, ok := f.list.Protected(path); ok {
			t.Errorf("%s is protected: %s", path, reason)
		}
	}
}

// TestWhereAProtectedNameLeads: people keep their settings in a folder of their own, often in a
// repository, with links to it. A file there is as protected as the name that leads to it.
func TestWhereAProtectedNameLeads(t *testing.T) {
	f := newFixture(t)
	dots := filepath.Join(filepath.Dir(f.home), "dots")
	link := func(to, from string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dots+"/bashrc", "x")
	write(t, dots+"/nvim/lua/deep/x.lua", "x")
	write(t, dots+"/config/fish/config.fish", "x")
	write(t, dots+"/README", "x")
	write(t, f.project+"/env/dev.sh", "x")
	write(t, f.project+"/.git/HEAD", "x")
	link(dots+"/bashrc", f.home+"/.bashrc")
	link("../dots/not/yet", f.home+"/.profile")
	link(dots+"/chain", f.home+"/.zshrc")
	link(dots+"/zshrc", dots+"/chain")
	link(dots+"/nvim", f.home+"/.config/nvim")
	link(dots+"/config/fish", filepath.Dir(f.home)+"/xdg/fish")
	link("env/dev.sh", f.project+"/.envrc")
	for path, want := range map[string]bool{
		dots + "/bashrc":                  true,
		dots + "/not/yet":                 true,
		dots + "/zshrc":                   true,
		dots + "/nvim/init.lua":           true,
		dots + "/nvim/lua/deep/x.lua":     true,
		dots + "/config/fish/config.fish": true,
		dots + "/config/fish/any/x":       true,
		f.project + "/env/dev.sh":         true,
		dots + "/README":                  false,
		dots + "/config/other":            false,
		dots + "/nvim2/init.lua":          false,
		f.project + "/env/prod.sh":        false,
	} {
		if reason, ok := f.list.Protected(path); ok != want {
			t.Errorf("Protected(%s) = %q, %v; want %v", path, reason, ok, want)
		}
	}
}

func TestWhatIsProtected(t *testing.T) {
	f := newFixture(t)
	xdg := filepath.Join(filepath.Dir(f.home), "xdg")
	for path, want := range map[string]bool{
		f.data:                                   true,
		f.data + "/abide.db":                     true,
		f.data + "/sessions/s1/checkpoints/x":    true,
		f.data + "/sessions/s1/plan.md":          false,
		f.data + "/sessions/s1/files/a/b":        false,
		f.data + "/sessions/plan.md":             true,
		f.data + "2/x":                           false,
		filepath.Dir(f.home) + "/own.toml":       true,
		f.home + "/.bashrc":                      true,
		f.home + "/.BA\u017fHRC":                 true,
		f.home + "/.BASHRC":                      true,
		f.home + "/.bashrc.d/x":                  false,
		f.home + "/notes/.bashrc":                false,
		f.home + "/.zshenv":                      true,
		f.home + "/.config/fish/config.fish":     true,
		f.home + "/.config/abide/config.toml":    true,
		f.home + "/.config/systemd/user/x.timer": true,
		f.home + "/.config/foo/x":                false,
		xdg + "/git/config":                      true,
		xdg + "/foo/config":                      false,
		f.home + "/.ssh/authorized_keys":         true,
		f.home + "/.local/bin/git":               true,
		f.home + "/.cargo/bin/rg":                true,
		f.home + "/.cargo/env":                   true,
		f.home + "/.cargo/registry/x":            false,
		f.home + "/go/bin/x":                     true,
		f.home + "/go/src/x":                     false,
		f.home + "/.nvm/nvm.sh":                  true,
		f.home + "/.gradle/init.d/x.gradle":      true,
		f.home + "/.npmrc":                       true,
		f.project + "/.npmrc":                    true, // script-shell and node-options
		f.project + "/.git/hooks/pre-commit":     true,
		f.project + "/.git/config":               true,
		f.project + "/.git":                      true,
		f.project + "/.Git/Config":               true,
		f.project + "/.g\u200cit/config":         true,
		f.project + "/a/b/.git":                  true,
		f.project + "/.gitignore":                false,
		f.project + "/.gitattributes":            false,
		f.project + "/x.git/hooks/update":        true,
		f.project + "/x.git/config":              true,
		f.project + "/x.git/README":              false,
		f.project + "/x.git":                     false,
		f.project + "/.husky/pre-commit":         true,
		f.project + "/.vscode/tasks.json":        true,
		f.project + "/sub/.vscode/settings.json": true,
		f.project + "/.idea/workspace.xml":       true,
		f.project + "/.envrc":                    true,
		f.project + "/.env":                      false,
		f.project + "/.mcp.json":                 true,
		f.project + "/.claude/settings.json":     true,
		f.project + "/.cursor/mcp.json":          true,
		f.project + "/.github/hooks/x.json":      true,
		f.project + "/.github/workflows/ci.yml":  false,
		f.project + "/abide.toml":                true,
		f.project + "/sub/abide.toml":            true,
		f.project + "/abide.toml.bak":            false,
		f.project + "/.abide/rules":              true,
		f.project + "/Makefile":                  false,
		f.project + "/package.json":              false,
		f.project + "/AGENTS.md":                 false,
		"/etc/profile":                           true,
		"/etcetera":                              false,
		"/var/spool/cron/crontabs/me":            true,
		".git/hooks/pre-commit":                  true,
	} {
		reason, got := f.list.Protected(path)
		if got != want || got != (reason != "") {
			t.Errorf("Protected(%q) = %q, %v; want %v", path, reason, got, want)
		}
	}
}

// TestPathsAreJudgedByWhereTheyLead: the name in the call does not matter.
func TestPathsAreJudgedByWhereTheyLead(t *testing.T) {
	f := newFixture(t)
	write(t, f.home+"/.bashrc", "x")
	write(t, f.project+"/.git/hooks/pre-commit", "x")
	write(t, f.project+"/deep/er/file", "x")
	link := func(to, from string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(f.project, from)); err != nil {
			t.Fatal(err)
		}
	}
	link(f.home+"/.bashrc", "notes")
	link("notes", "again")
	link(".git/hooks", "h")
	link(f.home, "h2")
	link(f.home+"/.zshrc", "dangling") // the target does not exist: a write makes it
	link("./deep/../.git/hooks/post-merge", "dangling2")
	link("../home/.zlogin", "dangling3")
	link("deep/er", "down")
	link("loop", "loop")
	if err := os.Link(f.home+"/.bashrc", f.project+"/hard"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(f.project+"/.git/hooks/pre-commit", f.project+"/hard2"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"notes": true, "again": true, "h/pre-push": true, "h2/.bashrc": true, "h2/.profile": true, "h2/x": false,
		"dangling": true, "dangling2": true, "dangling3": true, "loop": false, "hard": true, "hard2": true,
		"h/../config":         true, // the system goes up from where the link leads
		"deep/../.git/config": true, "deep/er/file": false, "./x/../abide.toml": true,
		"down/../../.envrc": true,                     // the path is read by its words: .envrc of the folder above
		"down/../.git/x":    true, "down/file": false, // the system reads it as deep/.git/x
	} {
		if reason, got := f.list.Protected(f.project + "/" + path); got != want {
			t.Errorf("Protected(%s) = %q, %v; want %v", path, reason, got, want)
		}
	}
	if err := os.Symlink(f.home, filepath.Dir(f.home)+"/me"); err != nil {
		t.Fatal(err)
	}
	// A home that is reached through a link.
	linked := protect.New(protect.Options{Homes: []string{filepath.Dir(f.home) + "/me"}})
	for _, path := range []string{f.home + "/.bashrc", filepath.Dir(f.home) + "/me/.bashrc"} {
		if _, got := linked.Protected(path); !got {
			t.Errorf("%s is not protected", path)
		}
	}
}

// TestCodeKeys holds what is asked about in the configuration of git.
func TestCodeKeys(t *testing.T) {
	for text, want := range map[string][]string{
		"[user]\nname = me\n[remote \"origin\"]\nurl = x\nfetch = y\n[branch \"main\"]\nremote = origin\nmerge = m\n":    nil,
		"[core]\nbare = false\nrepositoryformatversion = 0\nfilemode = true\nlogallrefupdates = true\nworktree = ../x\n": nil,
		"[submodule \"a\"]\nactive = true\nurl = x\npath = a\nupdate = rebase\n":                                         nil,
		"[submodule \"a\"]\nupdate = !sh x\n":                 {"submodule.a.update = !sh x"},
		"[core]\n\tfsMonitor = sh x\n":                        {"core.fsmonitor = sh x"},
		"[CORE]FSMONITOR=\"sh x\" ; why\n":                    {"core.fsmonitor = sh x"},
		"[a][core]hooksPath=h\n":                              {"core.hookspath = h"},
		"[core] # \\\nsshCommand = x\n":                       {"core.sshcommand = x"},
		"# a comment \\\n[core]\neditor = x\n":                {"core.editor = x", ".editor = x"}, // both readings are returned
		"[alias]\nst = status\n":                              {"alias.st = status"},
		"[rebase]\ninstructionFormat = %B\nautosquash = 1\n":  {"rebase.instructionformat = %B"},
		"[filter \"a.b\"]\nclean = x\nsmudge = y\nrequired\n": {"filter.a.b.clean = x", "filter.a.b.smudge = y"},
		"[diff \"Img\"]\ntextconv = x\n":                      {"diff.Img.textconv = x"},
		"[diff]\nexternal = x\nalgorithm = patience\n":        {"diff.external = x"},
		"[includeIf \"gitdir:x\"]\npath = y\n":                {"includeif.gitdir:x.path = y"},
		"[include]\npath = y\n":                               {"include.path = y"},
		"[credential \"https://x\"]\nhelper = y\n":            {"credential.https://x.helper = y"},
		"[url \"a\"]\ninsteadOf = b\n":                        {"url.a.insteadof = b"},
		"[gpg]\nprogram = x\n[commit]\ngpgsign = true\n":      {"gpg.program = x"},
		"[merge \"d\"]\ndriver = x\n":                         {"merge.d.driver = x"},
		"[protocol \"ext\"]\nallow = always\n":                {"protocol.ext.allow = always"},
		"[init]\ntemplateDir = x\ndefaultBranch = main\n":     {"init.templatedir = x"},
		"[core]\r\npager = x\r\n":                             {"core.pager = x"},
		"\ufeff[core]\nfsmonitor\n":                           {"core.fsmonitor = "},
	} {
		if got := protect.CodeKeys([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("CodeKeys(%q) = %q, want %q", text, got, want)
		}
	}
	if a, b := protect.CodeKeys([]byte("[core]\nfsmonitor = a\\\nb\n")), protect.CodeKeys([]byte("[core]\nfsmonitor = a\\\nc\n")); slices.Equal(a, b) {
		t.Error("a change in the second line of a value was not seen")
	}
}

// TestCodeKeysAgreeWithGit compares our reading of files with that of git itself.
func TestCodeKeysAgreeWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	for _, text := range []string{
		"[core]\n\tfsmonitor = \"a b\"\n[alias] x = !sh -c \"y\"\n",
		"[a]\n# x \\\n[core]\nsshCommand = z\n",
		"[core]\neditor = a\\\nb\n[core] pager = c ; d\n",
		"[filter \"q\\\"r\"]\n  clean=1\n",
		"[a][core]hooksPath=h\n",
		"[Core]\nHooksPath = h\n[diff \"X\"]\nTextConv = t\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, text)
		out, err := exec.Command(git, "config", "--file", file, "--list").Output()
		if err != nil {
			t.Fatalf("git refuses %q: %v", text, err)
		}
		ours := protect.CodeKeys([]byte(text))
		for line := range strings.Lines(string(out)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if !slices.Contains(ours, key+" = "+value) {
				t.Errorf("%q: git reads %s = %s; we read %q", text, key, value, ours)
			}
		}
	}
}

func FuzzCodeKeys(f *testing.F) {
	f.Add([]byte("[core]\nfsmonitor = \\"))
	f.Add([]byte("[\"\\"))
	f.Fuzz(func(t *testing.T, data []byte) { protect.CodeKeys(data) })
}

// TestARepositoryIsProtectedInAnyOrder: whichever of its files is written first, and
// whatever its folder is called, git must not find a repository that nobody was asked
// about. Git takes a folder for one that has HEAD, and objects and refs or commondir.
func TestARepositoryIsProtectedInAnyOrder(t *testing.T) {
	every := []string{"HEAD", "config", "commondir", "hooks/pre-commit", "hooks/deep/er", "Config", "config.worktree",
		"objects/info/alternates", "info/attributes", "refs/heads/main", "packed-refs", "objects/ab/cd", "modules/x/config", "README", "src/config", "headlines"}
	names := every[:2:2]
	names = append(names, "commondir")
	for _, step := range []struct{ there, protected []string }{
		{nil, nil},
		{[]string{"README", "src/"}, nil},
		{[]string{"config"}, []string{"HEAD", "commondir"}},
		{[]string{"config.worktree"}, []string{"HEAD", "commondir"}},
		{[]string{"objects/"}, []string{"HEAD", "commondir"}},
		{[]string{"refs/"}, []string{"HEAD", "commondir"}},
		{[]string{"hooks/"}, []string{"HEAD", "commondir"}}, // ordinary projects have folders of this name
		{[]string{"hooks/", "config/"}, []string{"HEAD", "commondir"}},
		{[]string{"objects/", "refs/"}, append(names, "hooks/pre-commit", "hooks/deep/er", "Config", "config.worktree", "info/attributes", "objects/info/alternates", "modules/x/config")},
		{[]string{"HEAD"}, every[1:13]},
		{[]string{"commondir"}, append([]string{"HEAD", "config"}, every[3:13]...)},
		{[]string{"HEAD", "objects/", "refs/", "config"}, every[:13]},
	} {
		f := newFixture(t)
		dir := f.project + "/zr"
		for _, name := range step.there {
			if strings.HasSuffix(name, "/") {
				os.MkdirAll(dir+"/"+name, 0o755)
			} else {
				write(t, dir+"/"+name, "x")
			}
		}
		if err := os.Symlink("zr", f.project+"/link"); err != nil {
			t.Fatal(err)
		}
		for _, name := range every {
			for _, path := range []string{dir + "/" + name, f.project + "/link/" + name} {
				if reason, got := f.list.Protected(path); got != slices.Contains(step.protected, name) {
					t.Errorf("with %q, Protected(%s) = %q, %v", step.there, name, reason, got)
				}
			}
		}
	}
}

// TestAnotherNameOfAProtectedFile: a hard link makes no difference, whether or not the
// file is one of those that are looked at around commands.
func TestAnotherNameOfAProtectedFile(t *testing.T) {
	f := newFixture(t)
	for i, file := range []string{
		f.data + "/abide.db", f.data + "/sessions/s1/checkpoints/x", f.home + "/.ssh/id_x", f.home + "/.local/bin/tool", f.home + "/bin/deep/tool", f.home + "/.claude.json",
		f.home + "/.config/Code/User/keybindings.json", f.home + "/.Rprofile", filepath.Dir(f.home) + "/xdg/fish/functions/deep/x.fish", filepath.Dir(f.home) + "/own.toml",
		f.project + "/.git/hooks/pre-commit", f.project + "/.vscode/extensions.json", f.project + "/.claude/commands/x.md",
	} {
		write(t, file, "x")
		link := fmt.Sprintf("%s/src/link%d", f.project, i)
		os.MkdirAll(filepath.Dir(link), 0o755)
		if err := os.Link(file, link); err != nil {
			t.Fatal(err)
		}
		want, _ := f.list.Protected(file)
		if reason, ok := f.list.Protected(link); !ok || reason != want {
			t.Errorf("a link to %s: %q, %v; want %q", file, reason, ok, want)
		}
	}
	for _, file := range []string{f.data + "/sessions/s1/files/x", f.project + "/code.go", f.home + "/notes"} {
		write(t, file, "x")
		if err := os.Link(file, file+"2"); err != nil {
			t.Fatal(err)
		}
		if reason, ok := f.list.Protected(file); ok {
			t.Errorf("%s is protected: %q", file, reason)
		}
	}
	// A folder that is a link, as dot files often are.
	write(t, f.home+"/dotfiles/vim/colors/x.vim", "x")
	os.Symlink("dotfiles/vim", f.home+"/.vim")
	os.Link(f.home+"/dotfiles/vim/colors/x.vim", f.project+"/vim")
	if _, ok := f.list.Protected(f.project + "/vim"); !ok {
		t.Error("a link to a file in a folder that is a link is not protected")
	}
}
