// Package editor is the text that a person types: several lines, with a cursor, pastes
// that are folded, and a history.
//
// It knows nothing of keys and terminals: it is told what to do, and says how it looks.
package editor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/abide-run/abide/internal/tui/text"
)

// A paste is folded if it has more lines or bytes than these.
const (
	foldLines = 8
	foldBytes = 1000
)

// firstChip is the character that stands for the first folded text. The characters are
// private, and typed ones are replaced.
const firstChip = 0xf0000

// lastPrivate is the last of the private characters.
const lastPrivate = 0x10fffd

// An Editor holds the text. The zero value is empty.
type Editor struct {
	runes  []rune
	cursor int
	chips  []chip
	killed []rune
	undo   []state
	typing bool // true if the last change was typing, which is undone at once

	history []string
	at      int    // entry of the history that is shown; len(history) for the draft
	draft   []rune // what was typed before the history was shown
}

// A chip is a folded text.
type chip struct{ label, text string }

// A state is what an undo goes back to.
type state struct {
	runes  []rune
	cursor int
}

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return len(e.runes) == 0 }

// Text returns the text with everything that is folded.
func (e *Editor) Text() string {
	var b strings.Builder
	for _, r := range e.runes {
		if c := e.chip(r); c != nil {
			b.WriteString(c.text)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (e *Editor) chip(r rune) *chip {
	if n := int(r) - firstChip; n >= 0 && n < len(e.chips) {
		return &e.chips[n]
	}
	return nil
}

// Set replaces the text and puts the cursor at its end.
func (e *Editor) Set(s string) {
	e.save(false)
	e.runes = valid(s)
	e.cursor = len(e.runes)
}

// Clear removes the text and what is folded in it.
func (e *Editor) Clear() {
	e.save(false)
	e.runes, e.cursor, e.at = nil, 0, len(e.history)
}

// valid returns typed text without characters that cannot be typed. Private characters
// stand for folded text.
func valid(s string) []rune {
	runes := []rune(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
	for i, r := range runes {
		switch {
		case r >= firstChip && r <= lastPrivate:
			runes[i] = unicode.ReplacementChar
		case r == '\t':
			runes[i] = ' '
		}
	}
	return slices.DeleteFunc(runes, func(r rune) bool { return r != '\n' && unicode.IsControl(r) })
}

// maxUndo is the number of changes that can be undone.
const maxUndo = 100

// save remembers the text before a change.
func (e *Editor) save(typing bool) {
	if typing && e.typing {
		return
	}
	e.typing = typing
	e.undo = append(e.undo, state{slices.Clone(e.runes), e.cursor})
	e.undo = e.undo[max(0, len(e.undo)-maxUndo):]
}

// Undo takes the last change back.
func (e *Editor) Undo() {
	if n := len(e.undo); n > 0 {
		e.runes, e.cursor = e.undo[n-1].runes, e.undo[n-1].cursor
		e.undo, e.typing = e.undo[:n-1], false
	}
}

// Insert adds typed text at the cursor.
func (e *Editor) Insert(s string) {
	e.save(true)
	e.insert(valid(s))
}

func (e *Editor) insert(runes []rune) {
	e.runes = slices.Insert(e.runes, e.cursor, runes...)
	e.cursor += len(runes)
}

// Paste adds text that was pasted. Long text is folded.
func (e *Editor) Paste(s string) {
	s = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\ufffd")
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	if lines <= foldLines && len(s) <= foldBytes {
		e.save(false)
		e.insert(valid(s))
		return
	}
	e.Fold(fmt.Sprintf("pasted %d lines, %d bytes", lines, len(s)), s)
}

// Fold adds a text that is shown as a label.
func (e *Editor) Fold(label, s string) {
	e.save(false)
	e.chips = append(e.chips, chip{label, s})
	e.insert([]rune{rune(firstChip + len(e.chips) - 1)})
}

// remove deletes the text between two positions.
func (e *Editor) remove(from, to int) {
	if from >= to {
		return
	}
	e.save(false)
	e.runes = slices.Delete(e.runes, from, to)
	e.cursor = from
}

// kill deletes the text between two positions, and keeps it for Yank.
func (e *Editor) kill(from, to int) {
	if from < to {
		e.killed = slices.Clone(e.runes[from:to])
		e.remove(from, to)
	}
}

// Backspace deletes the character before the cursor.
func (e *Editor) Backspace() { e.remove(e.before(e.cursor), e.cursor) }

// Delete deletes the character at the cursor.
func (e *Editor) Delete() { e.remove(e.cursor, e.after(e.cursor)) }

// KillWord deletes the word before the cursor.
func (e *Editor) KillWord() { e.kill(e.wordBefore(), e.cursor) }

// KillLine deletes up to the end of the line, or the line break.
func (e *Editor) KillLine() {
	end := e.lineEnd()
	if end == e.cursor {
		end = min(end+1, len(e.runes))
	}
	e.kill(e.cursor, end)
}

// KillStart deletes up to the beginning of the line.
func (e *Editor) KillStart() { e.kill(e.lineStart(), e.cursor) }

// Yank adds what was killed last.
func (e *Editor) Yank() {
	e.save(false)
	e.insert(e.killed)
}

// Left and the other methods move the cursor.
func (e *Editor) Left()      { e.cursor = e.before(e.cursor) }
func (e *Editor) Right()     { e.cursor = e.after(e.cursor) }
func (e *Editor) Home()      { e.cursor = e.lineStart() }
func (e *Editor) End()       { e.cursor = e.lineEnd() }
func (e *Editor) WordLeft()  { e.cursor = e.wordBefore() }
func (e *Editor) WordRight() { e.cursor = e.wordAfter() }

// joins reports whether a character is drawn together with the one before it.
func joins(r rune) bool {
	return r != '\n' && text.RuneWidth(r) == 0 || r == '\ufe0f' || unicode.In(r, unicode.Mn, unicode.Me)
}

func (e *Editor) before(at int) int {
	at--
	for at > 0 && (joins(e.runes[at]) || e.runes[at-1] == '\u200d') {
		at--
	}
	return max(at, 0)
}

func (e *Editor) after(at int) int {
	if at >= len(e.runes) {
		return at
	}
	at++
	for at < len(e.runes) && (joins(e.runes[at]) || e.runes[at-1] == '\u200d') {
		at++
	}
	return at
}

func (e *Editor) lineStart() int {
	at := e.cursor
	for at > 0 && e.runes[at-1] != '\n' {
		at--
	}
	return at
}

func (e *Editor) lineEnd() int {
	at := e.cursor
	for at < len(e.runes) && e.runes[at] != '\n' {
		at++
	}
	return at
}

func (e *Editor) wordBefore() int {
	at := e.cursor
	for at > 0 && unicode.IsSpace(e.runes[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.runes[at-1]) {
		at--
	}
	return at
}

func (e *Editor) wordAfter() int {
	at := e.cursor
	for at < len(e.runes) && unicode.IsSpace(e.runes[at]) {
		at++
	}
	for at < len(e.runes) && !unicode.IsSpace(e.runes[at]) {
		at++
	}
	return at
}

// Word returns the word before the cursor, up to the cursor.
func (e *Editor) Word() string {
	at := e.cursor
	for at > 0 && !unicode.IsSpace(e.runes[at-1]) {
		at--
	}
	return string(e.runes[at:e.cursor])
}

// ReplaceWord replaces the word before the cursor.
func (e *Editor) ReplaceWord(s string) {
	at := e.cursor
	for at > 0 && !unicode.IsSpace(e.runes[at-1]) {
		at--
	}
	e.remove(at, e.cursor)
	e.insert(valid(s))
}

// A Layout is how the text looks in some columns.
type Layout struct {
	Rows     []text.Line
	Row, Col int // position of the cursor
}

// Layout breaks the text into rows of some columns, between words if it can.
func (e *Editor) Layout(columns int) Layout {
	var l Layout
	for _, r := range e.rows(columns) {
		l.Rows = append(l.Rows, e.line(r.from, r.to))
		if e.cursor >= r.from && e.cursor <= r.to {
			l.Row, l.Col = len(l.Rows)-1, e.line(r.from, e.cursor).Width()
		}
	}
	return l
}

// A row is a part of the text that is one row.
type row struct{ from, to int }

// rows returns the rows of the text. A row that ends with the width of the terminal leaves
// a column for the cursor.
func (e *Editor) rows(columns int) []row {
	columns = max(columns-1, 1)
	var rows []row
	from, width, blank := 0, 0, -1
	for i := 0; i <= len(e.runes); i++ {
		if i == len(e.runes) || e.runes[i] == '\n' {
			rows = append(rows, row{from, i})
			from, width, blank = i+1, 0, -1
			continue
		}
		w := e.runeWidth(e.runes[i])
		if width+w > columns && i > from {
			at := i
			if blank > from {
				at = blank
			}
			rows = append(rows, row{from, at})
			from, width, blank = at, e.width(at, i), -1
		}
		width += w
		if e.runes[i] == ' ' {
			blank = i + 1
		}
	}
	return rows
}

func (e *Editor) runeWidth(r rune) int {
	if c := e.chip(r); c != nil {
		return text.Width(c.label) + 2
	}
	return text.RuneWidth(r)
}

func (e *Editor) width(from, to int) int {
	n := 0
	for _, r := range e.runes[from:to] {
		n += e.runeWidth(r)
	}
	return n
}

// line returns a part of the text as it is shown.
func (e *Editor) line(from, to int) text.Line {
	var line text.Line
	for i := from; i < to; i++ {
		if c := e.chip(e.runes[i]); c != nil {
			line = append(line, text.Span{Text: "[" + c.label + "]", Style: text.Style{Colour: text.Cyan}})
			continue
		}
		start := i
		for i+1 < to && e.chip(e.runes[i+1]) == nil {
			i++
		}
		line = append(line, text.Span{Text: text.Clean(string(e.runes[start : i+1]))})
	}
	return line
}

// Up moves the cursor a row up. It reports false if there is none.
func (e *Editor) Up(columns int) bool { return e.vertical(columns, -1) }

// Down moves the cursor a row down. It reports false if there is none.
func (e *Editor) Down(columns int) bool { return e.vertical(columns, 1) }

func (e *Editor) vertical(columns, by int) bool {
	rows, at := e.rows(columns), 0
	for i, r := range rows {
		if e.cursor >= r.from && e.cursor <= r.to {
			at = i
		}
	}
	to := at + by
	if to < 0 || to >= len(rows) {
		return false
	}
	column, end := e.width(rows[at].from, e.cursor), rows[to].to
	if to+1 < len(rows) && rows[to+1].from == end {
		end = e.before(end) // behind its last character the cursor would be in the next row
	}
	e.cursor = rows[to].from
	for e.cursor < end && e.width(rows[to].from, e.after(e.cursor)) <= column {
		e.cursor = e.after(e.cursor)
	}
	return true
}

// Remember adds a text to the history.
func (e *Editor) Remember(s string) {
	if s = strings.TrimSpace(s); s != "" && (len(e.history) == 0 || e.history[len(e.history)-1] != s) {
		e.history = append(e.history, s)
	}
	e.at = len(e.history)
}

// Older shows the entry of the history before the one that is shown.
func (e *Editor) Older() {
	if e.at == 0 {
		return
	}
	if e.at == len(e.history) {
		e.draft = slices.Clone(e.runes)
	}
	e.at--
	e.show(valid(e.history[e.at]))
}

// Newer shows the entry of the history after the one that is shown, or what was typed
// before.
func (e *Editor) Newer() {
	switch {
	case e.at >= len(e.history):
		return
	case e.at == len(e.history)-1:
		e.at++
		e.show(e.draft)
	default:
		e.at++
		e.show(valid(e.history[e.at]))
	}
}

func (e *Editor) show(runes []rune) {
	e.save(false)
	e.runes, e.cursor = slices.Clone(runes), len(runes)
}

// Find returns the newest entry of the history that contains a text, after skipping some;
// empty if there is none.
func (e *Editor) Find(s string, skip int) string {
	for _, entry := range slices.Backward(e.history) {
		if strings.Contains(strings.ToLower(entry), strings.ToLower(s)) {
			if skip == 0 {
				return entry
			}
			skip--
		}
	}
	return ""
}
