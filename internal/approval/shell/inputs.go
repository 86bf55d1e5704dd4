package shell

import (
	"path"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
	"mvdan.cc/sh/v3/syntax"
)

// visitPipe adds what commands behind a pipe read: the words and the here-documents of
// those in front of it, as far as the script has them.
func (v *callVisitor) visitPipe(s *Script, pipe *syntax.BinaryCmd) {
	if v.piped[pipe] || !isPipe(pipe) {
		return
	}
	stmts := []*syntax.Stmt{pipe.Y}
	first := pipe.X
	for {
		inner, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || !isPipe(inner) {
			break
		}
		v.piped[inner] = true
		stmts = append(stmts, inner.Y)
		first = inner.X
	}
	stmts = append(stmts, first)
	var text strings.Builder
	for i := len(stmts) - 1; i >= 0; i-- {
		part := v.partOf(s, stmts[i])
		for _, words := range part.Words {
			if text.Len() > 0 {
				v.addInput(words, text.String())
			}
			if base(words[0]) == "tee" {
				for _, file := range words[1:] {
					v.noteWritten(file, text.String())
				}
			}
		}
		text.WriteString(part.text())
	}
}

func isPipe(c *syntax.BinaryCmd) bool { return c.Op == syntax.Pipe || c.Op == syntax.PipeAll }

// partOf returns the calls of one part of a script, without looking at its pipes.
func (v *callVisitor) partOf(s *Script, stmt *syntax.Stmt) *callVisitor {
	part := newCallVisitor()
	syntax.Walk(stmt, func(n syntax.Node) bool {
		if _, isPipe := n.(*syntax.BinaryCmd); !isPipe {
			part.visit(s, n)
		}
		return true
	})
	return part
}

// text returns the words and the inputs of all calls.
func (v *callVisitor) text() string {
	var b strings.Builder
	for _, words := range v.Words {
		b.WriteString(argumentText(words) + "\n")
	}
	for _, in := range v.Inputs {
		b.WriteString(in.Text + "\n")
	}
	return b.String()
}

// argumentText returns the arguments of a command as a text.
func argumentText(words []string) string { return strings.Join(words[1:], " ") }

// addInput adds a text that a command reads.
func (v *callVisitor) addInput(words []string, text string) {
	if len(v.Inputs) == maxInputs {
		v.hide("more pipes and here-documents than are looked at")
		return
	}
	v.Inputs = append(v.Inputs, Input{words, text})
}

// noteWritten notes that a command writes a text to a file.
func (v *callVisitor) noteWritten(file, text string) {
	file = path.Clean(file)
	if len(v.written) == maxInputs || len(v.written[file])+len(text) > 2*maxScript {
		v.hide("more text written to files than is looked at")
		return
	}
	v.written[file] += text + "\n"
}

// addWritten adds the texts that the script has written to files as inputs of the commands
// that name these files.
func (v *callVisitor) addWritten() {
	for _, words := range v.Words {
		for _, w := range words {
			if text := v.written[path.Clean(w)]; strings.TrimSpace(text) != "" {
				v.addInput(words, text)
			}
		}
	}
}

// isOutput reports whether a redirection writes a file.
func isOutput(op syntax.RedirOperator) bool {
	switch op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		return true
	}
	return false
}

// importsFile reports whether a script of jq reads a library or a file with data.
func importsFile(script string) bool { return imports.MatchString(script) }

var imports = lazyregexp.New(`(^|[^.\w$])(import|include|modulemeta)\b`)
