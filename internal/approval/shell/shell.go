// Package shell analyses command lines without running them: how long they sleep,
// whether they run in the background, which commands they consist of and which files and
// URLs those name.
//
//   - Parse always returns a Script. If the text is too long or has a syntax error,
//     [Script.Err] says so; the part before the error is analysed, because a shell would
//     run it.
//   - Time and memory are bounded for every text.
//   - [ReadPlain] reads scripts in a small closed language, for rules that allow. What is
//     allowed is run from the words that it returns.
//   - [Script.Calls] finds every command that a script may run, for rules that deny.
//   - The rest is advice for the model and for the person who is asked. It does not
//     confine what a command can do.
package shell

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of a script. The parser's stack grows with nesting, which these limits bound.
const (
	maxScript      = 32 << 10 // maximum length in bytes
	maxBrackets    = 200      // maximum number of brackets that are open at once
	maxScriptDepth = 4        // maximum depth of scripts inside scripts: sh -c "sh -c …"
)

// ErrTooLong means that a script exceeds the limits.
var ErrTooLong = errors.New("the script is too long to be read in advance")

// A Script is a parsed command line.
type Script struct {
	text  string
	stmts []*syntax.Stmt
	err   error
	depth int // number of scripts that this script is inside of
}

// Parse parses a script for bash.
func Parse(text string) *Script { return parse(text, 0) }

func parse(text string, inside int) *Script {
	s := &Script{text: text, depth: inside}
	if len(text) > maxScript || maxNesting(text) > maxBrackets || inside > maxScriptDepth {
		s.err = ErrTooLong
		return s
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	// The loop must not end early: the parser may report a second error.
	for stmt, err := range p.StmtsSeq(strings.NewReader(text)) {
		switch {
		case s.err != nil:
		case err != nil:
			s.err = fmt.Errorf("the script cannot be read: %w", err)
		default:
			s.stmts = append(s.stmts, stmt)
		}
	}
	return s
}

// parsers is a pool because a parser can be used by only one caller at a time.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// maxNesting returns the maximum number of brackets that are open at once, also in strings.
func maxNesting(text string) int {
	open, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			open++
			most = max(most, open)
		case ')', '}', ']':
			open = max(0, open-1)
		}
	}
	return most
}

// Err returns why the script could not be parsed completely, or nil.
func (s *Script) Err() error { return s.err }

// Foreground returns the script without the & at its end, and whether there was one.
// With it, the whole script is meant to run in the background.
func (s *Script) Foreground() (string, bool) {
	if s.err != nil || len(s.stmts) == 0 {
		return s.text, false
	}
	last := s.stmts[len(s.stmts)-1]
	if !last.Background {
		return s.text, false
	}
	at := last.Semicolon.Offset() // position of the &
	before, after := s.text[:at], s.text[at+1:]
	if trimmed := strings.TrimRight(before, " \t"); !strings.HasSuffix(trimmed, `\`) { // after a backslash the blank belongs to the word
		before = trimmed
	}
	if after != "" && !strings.ContainsAny(after[:1], " \t\n") { // a comment would become part of a word
		before += " "
	}
	return before + after, true
}
