package glob

import (
	"strings"
	"unicode/utf8"
)

// maxSteps is the maximum number of steps for one path: a pattern with many stars can
// have very many ways to match.
const maxSteps = 1 << 16

// A matcher is one comparison of a pattern with a path.
type matcher struct {
	pattern string
	runes   bool // true if characters are runes, false if bytes
	budget  int  // number of steps that remain
}

// An outcome is the result of comparing a pattern with a path from some position on.
type outcome int

const (
	yes       outcome = iota // it matches
	no                       // it does not match, but may match from a later position
	notInName                // it does not match from any position in the same name either
	never                    // it does not match from any later position either
)

// match compares the pattern from i on with the rest of a path.
func (m *matcher) match(i int, s string) outcome {
	for i < len(m.pattern) {
		if m.budget--; m.budget < 0 {
			return never
		}
		if m.pattern[i] == '*' {
			return m.matchStar(i, s)
		}
		if s == "" {
			return never
		}
		n, c, width := m.matchChar(i, s)
		if n == 0 {
			return never
		}
		if !c {
			return no
		}
		i, s = i+n, s[width:]
	}
	if s != "" {
		return no
	}
	return yes
}

// matchChar compares one character of the path with the pattern at i. It returns the length of
// the compared part of the pattern, or 0 if it is invalid, and the length of the
// character.
func (m *matcher) matchChar(i int, s string) (n int, ok bool, width int) {
	switch p := m.pattern[i:]; p[0] {
	case '?':
		_, width = m.next(s)
		return 1, s[0] != '/', width
	case '[':
		c, width := m.next(s)
		n, ok := m.class(p, c)
		return n, ok && c != '/', width
	case '\\':
		if len(p) == 1 {
			return 0, false, 1
		}
		return 2, p[1] == s[0], 1
	default:
		return 1, p[0] == s[0], 1
	}
}

// next returns the first character of a text.
func (m *matcher) next(s string) (rune, int) {
	if m.runes {
		return utf8.DecodeRuneInString(s)
	}
	return rune(s[0]), 1
}

// matchStar compares the pattern from a star on.
func (m *matcher) matchStar(i int, s string) outcome {
	rest := strings.TrimLeft(m.pattern[i:], "*")
	after := len(m.pattern) - len(rest)
	deep := after-i > 1 && m.wholeName(i, rest)
	switch {
	case rest == "" && !deep && strings.Contains(s, "/"):
		return notInName
	case rest == "":
		return yes
	case deep && rest[0] == '/' && m.match(after+1, s) == yes: // ** matches no folder
		return yes
	}
	return m.matchFromEach(after, s, deep)
}

// wholeName reports whether the stars at i are a whole name.
func (m *matcher) wholeName(i int, rest string) bool {
	return (i == 0 || m.pattern[i-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
}

// matchFromEach compares the pattern from i on with the path, from one position after the other.
func (m *matcher) matchFromEach(i int, s string, deep bool) outcome {
	for s != "" {
		switch o := m.match(i, s); {
		case o == no && !deep && s[0] == '/':
			return notInName
		case o == no, o == notInName && deep:
			_, width := m.next(s)
			s = s[width:]
		default:
			return o
		}
	}
	return never
}
