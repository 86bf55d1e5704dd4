package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Meaning returns a text that is the same for scripts that differ only in how they are
// written: in blanks, empty lines, comments and quotes that change nothing. It is for
// comparing; nothing runs it.
func (s *Script) Meaning() string {
	if s.err != nil {
		return strings.Join(strings.Fields(s.text), " ")
	}
	var b strings.Builder
	printer := syntax.NewPrinter(syntax.Minify(true))
	for _, stmt := range s.stmts {
		if err := printer.Print(&b, stmt); err != nil {
			return strings.Join(strings.Fields(s.text), " ")
		}
		b.WriteByte('\n')
	}
	if plain, err := ReadPlain(b.String()); err == nil {
		return plain.String()
	}
	return b.String()
}
