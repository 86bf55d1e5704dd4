package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
)

// A certainty says whether a rule that denies or asks is about something.
type certainty int

const (
	no    certainty = iota
	maybe           // it cannot be told in advance; a person is asked
	yes
)

// concernsCommand tells whether the pattern is about a command, in whatever spelling: with
// the path of its program, with options before, after or among the words of the pattern,
// with short options together or apart. It may also be about a command that the program
// runs, which only its arguments name.
func (p wordPattern) concernsCommand(words []string) certainty {
	if len(p.words) == 0 {
		return yes
	}
	if found := p.isAbout(words); found != no {
		return found
	}
	if p.isSpoken(textsThatRun(words)) || p.isCopied(words) {
		return maybe
	}
	return no
}

// mayFollow reports whether the words of a command, of which the last may be half a word, are
// the beginning of a command that the pattern is about.
func (p wordPattern) mayFollow(words []string) bool {
	text := func(words []string) string {
		line := strings.Join(words[1:], " ")
		return strings.TrimSuffix(words[0][strings.LastIndex(words[0], "/")+1:]+" "+line, " ")
	}
	want, _, _ := strings.Cut(text(p.words), star)
	return strings.HasPrefix(want, text(words))
}

func (p wordPattern) isAbout(words []string) certainty {
	name := path.Base(words[0])
	found := yes
	if want := strings.Split(p.words[0], star); !matchStars(want, name) && !matchStars(want, words[0]) {
		if !matchStars(strings.Split(strings.ToLower(path.Base(p.words[0])), star), strings.ToLower(name)) {
			return no
		}
		found = maybe // the program at another path, the one that PATH leads to, or one in a folder where case makes no difference
	}
	c := splitOptions(name, words[1:])
	want := splitOptions("", p.words[1:])
	if len(c.operands) > 0 && len(want.operands) > 0 && isShortFor(name, c.operands[0], want.operands[0]) {
		found, c.operands[0] = maybe, want.operands[0]
	}
	if name == "git" && len(c.operands) > 0 && len(want.operands) > 0 && !slices.Contains(gitCommands, c.operands[0]) && !startsWith(c.operands, want.operands[:1]) {
		return maybe // an alias
	}
	operands := c.hasOperands(want.operands, p.open)
	if name == "git" && operands == no {
		operands = min(maybe, c.withBranches().hasOperands(want.operands, p.open))
	}
	return min(found, operands, c.hasOptions(want.options, p))
}

// withBranches returns the arguments of git push with the branches that it changes in the
// place of other spellings: +main, HEAD:main, refs/heads/main.
func (a argumentList) withBranches() argumentList {
	if len(a.operands) < 3 || a.operands[0] != "push" {
		return a
	}
	a.operands = slices.Clone(a.operands)
	for i := 2; i < len(a.operands); i++ {
		branch := strings.TrimPrefix(a.operands[i], "+")
		a.operands[i] = strings.TrimPrefix(branch[strings.LastIndexByte(branch, ':')+1:], "refs/heads/")
	}
	return a
}

// otherSubcommands are other names of the subcommands of npm, apart from abbreviations.
var otherSubcommands = map[string]string{
	"ci": "clean-install ic install-clean isntall-clean", "exec": "x", "install": "add isnt isnta isntal isntall", "link": "ln", "rebuild": "rb", "run": "run-script rum urn",
	"run-script": "rum urn", "test": "tst", "uninstall": "r remove rm unlink", "update": "udpate up upgrade",
}

// isShortFor reports whether a subcommand can be another name of the one that a rule is
// about: some programs take abbreviations. Those of git are not among them.
func isShortFor(program, sub, want string) bool {
	if sub == want || program == "git" || !shell.HasSubcommands(program) && program != "hg" {
		return false
	}
	return strings.HasPrefix(want, sub) || program == "npm" && slices.Contains(strings.Fields(otherSubcommands[want]), sub)
}

// An argumentList is the arguments of a command, taken apart as far as possible.
type argumentList struct {
	options  []string
	operands []string // words that are no options, nor values of options that are known to have one
	certain  int      // number of operands, from the first on, that cannot be values of options
	unknown  bool     // true if there are words that are not known in advance
	forced   bool     // true if git is told by the + of an operand to force a push
}

// optionsWithValue are the options, before the subcommand, whose value is the next word.
var optionsWithValue = map[string][]string{
	"git":     {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"},
	"docker":  {"-H", "--host", "-c", "--context", "-l", "--log-level", "--config"},
	"kubectl": {"-n", "--namespace", "-s", "--server", "--context", "--kubeconfig", "--cluster", "--user"},
	"npm":     {"--prefix", "-C", "-w", "--workspace"},
	"cargo":   {"-C", "--config", "--color"},
	"go":      {"-C"},
}

func splitOptions(program string, words []string) argumentList {
	var a argumentList
	inDoubt := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.Contains(w, shell.Unknown):
			a.unknown = true
		case strings.HasPrefix(w, "-") && w != "-":
			a.options = append(a.options, w)
			if slices.Contains(optionsWithValue[program], w) {
				i++
			} else {
				inDoubt = inDoubt || !strings.Contains(w, "=")
			}
		default:
			a.operands = append(a.operands, w)
			a.forced = a.forced || program == "git" && strings.HasPrefix(w, "+")
			if !inDoubt && !a.unknown {
				a.certain++
			}
		}
	}
	return a
}

// hasOperands tells whether the command begins with the operands of a pattern.
func (a argumentList) hasOperands(want []string, open bool) certainty {
	switch {
	case startsWith(a.operands, want) && (open || len(a.operands) == len(want) && !a.unknown):
		return yes
	case startsWith(a.operands, want): // a rule without a star may have been meant for all that begins like this
		return maybe
	case !startsWith(a.operands[:min(a.certain, len(want))], want[:min(a.certain, len(want))]):
		return no
	case a.unknown, a.certain < len(a.operands) && isSubsequence(want, a.operands):
		return maybe
	}
	return no
}

func startsWith(words, want []string) bool {
	if len(words) < len(want) {
		return false
	}
	for i, w := range want {
		if !matchStars(strings.Split(w, star), words[i]) {
			return false
		}
	}
	return true
}

// isSubsequence reports whether words has all that are wanted, in order, possibly with
// others between them.
func isSubsequence(want, words []string) bool {
	for _, w := range words {
		if len(want) > 0 && matchStars(strings.Split(want[0], star), w) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// hasOptions tells whether the command has the options of a pattern. A long option can be
// abbreviated, and can stand for a short one; -R can stand for -r.
func (a argumentList) hasOptions(want []string, p wordPattern) certainty {
	found := yes
	for _, w := range want {
		found = min(found, a.hasOption(w))
	}
	if found == yes && !p.open && len(a.options) > len(want) {
		return maybe
	}
	return found
}

func (a argumentList) hasOption(want string) certainty {
	best := no
	if a.unknown || a.forced && (want == "-f" || want == "--force") {
		best = maybe
	}
	short := ""
	for _, o := range a.options {
		name, _, _ := strings.Cut(o, "=")
		switch {
		case matchStars(strings.Split(want, star), o), strings.HasPrefix(want, "--") && name == want:
			return yes
		case strings.HasPrefix(o, "--") && strings.HasPrefix(want, name), mayBeSame(want, o), mayBeSame(o, want):
			best = max(best, maybe)
		}
		if !strings.HasPrefix(o, "--") {
			short += o[1:]
		}
	}
	switch isShort := !strings.HasPrefix(want, "--") && !strings.Contains(want, star); {
	case isShort && strings.Trim(want[1:], short) == "":
		return yes
	case isShort && strings.Trim(foldRecursion(want[1:]), foldRecursion(short)) == "":
		return max(best, maybe)
	}
	return best
}

// foldRecursion replaces the letter R, which means the same as r to rm, cp, grep and others:
// what is below a folder too.
func foldRecursion(letters string) string { return strings.ReplaceAll(letters, "R", "r") }

// mayBeSame reports whether short options can be a long one, which usually begins with
// the same letter.
func mayBeSame(short, long string) bool {
	return !strings.HasPrefix(short, "--") && strings.HasPrefix(long, "--") && len(long) > 2 && strings.Contains(strings.ToLower(short), strings.ToLower(long[2:3]))
}
