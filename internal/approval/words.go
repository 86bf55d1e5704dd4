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
	// bare are the characters without quotes that mean something else in a shell, or in
	// a regular expression, than themselves.
	bare string
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
			if strings.ContainsRune("|&;<>()$`", c) || c == '^' && len(p.words) == 0 && !inWord {
				p.bare += string(c)
			}
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
// for may be any words but those with which the command reaches further, see reaches.
func (p wordPattern) allows(words []string) bool {
	if len(words) < len(p.words) || len(words) > len(p.words) && !p.open {
		return false
	}
	for i, want := range p.words {
		if !matchWord(want, words[i]) {
			return false
		}
	}
	byStar := func(i int) bool { return i >= len(p.words) || strings.Contains(p.words[i], star) }
	for i := 1; i < len(words); i++ {
		if byStar(i) && reaches(words, i) {
			return false
		}
	}
	if !p.exact() && !followsProject(words, byStar) {
		return false
	}
	return p.exact() || !writesOperand(words) && (programOf(words) != "sed" || onlyEdits(words[1:]))
}

// names reports whether each of some words is a word of the pattern.
func (p wordPattern) names(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(p.words, w) })
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
