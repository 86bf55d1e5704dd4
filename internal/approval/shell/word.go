package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is an argument of a command, as far as it is known before the command runs.
type word struct {
	text    string
	known   bool   // true if text is the whole word; false if the shell expands a part of it
	written string // word as written in the script; same as text if empty
}

func knownWord(text string) word { return word{text: text, known: true} }

// show returns the word for people: its text, or how it is written if the text is not
// known.
func (w word) show() string {
	if w.known || w.written == "" {
		return w.text
	}
	return w.written
}

// words returns the arguments of a command.
func (s *Script) words(args []*syntax.Word) []word {
	list := make([]word, len(args))
	for i, arg := range args {
		list[i] = read(arg)
		list[i].written = s.textOf(arg)
	}
	return list
}

// read returns a word of the parser as text. Parts that the shell expands, such as
// variables, are left out.
func read(w *syntax.Word) word {
	if w == nil {
		return knownWord("")
	}
	var b strings.Builder
	known := true
	for _, part := range w.Parts {
		known = readPart(&b, part, false) && known
	}
	return word{text: b.String(), known: known}
}

func readPart(b *strings.Builder, part syntax.WordPart, quoted bool) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value, quoted))
		return quoted || !isPattern(p.Value)
	case *syntax.SglQuoted:
		b.WriteString(p.Value)
		return !p.Dollar || !strings.Contains(p.Value, `\`)
	case *syntax.DblQuoted:
		known := true
		for _, inner := range p.Parts {
			known = readPart(b, inner, true) && known
		}
		return known
	}
	return false
}

// readDocument returns the text of a here-document. If its delimiter is quoted, the text
// is literal; otherwise backslashes escape what the shell would expand.
func readDocument(r *syntax.Redirect) word {
	if r.Hdoc == nil {
		return knownWord("")
	}
	var b strings.Builder
	known, plain := true, r.Word.Lit() != "" && !strings.Contains(r.Word.Lit(), `\`)
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case !ok:
			known = readPart(&b, part, true) && known
		case plain:
			b.WriteString(unescapeOnly(lit.Value, "$`\\\n"))
		default:
			b.WriteString(lit.Value)
		}
	}
	return word{text: b.String(), known: known}
}

// unescape removes the backslashes that quote a character.
func unescape(s string, quoted bool) string {
	if quoted {
		return unescapeOnly(s, "$`\"\\\n")
	}
	return unescapeOnly(s, "")
}

// unescapeOnly removes the backslashes before some characters, or before all characters
// if some is empty.
func unescapeOnly(s, some string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (some == "" || strings.IndexByte(some, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue // the line continues
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// isPattern reports whether the shell may expand a word to other words.
func isPattern(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}

// showWords joins words to a text for people.
func showWords(list []word) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = w.show()
	}
	return strings.Join(out, " ")
}

// texts returns the texts of words, as far as they are known.
func texts(list []word) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = w.text
	}
	return out
}

// base returns the name of a program without its folder.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// hereText returns the standard input of a command, if it is written in the script.
func hereText(redirs []*syntax.Redirect) (word, bool) {
	for i := len(redirs) - 1; i >= 0; i-- {
		switch r := redirs[i]; r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			return readDocument(r), true
		case syntax.WordHdoc:
			return read(r.Word), true
		}
	}
	return word{}, false
}
