// Package text holds lines of styled text for a terminal, and makes text of others safe
// to show.
//
//   - A [Line] has no control characters: whatever builds one from text of a model, a
//     command or a file passes it through [Clean] first.
//   - Styles are attributes and the eight colours that follow the theme of the terminal, and
//     for the screen of another program the colours that it has chosen.
//   - Widths are never underestimated, so that a line that is cut to a width does not wrap.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// A Colour is one of the colours of the terminal's theme.
type Colour uint8

// The colours. Default is the usual colour of text.
const (
	Default Colour = iota
	Red
	Green
	Yellow
	Blue
	Magenta
	Cyan
)

// codes are the parameters that select the colours.
var codes = [...]string{"", "31", "32", "33", "34", "35", "36"}

// A Style is how text looks.
type Style struct {
	Colour    Colour
	Bold      bool
	Faint     bool
	Italic    bool
	Underline bool
	Reverse   bool
	// Chosen are parameters of colours that another program has chosen: numbers with ; and :
	// between them. It has no place in text that the chat itself writes.
	Chosen string
}

// A Span is text of one style.
type Span struct {
	Text  string
	Style Style
}

// A Line is one line of text. It has no line break.
type Line []Span

// Plain returns a line without style. The text must be clean.
func Plain(s string) Line { return Line{{Text: s}} }

// Styled returns a line of one style. The text must be clean.
func Styled(s string, style Style) Line { return Line{{Text: s, Style: style}} }

// String returns the text of the line without its styles, and without blanks at its end.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Width returns the number of columns of the line.
func (l Line) Width() int {
	n := 0
	for _, s := range l {
		n += Width(s.Text)
	}
	return n
}

// Width returns the number of columns of a clean text. Each character counts for itself,
// also where a terminal may draw several as one.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += RuneWidth(r)
	}
	return n
}

// emojiStyle makes some terminals draw the character before it twice as wide.
const emojiStyle = '\ufe0f'

// RuneWidth returns the largest number of columns that a terminal may use for a character.
func RuneWidth(r rune) int {
	switch {
	case r >= ' ' && r < 0x7f:
		return 1
	case r == emojiStyle:
		return 1
	}
	return displaywidth.Rune(r)
}

// Clean returns text of others without anything that would do something to a terminal:
// control characters and characters that change the direction of text are named, line
// breaks of other systems become \n, and tabs become blanks.
func Clean(s string) string {
	if !strings.ContainsFunc(s, needsCleaning) {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	var b strings.Builder
	column := 0
	for i, r := range strings.ToValidUTF8(s, "\ufffd") {
		switch {
		case r == '\n':
			b.WriteByte('\n')
			column = 0
			continue
		case r == '\t':
			n := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		case r == '\r' && strings.HasPrefix(s[min(i+1, len(s)):], "\n"):
			continue
		case needsCleaning(r):
			name := fmt.Sprintf("<U+%04X>", r)
			b.WriteString(name)
			column += len(name)
			continue
		}
		b.WriteRune(r)
		column += RuneWidth(r)
	}
	return b.String()
}

const tabWidth = 4

// needsCleaning reports whether a character must not reach a terminal as it is.
func needsCleaning(r rune) bool {
	switch {
	case r == '\n':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r < 0x2000:
		return r == '\u061c' || r == '\u034f'
	}
	return unicode.Is(unicode.Bidi_Control, r) || r >= 0xe0000 && r <= 0xe007f || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// Lines splits clean text into lines of one style.
func Lines(s string, style Style) []Line {
	var lines []Line
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, Styled(line, style))
	}
	return lines
}

// OneLine returns text of others on one clean line: line breaks are shown as a sign.
func OneLine(s string) string {
	var parts []string
	for line := range strings.SplitSeq(Clean(s), "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " ⏎ ")
}

// Cut shortens a line to a number of columns, with an ellipsis at its end.
func (l Line) Cut(most int) Line {
	if most <= 0 {
		return nil
	}
	if l.Width() <= most {
		return l
	}
	var cut Line
	left := most - 1
	for _, s := range l {
		kept, width := prefix(s.Text, left)
		if kept != "" {
			cut = append(cut, Span{kept, s.Style})
		}
		left -= width
		if kept != s.Text {
			return append(cut, Span{"…", s.Style})
		}
	}
	return cut
}

// prefix returns the beginning of a text that fits into some columns, and its width.
func prefix(s string, most int) (string, int) {
	width := 0
	for i, r := range s {
		w := RuneWidth(r)
		if width+w > most {
			return s[:i], width
		}
		width += w
	}
	return s, width
}

// with returns the line with spans added. One that looks like the span before it is joined
// to that, so that a line which is put together from words is not written word by word.
func (l Line) with(spans ...Span) Line {
	for _, s := range spans {
		if n := len(l); n > 0 && l[n-1].Style == s.Style {
			l[n-1].Text += s.Text
		} else {
			l = append(l, s)
		}
	}
	return l
}

// Rows returns the number of rows that a terminal of some columns needs for a line that
// it wraps itself.
func (l Line) Rows(columns int) int {
	if columns <= 0 {
		return 1
	}
	return len(l.Break(columns))
}

// RowOf returns the row, from zero, in which a column of the line is when a terminal of
// some columns wraps it.
func (l Line) RowOf(column, columns int) int {
	parts := l.Break(columns)
	for i, part := range parts {
		if column -= part.Width(); column < 0 {
			return i
		}
	}
	return len(parts) - 1
}

// An Encoder turns lines into what is written to a terminal.
type Encoder struct {
	NoColour bool // true to leave out colours
	NoStyle  bool // true to leave out attributes as well
	ASCII    bool // true for a terminal that does not know UTF-8
}

// Encode returns the line with escape codes, as few as it takes. It ends without any style.
func (e Encoder) Encode(l Line) string {
	var b strings.Builder
	code := ""
	for _, s := range l {
		shown := s.Text
		if e.ASCII {
			shown = ascii(shown)
		}
		if next := e.code(s.Style); next != code && shown != "" {
			b.WriteString(change(code, next))
			code = next
		}
		b.WriteString(shown)
	}
	b.WriteString(change(code, ""))
	return b.String()
}

// change returns what changes the style of a terminal from one to another, by their
// parameters.
func change(from, to string) string {
	const reset = "\x1b[m"
	switch set := "\x1b[" + to + "m"; {
	case from == to:
		return ""
	case to == "":
		return reset
	case from == "":
		return set
	default:
		return reset + set
	}
}

// code returns the parameters of a style.
func (e Encoder) code(s Style) string {
	if e.NoStyle {
		return ""
	}
	var parts []string
	for _, a := range []struct {
		set  bool
		code string
	}{{s.Bold, "1"}, {s.Faint, "2"}, {s.Italic, "3"}, {s.Underline, "4"}, {s.Reverse, "7"}} {
		if a.set {
			parts = append(parts, a.code)
		}
	}
	if s.Colour != Default && !e.NoColour {
		parts = append(parts, codes[s.Colour])
	}
	if s.Chosen != "" && !e.NoColour {
		parts = append(parts, s.Chosen)
	}
	return strings.Join(parts, ";")
}

// signs are the characters of the program itself on a terminal that does not know UTF-8. Each
// is as wide as what it stands for.
var signs = map[rune]byte{
	'…': '~', '•': '*', '▸': '>', '›': '>', '✓': '+', '✗': 'x', '─': '-', '│': '|', '┼': '+', '┆': ':', '⏎': '\\', '·': '-', '▌': '|',
	'█': '#', '░': '.', '–': '-', '—': '-', '‘': '\'', '’': '\'', '“': '"', '”': '"', '↑': '^', '↓': 'v', '→': '>', '←': '<', '⚑': '!', '◦': '-', '∴': '%', '◇': '?',
}

// ascii returns a text in characters that every terminal shows, in as many columns: a line
// that was cut to the terminal must not wrap.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch sign, own := signs[r]; {
		case r < 0x80:
			b.WriteRune(r)
		case own:
			b.WriteByte(sign)
		default:
			b.WriteString(strings.Repeat("?", RuneWidth(r)))
		}
	}
	return b.String()
}

// Break cuts a line into parts of at most some columns, as a terminal would wrap it.
func (l Line) Break(columns int) []Line {
	if columns <= 0 || l.Width() <= columns {
		return []Line{l}
	}
	var parts []Line
	var part Line
	left := columns
	for _, s := range l {
		for s.Text != "" {
			kept, width := prefix(s.Text, left)
			if kept == "" && left == columns { // a character that is wider than the terminal
				_, n := utf8.DecodeRuneInString(s.Text)
				kept, width = s.Text[:n], columns
			}
			if kept != "" {
				part = append(part, Span{kept, s.Style})
			}
			s.Text, left = s.Text[len(kept):], left-width
			if s.Text != "" {
				parts, part, left = append(parts, part), nil, columns
			}
		}
	}
	return append(parts, part)
}

// Parse returns the lines of a text that this program has styled itself, with the few
// codes that it uses for that. Other control characters are cleaned.
func Parse(s string) []Line {
	var lines []Line
	style := Style{}
	for row := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		var line Line
		for row != "" {
			before, after, found := strings.Cut(row, "\x1b[")
			if before != "" {
				line = append(line, Span{Clean(before), style})
			}
			code, rest, ends := strings.Cut(after, "m")
			if !found || !ends {
				break
			}
			style = style.with(code)
			row = rest
		}
		lines = append(lines, line)
	}
	return lines
}

// with returns a style after a code.
func (s Style) with(code string) Style {
	switch code {
	case "1":
		s.Bold = true
	case "2":
		s.Faint = true
	case "31":
		s.Colour = Red
	case "32":
		s.Colour = Green
	case "0", "":
		return Style{}
	}
	return s
}
