// Package search finds the lines that match a regular expression, quickly.
//
// Three things make it quick. It first searches for a literal text that every match must
// contain. If there is none, an automaton reads the file byte by byte; its states are
// created while it runs. The regular expression of the standard library is used only
// where the automaton is not exact: in lines that are not ASCII.
//
// The syntax is that of package regexp: \d, \w, \s and \b are about ASCII.
package search

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Options say how a pattern is interpreted.
type Options struct {
	IgnoreCase bool
	// Multiline lets a match cross lines. A dot still does not.
	Multiline bool
}

// A Pattern is a compiled expression. It is safe for concurrent use.
type Pattern struct {
	exact     *regexp.Regexp
	literal   []byte // text that every match contains; nil if there is none
	whole     bool   // true if the pattern is just the literal
	auto      *program
	multiline bool
}

// ErrNewline means that a pattern contains a line break without the option Multiline.
var ErrNewline = errors.New(`the literal "\n" is not allowed in a regex`)

// Compile compiles an expression. Its errors are those of package regexp/syntax, or
// ErrNewline.
func Compile(expr string, o Options) (*Pattern, error) {
	flags := syntax.Perl
	if o.IgnoreCase {
		flags |= syntax.FoldCase
	}
	if o.Multiline {
		flags &^= syntax.OneLine
	}
	tree, err := syntax.Parse(expr, flags)
	if err != nil {
		return nil, err
	}
	if !o.Multiline && hasNewline(tree) {
		return nil, ErrNewline
	}
	p := &Pattern{multiline: o.Multiline}
	if p.exact, err = regexp.Compile(prefix(o) + "(?:" + expr + ")"); err != nil {
		return nil, err
	}
	tree = tree.Simplify()
	if lit := required(tree); len(lit) > 1 || len(lit) == 1 && isLiteral(tree) {
		p.literal, p.whole = []byte(lit), isLiteral(tree)
	}
	if !o.Multiline && !p.whole {
		p.auto, err = newProgram(tree)
	}
	return p, err
}

// prefix returns the flags of an expression for the options.
func prefix(o Options) string {
	flags := ""
	if o.IgnoreCase {
		flags += "i"
	}
	if o.Multiline {
		flags += "m"
	}
	if flags == "" {
		return ""
	}
	return "(?" + flags + ")"
}

// hasNewline reports whether an expression contains a literal line break.
func hasNewline(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral && strings.ContainsRune(string(re.Rune), '\n') {
		return true
	}
	for _, sub := range re.Sub {
		if hasNewline(sub) {
			return true
		}
	}
	return false
}

func isLiteral(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0
}

// required returns the longest text that every match contains.
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if isLiteral(re) {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if lit := required(sub); len(lit) > len(longest) {
				longest = lit
			}
		}
		return longest
	}
	return ""
}

// Find returns the position of the first match in a text, or nil.
func (p *Pattern) Find(b []byte) []int { return p.exact.FindIndex(b) }

// A Searcher searches for a pattern. It is not safe for concurrent use; several
// searchers can share a pattern.
type Searcher struct {
	*Pattern
	auto   *automaton
	buf    []byte
	window int
}

// Searcher returns a searcher for the pattern.
func (p *Pattern) Searcher() *Searcher {
	s := &Searcher{Pattern: p, window: windowSize}
	if p.auto != nil {
		s.auto = newAutomaton(p.auto)
	}
	return s
}

// next returns the first line of a text that has a match: its start and its end, without
// the line break. The text must begin at the start of a line. If the pattern crosses
// lines, Next returns all lines of the match.
func (s *Searcher) next(b []byte) (start, end int, ok bool) {
	if s.multiline {
		return s.nextAcross(b)
	}
	for from := 0; from < len(b); from = end + 1 {
		at := s.candidate(b[from:])
		if at < 0 {
			return 0, 0, false
		}
		start, end = lineAt(b, from, from+at)
		if s.matches(b[start:end]) {
			return start, end, true
		}
	}
	return 0, 0, false
}

// candidate returns a position in the first line that may match, or -1.
func (s *Searcher) candidate(b []byte) int {
	if s.literal != nil {
		return bytes.Index(b, s.literal)
	}
	return s.auto.find(b)
}

// matches reports whether a line that may match does.
func (s *Searcher) matches(line []byte) bool {
	switch {
	case s.whole:
		return true
	case s.literal != nil && s.auto.find(line) < 0:
		return false
	}
	return !s.auto.unsure || ascii(line) || s.exact.Match(line)
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// lineAt returns the line around a position. It starts no earlier than from.
func lineAt(b []byte, from, at int) (start, end int) {
	start = from + bytes.LastIndexByte(b[from:at], '\n') + 1
	end = bytes.IndexByte(b[at:], '\n')
	if end < 0 {
		return start, len(b)
	}
	return start, at + end
}

func (s *Searcher) nextAcross(b []byte) (start, end int, ok bool) {
	if s.literal != nil && !bytes.Contains(b, s.literal) {
		return 0, 0, false
	}
	at := s.exact.FindIndex(b)
	if at == nil {
		return 0, 0, false
	}
	start, _ = lineAt(b, 0, at[0])
	_, end = lineAt(b, 0, max(at[0], at[1]-1))
	return start, end, true
}
