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

// TestFilesThatRunCodeByThemselves walks what programs run from a project or from the home
// directory without being told to. What a person runs by hand, or sees in a review, is not
// among them.
func TestFilesThatRunCodeByThemselves(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	list := protect.New(protect.Options{Homes: []string{home}})
	for path, want := range map[string]bool{
		".envrc": true, ".tool-versions": true, ".autoenv": true, ".npmrc": true, "packages/a/.npmrc": true, ".yarnrc.yml": true, ".yarn/releases/yarn-4.cjs": true, ".yarn/plugins/x.cjs": true,
		".pnpmfile.cjs": true, ".pnp.cjs": true, "bunfig.toml": true, ".bundle/config": true, ".cargo/config.toml": true, "sub/.cargo/config": true, "rust-toolchain.toml": true, "rust-toolchain": true,
		".bazelrc": true, ".bazelversion": true, "tools/bazel": true, ".mvn/extensions.xml": true, ".mvn/jvm.config": true, ".sbtopts": true, ".jvmopts": true, ".venv/pip.conf": true, ".ackrc": true,
		".pdbrc.py": true, ".perldb": true, ".ocamlinit": true, ".octaverc": true, ".erlang": true, ".byebugrc": true, ".vs/tasks.vs.json": true, ".theia/tasks.json": true, ".gitpod.yml": true,
		".idx/dev.nix": true, ".replit": true, "devfile.yaml": true, ".codesandbox/tasks.json": true, ".amazonq/mcp.json": true, ".kilocode/mcp.json": true, ".factory/settings.json": true,
		".vscode/tasks.json": true, ".idea/workspace.xml": true, ".devcontainer/devcontainer.json": true, ".husky/pre-commit": true, "lefthook.yml": true, ".pre-commit-config.yaml": true,
		".claude/settings.json": true, ".codex/config.toml": true, ".cursor/mcp.json": true, ".gemini/settings.json": true, ".mcp.json": true, ".gdbinit": true, ".lldbinit": true, ".vimrc": true, ".exrc": true, ".nvim.lua": true,

		"conftest.py": false, "Makefile": false, "package.json": false, "Cargo.toml": false, "build.rs": false, "pom.xml": false, ".gitattributes": false, ".gitignore": false, ".gitmodules": false,
		".eslintrc.js": false, "eslint.config.js": false, ".editorconfig": false, ".nvmrc": false, ".python-version": false, "yarn.lock": false, ".yarn/cache/x.zip": false, "tools/other": false, ".github/workflows/x.yml": false,
		".cargo/registry/x": false, "AGENTS.md": false, ".rspec": false, "gradle.properties": false, ".venv/lib/x.py": false,
	} {
		if _, ok := list.Protected(project + "/" + path); ok != want {
			t.Errorf("%s: protected %v, want %v", path, ok, want)
		}
	}
	for path, want := range map[string]bool{
		".my.cnf": true, ".mailcap": true, ".msmtprc": true, ".xonshrc": true, ".rpmmacros": true, ".config/lazygit/config.yml": true, ".config/alacritty/alacritty.toml": true, ".config/nix/nix.conf": true,
		".config/Claude/claude_desktop_config.json": true, ".codeium/windsurf/mcp_config.json": true, ".duckdbrc": true, ".docker/daemon.json": true, ".config/yt-dlp/config": true, ".xmonad/xmonad.hs": true,
		".config/waybar/config": true, ".stack/config.yaml": true, ".condarc": true, ".bazelrc": true,
		".config/htop/htoprc": false, ".cache/x": false, "notes.txt": false, ".lesshst": false,
	} {
		if _, ok := list.Protected(home + "/" + path); ok != want {
			t.Errorf("~/%s: protected %v, want %v", path, ok, want)
		}
	}
}
