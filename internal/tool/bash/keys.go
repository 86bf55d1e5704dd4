package bash

import (
	"slices"
	"strings"
	"unicode"
)

// keys are the names of keys, each followed by what a terminal sends for it. Enter is not
// among them. Names that could be those of variables in braces stay few: people write
// print(f"{left}").
var keys = []string{
	"{tab}", "\t", "{esc}", "\x1b", "{backspace}", "\x7f", "{page-up}", "\x1b[5~", "{page-down}", "\x1b[6~",
}

// arrows are the keys that a terminal in application mode sends in another way, each
// followed by its letter.
var arrows = []string{"{up}", "A", "{down}", "B", "{right}", "C", "{left}", "D"}

// namedKeys returns the replacer of the names of keys.
func namedKeys(enter string, application bool) *strings.Replacer {
	pairs := append(slices.Clone(keys), "{enter}", enter)
	for c := byte('a'); c <= 'z'; c++ {
		pairs = append(pairs, "{ctrl-"+string(c)+"}", string(c-'a'+1))
	}
	start := "\x1b["
	if application {
		start = "\x1bO"
	}
	for i := 0; i < len(arrows); i += 2 {
		pairs = append(pairs, arrows[i], start+arrows[i+1])
	}
	return strings.NewReplacer(pairs...)
}

// text returns the input of a request as a program reads it from a pipe: Enter is a
// newline.
func (e writeRequest) text() string {
	if e.literal {
		return e.input
	}
	return namedKeys("\n", false).Replace(e.input)
}

// typed returns the input of a request as a terminal sends it. Enter is a carriage return:
// the terminal makes it a newline, unless a program has switched that off and expects the
// key itself. The mode of the terminal is that for which programs ask with smkx.
func (e writeRequest) typed(application bool) string {
	text := strings.ReplaceAll(strings.ReplaceAll(e.input, "\r\n", "\r"), "\n", "\r")
	if e.literal {
		return text
	}
	return namedKeys("\r", application).Replace(text)
}

// judged returns the input of a request as a shell would read it from a terminal or a pipe:
// Ctrl-C ends a line, and other keys that only end or stop a program are not part of it.
func (e writeRequest) judged() string {
	const ctrlD, ctrlZ, quit = "\x04", "\x1a", "\x1c"
	return strings.Trim(strings.NewReplacer("\r", "\n", "\x03", "\n").Replace(e.text()), ctrlD+ctrlZ+quit)
}

// isEdited reports whether an input has keys with which a program changes what was typed: it
// deletes or completes a word, or fetches an earlier line. Only terminals complete words.
func (e writeRequest) isEdited(terminal bool) bool {
	return strings.ContainsFunc(e.judged(), func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && (c != '\t' || terminal)
	})
}

// isUnfinished reports whether an input ends within a line, which later input continues.
func (e writeRequest) isUnfinished() bool { return !e.eof && !strings.HasSuffix(e.judged(), "\n") }

// hasArrows reports whether what is sent for an input depends on the mode of the terminal.
func (e writeRequest) hasArrows() bool {
	for i := 0; i < len(arrows) && !e.literal; i += 2 {
		if strings.Contains(e.input, arrows[i]) {
			return true
		}
	}
	return false
}
