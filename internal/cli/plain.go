package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// plain makes untrusted text safe for a terminal: control characters other than line
// breaks and tabs become �, so that the text cannot move the cursor, change colours or
// overwrite a question.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// reveal makes characters visible that a terminal does not show, so that a person who is
// asked about a text sees what is in it: U+200B becomes <U+200B>.
func reveal(s string) string {
	if !strings.ContainsFunc(s, invisible) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if invisible(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// invisible reports whether a character takes no room on a terminal, or looks like a
// blank and is none.
func invisible(r rune) bool {
	switch {
	case r == ' ', r == '\n', r == '\t':
		return false
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Zs, unicode.Zl, unicode.Zp):
		return true
	}
	return slices.Contains([]rune{'\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0'}, r)
}

// oneLine returns plain text without line breaks and repeated blanks.
func oneLine(s string) string { return plain(strings.Join(strings.Fields(s), " ")) }

// columns returns the number of columns of a text on a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < unicode.MaxASCII:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303f, r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// clip shortens a text to a number of columns, with an ellipsis at the end.
func clip(s string, most int) string {
	if columns(s) <= most {
		return s
	}
	var b strings.Builder
	left := most - 1 // one character is for the ellipsis
	for _, r := range s {
		if left -= runeColumns(r); left < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// fold breaks a text between words into lines with a maximum number of columns. Longer
// words are broken, too.
func fold(s string, most int) []string {
	lines := []string{""}
	last := &lines[0]
	for _, word := range strings.Fields(s) {
		if *last != "" && columns(*last)+1+columns(word) > most {
			lines = append(lines, "")
			last = &lines[len(lines)-1]
		}
		if *last != "" {
			*last += " "
		}
		for _, r := range word {
			if columns(*last)+runeColumns(r) > most {
				lines = append(lines, "")
				last = &lines[len(lines)-1]
			}
			*last += string(r)
		}
	}
	return lines
}
