// Package shell reads command lines without running anything: how long they
// sleep, whether they want to be in the background, which commands they are made
// of and what those touch.
//
//   - Reading never fails. A script that cannot be read, because it is too long
//     or not a script, says so ([Script.Err]); what stands before the mistake is
//     judged, as a shell would have run it.
//   - Time and memory are bounded, whatever the script is.
//   - It is advice, for the model and for the person who is asked. It is no
//     fence: what a command may do is for others to confine.
package shell

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// What is read at most. The parser's stack grows with nesting, and a script this
// long cannot nest so deep that it matters.
const (
	maxScript = 32 << 10 // bytes
	maxOpen   = 200      // brackets open at once
	maxInside = 4        // scripts inside scripts: sh -c "sh -c …"
)

// ErrTooLong says that a script is longer, or nested deeper, than is read.
var ErrTooLong = errors.New("the script is too long to be read in advance")

// A Script is a command line that was read.
type Script struct {
	text   string
	stmts  []*syntax.Stmt
	err    error
	inside int // how many scripts it stands in
}

// Parse reads a script for bash.
func Parse(text string) *Script { return parse(text, 0) }

func parse(text string, inside int) *Script {
	s := &Script{text: text, inside: inside}
	if len(text) > maxScript || opens(text) > maxOpen || inside > maxInside {
		s.err = ErrTooLong
		return s
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	// The loop is not left early: the parser may come with a second mistake.
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

// parsers are used by one caller each at a time.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// opens returns how many brackets are open at once, whatever they belong to.
func opens(text string) int {
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

// Err says why the script could not be read whole, if so.
func (s *Script) Err() error { return s.err }

// Empty reports whether there is nothing to run.
func (s *Script) Empty() bool { return s.err == nil && len(s.stmts) == 0 }

// Foreground returns the script without the & at its end, and whether there was
// one: such a script wants to be in the background as a whole.
func (s *Script) Foreground() (string, bool) {
	if s.err != nil || len(s.stmts) == 0 {
		return s.text, false
	}
	last := s.stmts[len(s.stmts)-1]
	if !last.Background {
		return s.text, false
	}
	at := last.Semicolon.Offset() // of the &
	return strings.TrimRight(s.text[:at], " \t") + s.text[at+1:], true
}
