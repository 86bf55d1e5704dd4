package approval

import (
	"errors"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
)

// star stands for a star without quotes in a word of a pattern. No word has it.
const star = "\x01"

// A wordPattern is the pattern of a rule about commands: words, in which a star stands for
// any text within the word. If the pattern ends with a star, further words may follow.
type wordPattern struct {
	words []string
	open  bool // true if further words may follow
}

// parseWords parses a pattern such as git commit -m 'a b' *. Quotes make blanks and stars
// ordinary characters.
func parseWords(text string) (wordPattern, error) {
	if start, ok := strings.CutSuffix(text, ":*"); ok { // the form that other agents use
		text = start + " *"
	}
	var p wordPattern
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, c := range text + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			inWord, quote = true, c
		case c == ' ' || c == '\t':
			if inWord {
				p.words = append(p.words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '*':
			inWord = true
			word.WriteString(star)
		default:
			inWord = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return p, errors.New("a quote is not closed")
	}
	if n := len(p.words); n > 0 && strings.HasSuffix(p.words[n-1], star) {
		p.open = true
		if p.words[n-1] == star {
			p.words = p.words[:n-1]
		}
	}
	return p, nil
}

// exact reports whether the pattern matches one command only.
func (p wordPattern) exact() bool {
	return !p.open && !slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(w, star) })
}

// allows reports whether the pattern matches all words of a command. What a star stands
// for may be any words but the options in reaching.
func (p wordPattern) allows(words []string) bool {
	if len(words) < len(p.words) || len(words) > len(p.words) && !p.open {
		return false
	}
	for i, want := range p.words {
		if !matchWord(want, words[i]) {
			return false
		}
	}
	program := words[0][strings.LastIndexByte(words[0], '/')+1:]
	if program == "sed" && !p.exact() && !onlyEdits(words[1:]) {
		return false
	}
	return !slices.ContainsFunc(words[len(p.words):], func(w string) bool { return reaches(program, w) })
}

// matchWord reports whether a word of a pattern matches a word of a command. A star at the
// start of the word stands for no option.
func matchWord(want, word string) bool {
	switch {
	case strings.Contains(word, shell.Unknown):
		return false
	case strings.HasPrefix(want, star) && strings.HasPrefix(word, "-"):
		return false
	}
	return matchStars(strings.Split(want, star), word)
}

// matchStars reports whether a text consists of the parts, in order, with any text between
// them.
func matchStars(parts []string, text string) bool {
	last := len(parts) - 1
	if last == 0 {
		return text == parts[0]
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}

// reaching are options that a star does not stand for: with them, programs that a person
// allows because they seem harmless run another program or write a file. A rule can name
// them. For other programs, and for those that run the code of a project anyway, a star
// stands for any words.
var reaching = map[string]string{
	"date": "-s --set",
	"diff": "-l --paginate",
	"fd":   "-x -X --exec --exec-batch",
	"file": "-C --compile",
	"find": "-delete -fls -fprint -fprint0 -fprintf",
	"git":  "-O --open-files-in-pager --ext-diff --textconv --filters --output --output-directory --upload-pack --receive-pack --exec --extcmd --tool --help --show-signature --recurse-submodules --submodule --ignore-submodules --strategy",
	"go":   "-exec -overlay -toolexec -vettool",
	"man":  "-H -P --html --pager",
	"rg":   "-z --hostname-bin --pre --search-zip",
	"sort": "-T -o --compress-program --output --temporary-directory",
	"tar":  "-F -I --checkpoint-action --info-script --new-volume-script --rsh-command --to-command --use-compress-program",
	"tree": "-o",
}

// reaches reports whether a word is one of the options in reaching, also abbreviated or
// among other short options. A word that is not known may be one.
func reaches(program, word string) bool {
	if strings.Contains(word, shell.Unknown) {
		return reaching[program] != "" || program == "sed"
	}
	if program == "git" && shell.ShowsSignature(word) {
		return true
	}
	name, _, _ := strings.Cut(word, "=")
	return slices.ContainsFunc(strings.Fields(reaching[program]), func(option string) bool {
		switch {
		case len(option) == 2:
			return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.IndexByte(word, option[1]) > 0
		case strings.HasPrefix(option, "--"):
			return len(name) > 2 && strings.HasPrefix(option, name)
		}
		return name == option || name == "-"+option
	})
}
