package glob

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// named are the classes with a name. They contain only ASCII characters.
var named = map[string]func(c rune) bool{
	"alnum":  func(c rune) bool { return letter(c) || digit(c) },
	"alpha":  letter,
	"blank":  func(c rune) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c rune) bool { return c < ' ' || c == 0x7f },
	"digit":  digit,
	"graph":  func(c rune) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c rune) bool { return c >= 'a' && c <= 'z' },
	"print":  func(c rune) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c rune) bool { return c > ' ' && c < 0x7f && !letter(c) && !digit(c) },
	"space":  func(c rune) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c rune) bool { return c >= 'A' && c <= 'Z' },
	"xdigit": func(c rune) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c rune) bool  { return c >= '0' && c <= '9' }

// Errors of invalid classes.
var (
	errUnclosed = errors.New("unclosed character class; missing ']'")
	errNamed    = errors.New("unknown character class name")
)

// class compares a character with the class at the start of a pattern. It returns the
// length of the class, or 0 if it is invalid.
func (m *matcher) class(p string, c rune) (int, bool) {
	found := false
	n, negated, err := m.items(p, func(low, high rune, of func(rune) bool) {
		found = found || (of != nil && of(c)) || (of == nil && low <= c && c <= high)
	})
	if err != nil {
		return 0, false
	}
	return n, found != negated
}

// items calls visit with the parts of the class at the start of a pattern: a range of
// characters, or the function of a named class.
func (m *matcher) items(p string, visit func(low, high rune, of func(rune) bool)) (n int, negated bool, err error) {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negated, i = true, i+1
	}
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false, errUnclosed
		}
		if p[i] == ']' && !first {
			return i + 1, negated, nil
		}
		name, length := className(p[i:])
		if length > 0 {
			of := named[name]
			if of == nil {
				return 0, false, errNamed
			}
			visit(0, 0, of)
			i += length
			continue
		}
		low, width := m.char(p[i:])
		i += width
		high := low
		if rest := p[min(i, len(p)):]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			high, width = m.char(rest[1:])
			i += 1 + width
		}
		if low < 0 || high < 0 {
			return 0, false, errUnclosed
		}
		visit(low, high, nil)
	}
}

// className parses [:name:] and returns the name and the length of the whole. Without
// ":]" at the end it is not a name.
func className(p string) (string, int) {
	rest, ok := strings.CutPrefix(p, "[:")
	if !ok {
		return "", 0
	}
	end := strings.IndexByte(rest, ']')
	if end < 1 || rest[end-1] != ':' {
		return "", 0
	}
	return rest[:end-1], end + 3
}

// char returns one character of a class, which may be escaped, or -1 if there is none,
// and its length.
func (m *matcher) char(p string) (rune, int) {
	escaped := 0
	if p[0] == '\\' {
		p, escaped = p[1:], 1
	}
	if p == "" {
		return -1, escaped
	}
	c, width := m.next(p)
	return c, width + escaped
}

// wellFormed returns an error if a pattern is invalid.
func wellFormed(p string) error {
	m := matcher{pattern: p, runes: true}
	for i := 0; i < len(p); {
		switch p[i] {
		case '\\':
			if i+1 == len(p) {
				return errors.New("dangling '\\'")
			}
			i += 2
		case '[':
			var wrong error
			n, _, err := m.items(p[i:], func(low, high rune, _ func(rune) bool) {
				if low > high {
					wrong = fmt.Errorf("invalid range; '%c' > '%c'", low, high)
				}
			})
			if err = errors.Join(err, wrong); err != nil {
				return err
			}
			i += n
		default:
			_, width := utf8.DecodeRuneInString(p[i:])
			i += width
		}
	}
	return nil
}
