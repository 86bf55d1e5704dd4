// Package search finds the lines that match a regular expression, quickly.
//
// Three things make it quick. A text that every match must contain is looked for
// first, with the speed of memory. If there is none, an automaton reads the file
// byte by byte; it is made while it runs, of those states that are needed. And
// the expression itself, as the standard library has it, is only asked where the
// automaton cannot be sure: in lines that are not ASCII.
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

// Options say how a pattern is meant.
type Options struct {
	IgnoreCase bool
	// Multiline lets a match cross lines. A dot still does not.
	Multiline bool
}

// A Pattern is a compiled expression. It is safe for concurrent use.
type Pattern struct {
	exact     *regexp.Regexp
	literal   []byte // every match has it in it; nil if there is no such text
	whole     bool   // the literal is all there is to the pattern
	auto      *program
	multiline bool
}

// ErrNewline means that a pattern has a line end in it, and may not.
var ErrNewline = errors.New(`the literal "\n" is not allowed in a regex`)

// Compile makes a pattern of an expression. Its errors are those of package
// regexp/syntax, or ErrNewline.
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

// prefix says with flags what the options mean.
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

// hasNewline reports whether a line end stands in an expression by itself.
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

// required returns the longest text that every match has in it.
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

// Find returns where the first match in a text is, or nil.
func (p *Pattern) Find(b []byte) []int { return p.exact.FindIndex(b) }

// A Searcher looks for a pattern. It is not safe for concurrent use; several
// can look for the same pattern.
type Searcher struct {
	*Pattern
	auto   *automaton
	buf    []byte
	window int
}

// Searcher returns a searcher for the pattern.
func (p *Pattern) Searcher() *Searcher {
	s := &Searcher{Pattern: p, window: aWindow}
	if p.auto != nil {
		s.auto = newAutomaton(p.auto)
	}
	return s
}

// Next returns the first line of a text that has a match in it: where it starts
// and where it ends, without its line end. A text begins at the start of a line.
// If the pattern crosses lines, it is all the lines that the match touches.
func (s *Searcher) Next(b []byte) (start, end int, ok bool) {
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

// candidate returns a place in the first line that may match, or -1.
func (s *Searcher) candidate(b []byte) int {
	if s.literal != nil {
		return bytes.Index(b, s.literal)
	}
	return s.auto.find(b)
}

// matches decides of a line that may match.
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

// lineAt returns the line around a place. It starts no earlier than from.
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
