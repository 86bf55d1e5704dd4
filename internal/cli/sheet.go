package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The marks before lines that the model, a client or a file has written. Lines of the
// program itself never begin with them, so that no text of others passes for a question.
const (
	margin    = "│ " // before a line
	continued = "┆ " // before the rest of a line that is wider than the terminal
)

// A sheet is the text of a question. Every line is either the program's own, or has a
// margin.
type sheet struct {
	strings.Builder
	paint painter
	most  int // columns of the terminal; zero if there is no limit
}

// own writes a line of the program. Names in it are of others, so that what is too wide
// for the terminal is broken, and its rest has a mark.
func (s *sheet) own(in style, text string) {
	for i, part := range wrap(visible(text), s.most, 0, true) {
		if i > 0 {
			part = continued + part
		}
		s.WriteString(s.paint.in(in, part) + "\n")
	}
}

// foreign writes lines of others, each with a margin. Of empty lines in a row, only the
// first and their number are shown.
func (s *sheet) foreign(text string) {
	for lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n"); len(lines) > 0; {
		n := 1
		if strings.TrimSpace(lines[0]) == "" {
			n = alike(lines)
		}
		s.line(plainStyle, lines[0])
		if n <= maxEmpty {
			lines = lines[1:]
			continue
		}
		s.own(faint, "  … "+plural(n-1, "more empty line", "more empty lines")+" …")
		lines = lines[n:]
	}
}

// line writes one line of others with a margin.
func (s *sheet) line(in style, text string) {
	mark := margin
	for _, part := range wrap(visible(text), s.most, columns(margin), false) {
		s.WriteString(mark + s.paint.in(in, part) + "\n")
		mark = continued
	}
}

// maxEmpty is the maximum number of empty lines in a row that are shown.
const maxEmpty = 2

// alike returns how many lines at the beginning are the same but for blanks at their ends.
func alike(lines []string) int {
	first := strings.TrimRight(lines[0], " \t\r")
	n := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \t\r") != first })
	if n < 0 {
		return len(lines)
	}
	return n
}

// maxText and maxTextLines are the sizes up to which a text of others is shown whole with a
// question at a terminal. A person who wants to see all of it types wordDiff.
const (
	maxText      = 4 << 10
	maxTextLines = 40
)

// outerParts returns the beginning and the end of a text that is too long to be shown with a
// question, and what is between them.
func outerParts(text string) (head, hidden, tail string) {
	if len(text) <= maxText && strings.Count(text, "\n") < maxTextLines {
		return text, "", ""
	}
	head, tail = text, text
	if at := nthLine(text, maxTextLines/2); at >= 0 {
		head = text[:at]
	}
	head = validStart(head, maxText/2)
	lines := strings.Count(text, "\n")
	if at := nthLine(text, lines+1-maxTextLines/2); lines >= maxTextLines && at >= 0 {
		tail = text[at:]
	}
	tail = validEnd(tail, maxText/2)
	return head, text[len(head) : len(text)-len(tail)], tail
}

// nthLine returns where a text continues after a number of line breaks; -1 if it has fewer.
func nthLine(text string, n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	return at
}

// validStart returns the beginning of a text, without part of a character at its end.
func validStart(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// validEnd returns the end of a text, without part of a character at its beginning.
func validEnd(text string, most int) string {
	if len(text) <= most {
		return text
	}
	at := len(text) - most
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

// excerpt writes a text of others. Of a long one it writes the beginning and the end, and
// how much is between them.
func (s *sheet) excerpt(text string) {
	head, hidden, tail := outerParts(text)
	s.foreign(head)
	if hidden == "" {
		return
	}
	s.own(bold, fmt.Sprintf("  … %s, %s bytes are not shown here: type %s to see all of it …", plural(lineCount(hidden), "line", "lines"), grouped(len(hidden)), wordDiff))
	s.foreign(tail)
}

// lineCount returns the number of lines of a text, also of a last one without an end.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// visible returns a line of others in which nothing is hidden: characters that a terminal
// does not show, or that would move its cursor, are named.
func visible(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\t':
			b.WriteRune(r)
		case r == '\n':
			b.WriteRune(signBreak)
		case r == '\r':
			b.WriteRune(signReturn)
		case invisible(r), unicode.IsControl(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// The signs of line breaks in text that is shown on one line.
const (
	signBreak  = '⏎'
	signReturn = '␍'
)

// inLine returns a text of others, such as a command, on one line. Line breaks are shown:
// what follows one may be another command.
func inLine(text string) string {
	text = strings.NewReplacer(string(signBreak), "<U+23CE>", string(signReturn), "<U+240D>").Replace(text)
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.FieldsFunc(visible(strings.TrimSuffix(line, "\n")), isBlank), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " "+string(signBreak)+" ")
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// wrap breaks a visible line so that its parts fit into a number of columns, of which the
// first part leaves some free; zero columns mean no limit. A character that may be wide
// counts as wide: a terminal that breaks a line itself shows no mark.
func wrap(line string, most, indent int, atBlanks bool) []string {
	if most <= 0 {
		return []string{line}
	}
	line = strings.ReplaceAll(line, "\t", "    ")
	var parts []string
	left := max(most-1-indent, 8)
	for {
		at := fitting(line, left)
		if at == len(line) {
			return append(parts, line)
		}
		if blank := strings.LastIndexByte(line[:at], ' ') + 1; atBlanks && strings.TrimSpace(line[:blank]) != "" {
			at = blank
		}
		parts = append(parts, line[:at])
		line, left = line[at:], max(most-1-columns(continued), 8)
	}
}

// fitting returns the length of the beginning of a line that fits into some columns.
func fitting(line string, left int) int {
	for at, r := range line {
		if left--; r > unicode.MaxASCII {
			left--
		}
		if left < 0 {
			return at
		}
	}
	return len(line)
}
