package protect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Target is a protected file that is looked at before and after a command. It need not
// exist.
type Target struct {
	Path string
	Git  bool // the file is configuration of git: only its keys that run code count
	// Folder is the folder in which the file was found, if every file of the folder
	// counts; empty if the file counts because of its own name.
	Folder string
	// Parent is true for a folder that files are looked at in. It counts whether the name is
	// a link, because then other files have their names.
	Parent bool
}

// Reason returns why a target is protected. What is protected only because the
// configuration of git names it has git's reason.
func (l List) Reason(t Target) string {
	if t.Parent {
		return cmp.Or(l.named(t.Path), l.named(t.Path+"/\x01"), reasonFolder)
	}
	return cmp.Or(l.named(t.Path), reasonGit)
}

// The maximum numbers are for each folder and each repository by itself, so that nothing
// that a project brings along can take the place of other files.
const (
	maxEntries = 1000     // maximum number of files of one folder that are looked at one by one
	maxParts   = 1000     // maximum number of worktrees, folders of submodules, included files or containers
	maxPointer = 64 << 10 // maximum size of a file that names another one
)

// Watched returns the files that commands in the given folders are to leave alone: those
// of the user, and those of the folders and the repositories that they belong to. These
// are fewer than are protected: only files that run code by themselves, and none that
// other programs write all the time. It also returns the folders of which every file
// counts, whether or not they exist. The error names what is too much to be looked at; the
// other files are returned with it.
func (l List) Watched(dirs ...string) (files []Target, folders []string, err error) {
	w := targets{seen: make(map[string]bool)}
	w.addAll(l.files...)
	w.addAll(l.tools...)
	for _, config := range l.git {
		w.addConfig(config)
	}
	for _, data := range l.data {
		w.addBelow(data, "config.toml", "trusted", "locations.json")
	}
	for _, home := range l.homes {
		w.addHome(home)
		w.addUserConfig(filepath.Join(home, ".config"))
	}
	for _, config := range l.configs {
		w.addUserConfig(config)
	}
	for _, dir := range dirs {
		for _, at := range slices.Compact([]string{filepath.Clean(dir), follow(dir)}) {
			w.addProject(at)
		}
	}
	for _, dir := range w.repositories {
		w.addParts(dir)
	}
	w.addNamedHooks()
	w.addParents(slices.Concat(l.homes, l.configs, l.data, w.roots, w.projects))
	return w.list, w.folders, errors.Join(w.missed...)
}

// targets collects targets, each once.
type targets struct {
	list    []Target
	folders []string
	seen    map[string]bool
	missed  []error // reasons that something is not looked at
	within  string  // folder that the targets to be added count for; usually empty

	repositories []string // the folders of git that may have worktrees and submodules
	roots        []string // the folders in which hooks are run
	projects     []string // the folders that commands run in
	hooks        []string // the folders of hooks that configuration names, from the folder in which hooks are run
}

// addParents adds the folders that the files are in, up to the folders of the user and of the
// projects: a link in the place of such a folder gives their names to other files.
func (w *targets) addParents(roots []string) {
	isRoot := make(map[string]bool)
	for _, root := range roots {
		isRoot[root] = true
	}
	isBelow := func(path string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") })
	}
	for _, t := range slices.Clone(w.list) {
		for dir := filepath.Dir(t.Path); !isRoot[dir] && !w.seen[dir] && isBelow(dir); dir = filepath.Dir(dir) {
			w.add(Target{Path: dir, Parent: true})
		}
	}
}

// miss notes that something has more parts than are looked at.
func (w *targets) miss(path, parts string) {
	w.missed = append(w.missed, fmt.Errorf("%s has too many %s to be looked at; remove some of them", path, parts))
}

func (w *targets) add(t Target) {
	if w.seen[t.Path] {
		return
	}
	w.seen[t.Path] = true
	t.Folder = cmp.Or(t.Folder, w.within)
	w.list = append(w.list, t)
}

func (w *targets) addAll(paths ...string) {
	for _, path := range paths {
		w.add(Target{Path: path})
	}
}

func (w *targets) addBelow(dir string, names ...string) {
	for _, name := range names {
		w.add(Target{Path: filepath.Join(dir, name)})
	}
}

// addFolder adds the files that are in a folder now, without the folders in it. A file
// that a command adds to the folder is a target when the folder is looked at again. A
// crowded folder is one target as a whole: a change in it is seen, and cannot be put back.
// Only the files in it that may be hooks of git can.
func (w *targets) addFolder(dir string) {
	names, all := entries(dir, maxEntries)
	if !all {
		w.add(Target{Path: dir, Folder: dir})
		for _, name := range hookNames {
			w.add(Target{Path: filepath.Join(dir, name), Folder: dir})
		}
		return
	}
	w.folders = append(w.folders, dir)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			w.add(Target{Path: path, Folder: dir})
		}
	}
}

func (w *targets) addFolders(dir string, names ...string) {
	for _, name := range names {
		w.addFolder(filepath.Join(dir, name))
	}
}

// entries returns the names in a folder, sorted, and whether these are all.
func entries(dir string, limit int) (names []string, all bool) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0) // a pipe must not block
	if err != nil {
		return nil, true
	}
	defer func() { _ = f.Close() }()
	names, _ = f.Readdirnames(limit + 1) // the names that were read before an error are looked at
	all = len(names) <= limit
	names = slices.DeleteFunc(names[:min(limit, len(names))], isTemp)
	slices.Sort(names)
	return names, all
}

// addHome adds the files of a user. The names are those that programs read; folders with
// much in them that changes by itself are not looked at as a whole.
func (w *targets) addHome(home string) {
	w.addBelow(home,
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		".zlogout", ".oh-my-zsh/oh-my-zsh.sh", ".kshrc", ".mkshrc", ".shrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".forward", ".procmailrc", ".jjconfig.toml", ".subversion/config", ".rhosts", ".shosts", ".netrc",
		".ssh/config", ".ssh/authorized_keys", ".ssh/authorized_keys2", ".ssh/rc", ".ssh/environment",
		".aws/config", ".aws/credentials", ".docker/config.json", ".gnupg/gpg.conf", ".gnupg/gpg-agent.conf", ".kube/config",
		".vimrc", ".gvimrc", ".vim/vimrc", ".vim/gvimrc", ".emacs", ".emacs.el", ".emacs.d/init.el", ".emacs.d/early-init.el",
		".direnvrc", ".tmux.conf", ".screenrc", ".gdbinit", ".lldbinit", ".psqlrc", ".sqliterc", ".pythonrc", ".irbrc", ".Rprofile",
		".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".copilot/mcp-config.json", ".cursor/mcp.json", ".cursor/hooks.json",
		".bash_it/bash_it.sh", ".cargo/env", ".fzf.bash", ".fzf.zsh", ".nvm/nvm.sh", ".p10k.zsh", ".sdkman/bin/sdkman-init.sh",
		".cargo/config", ".cargo/config.toml", ".curlrc", ".gradle/init.gradle", ".hgrc", ".npmrc", ".pdbrc", ".wgetrc", ".yarnrc", ".yarnrc.yml",
		".ansible.cfg", ".bundle/config", ".gemrc", ".gradle/gradle.properties", ".m2/settings.xml", ".mavenrc", ".pip/pip.conf", ".terraformrc", ".lessfilter", ".lesskey",
		".nanorc", ".ripgreprc", ".doom.d/init.el", ".doom.d/config.el", ".spacemacs", ".wezterm.lua", ".julia/config/startup.jl",
		".jupyter/jupyter_config.py", ".jupyter/jupyter_lab_config.py", ".jupyter/jupyter_notebook_config.py", ".jupyter/jupyter_server_config.py",
		".xonshrc", ".elvish/rc.elv", ".devscripts", ".quiltrc", ".xmonad/xmonad.hs", ".azure/config", ".mbsyncrc", ".msmtprc", ".offlineimaprc", ".fetchmailrc", ".my.cnf", ".pypirc",
		".codeium/windsurf/mcp_config.json", ".lmstudio/mcp.json", "Library/Application Support/Claude/claude_desktop_config.json",
		".cabal/config", ".stack/config.yaml", ".mambarc", ".condarc", ".bazelrc", ".docker/daemon.json", ".makepkg.conf", ".rpmmacros", ".alacritty.toml", ".tigrc", ".mailcap", ".muttrc",
		".duckdbrc", ".gdbearlyinit", ".gnuplot", ".guile", ".sbclrc", ".tclshrc", ".erlang", ".ocamlinit", ".octaverc", ".perldb", ".ackrc", ".pdbrc.py", ".tool-versions",
		"Library/Application Support/Code/User/settings.json", "Library/Application Support/Code/User/tasks.json",
		"Library/Application Support/go/env", "Library/Application Support/pip/pip.conf")
	w.addFolders(home, ".oh-my-zsh/custom", ".vim/plugin", ".vim/after/plugin", ".vim/autoload", ".claude/hooks", ".gradle/init.d", ".ipython/profile_default/startup",
		".local/share/systemd/user", ".local/share/fish/vendor_conf.d", ".local/share/nvim/site/plugin", "Library/LaunchAgents")
	w.addConfig(filepath.Join(home, ".gitconfig"))
}

// addUserConfig adds the files in the folder that is usually called .config.
func (w *targets) addUserConfig(config string) {
	w.addBelow(config,
		"abide/config.toml", "fish/config.fish", "zsh/.zshrc", "zsh/.zshenv", "zsh/.zprofile", "zsh/.zlogin", "nushell/config.nu", "nushell/env.nu",
		"powershell/profile.ps1", "powershell/Microsoft.PowerShell_profile.ps1", "starship.toml",
		"nvim/init.vim", "nvim/init.lua", "emacs/init.el", "emacs/early-init.el", "helix/config.toml", "helix/languages.toml", "zed/settings.json", "zed/tasks.json",
		"gh/config.yml", "direnv/direnvrc", "direnv/direnv.toml", "tmux/tmux.conf", "mise/config.toml", "opencode/opencode.json", "mcp/mcp.json",
		"hypr/hyprland.conf", "i3/config", "sway/config", "hg/hgrc", "nano/nanorc", "go/env", "pip/pip.conf", "uv/uv.toml", "lesskey",
		"xonsh/rc.xsh", "elvish/rc.elv", "awesome/rc.lua", "bspwm/bspwmrc", "niri/config.kdl", "openbox/autostart", "openbox/rc.xml", "qtile/config.py", "river/init", "sxhkd/sxhkdrc", "waybar/config", "waybar/config.jsonc",
		"rclone/rclone.conf", "Claude/claude_desktop_config.json", "pypoetry/config.toml", "nix/nix.conf", "containers/containers.conf", "containers/registries.conf", "docker/daemon.json", "pacman/makepkg.conf",
		"alacritty/alacritty.toml", "alacritty/alacritty.yml", "foot/foot.ini", "ghostty/config", "zellij/config.kdl", "bat/config", "lazygit/config.yml", "lf/lfrc", "ranger/rc.conf", "ranger/commands.py",
		"ranger/rifle.conf", "yazi/yazi.toml", "yazi/init.lua", "yt-dlp/config", "tig/config",
		"amp/settings.json", "crush/crush.json", "doom/init.el", "doom/config.el", "gdb/gdbinit", "gdb/gdbearlyinit", "goose/config.yaml", "jj/config.toml", "kitty/kitty.conf", "wezterm/wezterm.lua")
	for _, editor := range []string{"Code", "VSCodium", "Cursor"} {
		w.addBelow(filepath.Join(config, editor, "User"), "settings.json", "tasks.json", "mcp.json")
	}
	w.addFolders(config, "fish/conf.d", "fish/functions", "fish/completions", "autostart", "autostart-scripts", "environment.d", "plasma-workspace/env",
		"plasma-workspace/shutdown", "systemd/user", "nvim/plugin", "nvim/after/plugin", "nvim/lua", "opencode/plugin", "opencode/plugins")
	w.addConfig(filepath.Join(config, "git/config"))
}

// addProject adds the files of a folder that commands run in, and of the repository that
// it belongs to.
func (w *targets) addProject(dir string) {
	if bare := above(dir, "HEAD"); bare != "" { // git takes it for a repository of its own
		w.addGitFolder(bare)
		w.roots = append(w.roots, bare)
	}
	root := above(dir, ".git")
	w.roots = append(w.roots, cmp.Or(root, dir))
	w.projects = append(w.projects, dir)
	for _, at := range slices.Compact([]string{dir, root}) {
		if at != "" {
			w.addSettings(at)
		}
	}
	if root == "" { // a command may make one
		w.addRepository(filepath.Join(dir, ".git"))
		return
	}
	w.addRepository(filepath.Join(root, ".git"))
}

// above returns the folder at or above dir that has something of a name; empty if there is
// none.
func above(dir, name string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return dir
		}
		next := filepath.Dir(dir)
		if next == dir {
			return ""
		}
		dir = next
	}
}

// addSettings adds the files of a folder that run code when it is opened or entered.
func (w *targets) addSettings(dir string) {
	w.addBelow(dir,
		"abide.toml", ".envrc", ".mcp.json", "opencode.json", ".devcontainer.json", ".devcontainer/devcontainer.json", ".fleet/run.json", ".fleet/settings.json",
		".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".vscode/mcp.json", ".zed/settings.json", ".zed/tasks.json",
		".idea/watcherTasks.xml", ".idea/externalDependencies.xml", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el",
		".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".copilot/mcp-config.json", ".cursor/mcp.json", ".cursor/hooks.json",
		".gemini/settings.json", ".github/copilot/settings.json", ".opencode/opencode.json", ".continue/config.json", ".continue/config.yaml",
		".windsurf/hooks.json", ".aider.conf.yml", ".husky/_/h", ".husky/_/husky.sh",
		".lefthook.json", ".lefthook.toml", ".lefthook.yaml", ".lefthook.yml", "lefthook.json", "lefthook.toml", "lefthook.yaml", "lefthook.yml",
		"lefthook-local.json", "lefthook-local.toml", "lefthook-local.yaml", "lefthook-local.yml", ".overcommit.yml", ".pre-commit-config.yaml",
		".hg/hgrc", ".jj/repo/config.toml", ".sl/config", ".config/mise/config.toml", ".config/mise.toml", ".mise/config.toml", ".mise.toml", ".mise.local.toml",
		"mise/config.toml", "mise.toml", "mise.local.toml",
		".helix/config.toml", ".helix/languages.toml", ".vim/coc-settings.json", ".vimrc",
		".gdbinit", ".ghci", ".iex.exs", ".irbrc", ".lldbinit", ".pdbrc", ".pryrc", ".Renviron", ".Rprofile",
		".rtx.toml", ".tool-versions", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs", ".pnp.cjs", ".pnp.loader.mjs", ".yarnrc", ".yarnrc.yml", "bunfig.toml",
		".bundle/config", ".cargo/config", ".cargo/config.toml", "rust-toolchain", "rust-toolchain.toml", ".bazelrc", ".bazeliskrc", ".bazelversion", "tools/bazel",
		".mvn/extensions.xml", ".mvn/jvm.config", ".mvn/maven.config", ".mvn/settings.xml", ".mvn/wrapper/maven-wrapper.properties", ".mvn/wrapper/maven-wrapper.jar", ".jvmopts", ".sbtopts",
		".ackrc", ".condarc", ".venv/pip.conf", "venv/pip.conf", ".pdbrc.py", ".byebugrc", ".erlang", ".ocamlinit", ".octaverc", ".perldb",
		".vs/tasks.vs.json", ".vs/launch.vs.json", ".theia/tasks.json", ".theia/settings.json", ".theia/launch.json", ".gitpod.yml", ".codesandbox/tasks.json", ".idx/dev.nix", ".idx/mcp.json", ".replit",
		"devfile.yaml", ".devfile.yaml", ".amazonq/mcp.json", ".augment/settings.json", ".claude-plugin/plugin.json", ".cline/mcp.json", ".factory/mcp.json", ".factory/settings.json",
		".junie/mcp/mcp.json", ".kilocode/mcp.json", ".trae/mcp.json",
		"opencode.jsonc", ".crush.json", "crush.json", ".kiro/settings/mcp.json", ".qwen/settings.json", ".roo/mcp.json")
	w.addFolders(dir, ".yarn/plugins", ".yarn/releases", ".factory/hooks", ".abide", ".husky", ".githooks", ".lefthook/pre-commit", ".lefthook/pre-push", ".github/hooks", ".idea/runConfigurations",
		".claude/hooks", ".cursor/hooks", ".continue/mcpServers", ".opencode/plugin", ".opencode/plugins", ".kiro/hooks")
	w.addEach(filepath.Join(dir, ".devcontainer"), func(container string) { w.addBelow(container, "devcontainer.json") })
}

// addRepository adds the files of a repository that git runs code from, given the path of
// its .git. If that is a file, as in a worktree or a submodule, it names the folder.
func (w *targets) addRepository(path string) {
	dir := path
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		w.add(Target{Path: path})
		if err != nil {
			w.addGitFolder(path)
			return
		}
		named, ok := strings.CutPrefix(pointer(path), "gitdir:")
		if !ok {
			return
		}
		dir = absolute(filepath.Dir(path), strings.TrimSpace(named))
	}
	w.addGitFolder(dir)
	if common := pointer(filepath.Join(dir, "commondir")); common != "" {
		dir = absolute(dir, common)
		w.addGitFolder(dir)
	}
	w.repositories = append(w.repositories, dir)
}

// addParts adds the files of the worktrees and submodules of a repository.
func (w *targets) addParts(dir string) {
	w.addEach(filepath.Join(dir, "worktrees"), w.addWorktree)
	left, modules := maxParts, filepath.Join(dir, "modules")
	w.addWithin(modules, func() { w.addModules(modules, maxModuleDepth, &left) })
	if left < 0 {
		w.miss(modules, "submodules")
	}
}

// addWithin adds targets that count for a folder: one that is new there is a change,
// however old the file itself is.
func (w *targets) addWithin(dir string, add func()) {
	w.folders = append(w.folders, dir)
	w.within = dir
	add()
	w.within = ""
}

// addEach adds targets for each entry of a folder.
func (w *targets) addEach(dir string, add func(path string)) {
	names, all := entries(dir, maxParts)
	w.addWithin(dir, func() {
		for _, name := range names {
			add(filepath.Join(dir, name))
		}
	})
	if !all {
		w.miss(dir, "entries")
	}
}

// maxModuleDepth is the number of slashes and nested submodules that are followed.
const maxModuleDepth = 4

// addGitFolder adds the files of one folder of git.
func (w *targets) addGitFolder(dir string) {
	w.addConfig(filepath.Join(dir, "config"))
	w.addConfig(filepath.Join(dir, "config.worktree"))
	w.addBelow(dir, "commondir", "info/attributes")
	w.addBelow(filepath.Join(dir, "hooks"), hookNames...)
}

// hookNames are the hooks that git runs. It runs no others, so that the examples in a new
// repository, which end in .sample, do not count.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit", "p4-prepare-changelist",
	"post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
	"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
	"proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
}

// addWorktree adds the files of a worktree. A worktree whose commondir names the
// repository that it is part of is as git makes it.
func (w *targets) addWorktree(dir string) {
	w.addConfig(filepath.Join(dir, "config.worktree"))
	if pointer(filepath.Join(dir, "commondir")) != "../.." {
		w.addBelow(dir, "commondir")
	}
}

// addModules adds the repositories of submodules, which are found in folders of their
// names, and names may have slashes. left is the number of folders that may still be looked
// at; it is negative when there were more.
func (w *targets) addModules(dir string, depth int, left *int) {
	names, _ := entries(dir, max(*left+1, 0))
	for _, name := range names {
		if *left--; *left < 0 {
			return
		}
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(filepath.Join(at, "HEAD")); err == nil {
			w.addGitFolder(at)
			w.addModules(filepath.Join(at, "modules"), depth-1, left)
		} else if depth > 0 {
			w.addModules(at, depth-1, left)
		}
	}
}

// addConfig adds a configuration file of git, and those that it includes: a change of
// one of them is as good as a change of the file itself. So is a hook in the folder that
// core.hooksPath names.
func (w *targets) addConfig(path string) {
	left := maxParts
	if w.addIncluding(path, &left); left < 0 {
		w.miss(path, "included files")
	}
}

// addIncluding adds a configuration file and those that it includes. left is the number of
// files that may still be included; it is negative when there were more.
func (w *targets) addIncluding(path string, left *int) {
	if w.seen[path] || *left < 0 {
		return
	}
	w.add(Target{Path: path, Git: true})
	data, err := readAtMost(path, MaxKept+1)
	if err != nil {
		return
	}
	if len(data) > MaxKept {
		w.miss(path, "bytes")
	}
	for _, s := range parseGitConfig(data) {
		switch {
		case s.Key == "include.path", strings.HasPrefix(s.Key, "includeif.") && strings.HasSuffix(s.Key, ".path"):
			*left--
			w.addIncluding(expand(filepath.Dir(path), s.Value), left)
		case s.Key == "core.hookspath":
			w.hooks = append(w.hooks, s.Value)
		}
	}
}

// addNamedHooks adds the hooks in the folders that core.hooksPath names, in any
// configuration. A relative path begins where hooks are run: at the top of the work tree,
// whether the configuration is that of the repository or of the user.
func (w *targets) addNamedHooks() {
	slices.Sort(w.roots)
	slices.Sort(w.hooks)
	for _, named := range slices.Compact(w.hooks) {
		for _, root := range slices.Compact(w.roots) {
			w.addBelow(expand(root, named), hookNames...)
		}
	}
}

// expand returns the absolute path of a path in a configuration file of git.
func expand(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return absolute(dir, path)
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// pointer returns the text of a file that names another file; empty if there is none.
func pointer(path string) string {
	data, _ := readAtMost(path, maxPointer) // without the file there is no text
	return strings.TrimSpace(string(data))
}

// readAtMost reads the first bytes of a file.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// openRegular opens a regular file. It never blocks.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(os.ErrInvalid, err, f.Close())
	}
	return f, nil
}
