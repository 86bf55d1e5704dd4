package shell

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// A prefix is a command, such as sudo or timeout, that runs the command after it.
type prefix struct {
	valued   string   // short options that take a value
	long     []string // long options whose value is the next word
	operands int      // number of words between the options and the command
	queries  string   // short options with which it runs no command
	direct   bool     // true if no option has its value in the next word, so that the command is certain
	grants   bool     // true if the command gets more rights, or arguments from elsewhere
}

// prefixes are the known prefixes.
var prefixes = map[string]prefix{
	"arch":              {grants: true},
	"builtin":           {},
	"busybox":           {grants: true},
	"bwrap":             {grants: true},
	"caffeinate":        {grants: true},
	"catchsegv":         {direct: true, grants: true},
	"cgdb":              {grants: true},
	"cgexec":            {valued: "g", grants: true},
	"choom":             {grants: true},
	"chronic":           {direct: true, grants: true},
	"chroot":            {operands: 1, grants: true},
	"chrt":              {valued: "TPD", operands: 1},
	"command":           {queries: "vV"},
	"daemonize":         {grants: true},
	"dbus-launch":       {grants: true},
	"dbus-run-session":  {grants: true},
	"doas":              {valued: "uC", grants: true},
	"eatmydata":         {direct: true, grants: true},
	"entr":              {grants: true},
	"env":               {valued: "uC", long: []string{"--unset", "--chdir"}},
	"exec":              {valued: "a"},
	"fakeroot":          {grants: true},
	"faketime":          {grants: true},
	"firejail":          {grants: true},
	"flock":             {valued: "wEc", operands: 1},
	"gdb":               {grants: true},
	"gdb-multiarch":     {grants: true},
	"gdbserver":         {operands: 1, grants: true},
	"gdbtui":            {grants: true},
	"gosu":              {operands: 1, grants: true},
	"gtime":             {grants: true},
	"gtimeout":          {valued: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"heaptrack":         {direct: true, grants: true},
	"hyperfine":         {grants: true},
	"i386":              {direct: true, grants: true},
	"ifne":              {grants: true},
	"ionice":            {valued: "cnpPu"},
	"linux32":           {direct: true, grants: true},
	"linux64":           {direct: true, grants: true},
	"lldb":              {grants: true},
	"lldb-server":       {operands: 1, grants: true},
	"ltrace":            {valued: "aelnopsux", grants: true},
	"nice":              {valued: "n"},
	"nohup":             {},
	"nsenter":           {valued: "tSG", grants: true},
	"numactl":           {grants: true},
	"parallel":          {valued: "jIa", grants: true},
	"perf":              {operands: 1, grants: true},
	"pkexec":            {valued: "u", long: []string{"--user"}, grants: true},
	"prlimit":           {grants: true},
	"proot":             {grants: true},
	"proxychains":       {grants: true},
	"proxychains4":      {grants: true},
	"rlwrap":            {grants: true},
	"rr":                {operands: 1, grants: true},
	"run-parts":         {grants: true},
	"run0":              {grants: true},
	"runcon":            {operands: 1, grants: true},
	"runuser":           {valued: "ugG", grants: true},
	"rust-gdb":          {grants: true},
	"rust-lldb":         {grants: true},
	"script":            {valued: "c", grants: true},
	"sem":               {grants: true},
	"setarch":           {operands: 1, grants: true},
	"setpriv":           {grants: true},
	"setsid":            {},
	"ssh-agent":         {grants: true},
	"start-stop-daemon": {grants: true},
	"stdbuf":            {valued: "ioe"},
	"strace":            {valued: "aEeIoPpSsuX", grants: true},
	"su-exec":           {operands: 1, grants: true},
	"sudo":              {valued: "ugpChrtTUDR", long: []string{"--user", "--group", "--prompt", "--chdir", "--host"}, queries: "lvKk", grants: true},
	"systemd-cat":       {grants: true},
	"systemd-inhibit":   {grants: true},
	"systemd-run":       {valued: "EHMpu", grants: true},
	"taskset":           {operands: 1},
	"time":              {valued: "fo"},
	"timeout":           {valued: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"torify":            {grants: true},
	"torsocks":          {grants: true},
	"toybox":            {grants: true},
	"tsocks":            {grants: true},
	"uclampset":         {grants: true},
	"uname26":           {direct: true, grants: true},
	"unbuffer":          {},
	"unshare":           {grants: true},
	"valgrind":          {direct: true, grants: true},
	"watch":             {valued: "n", grants: true},
	"winpty":            {grants: true},
	"x86_64":            {direct: true, grants: true},
	"xargs":             {valued: "IiEdLnPsa", long: []string{"--max-args", "--max-procs", "--delimiter", "--replace", "--arg-file"}, grants: true},
	"xvfb-run":          {grants: true},
}

// loader matches the names of the programs that load others, such as ld-linux-x86-64.so.2:
// they run the program that follows, whether or not it may be run.
var loader = lazyregexp.New(`^ld[\w.-]*\.so(\.[0-9]+)*$`)

// prefixOf returns the prefix of a name.
func prefixOf(name string) (p prefix, ok bool) {
	if loader.MatchString(name) {
		return prefix{long: []string{"--argv0", "--audit", "--inhibit-rpath", "--library-path", "--preload"}, grants: true}, true
	}
	p, ok = prefixes[name]
	return p, ok
}

// A call is a command without its prefixes.
type call struct {
	words     []word
	grantedBy []string      // names of the prefixes that grant something
	granted   [][]word      // words from each of these prefixes on
	limit     time.Duration // time after which a prefix ends the command; 0 for never
	detached  bool          // true if a prefix does not wait for the command
	query     bool          // true if a prefix runs no command
}

// name returns the name of the command, if it is known.
func (c call) name() (string, bool) {
	if len(c.words) == 0 || !c.words[0].known {
		return "", false
	}
	return base(c.words[0].text), true
}

// stripPrefixes removes the prefixes of a command.
func stripPrefixes(list []word) call {
	c := call{words: list}
	for {
		name, ok := c.name()
		p, isPrefix := prefixOf(name)
		if !ok || !isPrefix {
			return c
		}
		if p.grants {
			c.grantedBy = append(c.grantedBy, name)
			c.granted = append(c.granted, c.words)
		}
		options, operands, rest := p.split(c.words[1:])
		c.noteEffect(name, options, operands)
		c.query = c.query || slices.ContainsFunc(options, func(o string) bool { return p.isQuery(o) })
		if name == "env" && len(rest) > 0 && slices.ContainsFunc(options, splits) {
			rest = append(fields(rest[0]), rest[1:]...)
		}
		c.words = rest
	}
}

// splits reports whether env with this option splits the next word into several.
func splits(option string) bool {
	return option == "-S" || option == "-vS" || option == "--split-string"
}

func fields(w word) []word {
	var list []word
	for _, f := range strings.Fields(w.text) {
		list = append(list, word{text: f, known: w.known})
	}
	return list
}

// noteEffect records the effect of a prefix on the command.
func (c *call) noteEffect(name string, options []string, operands []word) {
	switch name {
	case "timeout", "gtimeout":
		if d, ok := seconds(operands[:min(1, len(operands))]); ok && d > 0 && (c.limit == 0 || d < c.limit) {
			c.limit = d
		}
	case "setsid":
		forks := func(o string) bool { return o == "--fork" || !strings.HasPrefix(o, "--") && strings.Contains(o, "f") }
		c.detached = c.detached || slices.ContainsFunc(options, forks)
	}
}

// split divides the words after a prefix into its options, its operands and the command.
// Assignments of variables count as options.
func (p prefix) split(list []word) (options []string, operands, rest []word) {
	i := 0
	for ; i < len(list) && list[i].known; i++ {
		w := list[i].text
		if w == "--" {
			i++
			break
		}
		if !strings.HasPrefix(w, "-") && !isSetting(w) {
			break
		}
		options = append(options, w)
		if p.takesNext(w) {
			i++
		}
	}
	list = list[min(i, len(list)):]
	n := min(p.operands, len(list))
	return options, list[:n], list[n:]
}

// takesNext reports whether the value of an option is the next word.
func (p prefix) takesNext(option string) bool {
	if strings.HasPrefix(option, "--") {
		return slices.Contains(p.long, option)
	}
	if !strings.HasPrefix(option, "-") {
		return false
	}
	at := strings.IndexAny(option[1:], p.valued)
	return p.valued != "" && at == len(option)-2
}

// isQuery reports whether the prefix runs no command with this option.
func (p prefix) isQuery(option string) bool {
	return p.queries != "" && strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") &&
		strings.ContainsAny(option[1:], p.queries)
}

// isSetting reports whether a word assigns a variable.
func isSetting(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	return ok && isName(name)
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// shells are the programs that run a script given with -c or on standard input.
var shells = map[string]bool{"sh": true, "bash": true, "rbash": true, "dash": true, "zsh": true, "rzsh": true, "ksh": true, "rksh": true, "ksh93": true, "ash": true, "mksh": true, "lksh": true, "posh": true,
	"yash": true, "su": true, "fish": true, "csh": true, "tcsh": true, "bcsh": true, "pwsh": true, "nu": true, "elvish": true, "xonsh": true, "rc": true, "es": true}

// RunsScripts reports whether a program is a shell, or a builtin that runs a file as one
// does.
func RunsScripts(program string) bool { return shells[program] || isSource(program) }

// otherShells are those of the shells whose language is another than that of bash.
var otherShells = []string{"fish", "csh", "tcsh", "bcsh", "pwsh", "nu", "elvish", "xonsh", "rc", "es"}

// A source is where a command gets the script that it runs.
type source int

const (
	noScript     source = iota // it runs no script
	scriptWord                 // from one of its arguments
	scriptInput                // from standard input
	scriptHidden               // from a file, or from words that are not known
)

// script returns the script that a command runs, if it runs one.
func (c call) script() (word, source) {
	name, ok := c.name()
	switch {
	case !ok || c.query:
		return word{}, noScript
	case name == "eval":
		return joinWords(c.words[1:]), scriptWord
	case isSource(name):
		return sourcedScript(c.words[1:])
	case !shells[name]:
		return word{}, noScript
	}
	return shellScript(name, c.words[1:])
}

// joinWords joins words as eval does.
func joinWords(list []word) word {
	known := !slices.ContainsFunc(list, func(w word) bool { return !w.known })
	return word{text: strings.Join(texts(list), " "), known: known}
}

// isSource reports whether a builtin runs a file in the shell itself.
func isSource(name string) bool { return name == "source" || name == "." }

// sourcedScript finds the script in the arguments of source.
func sourcedScript(args []word) (word, source) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return word{}, noScript
	case strings.HasPrefix(args[0].text, "-"):
		return word{}, scriptHidden
	}
	return fileScript(args[0])
}

// openFile matches the names of files that a process has open: /dev/stdin, /dev/fd/3. They
// can also be reached by a relative path.
var openFile = lazyregexp.New(`(^|/)(stdin|tty|[0-9]+)$`)

// fileScript returns the script that is in a file. A file that is open already may be
// standard input.
func fileScript(name word) (word, source) {
	switch at := path.Clean(name.text); {
	case !openFile.MatchString(at):
		return name, scriptHidden
	case path.Base(at) == "stdin", path.Base(at) == "0":
		return word{}, scriptInput
	}
	return word{}, scriptHidden
}

// shellScript finds the script in the arguments of a shell.
func shellScript(name string, args []word) (word, source) {
	given, reads := false, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known && given:
			return w, scriptWord
		case !w.known:
			return w, scriptHidden
		case w.text == "--", w.text == "-":
		case w.text == "--rcfile", w.text == "--init-file":
			i++
		case len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+'):
			short := !strings.HasPrefix(w.text, "--")
			given = given || short && strings.Contains(w.text, "c") || w.text == "--command"
			reads = reads || short && strings.Contains(w.text, "s") && name != "su"
			if short {
				i += strings.Count(w.text, "o") + strings.Count(w.text, "O") // each has a value
			}
		case given:
			return w, scriptWord
		case reads:
			return word{}, scriptInput
		case name != "su":
			return fileScript(w)
		}
	}
	return word{}, scriptInput
}
