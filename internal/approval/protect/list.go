package protect

// The reasons, in words for people. Each goes after the name of a file.
const (
	reasonData     = "it is in abide's data folder, which holds what agents did and what they may do"
	reasonOwn      = "it is configuration of abide, which says what agents may do"
	reasonMemory   = "models are told what is in it"
	reasonGit      = "git runs code from its hooks and its configuration"
	reasonHook     = "git runs the hooks in this folder"
	reasonPointer  = "a .git file tells git where its repository is, and git runs code from there"
	reasonShell    = "a shell runs it when it starts"
	reasonSession  = "it is run when you log in"
	reasonSSH      = "it says who may log in, and ssh runs commands from it"
	reasonEditor   = "an editor runs code from it when it starts or opens the folder"
	reasonAgent    = "another agent reads from it what it may do and which programs it starts"
	reasonVersions = "a program for versions runs commands from its configuration"
	reasonMise     = "mise runs commands from it when a shell enters the folder"
	reasonDirenv   = "direnv runs it when a shell enters the folder"
	reasonTool     = "a program that people use every day runs code from it"
	reasonSecrets  = "programs run commands from it to get passwords and keys"
	reasonPrograms = "programs in this folder are found before those of the system"
	reasonSystem   = "it is a setting of the system, for all of its users"
	reasonService  = "the system runs it by itself, at certain times or when it starts"
)

// anywhere is protected in every folder. A project brings such files along, and programs
// that a person starts in the folder run code from them without being asked to.
//
// Not in the list is what a person runs by hand or sees in a review first: Makefile,
// package.json, tests, .github/workflows; and what only instructs: AGENTS.md,
// copilot-instructions.md.
var anywhere = newIndex([]rule{
	{"abide.toml", reasonOwn},
	{".abide/memory/", reasonMemory},
	{".abide/", reasonOwn},

	// No tool has business inside .git: hooks and configuration run code, HEAD, refs and
	// the index decide what the next commit holds, info/attributes selects filters. A
	// file called .git, of a worktree or submodule, names the repository to use.
	{".git", reasonPointer},
	{".git/", reasonGit},
	// The usual places of hooks that core.hooksPath names.
	{".githooks/", reasonHook},
	{".husky/", reasonHook},

	// Commands that a hook of these programs runs. The hook itself stays the same.
	{".lefthook/", reasonHook},
	{".lefthook.json", reasonHook},
	{".lefthook.toml", reasonHook},
	{".lefthook.yaml", reasonHook},
	{".lefthook.yml", reasonHook},
	{"lefthook.json", reasonHook},
	{"lefthook.toml", reasonHook},
	{"lefthook.yaml", reasonHook},
	{"lefthook.yml", reasonHook},
	{"lefthook-local.json", reasonHook},
	{"lefthook-local.toml", reasonHook},
	{"lefthook-local.yaml", reasonHook},
	{"lefthook-local.yml", reasonHook},
	{".overcommit.yml", reasonHook},
	{".pre-commit-config.yaml", reasonHook},
	// Other programs for versions have hooks and commands in their configuration, too.
	{".hg/", reasonVersions},
	{".jj/", reasonVersions},
	{".sl/", reasonVersions},

	{".envrc", reasonDirenv},
	{".config/mise/", reasonMise},
	{".config/mise.toml", reasonMise},
	{".mise/", reasonMise},
	{".mise.toml", reasonMise},
	{".mise.local.toml", reasonMise},
	{"mise/config.toml", reasonMise},
	{"mise.toml", reasonMise},
	{"mise.local.toml", reasonMise},

	// Tasks that run when a folder is opened, paths of programs, debuggers, plugins.
	{".vscode/", reasonEditor},
	{".idea/", reasonEditor},
	{".zed/", reasonEditor},
	{".fleet/", reasonEditor},
	{".devcontainer/", reasonEditor}, // initializeCommand runs outside of the container
	{".devcontainer.json", reasonEditor},
	{".exrc", reasonEditor},
	{".nvimrc", reasonEditor},
	{".nvim.lua", reasonEditor},
	{".lvimrc", reasonEditor},
	{".dir-locals.el", reasonEditor},
	{".dir-locals-2.el", reasonEditor},
	{".helix/", reasonEditor},
	{".vim/", reasonEditor},
	{".vimrc", reasonEditor},

	// What interpreters and debuggers run from the folder in which they are started.
	{".gdbinit", reasonTool},
	{".ghci", reasonTool},
	{".iex.exs", reasonTool},
	{".irbrc", reasonTool},
	{".lldbinit", reasonTool},
	{".pdbrc", reasonTool},
	{".pryrc", reasonTool},
	{".Renviron", reasonTool},
	{".Rprofile", reasonTool},

	// Programs that a shell, an editor or npm finds before those of the system.
	{".venv/bin/", reasonPrograms},
	{"venv/bin/", reasonPrograms},
	{"node_modules/.bin/", reasonPrograms},

	// Servers that are started, hooks that are run, permissions that are given.
	{".mcp.json", reasonAgent},
	{".claude/", reasonAgent},
	{".codex/", reasonAgent},
	{".cursor/", reasonAgent},
	{".gemini/", reasonAgent},
	{".continue/", reasonAgent},
	{".windsurf/", reasonAgent},
	{".opencode/", reasonAgent},
	{"opencode.json", reasonAgent},
	{"opencode.jsonc", reasonAgent},
	{".crush.json", reasonAgent},
	{"crush.json", reasonAgent},
	{".kiro/", reasonAgent},
	{".qwen/", reasonAgent},
	{".roo/", reasonAgent},
	{".copilot/", reasonAgent},
	{".github/hooks/", reasonAgent},
	{".github/copilot/", reasonAgent},
	{".aider.conf.yml", reasonAgent},
})

// inHome is protected in the home directory of the user.
var inHome = newIndex([]rule{
	{".config/abide/", reasonOwn},
	{".local/share/abide/", reasonData},

	{".bashrc", reasonShell},
	{".bash_profile", reasonShell},
	{".bash_login", reasonShell},
	{".bash_logout", reasonShell},
	{".bash_aliases", reasonShell},
	{".bash_completion", reasonShell},
	{".profile", reasonShell},
	{".zshrc", reasonShell},
	{".zshenv", reasonShell},
	{".zprofile", reasonShell},
	{".zlogin", reasonShell},
	{".zlogout", reasonShell},
	{".oh-my-zsh/", reasonShell},
	{".kshrc", reasonShell},
	{".mkshrc", reasonShell},
	{".shrc", reasonShell},
	{".cshrc", reasonShell},
	{".tcshrc", reasonShell},
	{".login", reasonShell},
	{".logout", reasonShell},
	{".inputrc", reasonShell}, // binds keys to commands
	{".bash_it/", reasonShell},
	{".cargo/env", reasonShell}, // the installers of these add it to the files above
	{".fzf.bash", reasonShell},
	{".fzf.zsh", reasonShell},
	{".nvm/nvm.sh", reasonShell},
	{".p10k.zsh", reasonShell},
	{".sdkman/bin/", reasonShell},
	{".config/fish/", reasonShell},
	{".config/zsh/", reasonShell},
	{".config/nushell/", reasonShell},
	{".config/powershell/", reasonShell},
	{".config/starship.toml", reasonShell},
	{".local/share/fish/vendor_conf.d/", reasonShell},
	{".local/share/bash-completion/", reasonShell},

	{".xprofile", reasonSession},
	{".xinitrc", reasonSession},
	{".xsession", reasonSession},
	{".xsessionrc", reasonSession},
	{".pam_environment", reasonSession},
	{".config/hypr/", reasonSession},
	{".config/i3/", reasonSession},
	{".config/sway/", reasonSession},
	{".forward", reasonService}, // a command for each mail
	{".procmailrc", reasonService},
	{".config/environment.d/", reasonSession},
	{".config/autostart/", reasonSession},
	{".config/autostart-scripts/", reasonSession},
	{".config/plasma-workspace/", reasonSession},
	{".config/systemd/", reasonService},
	{".local/share/systemd/", reasonService},
	{".local/share/applications/", reasonSession}, // a click on a file starts one of these
	{"Library/LaunchAgents/", reasonService},

	{".gitconfig", reasonGit},
	{".config/git/", reasonGit},
	{".config/hg/", reasonVersions},
	{".config/jj/", reasonVersions},
	{".jjconfig.toml", reasonVersions},
	{".subversion/", reasonVersions},
	{".ssh/", reasonSSH},
	{".rhosts", reasonSSH},
	{".shosts", reasonSSH},
	{".gnupg/", reasonSecrets},
	{".docker/config.json", reasonSecrets},
	{".docker/cli-plugins/", reasonPrograms},
	{".netrc", reasonSecrets},
	{".kube/", reasonSecrets},
	{".aws/", reasonSecrets},
	{".config/gcloud/", reasonSecrets},
	{".config/gh/", reasonSecrets},
	{".password-store/", reasonSecrets},

	{".vimrc", reasonEditor},
	{".gvimrc", reasonEditor},
	{".vim/", reasonEditor},
	{".config/nvim/", reasonEditor},
	{".local/share/nvim/site/plugin/", reasonEditor},
	{".emacs", reasonEditor},
	{".emacs.el", reasonEditor},
	{".emacs.d/", reasonEditor},
	{".config/emacs/", reasonEditor},
	{".config/doom/", reasonEditor},
	{".doom.d/", reasonEditor},
	{".spacemacs", reasonEditor},
	{".config/helix/", reasonEditor},
	{".config/zed/", reasonEditor},
	{".config/Code/User/", reasonEditor},
	{".config/VSCodium/User/", reasonEditor},
	{".config/Cursor/User/", reasonEditor},
	{"Library/Application Support/Code/User/", reasonEditor},
	{".config/nano/", reasonEditor},
	{".nanorc", reasonEditor},

	{".claude.json", reasonAgent},
	{".config/amp/", reasonAgent},
	{".config/crush/", reasonAgent},
	{".config/goose/", reasonAgent},
	{".config/opencode/", reasonAgent},
	{".config/github-copilot/", reasonAgent},
	{".config/mcp/", reasonAgent},

	{".direnvrc", reasonDirenv},
	{".config/direnv/", reasonDirenv},
	{".tmux.conf", reasonTool},
	{".config/tmux/", reasonTool},
	{".screenrc", reasonTool},
	{".config/kitty/", reasonTool},
	{".config/wezterm/", reasonTool},
	{".wezterm.lua", reasonTool},
	{".config/gdb/", reasonTool},
	{".julia/config/", reasonTool},
	{".jupyter/", reasonTool},
	{".gdbinit", reasonTool},
	{".lldbinit", reasonTool},
	{".psqlrc", reasonTool},
	{".sqliterc", reasonTool},
	{".pythonrc", reasonTool},
	{".irbrc", reasonTool},
	{".Rprofile", reasonTool},
	{".config/mise/", reasonTool},
	{".cargo/config", reasonTool},
	{".cargo/config.toml", reasonTool},
	{".curlrc", reasonTool},
	{".gradle/init.d/", reasonTool},
	{".gradle/init.gradle", reasonTool},
	{".hgrc", reasonTool},
	{".ipython/", reasonTool},
	{".npmrc", reasonTool},
	{".pdbrc", reasonTool},
	{".wgetrc", reasonTool},
	{".yarnrc", reasonTool},
	{".yarnrc.yml", reasonTool},
	// go, pip and others take from these where code comes from and what is run with it.
	{".config/go/env", reasonTool},
	{"Library/Application Support/go/env", reasonTool},
	{".config/pip/", reasonTool},
	{".pip/", reasonTool},
	{"Library/Application Support/pip/", reasonTool},
	{".config/uv/", reasonTool},
	{".bundle/config", reasonTool},
	{".gemrc", reasonTool},
	{".gradle/gradle.properties", reasonTool},
	{".m2/settings.xml", reasonTool},
	{".mavenrc", reasonTool},
	{".ansible.cfg", reasonTool},
	{".terraformrc", reasonTool},
	// Others run a pager, a filter or a script that is named in these.
	{".config/lesskey", reasonTool},
	{".lessfilter", reasonTool},
	{".lesskey", reasonTool},
	{".ripgreprc", reasonTool},

	{".bun/bin/", reasonPrograms},
	{".cargo/bin/", reasonPrograms},
	{".deno/bin/", reasonPrograms},
	{".local/bin/", reasonPrograms},
	{"go/bin/", reasonPrograms},
	{"bin/", reasonPrograms},
})

// inSystem is protected outside of home directories, for users who may write there.
var inSystem = newIndex([]rule{
	{"etc/", reasonSystem},
	{"private/etc/", reasonSystem},
	{"private/var/at/", reasonService},
	{"var/spool/cron/", reasonService},
	{"var/spool/at/", reasonService},
	{"Library/LaunchAgents/", reasonService},
	{"Library/LaunchDaemons/", reasonService},
	{"usr/local/bin/", reasonPrograms},
	{"usr/local/sbin/", reasonPrograms},
	{"opt/homebrew/bin/", reasonPrograms},
})

// inHomeCrowded and inSystemCrowded are protected like inHome and inSystem. Other names of the
// files there are not looked for, because they are too many.
var (
	inHomeCrowded = newIndex([]rule{
		{".asdf/", reasonPrograms},
		{".local/lib/", reasonPrograms}, // Python runs every .pth file there when it starts
		{".local/share/gh/extensions/", reasonPrograms},
		{".local/share/mise/", reasonPrograms},
		{".npm-global/bin/", reasonPrograms},
		{".nvm/versions/", reasonPrograms},
		{".pyenv/", reasonPrograms},
		{".rbenv/", reasonPrograms},
		{".sbt/", reasonPrograms},
		{".terraform.d/", reasonPrograms},
		{".volta/bin/", reasonPrograms},
		{".yarn/bin/", reasonPrograms},
	})
	inSystemCrowded = newIndex([]rule{
		{"bin/", reasonSystem},
		{"boot/", reasonSystem},
		{"lib/", reasonSystem},
		{"lib64/", reasonSystem},
		{"sbin/", reasonSystem},
		{"sys/", reasonSystem},
		{"usr/bin/", reasonSystem},
		{"usr/lib/", reasonSystem},
		{"usr/local/lib/", reasonSystem},
		{"usr/sbin/", reasonSystem},
		{"proc/sys/", reasonSystem}, // kernel.core_pattern is a program
	})
)

// inRepository is protected in the folder of a repository, which is usually called .git.
var inRepository = newIndex([]rule{
	{"hooks/", reasonGit},
	{"config", reasonGit},
	{"config.worktree", reasonGit},
	{"commondir", reasonGit},
	{"gitdir", reasonGit},
	{"modules/", reasonGit},
	{"worktrees/", reasonGit},
	{"info/attributes", reasonGit},
	{"objects/info/alternates", reasonGit},
})

// inNewRepository is what makes a folder a repository, together with what is protected in
// one: git takes a folder for a repository that has HEAD, and the folders objects and
// refs or a commondir that names where they are.
var inNewRepository = newIndex([]rule{
	{"HEAD", reasonGit},
	{"packed-refs", reasonGit},
	{"objects/", reasonGit},
	{"refs/", reasonGit},
})
