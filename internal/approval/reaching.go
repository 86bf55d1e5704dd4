package approval

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// reaching are options that a star does not stand for: with them, programs that a person
// allows because they seem harmless run another program or write a file. A rule can name
// them. For other programs, and for those that run the code of a project anyway, a star
// stands for any words. For a subcommand, its own options are added to those of the program.
// A word without a dash is the name of something that the subcommand does.
var reaching = map[string]string{
	"ack":           "--ackrc --output --pager", // --output is a text of Perl to older versions
	"ag":            "--pager",
	"ar":            "--plugin",
	"aria2c":        "-d -l -o --conf-path --dir --log --on-bt-download-complete --on-download-complete --on-download-error --on-download-pause --on-download-start --on-download-stop --out --save-cookies --save-session --server-stat-of",
	"apt":           "-c -o --config-file --option",
	"base64":        "-o --output",
	"bat":           "--lessopen --pager",
	"cargo":         "--config",
	"curl":          "-D -J -K -O -c -o --abstract-unix-socket --alt-svc --config --cookie-jar --dump-header --engine --etag-save --hsts --libcurl --output --output-dir --remote-header-name --remote-name --remote-name-all --ssl-sessions --stderr --trace --trace-ascii --unix-socket",
	"cpio":          "--rmt-command --rsh-command",
	"date":          "-s --set",
	"delta":         "--pager",
	"diff":          "-l --paginate",
	"diff3":         "--diff-program",
	"dmesg":         "-C -D -E -c -n --clear --console-level --console-off --console-on --read-clear",
	"dnf":           "-c --config --installroot --setopt --setvar", // a folder of plugins is a setting
	"dpkg":          "--admindir --instdir --log --post-invoke --pre-invoke --root --status-logger",
	"emacs":         "-e -f -l -u -x --batch --bg-daemon --daemon --eval --execute --fg-daemon --funcall --init-directory --load --script --user",
	"fd":            "-X -x --exec --exec-batch",
	"file":          "-C -Z -z --compile --uncompress --uncompress-noreport",
	"find":          "-delete -fls -fprint -fprint0 -fprintf",
	"flake8":        "--append-config --config --output-file --tee",
	"fzf":           "--bind --history --info-command --listen --listen-unsafe --preview --with-shell",
	"gcc":           "--config --specs", // compiles has the list of what a star stands for
	"gh":            "-D -O --dir --output",
	"git":           "-O --open-files-in-pager --ext-diff --textconv --filters --object-dir --output --output-directory --upload-pack --receive-pack --exec --extcmd --tool --help --show-signature --recurse-submodules --recursive --submodule --ignore-submodules --strategy --trailer",
	"go":            "-exec -overlay -toolexec -vettool",
	"gofmt":         "-cpuprofile",
	"goimports":     "-cpuprofile -memprofile -trace",
	"golangci-lint": "-c custom --config --cpu-profile-path --custom-config --mem-profile-path --trace-path",
	"gpg":           "-o --agent-program --attribute-file --decrypt-files --dirmngr-program --exec-path --homedir --keyboxd-program --log-file --logger-file --multifile --options --output --photo-viewer --status-file --trustdb-name --use-embedded-filename",
	"helm":          "-d plugin --destination --kube-apiserver --kubeconfig --output-dir --post-renderer --untardir",
	"hg":            "-R debugshell serve --config --config-file --cwd --debugger --output --remotecmd --repository --ssh --tool",
	"iconv":         "-o --output",
	"info":          "-o --dribble --init-file --output --restore",
	"install":       "--strip-program",
	"jj":            "-R --config --config-file --config-toml --repository --tool util",
	"kubectl":       "--cache-dir --enable-alpha-plugins --enable-exec --exec-command --helm-command --kubeconfig --kuberc --log-dir --log-file --output-directory --profile-output --server",
	"kustomize":     "-o --enable-alpha-plugins --enable-exec --helm-command --output",
	"less":          "-O -k -o --LOG-FILE --lesskey-content --lesskey-file --lesskey-src --log-file",
	"man":           "-C -H -P -T -X -p -r --config-file --gxditview --html --pager --preprocessor --prompt --troff-device",
	"mypy":          "--config-file --python-executable", // plugins are code
	"mysql":         "--defaults-extra-file --defaults-file --init-command --pager --plugin-dir --tee",
	"nano":          "-s --speller",
	"nc":            "-c -e -o -x --append-output --exec --hex-dump --lua-exec --output --sh-exec",
	"nm":            "--plugin",
	"objdump":       "--plugin",
	"openssl":       "-CAcreateserial -CAserial -cacertsout -certout -certsout -chainout -config -crlout -engine -extracertsout -keylogfile -keyout -module -msgfile -newkeyout -out -outdir -provider -provider-path -reqout -reqout_only -respout -rspout -sess_out -signer -ssl_client_engine -writerand engine fipsinstall rehash",
	"pacman":        "-b -r --cachedir --config --dbpath --gpgdir --hookdir --logfile --root --sysroot",
	"pandoc":        "-F -L -d -o lua server --data-dir --defaults --extract-media --filter --log --lua-filter --output --pdf-engine --pdf-engine-opt",
	"patch":         "-e -g -o -r --ed --get --output --reject-file",
	"pip":           "--editor --log --python --report",
	"psql":          "-L -f -o -v --file --log-file --output --set --variable",
	"pylint":        "--init-hook --load-plugins --rcfile",
	"pyright":       "-v --pythonpath --venvpath", // it runs the interpreter there
	"rustc":         "-C -L -Z -o --codegen --extern --out-dir --sysroot",
	"rg":            "-z --hostname-bin --pre --search-zip",
	"rpm":           "-D -E -r --define --dbpath --eval --load --macros --pipe --predefine --rcfile --root --undefine",
	"rsync":         "-M -e --config --daemon --log-file --only-write-batch --remote-option --rsh --rsync-path --write-batch",
	"ruff":          "-o --output-file",
	"scp":           "-D -F -S -o",
	"scc":           "-o --format-multi --output",
	"sdiff":         "-o --diff-program --output",
	"sftp":          "-D -F -S -b -o -s",
	"shuf":          "-o --output",
	"sort":          "-T -o --compress-program --output --temporary-directory",
	"split":         "--filter",
	"sqlite3":       "-A -append -cmd -init -vfs -zip",
	"ss":            "-D -K --diag --kill",
	"ssh":           "-E -F -I -o",
	"svn":           "--config-dir --config-option --diff-cmd --diff3-cmd --editor-cmd",
	"tar":           "-F -I -T -g --files-from --checkpoint-action --index-file --info-script --listed-incremental --new-volume-script --rmt-command --rsh-command --to-command --use-compress-program --volno-file",
	"tcpdump":       "-w -z",
	"terraform":     "-backend-config -chdir -from-module -generate-config-out -out -plugin-dir -state -state-out -var-file",
	"tree":          "-R -o",
	"tshark":        "-X -w",
	"vim":           "-E -S -U -V -W -c -e -i -l -s -u -w --cmd --listen --remote-expr --remote-send --server --startuptime",
	"wget":          "-O -P -a -e -o --append-output --config --directory-prefix --execute --hsts-file --output-document --output-file --rejected-log --save-cookies --use-askpass --warc-file --warc-tempdir",
	"xmllint":       "-o --output --shell",
	"yq":            "-i -s --in-place --inplace --security-enable-system-operator --split-exp --split-exp-file",
	"yt-dlp":        "-P -a -o --alias --batch-file --cache-dir --config-locations --cookies --download-archive --downloader --downloader-args --exec --exec-before-download --external-downloader --external-downloader-args --ffmpeg-location --netrc-cmd --output --paths --plugin-dirs --postprocessor-args --ppa --print-to-file --use-postprocessor",
	"zip":           "-O -T -lf --logfile-path --output-file --test --unzip-command",
	"actionlint":    "-config-file -pyflakes -shellcheck",
	"bandit":        "-o --output",
	"diffstat":      "-o",
	"dot":           "-O -c -l -o",
	"gopls":         "-logfile -ocagent -profile.alloc -profile.block -profile.cpu -profile.mem -profile.trace -remote",
	"http":          "-o --config-dir --output --session",
	"markdownlint":  "-c -o -r --config --output --rules",
	"mysqldump":     "-T -r --defaults-extra-file --defaults-file --log-error --plugin-dir --result-file --tab",
	"pg_dump":       "-f --file",
	"pygmentize":    "-o -x",
	"redis-cli":     "--eval --functions-rdb --rdb",
	"sqlfluff":      "--config --library-path --write-output",
	"ssh-add":       "-S -s",
	"ssh-keygen":    "-D -w",
	"staticcheck":   "-debug.cpuprofile -debug.measure-analyzers -debug.memprofile -debug.trace",
	"tidy":          "-config -f -o --output-file",
	"xsltproc":      "-o --output --writesubtree",
	"zstd":          "-o --output-dir-flat --output-dir-mirror",

	// These take their instructions from another file or folder, or run a program.
	"alembic":          "-c --config",
	"ansible-playbook": "-M -c -e -i --connection --extra-vars --inventory --module-path --vault-password-file",
	"cabal":            "-w --config-file --project-dir --project-file --store-dir --with-compiler",
	"cdk":              "-a --app",
	"celery":           "-A --app --config --workdir",
	"clang-tidy":       "-config-file -export-fixes -extra-arg -extra-arg-before -load -store-check-profile -vfsoverlay --load",
	"coverage":         "--rcfile",
	"cppcheck":         "--addon --addon-python --checkers-report --clang --cppcheck-build-dir --output-file --plist-output --project --rule-file",
	"ctags":            "-f -o --data-dir --options --options-maybe --optlib-dir",
	"cypress":          "-C -P --config-file --project",
	"docker":           "-H --config --host",
	"flask":            "-A -e --app --env-file",
	"goreleaser":       "-f --config",
	"grunt":            "--base --gruntfile --tasks",
	"gulp":             "-f --cwd --gulpfile --require",
	"gunicorn":         "-c --chdir --config --pythonpath",
	"mkdocs":           "-f --config-file",
	"nodemon":          "-x --config --exec",
	"podman":           "--conmon --config --hooks-dir --module --root --runroot --runtime --url",
	"pulumi":           "-C --config-file --cwd --exec-agent",
	"rollup":           "-c -p --config --configPlugin --plugin",
	"serverless":       "-c --config",
	"sphinx-build":     "-D -c",
	"stack":            "-w --docker --stack-yaml --with-gcc --work-dir",
	"stylelint":        "--config --config-basedir --custom-formatter --custom-syntax",
	"swift":            "--chdir --package-path",
	"turbo":            "--cwd",
	"uvicorn":          "--app-dir --env-file",
	"vite":             "-c --config",
	"webpack":          "-c --config --require",
	"xcodebuild":       "-derivedDataPath -project -workspace -xcconfig",
	"zig":              "--build-file --global-cache-dir --zig-lib-dir",

	"journalctl": "--cursor-file --flush --relinquish-var --rotate --setup-keys --smart-relinquish-var --sync --update-catalog --vacuum-files --vacuum-size --vacuum-time",
	"systemctl":  "-H --host --image --root edit import-environment link set-environment", // ssh is run for another host

	"kubectl config":    "set set-credentials",
	"kubectl kustomize": "-o --output",

	"git apply":              "--build-fake-ancestor --unsafe-paths",
	"git archive":            "-o --remote",
	"git bisect":             "replay run view visualize",
	"git bugreport":          "-o",
	"git bundle":             "create",
	"git checkout-index":     "--prefix",
	"git clone":              "-c -u --config --separate-git-dir --template",
	"git config":             "-e -f --edit --file --global --rename-section --system edit rename-section",
	"git diagnose":           "-o",
	"git difftool":           "-t -x",
	"git fast-export":        "--export-marks",
	"git fast-import":        "--allow-unsafe-features --export-marks --export-pack-edges",
	"git filter-branch":      "-d --commit-filter --env-filter --index-filter --msg-filter --parent-filter --setup --tag-name-filter --tree-filter",
	"git format-patch":       "-o",
	"git grep":               "-O",
	"git index-pack":         "-o",
	"git init":               "--separate-git-dir --template",
	"git init-db":            "--separate-git-dir --template",
	"git interpret-trailers": "--in-place",
	"git mailsplit":          "-o",
	"git maintenance":        "register start stop unregister",
	"git merge":              "-s --verify-signatures",
	"git mergetool":          "-t",
	"git pull":               "-s --verify-signatures",
	"git read-tree":          "--index-output",
	"git rebase":             "-s -x",
	"git repack":             "--expire-to",
	"git submodule":          "absorbgitdirs add foreach status summary update", // they run git in other repositories
	"hg bisect":              "-c --command",
	"hg cat":                 "-o",
	"hg clone":               "-e",
	"hg export":              "-o",
	"hg extdiff":             "-o -p --option --program",
	"hg incoming":            "-e",
	"hg merge":               "-t",
	"hg outgoing":            "-e",
	"hg pull":                "-e",
	"hg push":                "-e",
	"hg resolve":             "-t",
	"git tag":                "-v --verify", // it runs gpg.program
}

// sameOptions are other names of programs in reaching.
var sameOptions = map[string]string{
	"apt-cache": "apt", "dnf5": "dnf", "gcc-ar": "ar", "microdnf": "dnf", "rpmquery": "rpm", "youtube-dl": "yt-dlp", "yum": "dnf", "apt-config": "apt", "apt-file": "apt", "apt-get": "apt", "apt-mark": "apt", "aptitude": "apt", "batcat": "bat", "bsdtar": "tar", "gtar": "tar", "egrep": "grep", "ex": "vim", "fgrep": "grep", "rgrep": "grep", "fdfind": "fd", "gawk": "awk", "gsort": "sort", "mariadb": "mysql", "mawk": "awk", "more": "less", "nawk": "awk", "ncat": "nc",
	"compare": "magick", "composite": "magick", "convert": "magick", "gm": "magick", "identify": "magick", "mogrify": "magick", "montage": "magick",
	"c++": "gcc", "cc": "gcc", "clang": "gcc", "clang++": "gcc", "g++": "gcc", "busctl": "systemctl", "hostnamectl": "systemctl", "localectl": "systemctl", "loginctl": "systemctl", "timedatectl": "systemctl",
	"ps2pdf": "gs", "ps2ps": "gs", "eps2eps": "gs", "kotlin": "kotlinc", "mysqladmin": "mysql", "mysqlimport": "mysqldump", "mariadb-dump": "mysqldump", "pg_dumpall": "pg_dump", "pg_restore": "pg_dump", "xh": "http", "https": "http", "markdownlint-cli2": "markdownlint", "cpp": "gcc", "c89": "gcc", "c99": "gcc",
	"vim.basic": "vim", "vim.gtk3": "vim", "vim.nox": "vim", "vim.tiny": "vim",
	"netcat": "nc", "nc.openbsd": "nc", "nc.traditional": "nc", "nvim": "vim", "pip3": "pip", "gpg2": "gpg", "rview": "vim", "rvim": "vim", "vi": "vim", "view": "vim", "vimdiff": "vim",
}

// gitRunners are the subcommands of git that a star does not stand for, because running
// programs is what they do. Neither does it stand for those that are not in gitCommands: an
// alias, a program git-NAME, or one of git's own that people do not use.
var gitRunners = []string{
	"citool", "credential", "credential-cache", "credential-store", "filter-branch", "for-each-repo", "gui", "help", "hook", "imap-send", "instaweb", "interpret-trailers", "merge-index", "p4", "send-email", "svn", "verify-commit", "verify-tag", "web--browse",
}

// ghCommands are the subcommands of gh that a star stands for. Missing are those that set
// what gh runs later (alias, config, extension), and others are aliases and extensions: code
// from elsewhere.
var ghCommands = strings.Fields("api attestation auth browse cache completion gist gpg-key help issue label org pr project release repo ruleset run search secret ssh-key status variable version workflow")

// reachingTexts match the arguments of programs with a language of their own, and of some
// others, with which they run a program or write a file.
var reachingTexts = map[string]*lazyregexp.Regexp{
	"awk":  lazyregexp.New(`system|getline|[|>@]|^-($|[^Fv])`),
	"curl": lazyregexp.New(`%output|^--expand-|^--upl|^-[0-9#:a-zABGILNRSZ]*T`),
	"cpio": aMachine,
	// Conditions, formats, values with < and names with $ are Perl; with = it writes.
	"exiftool":      lazyregexp.New(`(?i)[<=>$]|^-(@|api|common_args|config|delete_original|efile|execute|geotag|if|o|out|p|printformat|restore_original|stay_open|userparam|w|textout|tagout|tagsfromfile)[0-9+!]*$`),
	"gh":            lazyregexp.New(`^--$`), // options of git follow
	"javac":         lazyregexp.New(`^@|^-J|^--?(processor|plugin|Xplugin)`),
	"protoc":        lazyregexp.New(`^@|^--plugin`),
	"go":            lazyregexp.New(`-extld|-gccgoflags|^--?w(=|$)`), // go env -w sets what every other go command does
	"golangci-lint": lazyregexp.New(`^--output\..*path|^--out-format=.*:|^(checkstyle|code-climate|(colored-)?(line-number|tab)|github-actions|html|json|junit-xml(-extended)?|sarif|tab|teamcity):`),
	"gs":            lazyregexp.New(`(?i)%pipe%|safer|^-[sd]outputfile|^-o`), // the language of a document may write and run what is not safe
	"rustc":         lazyregexp.New(`^@|^--(emit|print)=.*=|^(asm|dep-info|link|llvm-bc|llvm-ir|metadata|mir|obj)=`),
	"kotlinc":       lazyregexp.New(`^@|^-(J|P$|Xcompiler-plugin|Xplugin|script)`),
	"swiftc":        lazyregexp.New(`^@|^-(Xcc|Xclang-linker|Xfrontend|Xlinker|Xllvm|external-plugin-path|in-process-plugin|ld-path|load|plugin|swift-module-file|tools-directory|use-ld)`),
	"ip":            lazyregexp.New(`^(e|ex|exe|exec)$|^--?b(a(t(c(h)?)?)?)?$`), // ip netns exec and ip vrf exec, and a file with commands
	"kubectl":       lazyregexp.New(`^-s`),                                      // the server gets the password
	"less":          lazyregexp.New(`^\+`),
	"magick":        lazyregexp.New("[|`$;&<>\"]|^@|:@|(?i:^-(delegate|write)$|^(ephemeral|mpr|msl|mvg|plt|print|scan|show|url|win|x):)"), // a name that begins with | is a command
	"mysql":         lazyregexp.New(`\\|(?i:system|\bsource\b|outfile|dumpfile|\bpager\b|\btee\b)`),
	"ar":            lazyregexp.New(`^@`), // options from a file
	"nm":            lazyregexp.New(`^@`),
	"nmap":          lazyregexp.New(`^-(o|-?(append-output|datadir|resume|script|servicedb|stylesheet|versiondb))`),
	"objdump":       lazyregexp.New(`^@`),
	"pandoc":        lazyregexp.New(`\.lua\b`), // a reader or a writer that is a script
	"psql":          lazyregexp.New(`\\|(?i:program)`),
	"socat":         lazyregexp.New(`(?i)(^|!!)\s*(create|exec|fifo|file|gopen|open|pipe|pty|shell|system)\b`),
	"sqlite3":       lazyregexp.New(`(?m:^\s*\.)|(?i:readfile|writefile|load_extension|\bedit\b|\battach\b)|(?is:\bvacuum\b.*\binto\b)`),
	"systemctl":     lazyregexp.New(`/.*\.[a-z]+$`), // the file of a unit, which is linked
	"tar":           aMachine,
	"vim":           lazyregexp.New(`^\+`),
	"zip":           lazyregexp.New(`^-[^-]*lf`),
}

// aMachine matches the name of an archive on another machine, HOST:FILE, to which programs
// for archives connect with rsh or ssh.
var aMachine = lazyregexp.New(`^[^/]*:`)

// repositoryKeys match the settings that say which repository git talks to.
var repositoryKeys = lazyregexp.New(`(?i)^(remote\.|branch\..*remote$)`)

// programOf returns the name of the program of a command, without its path.
func programOf(words []string) string {
	return words[0][strings.LastIndexByte(words[0], '/')+1:]
}

// reaches reports whether a word of a command is one with which the program does more than
// a star stands for: one of the options in reaching, also abbreviated or among other short
// options, or a text in reachingTexts. A word that is not known may be one.
func reaches(words []string, i int) bool {
	program, word := knownAs(programOf(words)), words[i]
	options, text := reaching[program], reachingTexts[program]
	switch {
	case strings.Contains(word, shell.Unknown):
		return options != "" || text != nil || program == "ldd" || program == "sed"
	case text != nil && text.MatchString(word):
		return true
	case program == "curl" && readsFormat(words, i), program == "gcc" && !compiles(word):
		return true
	case options == "" && text == nil && doesMore.MatchString(word):
		_, isRunner := runnerOf(words)
		return !isRunner
	case program == "date" && setsClock(words, i), program == "ldd" && !isOfSystem(word):
		return true
	case program == "gh" && i == 1: // the subcommand may follow an option
		return !slices.Contains(ghCommands, word) && (len(words) > 2 || word != "--help" && word != "--version")
	case program == "go" && (words[1] == "run" || words[1] == "install") && versions.MatchString(word):
		return true
	case program == "tar" && i == 1 && !strings.HasPrefix(word, "-"): // its options may stand without a dash
		word = "-" + word
	case program == "git" && i == 1:
		return !slices.Contains(gitCommands, word) && !strings.HasPrefix(word, "-") || slices.Contains(gitRunners, word) || isReaching(options, word)
	case program == "git":
		if shell.ShowsSignature(word) || words[1] == "config" && (protect.RunsCode(word) || repositoryKeys.MatchString(word)) {
			return true
		}
		if words[1] == "archive" && words[i-1] == "--format" && shell.ShowsSignature("--format="+word) { // a format of the configuration is a command
			return true
		}
	}
	if i > 1 {
		options += " " + reaching[program+" "+words[1]]
	}
	return isReaching(options, word)
}

// doesMore matches the options of programs that are not listed here which, by their names, run
// a program, load code or let somebody choose what is run: --exec, --plugin-dir, --post-renderer,
// --with-shell.
var doesMore = lazyregexp.New(`(?i)^--?([a-z0-9]+[-_.])*(exec|execute|plugins?|editor|pager|rsh|hook|interpreter|(pre|post)-?(processor|renderer|command)|init-?(file|script)|rc-?file)([-_.](dir|directory|path|file|program|command|cmd|args?))?(=|$)`)

// versions match a package with its version, which go fetches from elsewhere.
var versions = lazyregexp.New(`^[\w-][^@\s]*\.[^@\s]*@`)

// readsFormat reports whether a word of curl names a file with a format. A format can name
// files to which curl writes.
func readsFormat(words []string, i int) bool {
	return joinedFormat.MatchString(words[i]) || strings.HasPrefix(words[i], "@") && formatOption.MatchString(words[i-1])
}

var (
	formatOption = lazyregexp.New(`^(-[^-]*w|--w.*)$`)
	joinedFormat = lazyregexp.New(`^(-[^-]*w|--w[a-z-]*=)@`)
)

// setsClock reports whether a word of date is an operand that is no format: the time to
// which it sets the clock.
func setsClock(words []string, i int) bool {
	isValue := slices.Contains([]string{"-d", "-f", "-r", "-ud", "-ur", "--date", "--file", "--reference"}, words[i-1])
	return !isValue && !strings.HasPrefix(words[i], "-") && !strings.HasPrefix(words[i], "+")
}

// isOfSystem reports whether a word of ldd is an option or a program of the system. Others
// may name a loader of their own, which ldd runs.
func isOfSystem(word string) bool {
	return strings.HasPrefix(word, "-") || filepath.Clean(word) == word && slices.ContainsFunc(systemFolders, func(dir string) bool { return isBelow(word, dir) })
}

var systemFolders = []string{"/bin", "/lib", "/lib64", "/sbin", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin"}

// isReaching reports whether a word is one of the options.
func isReaching(options, word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return slices.ContainsFunc(strings.Fields(options), func(option string) bool {
		switch {
		case len(option) == 2 && option[0] == '-':
			return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.IndexByte(word, option[1]) > 0
		case strings.HasPrefix(option, "--"):
			return len(name) > 2 && strings.HasPrefix(option, name)
		}
		return name == option || name == "-"+option
	})
}

// writesOperand reports whether a program that reads its first operand writes to a second.
func writesOperand(words []string) bool {
	if program := programOf(words); program != "uniq" && program != "xxd" {
		return false
	}
	isOperand := func(w string) bool { return w == "-" || !strings.HasPrefix(w, "-") }
	first := slices.IndexFunc(words[1:], isOperand)
	return slices.Contains(words, shell.Unknown) || first >= 0 && slices.ContainsFunc(words[first+2:], isOperand)
}
