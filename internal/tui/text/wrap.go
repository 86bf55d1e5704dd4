package text

import (
	"strings"
	"unicode"
)

// Wrap breaks a line between words into lines of at most some columns. Words that are
// wider, such as addresses, stay whole where they are: the terminal wraps them itself, so
// that they can be copied. Text of a script that has no blanks is broken between its
// characters: left to the terminal, its lines would end with half a character, after which
// tmux does not know where its cursor is when its width changes. Later lines begin with the
// indent.
func (l Line) Wrap(most int, indent Line) []Line {
	if most <= 0 || l.Width() <= most {
		return []Line{l}
	}
	w := wrapper{most: max(most, indent.Width()+8), indent: indent}
	for _, s := range l {
		blank := true // there was a blank before
		for word := range words(s.Text) {
			if !blank {
				w.flush()
			}
			w.add(word, s.Style)
			blank = word[0] == ' '
		}
	}
	w.flush()
	return append(w.lines, w.line)
}

// A wrapper collects words into lines. A word can consist of several spans.
type wrapper struct {
	most   int
	indent Line
	lines  []Line
	line   Line
	width  int
	begun  bool // true if the line has more than its indent

	word      Line // the word that is not complete
	wordWidth int
	blanks    []Span // the blanks before it
}

// add takes a word or blanks.
func (w *wrapper) add(s string, style Style) {
	if s[0] == ' ' {
		w.flush()
		w.blanks = append(w.blanks, Span{s, style})
		return
	}
	w.word = w.word.with(Span{s, style})
	w.wordWidth += Width(s)
}

// flush puts the word into the line, or begins the next one with it.
func (w *wrapper) flush() {
	if len(w.word) == 0 {
		return
	}
	gap := 0
	for _, b := range w.blanks {
		gap += len(b.Text)
	}
	if fits := w.indent.Width()+w.wordWidth <= w.most; fits && w.begun && w.width+gap+w.wordWidth > w.most {
		w.lines = append(w.lines, w.line)
		w.line, w.width = append(Line(nil), w.indent...), w.indent.Width()
	} else {
		w.line = w.line.with(w.blanks...)
		w.width += gap
	}
	w.line = w.line.with(w.word...)
	w.width += w.wordWidth
	w.begun = true
	w.word, w.wordWidth, w.blanks = nil, 0, nil
}

// words yields the words of a text and the blanks between them. Words that follow each other
// are parts of a text without blanks between which a line may end.
func words(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s != "" {
			at := len(s) - len(strings.TrimLeft(s, " "))
			if at == 0 {
				at = wordEnd(s)
			}
			if !yield(s[:at]) {
				return
			}
			s = s[at:]
		}
	}
}

// wordEnd returns the end of the word at the beginning of a text.
func wordEnd(s string) int {
	word, _, _ := strings.Cut(s, " ")
	var before rune
	for i, r := range word {
		if i > 0 && breaks(before, r) {
			return i
		}
		before = r
	}
	return len(word)
}

// breaks reports whether a line may end between two characters: where one of them is of a
// script that has no blanks, and the mark beside it stays with what it belongs to.
func breaks(before, after rune) bool {
	const opening, closing = "（「『【〈《〔［｛“‘([{", "）」』】〉》〕］｝”’、。，．・：；！？…ー々)]},.:;!?"
	if max(before, after) < firstWithoutBlanks || !unicode.In(before, withoutBlanks...) && !unicode.In(after, withoutBlanks...) {
		return false
	}
	return !strings.ContainsRune(opening, before) && !strings.ContainsRune(closing, after) && !unicode.In(after, unicode.Mn, unicode.Cf)
}

// withoutBlanks are the characters of the scripts that are written without blanks, as far as
// a line may end between any two of them.
var withoutBlanks = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, fullWidth}

// firstWithoutBlanks is not behind the first of these characters.
const firstWithoutBlanks = 0x2e80

// fullWidth are the marks of these scripts.
var fullWidth = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x3001, Hi: 0x303f, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}}}
