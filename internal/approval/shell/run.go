package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// Unknown is a word of a [Run] that stands for any number of words that are known only
// when the command runs, such as those that xargs adds. No word of a script is equal to it.
const Unknown = "\x00"

// A Run is a command that has to be allowed before a script may run.
type Run struct {
	Words []string // words of the command, without a program in front that only changes how it runs, and without git -C
	Dir   string   // folder of git -C, relative to the folder of the script; empty if there is none
	via   []string // programs in front of it, from the first on, which run it
}

// programs returns the names that are looked for in PATH before the command runs: those of
// the programs in front of it, and its own unless the shell itself runs it. The shell runs
// command, too, but only if no program is in front of that.
func (r Run) programs() []string {
	all := append(slices.Clip(r.via), r.Words[0])
	for len(all) > 1 && all[0] == "command" {
		all = all[1:]
	}
	if len(all) == 1 && slices.Contains(builtins, all[0]) {
		return nil
	}
	return all
}

// runBy returns commands with a program in front of them.
func runBy(program string, list []Run) []Run {
	for i := range list {
		list[i].via = append([]string{program}, list[i].via...)
	}
	return list
}

// Runs returns the commands that have to be allowed before the command may run: itself,
// or those that a program such as timeout or xargs runs for it. They are none for cd, see
// [Plain.Dir]. The error says for people what is not understood. Understood is a closed
// list of forms.
func (c Simple) Runs() ([]Run, error) {
	if c.Words[0] == "cd" {
		return nil, nil
	}
	return runs(c.Words)
}

func runs(words []string) ([]Run, error) {
	name := base(words[0])
	_, prefixed := prefixOf(name)
	f, understood := forms[name]
	switch {
	case misleading(words[0]) != "":
		return nil, errors.New(misleading(words[0]))
	case words[0] == "cd":
		return nil, errors.New("cd inside another command")
	case name == "git":
		return gitRun(words)
	case name == "find":
		return findRuns(words)
	case shells[name]:
		return shellRun(words)
	case prefixed && (!understood || words[0] != name):
		return nil, fmt.Errorf("%s, which runs another program", name)
	case understood && len(words) > 1:
		return f.runs(words)
	case setsVariable(name, words):
		return nil, fmt.Errorf("a variable that %s uses", name)
	}
	return []Run{{Words: words}}, nil
}

// setsVariable reports whether a builtin sets a variable or looks at one, whose subscript
// can be a program: test -v 'a[$(…)]', printf -v PATH x, printf %n PATH, read 'a[$(…)]'.
func setsVariable(name string, words []string) bool {
	switch name {
	case "test", "[":
		return slices.Contains(words, "-v") || slices.Contains(words, "-R")
	case "printf":
		return len(words) > 1 && strings.HasPrefix(words[1], "-v") || slices.ContainsFunc(words, counts.MatchString)
	case "getopts", "read", "unset":
		return namesElement(words)
	case "wait":
		return slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "p") }) && namesElement(words)
	}
	return false
}

// namesElement reports whether a builtin may be given an element of an array in place of
// the name of a variable. The value of an option of read other than -a is none.
func namesElement(words []string) bool {
	for i, w := range words[1:] {
		isValue := words[0] == "read" && valuedByRead.MatchString(words[i])
		if !isValue && strings.ContainsAny(w, "["+Unknown) {
			return true
		}
	}
	return false
}

// valuedByRead matches options of read with a value that is the next word.
var valuedByRead = lazyregexp.New(`^-[ers]*[dinNptu]$`)

// counts matches a conversion of printf that stores a number in a variable.
var counts = lazyregexp.New(`%[^a-zA-Z%]*[hjlLqtz]*n`)

// A form is how a program that runs another one may be used: with options that are listed
// here, and as a whole word each. Every other use is not understood.
type form struct {
	flags    []string // options without a value
	valued   []string // options with a value: in the next word, or after = for those that begin with --
	operands int      // number of words between the options and the command
	appends  bool     // true if it adds words that are not known
	itself   bool     // true if the program itself has to be allowed too, because it gives the command more rights
}

// forms are the programs that run another one, in the forms that are understood. None of
// the listed options changes which program runs, its words, its folder or its variables,
// and none names a file.
var forms = map[string]form{
	"command": {},
	"env":     {},
	"nice":    {valued: []string{"-n"}},
	"nohup":   {},
	"stdbuf":  {flags: []string{"-o0", "-oL", "-e0", "-eL", "-i0"}},
	"sudo":    {itself: true},
	"timeout": {flags: []string{"--preserve-status", "--foreground"}, valued: []string{"-k", "-s", "--kill-after", "--signal"}, operands: 1},
	"xargs":   {flags: []string{"-0", "-r", "-t", "--null", "--no-run-if-empty"}, valued: []string{"-n", "-L", "-P"}, appends: true},
}

// RunsAnother reports whether a program runs the command after it, which is judged in its
// place.
func RunsAnother(program string) bool {
	f, ok := forms[program]
	return ok && !f.itself
}

func (f form) runs(words []string) ([]Run, error) {
	name := words[0]
	if name == "command" && words[1] == "-v" {
		return []Run{{Words: words}}, nil
	}
	inner := f.command(words[1:])
	if len(inner) == 0 {
		return nil, fmt.Errorf("%s with words that are not known here", name)
	}
	if f.appends {
		inner = append(slices.Clip(inner), Unknown)
	}
	list, err := runs(inner)
	list = runBy(name, list)
	if f.itself {
		list = append([]Run{{Words: words}}, list...)
	}
	return list, err
}

// command returns the command after the options and operands of the program. It returns
// nil if one of them is not listed.
func (f form) command(words []string) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, _, joined := strings.Cut(words[0], "=")
		long := strings.HasPrefix(name, "--")
		switch {
		case words[0] == "--":
			return f.afterOperands(words[1:])
		case slices.Contains(f.flags, words[0]):
			words = words[1:]
		case slices.Contains(f.valued, name) && joined && long:
			words = words[1:]
		case slices.Contains(f.valued, words[0]) && len(words) > 1 && !beginsWithDash(words[1]):
			words = words[2:]
		default:
			return nil
		}
	}
	return f.afterOperands(words)
}

func (f form) afterOperands(words []string) []string {
	if len(words) <= f.operands || slices.ContainsFunc(words[:f.operands+1], beginsWithDash) {
		return nil
	}
	return words[f.operands:]
}

// shellRun returns a shell that runs a file. A script in an argument or on standard input
// is not understood.
func shellRun(words []string) ([]Run, error) {
	if len(words) == 1 || strings.HasPrefix(words[1], "-") || strings.HasPrefix(words[1], "+") || words[1] == Unknown || words[0] == "su" {
		return nil, errors.New("a script inside the command (" + words[0] + ")")
	}
	return []Run{{Words: words}}, nil
}

// gitRun returns a git command without the listed options before its subcommand.
func gitRun(words []string) ([]Run, error) {
	run := Run{}
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		switch {
		case slices.Equal(rest, []string{"--version"}):
			return []Run{{Words: words}}, nil
		case slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}, rest[0]):
			rest = rest[1:]
		case rest[0] == "-C" && len(rest) > 1 && run.Dir == "" && rest[1] != "" && rest[1] != Unknown:
			run.Dir, rest = rest[1], rest[2:]
		default:
			return nil, fmt.Errorf("an option of git before its subcommand (%s)", excerpt(rest[0]))
		}
	}
	if len(rest) > 0 && rest[0] == Unknown {
		return nil, errors.New("git with a subcommand that is not known")
	}
	run.Words = append([]string{words[0]}, rest...)
	return []Run{run}, nil
}

// findRuns returns find without its -exec, and the commands that it runs. They get names
// of files that are not known.
func findRuns(words []string) ([]Run, error) {
	var list []Run
	var kept []string
	find := words[0]
	for len(words) > 0 {
		w := words[0]
		switch w {
		case Unknown:
			return nil, errors.New("find with words that are not known")
		case "-execdir", "-ok", "-okdir":
			return nil, errors.New("find with " + w)
		case "-exec":
			end := slices.Index(words, ";")
			for i, w := range words { // a + ends it only after the braces
				if w == "+" && words[i-1] == "{}" && (end < 0 || i < end) {
					end = i
				}
			}
			if end < 2 {
				return nil, errors.New("find with -exec and no end of it")
			}
			inner := slices.Clone(words[1:end])
			for i, w := range inner {
				if strings.Contains(w, "{}") {
					inner[i] = Unknown
				}
			}
			more, err := runs(inner)
			if err != nil {
				return nil, err
			}
			list = append(list, runBy(find, more)...)
			words = words[end+1:]
		default:
			kept = append(kept, w)
			words = words[1:]
		}
	}
	return append([]Run{{Words: kept}}, list...), nil
}
