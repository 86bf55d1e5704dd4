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
	reasonFolder   = "files in this folder run code by themselves"
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

	{".rtx.toml", reasonMise},      // its old name
	{".tool-versions", reasonMise}, // path:FOLDER in it is a folder with programs
	{".autoenv", reasonShell},      // autoenv runs these when a shell enters the folder
	{".autoenv.zsh", reasonShell},
	{".autoenv_leave.zsh", reasonShell},

	// What package managers and build tools run, or fetch code by, in whatever way a person
	// starts them. It is not seen in a review as the Makefile is.
	{".npmrc", reasonTool},              // script-shell, node-options, registry
	{".pnpmfile.cjs", reasonTool},       // pnpm runs it
	{".pnpmfile.mjs", reasonTool},       // the same
	{".pnp.cjs", reasonTool},            // yarn loads it before every program
	{".pnp.loader.mjs", reasonTool},     // the same
	{".yarnrc", reasonTool},             // yarn-path is a program
	{".yarnrc.yml", reasonTool},         // yarnPath and plugins are programs
	{".yarn/plugins/", reasonTool},      // yarn loads them
	{".yarn/releases/", reasonTool},     // yarn itself
	{"bunfig.toml", reasonTool},         // bun loads what preload names
	{".bundle/", reasonTool},            // plugins of bundler, and where gems come from
	{".cargo/config", reasonTool},       // rustc-wrapper, linker and runner are programs
	{".cargo/config.toml", reasonTool},  // the same
	{"rust-toolchain", reasonTool},      // path is a folder with compilers
	{"rust-toolchain.toml", reasonTool}, // the same
	{".bazelrc", reasonTool},            // options that name programs
	{".bazeliskrc", reasonTool},         // names the place that bazel is fetched from
	{".bazelversion", reasonTool},       // names the version of bazel that is fetched and run
	{"tools/bazel", reasonTool},         // bazel runs it in its own place
	{".mvn/", reasonTool},               // extensions, and options of the Java machine
	{".jvmopts", reasonTool},            // sbt starts Java with them
	{".sbtopts", reasonTool},            // the same
	{".ackrc", reasonTool},              // ack runs the pager that it names
	{".condarc", reasonTool},            // where packages come from
	{".venv/pip.conf", reasonTool},      // where packages come from
	{"venv/pip.conf", reasonTool},       // the same
	{".pdbrc.py", reasonTool},           // debuggers and interpreters run these from the folder
	{".byebugrc", reasonTool},
	{".erlang", reasonTool},
	{".ocamlinit", reasonTool},
	{".octaverc", reasonTool},
	{".perldb", reasonTool},

	// Tasks that run when a folder is opened, paths of programs, debuggers, plugins.
	{".vs/", reasonEditor},          // tasks of Visual Studio
	{".theia/", reasonEditor},       // tasks, as in .vscode
	{".gitpod.yml", reasonEditor},   // tasks that run when the workspace opens
	{".codesandbox/", reasonEditor}, // setup tasks
	{".idx/", reasonEditor},         // onStart
	{".replit", reasonEditor},       // onBoot
	{"devfile.yaml", reasonEditor},  // postStart
	{".devfile.yaml", reasonEditor}, // the same
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
	{".aider.conf.yml", reasonAgent}, // lint-cmd and test-cmd
	{".amazonq/", reasonAgent},       // servers
	{".augment/", reasonAgent},       // servers and hooks
	{".claude-plugin/", reasonAgent}, // hooks and servers
	{".cline/", reasonAgent},         // servers
	{".factory/", reasonAgent},       // servers and hooks
	{".junie/", reasonAgent},         // servers
	{".kilocode/", reasonAgent},      // servers
	{".trae/", reasonAgent},          // servers
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

	{".xonshrc", reasonShell},
	{".config/xonsh/", reasonShell},
	{".elvish/", reasonShell},
	{".config/elvish/", reasonShell},
	{".devscripts", reasonShell}, // shell scripts read these two
	{".quiltrc", reasonShell},

	{".xprofile", reasonSession},
	{".xmonad/", reasonSession}, // window managers run these, and programs that they name
	{".config/awesome/", reasonSession},
	{".config/bspwm/", reasonSession},
	{".config/niri/", reasonSession},
	{".config/openbox/", reasonSession},
	{".config/qtile/", reasonSession},
	{".config/river/", reasonSession},
	{".config/sxhkd/", reasonSession},
	{".config/waybar/", reasonSession},
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
	{".azure/", reasonSecrets},
	{".config/rclone/", reasonSecrets}, // a command prints the password
	{".mbsyncrc", reasonSecrets},       // the same
	{".msmtprc", reasonSecrets},        // the same
	{".offlineimaprc", reasonSecrets},  // the same, and code
	{".fetchmailrc", reasonSecrets},    // a program gets each mail
	{".my.cnf", reasonSecrets},         // mysql runs the pager that it names
	{".pypirc", reasonSecrets},         // where packages are sent

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
	{".codeium/", reasonAgent},
	{".config/Claude/", reasonAgent},
	{"Library/Application Support/Claude/", reasonAgent},
	{".lmstudio/mcp.json", reasonAgent},

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
	{".cabal/config", reasonTool},
	{".stack/config.yaml", reasonTool},
	{".mambarc", reasonTool},
	{".config/pypoetry/", reasonTool},
	{".config/nix/", reasonTool},        // hooks and where programs come from
	{".config/containers/", reasonTool}, // programs and hooks of podman
	{".config/docker/", reasonTool},     // runtimes
	{".docker/daemon.json", reasonTool}, // the same
	{".makepkg.conf", reasonTool},       // a shell reads it
	{".config/pacman/", reasonTool},     // the same
	{".rpmmacros", reasonTool},          // macros run commands
	// Others run a pager, a filter or a script that is named in these.
	{".alacritty.toml", reasonTool},
	{".config/alacritty/", reasonTool},
	{".config/foot/", reasonTool},
	{".config/ghostty/", reasonTool},
	{".config/zellij/", reasonTool},
	{".config/bat/", reasonTool},
	{".config/lazygit/", reasonTool},
	{".config/lf/", reasonTool},
	{".config/ranger/", reasonTool},
	{".config/yazi/", reasonTool},
	{".config/yt-dlp/", reasonTool},
	{".tigrc", reasonTool},
	{".config/tig/", reasonTool},
	{".mailcap", reasonTool},
	{".muttrc", reasonTool},
	{".duckdbrc", reasonTool},
	{".gdbearlyinit", reasonTool},
	{".gnuplot", reasonTool},
	{".guile", reasonTool},
	{".sbclrc", reasonTool},
	{".tclshrc", reasonTool},
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
