package approval

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// A runner is a program that runs what a project tells it to: the Makefile, the scripts of
// package.json, the tests. A person who allows make with a star means the instructions of
// this project. With other options such a program takes its instructions from another file
// or folder, from its input or from the command line itself. So the list of options that a
// star stands for is closed, and the options are whole words: no other one, no abbreviation
// and no other letter among short options. A rule can name others.
type runner struct {
	options  optionList
	operands func(words []string) bool // reports whether operands are of the kind that a star stands for; nil for any
	values   map[string]*lazyregexp.Regexp
	rest     string // word after which all others are for the code of the project; may be empty
	// passes reports whether a star may stand for words after rest, which some subcommands
	// give to another program than the code of the project; nil for any.
	passes   func(before, after []string) bool
	launches string // subcommands after which another program stands
	writes   string // options that name a file to be written, which has to be in the scope of the session
	before   bool   // true if only the options before the first operand are its own
}

// runners are the programs that run what a project tells them to, by their names.
var runners = map[string]runner{
	"make": {
		options:  optionList{short: "BdiknpqrRsStvwl::j::O::", long: "always-make check-symlink-times debug:: dry-run help ignore-errors jobs:: just-print keep-going load-average:: max-load:: no-builtin-rules no-builtin-variables no-keep-going no-print-directory output-sync:: print-data-base print-directory question quiet recon shuffle:: silent stop touch trace version warn-undefined-variables"},
		operands: func(words []string) bool { return assignsNothing(words) && areTargets(words) }, // make SHELL=… is another shell for every line
		values:   map[string]*lazyregexp.Regexp{"-j": number, "-l": number, "-O": aName},
	},
	"bmake": {
		options:  optionList{short: "BiknqrSstwj:"},
		operands: func(words []string) bool { return assignsNothing(words) && areTargets(words) },
		values:   map[string]*lazyregexp.Regexp{"-j": number},
	},
	"ninja": {options: optionList{short: "nvj:k:l:", long: "verbose quiet version"}},
	"cmake": {
		options: optionList{short: "B:S:G:A:j::v", long: "build: target: config: parallel:: clean-first verbose fresh version help log-level: preset:", single: "-Wno-dev -Wdev", glued: "D"},
		values:  map[string]*lazyregexp.Regexp{"-D": lazyregexp.New(`^\w+(:\w+)?=(ON|OFF|TRUE|FALSE|YES|NO|Debug|Release|RelWithDebInfo|MinSizeRel|[0-9]+)$`)},
	},
	"ctest": {options: optionList{short: "j:R:E:L:C:VNFQ", long: "output-on-failure parallel: tests-regex: exclude-regex: label-regex: build-config: verbose extra-verbose rerun-failed timeout: test-dir: stop-on-failure no-tests: repeat: schedule-random show-only quiet"}},
	"meson": {options: optionList{short: "vj:t:nq", long: "verbose print-errorlogs suite: no-suite: num-processes: timeout-multiplier: no-rebuild quiet list buildtype: repeat:"}},
	"scons": {options: optionList{short: "j:knQsci", long: "keep-going silent quiet clean"}, operands: assignsNothing},
	"just": {
		options: optionList{short: "lqvny", long: "list quiet verbose dry-run color: yes summary unsorted groups"},
		operands: func(words []string) bool {
			return assignsNothing(words) && !strings.Contains(words[0], "/") && !slices.ContainsFunc(words, scripts.MatchString)
		}, // just FOLDER/RECIPE
	},
	"task": {options: optionList{short: "lafsvnpyo:", long: "list list-all force silent verbose dry parallel yes status summary"}, operands: assignsNothing, rest: "--"},
	"rake": {options: optionList{short: "tTPAnqsvmj:", long: "tasks:: all trace:: dry-run quiet silent verbose multitask jobs:: prereqs version"}, operands: assignsNothing},
	"inv":  {options: optionList{short: "ledp", long: "list echo dry pty"}},
	"bazel": {
		options: optionList{short: "kj:c:st:", long: "keep_going jobs: test_output: test_filter: compilation_mode: verbose_failures noshow_progress show_progress nocache_test_results cache_test_results: runs_per_test: color: curses: test_timeout: build_tests_only test_tag_filters: build_tag_filters: config: output: noimplicit_deps nohost_deps test_arg: stamp nostamp subcommands announce_rc"},
		rest:    "--",
	},
	"go": {
		options: optionList{single: "-a -n -race -msan -asan -cover -v -work -x -json -short -failfast -c -benchmem -fullpath -trimpath -u -t -d -m -deps -e -find -test -compiled -all -src -cmd -h -l -modcacherw -diff " +
			"-p: -run: -skip: -bench: -benchtime: -blockprofilerate: -count: -cpu: -fuzz: -fuzztime: -fuzzminimizetime: -list: -memprofilerate: -mutexprofilefraction: -parallel: -shuffle: -timeout: -vet: -tags: -covermode: -coverpkg: " +
			"-ldflags: -gcflags: -buildvcs: -buildmode: -mod: -f: -go: -compat: -o: -coverprofile: -cpuprofile: -memprofile: -blockprofile: -mutexprofile: -trace:"},
		values: map[string]*lazyregexp.Regexp{"-ldflags": linkerFlags, "-gcflags": lazyregexp.New(`^([\w./]+=)?(-(N|l|m|S|B|e|m=[0-9]+)\s*)+$`), "-vet": lazyregexp.New(`^[\w,]*$`)},
		rest:   "-args",
		writes: "-o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace",
	},
	"cargo": {
		options: optionList{short: "vqj:p:F:rh", long: "verbose quiet release lib bins bin: examples example: tests test: benches bench: all-targets doc no-run no-fail-fast workspace all exclude: package: features: all-features no-default-features jobs: keep-going profile: message-format: locked offline frozen color: target: " +
			"check fix allow-dirty allow-staged no-deps document-private-items version dry-run depth: edges: invert: format: aggressive precise: timings"},
		operands: func(words []string) bool { return !strings.HasPrefix(words[0], "+") || toolchain.MatchString(words[0]) },
		values:   map[string]*lazyregexp.Regexp{"--target": aName},
		rest:     "--", passes: passedByCargo,
	},
	"npm": {
		options: optionList{short: "swqdDESOPyfal", long: "silent if-present workspaces workspace: include-workspace-root ignore-scripts no-audit no-fund legacy-peer-deps prefer-offline offline save-dev save-exact save no-save omit: include: production json depth: all long loglevel: verbose quiet no-progress dry-run package-lock-only no-color color:: yes version help watch watchAll:: coverage fix ci"},
		rest:    "--", launches: "exec x", operands: changesNothing("c conf config edit explore pkg set"),
	},
	"yarn": {
		options: optionList{short: "sDEu", long: "silent frozen-lockfile immutable ignore-scripts check-files offline prefer-offline verbose json dev exact production:: non-interactive network-timeout: watch watchAll:: coverage ci fix updateSnapshot version"},
		rest:    "--", launches: "exec node", operands: changesNothing("config plugin policies set"),
	},
	"pnpm": {
		options: optionList{short: "rF:swDPE", long: "recursive filter: frozen-lockfile no-frozen-lockfile offline prefer-offline ignore-scripts silent reporter: prod dev workspace-root if-present parallel stream no-bail save-dev save-exact version"},
		rest:    "--", launches: "dlx exec", operands: changesNothing("c config env set"),
	},
	"bun": {
		options: optionList{short: "t:udD", long: "watch hot silent coverage bail:: timeout: rerun-each: only todo test-name-pattern: update-snapshots frozen-lockfile dev production version"},
		rest:    "--", launches: "x",
	},
	"cloc": {options: optionList{single: "--by-file --by-file-by-lang --by-percent: --csv --exclude-dir: --exclude-ext: --exclude-lang: --fullpath --git --hide-rate --include-ext: --include-lang: --json --match-d: --match-f: --md --not-match-d: --not-match-f: --quiet --skip-uniqueness --sum-one --timeout: --version --yaml"}},
	"npx":  {options: optionList{short: "yq", long: "yes no no-install quiet silent"}, launches: "*", before: true},
	"bunx": {options: optionList{long: "silent verbose"}, launches: "*", before: true},
	"pytest": {
		options: optionList{short: "vqxslhk:m:n:r:W:", long: "verbose quiet exitfirst maxfail: tb: capture: showlocals lf last-failed ff failed-first nf new-first sw stepwise stepwise-skip durations: durations-min: co collect-only cov:: cov-report: cov-branch no-cov cov-fail-under: no-cov-on-fail " +
			"no-header no-summary color: numprocesses: dist: timeout: reruns: disable-warnings strict-markers strict-config import-mode: deselect: ignore: ignore-glob: setup-show fixtures markers version asyncio-mode: benchmark-only benchmark-skip randomly-seed: snapshot-update " +
			"headed hypothesis-seed: code-highlight: show-capture: log-cli-level: log-level: full-trace doctest-modules cache-clear cache-show runxfail help"},
		operands: readsNoList,
		values:   map[string]*lazyregexp.Regexp{"--cov-report": aName},
	},
	"tox": {options: optionList{short: "e:vqp::rl", long: "recreate parallel:: skip-pkg-install notest list version"}, rest: "--"},
	"nox": {options: optionList{short: "s:rRlvt:k:", long: "session: sessions: reuse-existing-virtualenvs no-install list tags: keywords: verbose"}, rest: "--"},
	"mvn": {
		options: optionList{single: "-q -B -e -X -U -o -am -amd -N -fae -ff -fn -ntp -C -V -v -pl: --quiet --batch-mode --errors --debug --update-snapshots --offline --also-make --also-make-dependents --non-recursive --fail-at-end --fail-fast --fail-never --no-transfer-progress --threads: --projects: --version", glued: "DPT"},
		values: map[string]*lazyregexp.Regexp{
			"-D": lazyregexp.New(`^(skipTests|skipITs|maven\.test\.skip|test|it\.test|failIfNoTests|surefire\.failIfNoSpecifiedTests|checkstyle\.skip|spotbugs\.skip)(=[\w.,#*+!-]*)?$`),
			"-P": lazyregexp.New(`^[\w,!-]+$`),
		},
		operands: func(words []string) bool { // GROUP:PLUGIN:VERSION:GOAL is a plugin from elsewhere
			return !slices.ContainsFunc(words, func(w string) bool { return strings.Count(w, ":") > 1 })
		},
	},
	"gradle": {options: optionList{short: "qidsSmx:aw", long: "info debug quiet stacktrace full-stacktrace no-daemon daemon offline rerun-tasks continue parallel no-parallel build-cache no-build-cache configuration-cache no-configuration-cache dry-run console: tests: exclude-task: max-workers: warning-mode: stop status version"}},
	"ant":    {options: optionList{single: "-q -v -k -S -quiet -verbose -keep-going -silent -projecthelp -version"}},
	"sbt":    {options: optionList{long: "batch no-colors"}, operands: func(words []string) bool { return !slices.ContainsFunc(words, isOtherOrder) }},
	"dotnet": {options: optionList{short: "c:v:f:r:", long: "configuration: no-restore no-build verbosity: filter: nologo framework: runtime: list-tests version"}, operands: readsNoList, rest: "--"},
	"mix":    {options: optionList{long: "trace only: seed: cover stale failed max-failures: force warnings-as-errors exclude: include: check-formatted"}},
	"bundle": {options: optionList{short: "j:", long: "jobs: quiet local frozen"}, launches: "exec", operands: changesNothing("config console plugin")},
	"composer": {
		options: optionList{short: "nvqo", long: "no-interaction no-dev verbose quiet prefer-dist optimize-autoloader dry-run no-progress no-scripts no-plugins dev"},
		rest:    "--", operands: changesNothing("config exec global"),
	},
	"uv":     {options: optionList{short: "qv", long: "quiet verbose frozen locked no-sync offline all-extras extra: group: dev no-dev"}, launches: "run"},
	"poetry": {options: optionList{short: "qvn", long: "quiet verbose no-interaction sync no-root with: without: only:"}, launches: "run", operands: changesNothing("config self")},
	"pipenv": {options: optionList{short: "qvd", long: "quiet verbose dev deploy"}, launches: "run"},
	"pdm":    {options: optionList{short: "qvd", long: "quiet verbose dev"}, launches: "run"},
	"rye":    {options: optionList{short: "qv", long: "quiet verbose"}, launches: "run"},
	"jest": {options: optionList{short: "ibt:uow:", long: "watchAll:: watch:: ci coverage:: runInBand verbose silent bail:: testNamePattern: testPathPattern: testPathPatterns: updateSnapshot onlyChanged changedSince: maxWorkers: no-cache no-coverage passWithNoTests json findRelatedTests listTests " +
		"detectOpenHandles forceExit colors expand logHeapUsage randomize shard: testTimeout: collectCoverage::"}},
	"vitest":     {options: optionList{short: "t:uw", long: "run watch:: coverage testNamePattern: update bail: silent:: no-coverage passWithNoTests changed shard: retry:"}},
	"mocha":      {options: optionList{short: "g:bt:s:if:", long: "grep: bail timeout: slow: invert fgrep: recursive exit parallel"}},
	"playwright": {options: optionList{short: "g:j:ux", long: "grep: workers: update-snapshots headed project: list retries: max-failures: debug"}},
	"eslint":     {options: optionList{long: "fix fix-dry-run quiet ext: max-warnings: cache no-cache color no-color debug report-unused-disable-directives no-error-on-unmatched-pattern no-inline-config ignore-pattern: no-ignore version"}},
	"prettier":   {options: optionList{short: "cwlu", long: "check write list-different no-config ignore-unknown single-quote tab-width: print-width: no-semi log-level: loglevel: trailing-comma: prose-wrap: end-of-line: version"}},
	"tsc":        {options: optionList{single: "--noEmit -w --watch --strict --skipLibCheck --pretty:: --incremental --listFiles --diagnostics --extendedDiagnostics --version -v --noEmitOnError --target: -t: --module: -m: --jsx: --lib: --showConfig --noErrorTruncation --noUnusedLocals"}, operands: readsNoList},
	"rspec":      {options: optionList{short: "f:e:t:nbcp::w", long: "format: example: tag: fail-fast:: only-failures next-failure backtrace color no-color profile:: warnings seed: order:"}},
	"rubocop":    {options: optionList{short: "aAl", long: "autocorrect autocorrect-all lint only: except: parallel display-cop-names format:"}, values: map[string]*lazyregexp.Regexp{"--format": lazyregexp.New(`^[a-z]+$`)}},
	"phpunit":    {options: optionList{short: "v", long: "filter: testsuite: group: exclude-group: stop-on-failure testdox colors:: no-coverage verbose debug"}},
	"pre-commit": {options: optionList{short: "av", long: "all-files files: verbose show-diff-on-failure hook-stage: from-ref: to-ref:"}, operands: func(words []string) bool { return words[0] != "try-repo" }},

	"json.tool": {options: optionList{long: "sort-keys no-ensure-ascii json-lines indent: tab no-indent compact"}, operands: func(words []string) bool { return len(words) < 2 }}, // it writes the second
	"unittest":  {options: optionList{short: "vqfcbk:s:p:t:", long: "verbose quiet failfast catch buffer locals start-directory: pattern: top-level-directory: durations:"}},
	"latex": {
		options:  optionList{single: "-interaction: -halt-on-error -file-line-error -synctex: -jobname: -output-directory: -draftmode -recorder -no-shell-escape -version"},
		operands: func(words []string) bool { return !slices.ContainsFunc(words, isTeX) },
	},
	"latexmk": {options: optionList{single: "-pdf -pdfxe -pdflua -xelatex -lualatex -dvi -ps -c -C -f -g -cd -quiet -silent -interaction: -halt-on-error -file-line-error -synctex: -jobname: -outdir: -output-directory: -version"}},

	"docker-compose": {options: optionList{long: "ansi: progress: profile: compatibility dry-run parallel:"}, before: true},
}

// sameRunners are other names of programs in runners.
var sameRunners = map[string]string{
	"bazelisk": "bazel", "gmake": "make", "go-task": "task", "gradlew": "gradle", "gtest": "ctest", "invoke": "inv", "lualatex": "latex", "mvnw": "mvn", "ninja-build": "ninja", "pdflatex": "latex", "pdftex": "latex", "pnpx": "npx", "py.test": "pytest", "samu": "ninja", "tex": "latex", "xelatex": "latex",
}

// changesNothing returns a function that reports whether the first operand is none of the
// subcommands that change settings, or run a command that they are given. Some programs take
// abbreviations. After yarn workspace NAME, another subcommand follows.
func changesNothing(subcommands string) func(words []string) bool {
	isOne := func(w string) bool {
		return w != "" && slices.ContainsFunc(strings.Fields(subcommands), func(sub string) bool { return strings.HasPrefix(sub, w) })
	}
	return func(words []string) bool {
		return !isOne(words[0]) && (!strings.HasPrefix(words[0], "workspace") || !slices.ContainsFunc(words, isOne))
	}
}

var (
	toolchain = lazyregexp.New(`^\+[a-z0-9.-]+$`)
	number    = lazyregexp.New(`^[0-9.]*$`)
	aName     = lazyregexp.New(`^[\w-]*$`) // neither a path nor a name with an end such as .json
	// linkerFlags match the flags of go's linker that set variables and leave out symbols.
	linkerFlags = lazyregexp.New(`^([\w./]+=)?(\s*(['"]?(-s|-w|-buildid=|-X[= ]\s*['"]?[\w./~-]+=[^\s'"-][^\s'"]*)['"]?)(\s|$))*$`)
)

// assignsNothing reports whether no operand sets a variable.
func assignsNothing(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "=") })
}

// areTargets reports whether operands are plain names. Rules for many targets give the name,
// or a part of it, to a shell: with test-%, make 'test-x;evil' runs evil.
func areTargets(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return scripts.MatchString(w) || strings.Contains(w, " ") })
}

// scripts matches a text that a shell does not take for words alone.
var scripts = lazyregexp.New("[\\x00-\\x1f\"'`$&|;<>(){}*?\\\\!]")

// passedByCargo reports whether the words after -- of a command of cargo are for the code of
// the project, or choose lints, or only check. Others are options of the compiler and of
// rustfmt, which run a linker and write files.
func passedByCargo(before, after []string) bool {
	for sub, allowed := range givenByCargo { // a word before may also be the value of an option, whose list is not this one
		if slices.Contains(before, sub) && slices.ContainsFunc(after, func(w string) bool { return !allowed.MatchString(w) }) {
			return false
		}
	}
	return true
}

// givenByCargo are the subcommands of cargo that give the words after -- to the compiler or to
// another program of Rust, with the words that a star stands for there.
var givenByCargo = map[string]*lazyregexp.Regexp{
	"clippy":  lazyregexp.New(`^(-[DWAF]([a-z][\w:-]*)?|--(deny|warn|allow|forbid)(=[\w:-]+)?|[a-z][\w:-]*)$`),
	"fix":     lazyregexp.New(`^$`),
	"fmt":     lazyregexp.New(`^(--check|-l|--files-with-diff|-v|--verbose|-q|--quiet)$`),
	"rustc":   lazyregexp.New(`^$`),
	"rustdoc": lazyregexp.New(`^$`),
}

// isTeX reports whether a word is a text in the language of TeX, or names another format: not
// a file.
func isTeX(w string) bool { return strings.ContainsAny(w, `\&`) }

// readsNoList reports whether no operand names a file with further words.
func readsNoList(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "@") })
}

// isOtherOrder reports whether a word is more to sbt than the name of a task, perhaps with
// the names of tests after it: an expression, a setting or a file with orders.
func isOtherOrder(w string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(w), " ")
	return !tasks.MatchString(w) || slices.Contains([]string{"alias", "apply", "console", "consoleProject", "eval", "set"}, first)
}

var tasks = lazyregexp.New(`^~?[\w/:-]+( [\w.*-]+)*$`)

// runnerOf returns the runner of a command and where the words begin that are for it, with
// its own name. A program that runs another one in the folder of a project, such as npx, is
// a runner too, and what it runs is another command.
func runnerOf(words []string) (r runner, ok bool) {
	name := programOf(words)
	name = unversioned(name, func(name string) bool { return sameRunners[name] != "" || runners[name].isListed() })
	if same, isSame := sameRunners[name]; isSame {
		name = same
	}
	r, ok = runners[name]
	return r, ok
}

// isListed reports whether a runner is one of runners.
func (r runner) isListed() bool { return r.options != optionList{} }

// launched returns the position of the program that a command runs for a project, after
// words such as python3 -m, or 0 if it runs none.
func launched(words []string) int {
	name := programOf(words)
	switch {
	case isPython(name):
		if len(words) > 2 && words[1] == "-m" {
			return 2
		}
		return 0
	case name == "docker" && len(words) > 1 && words[1] == "compose":
		return 1
	}
	r, _ := runnerOf(words)
	if r.launches == "" {
		return 0
	}
	at := r.options.operand(words, 1)
	if at > 0 && r.launches != "*" {
		if !slices.Contains(strings.Fields(r.launches), words[at]) {
			return 0
		}
		at = r.options.operand(words, at+1)
	}
	if at > 0 && words[at] == "--" {
		at++
	}
	if at >= len(words) {
		return 0
	}
	return max(at, 0)
}

func isPython(program string) bool { return python.MatchString(program) }

var python = lazyregexp.New(`^(python|pypy)[0-9.]*$`)

// asProgram returns a command as that of the program at a position of its words.
func asProgram(words []string, at int) []string {
	as := slices.Clone(words[at:])
	if programOf(words) == "docker" {
		as[0] = "docker-compose"
	}
	return as
}

// followsProject reports whether a command of a runner takes its instructions from where the
// project has them, as far as a star stands for its words. The function byStar reports
// whether it stands for the word at a position.
func followsProject(words []string, byStar func(i int) bool) bool {
	at := launched(words)
	if r, ok := runnerOf(words); ok && !r.covers(words, at, byStar) {
		return false
	}
	if at == 0 {
		return true
	}
	inner := asProgram(words, at)
	for i := 1; i < len(inner); i++ {
		if byStar(at+i) && reaches(inner, i) {
			return false
		}
	}
	return followsProject(inner, func(i int) bool { return byStar(at + i) })
}

// covers reports whether a star may stand for the words of a command that it stands for. The
// words from end on are for another program, unless end is 0.
func (r runner) covers(words []string, end int, byStar func(i int) bool) bool {
	if end == 0 {
		end = len(words)
	}
	var operands []string
	for i := 1; i < end; i++ {
		w := words[i]
		switch {
		case strings.Contains(w, shell.Unknown):
			return false
		case r.rest != "" && w == r.rest:
			if after := starred(words, i+1, byStar); r.passes != nil && !r.passes(words[1:i], after) {
				return false
			}
			end = i
		case w == "-" || !strings.HasPrefix(w, "-"):
			if byStar(i) {
				operands = append(operands, w)
			}
			if r.before || w != "run" && programOf(words) == "go" && words[1] == "run" { // what follows is for the program that is run
				end = i
			}
		case byStar(i):
			o, ok := r.options.take(words[i:end])
			check := r.values[o.name]
			// A next word that begins with a dash could be an option, if the list were wrong.
			isDashed := o.next > 0 && strings.HasPrefix(o.value, "-") && check == nil
			if !ok || isDashed || check != nil && !check.MatchString(o.value) {
				return false
			}
			i += o.next
		}
	}
	return len(operands) == 0 || r.operands == nil || r.operands(operands)
}

// starred returns the words from a position on that a star stands for.
func starred(words []string, from int, byStar func(i int) bool) (list []string) {
	for i := from; i < len(words); i++ {
		if byStar(i) {
			list = append(list, words[i])
		}
	}
	return list
}

// An optionList is the options of a program that a star stands for. Behind a name, a colon
// means that it has a value, and two that it may have one in the same word.
type optionList struct {
	short  string // letters that can stand together
	long   string // names that stand after two dashes
	single string // whole words
	glued  string // letters whose value is the rest of the word, or the next word
}

// An option is one of the words of a command, with its value.
type option struct {
	name  string
	value string
	next  int // number of further words that belong to it
}

// take returns the option with which words begin. It reports false if it is not listed.
func (l optionList) take(words []string) (o option, ok bool) {
	w := words[0]
	if len(w) > 1 && strings.IndexByte(l.glued, w[1]) >= 0 {
		return withValue(option{name: w[:2], value: w[2:]}, len(w) == 2, words)
	}
	name, value, joined := strings.Cut(w, "=")
	for _, list := range []string{l.single, "--" + strings.ReplaceAll(l.long, " ", " --")} {
		for listed := range strings.FieldsSeq(list) {
			bare := strings.TrimRight(listed, ":")
			if bare != name && "-"+bare != name { // go and others take -x for --x
				continue
			}
			if o = (option{name: bare, value: value}); len(listed)-len(bare) == 1 {
				return withValue(o, !joined, words)
			}
			return o, !joined || listed != bare
		}
	}
	if strings.HasPrefix(w, "--") || l.short == "" {
		return o, false
	}
	for i := 1; i < len(w); i++ {
		at := strings.IndexByte(l.short, w[i])
		if at < 0 || w[i] == ':' {
			return o, false
		}
		o = option{name: "-" + w[i:i+1], value: w[i+1:]}
		switch after := l.short[at+1:]; {
		case strings.HasPrefix(after, "::"):
			return o, true
		case strings.HasPrefix(after, ":"):
			return withValue(o, i == len(w)-1, words)
		}
	}
	return o, true
}

// withValue completes an option whose value may be the next word.
func withValue(o option, isNext bool, words []string) (option, bool) {
	if !isNext {
		return o, true
	}
	if len(words) < 2 {
		return o, false
	}
	o.value, o.next = words[1], 1
	return o, true
}

// operand returns the position of the first operand from a position on, or 0 if an option
// that is not listed stands before it, or there is none.
func (l optionList) operand(words []string, from int) int {
	for i := from; i < len(words); i++ {
		if words[i] == "--" || !strings.HasPrefix(words[i], "-") {
			return i
		}
		o, ok := l.take(words[i:])
		if !ok {
			return 0
		}
		i += o.next
	}
	return 0
}

// namesOutside reports whether a word of a runner names a file or a folder, by its path or by
// a link, that the session may not read without being asked.
func (in Surroundings) namesOutside(word, dir string) bool {
	return slices.ContainsFunc(namesIn(word), func(name string) bool {
		path := absolute(dir, name)
		if path == "/dev/null" || len(path) > maxPath {
			return len(path) > maxPath
		}
		if slices.Contains(strings.Split(name, "/"), "..") { // the system follows links before ..
			return true
		}
		real, exists := follow(in.Disk, dir, path)
		for at := path; !exists && at != "/"; { // it may be there by then, in a folder that is a link
			at = filepath.Dir(at)
			real, exists = follow(in.Disk, dir, at)
		}
		home, _ := follow(in.Disk, in.Home, ".")
		if isBelow(path, in.Home) && (!exists || isBelow(real, in.Home) || isBelow(real, home)) {
			return false
		}
		if in.Scope != nil {
			if f, err := in.Disk.Judge(in.Scope, path, scope.Read); err == nil && f.Verdict == scope.Allowed {
				return false
			}
		}
		return true
	})
}

// elsewhere returns the words of a runner that name something outside of the session's files.
func (in Surroundings) elsewhere(run shell.Run, dir string) (words []string) {
	isRunner := false
	for inner := run.Words; ; {
		if _, ok := runnerOf(inner); ok {
			isRunner = true
		}
		at := launched(inner)
		if at == 0 {
			break
		}
		inner = asProgram(inner, at)
	}
	if !isRunner || len(run.Words) > maxPaths {
		return nil
	}
	for _, w := range run.Words[1:] {
		isLabel := strings.HasPrefix(programOf(run.Words), "bazel") && strings.HasPrefix(w, "//")
		if !isLabel && in.namesOutside(w, dir) {
			words = append(words, w)
		}
	}
	return words
}

// writtenFiles returns the files that options of a runner, or of a compiler, name to be
// written.
func writtenFiles(words []string) (files []string) {
	if knownAs(programOf(words)) == "gcc" {
		for i, w := range words[1:] {
			isOption := w == "-o" || w == "-MF"
			switch {
			case isOption && i+2 < len(words):
				files = append(files, words[i+2])
			case !isOption && (strings.HasPrefix(w, "-o") || strings.HasPrefix(w, "-MF")):
				files = append(files, strings.TrimPrefix(strings.TrimPrefix(w, "-MF"), "-o"))
			case strings.HasPrefix(w, "--output"):
				files = append(files, "/")
			}
		}
		return files
	}
	r, ok := runnerOf(words)
	if !ok || r.writes == "" {
		return nil
	}
	for i := 1; i < len(words) && words[i] != r.rest; i++ {
		if !strings.HasPrefix(words[i], "-") || words[i] == "-" {
			continue
		}
		o, ok := r.options.take(words[i:])
		if !ok {
			continue
		}
		if slices.Contains(strings.Fields(r.writes), o.name) {
			files = append(files, o.value)
		}
		i += o.next
	}
	return files
}

// interpreters are programs that take their input for a program if they are given no other.
var interpreters = strings.Fields(`Rscript R at batch bb bc clisp clojure crontab dc deno duckdb ed erl expect ftp gdb ghci gnuplot groovy guile iex ipython irb jshell julia lftp lldb lua luajit m4 maxima
	mongosh mongo node nodejs ocaml octave perl php pry psysh python racket ruby runghc sage sbcl scala scheme screen swift tclsh telnet tmux ts-node tsx ssh wish xonsh bun`)

// takesProgram reports whether a command takes its input, which the line gives to it, for a
// program: an interpreter without a script, or whatever is told by a word that its
// instructions are in its input.
func takesProgram(words []string) bool {
	isInterpreter := func(name string) bool { return slices.Contains(interpreters, name) }
	program := unversioned(programOf(words), isInterpreter)
	isListed := isInterpreter(program) || isPython(program)
	namesOne := func(w string) bool {
		name := w[strings.LastIndexByte(w, '/')+1:]
		return shell.RunsScripts(name) || isInterpreter(unversioned(name, isInterpreter)) || slices.Contains(commanded, knownAs(name)) || isPython(name)
	}
	switch {
	case isListed && (len(words) == 1 || !givesProgram(program, words[1:])), program == "sbt" && len(words) == 1:
		return true
	case !isListed && !isPlain(knownAs(program)) && slices.ContainsFunc(words[1:], namesOne): // docker exec -i box sh, npx node
		return true
	case !isListed && !shell.RunsScripts(program) && isPlain(knownAs(program)):
		if _, isRunner := runnerOf(words); !isRunner {
			return false
		}
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		_, value, _ := strings.Cut(w, "=")
		return isInput(w) || isInput(value) || strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && len(w) > 2 && (strings.HasSuffix(w, "-") || isInput(w[2:]))
	})
}

// isInput reports whether a word names the input of a command.
func isInput(w string) bool {
	return w == "-" || strings.HasSuffix(w, "/stdin") || processPath.MatchString(w)
}

// givesProgram reports whether an interpreter is given a script, or a program as a word.
func givesProgram(program string, args []string) bool {
	switch {
	case slices.Contains(strings.Fields("at batch bc crontab dc duckdb ed ftp gdb lftp lldb screen ssh telnet tmux"), program):
		return false
	case !strings.HasPrefix(args[0], "-"):
		return true
	case isPython(program):
		return args[0] == "-c" || args[0] == "-m" && len(args) > 1 && args[1] == "json.tool"
	}
	return len(args) > 1 && (wordsOfProgram.MatchString(args[0]) || program == "php" && args[0] == "-r")
}

// wordsOfProgram matches the options of interpreters after which a program stands.
var wordsOfProgram = lazyregexp.New(`^(-[a-zA-Z0-9]*[eE]|-p|--eval|--print)$`)
