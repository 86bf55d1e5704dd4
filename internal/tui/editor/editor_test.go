package editor_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/tui/editor"
)

func rows(e *editor.Editor, columns int) string {
	var out []string
	for _, l := range e.Layout(columns).Rows {
		out = append(out, l.String())
	}
	return strings.Join(out, "|")
}

func TestTypingAndMoving(t *testing.T) {
	var e editor.Editor
	e.Insert("hello wörld")
	e.WordLeft()
	e.Insert("big ")
	e.End()
	e.Insert("\nsecond 日本")
	e.Left()
	e.Backspace()
	if got := e.Text(); got != "hello big wörld\nsecond 本" {
		t.Errorf("%q", got)
	}
	e.Home()
	e.KillLine()
	e.Yank()
	e.Yank()
	if got := e.Text(); got != "hello big wörld\nsecond 本second 本" {
		t.Errorf("%q", got)
	}
	e.Undo()
	e.Undo()
	e.Undo()
	if got := e.Text(); got != "hello big wörld\nsecond 本" {
		t.Errorf("after undo: %q", got)
	}
}

func TestRowsAreBrokenBetweenWords(t *testing.T) {
	var e editor.Editor
	e.Insert("one two three\nfour abcdefghijklmno")
	if got := rows(&e, 9); got != "one two|three|four|abcdefgh|ijklmno" {
		t.Errorf("%q", got)
	}
	l := e.Layout(9)
	if l.Row != 4 || l.Col != 7 {
		t.Errorf("the cursor is at %d, %d", l.Row, l.Col)
	}
	for range 2 {
		e.Up(9)
	}
	if e.Layout(9).Row != 2 {
		t.Errorf("up: %+v", e.Layout(9))
	}
	for e.Up(9) {
	}
	if e.Layout(9).Row != 0 {
		t.Error("not at the top")
	}
}

func TestALongPasteIsFolded(t *testing.T) {
	var e editor.Editor
	long := strings.Repeat("0123456789\n", 500_000) // 5.5 MB
	e.Insert("see ")
	e.Paste(long)
	e.Insert(" please")
	if got := rows(&e, 80); got != "see [pasted 500000 lines, 5500000 bytes] please" {
		t.Errorf("%q", got)
	}
	if e.Text() != "see "+long+" please" {
		t.Error("what is sent is not what was pasted")
	}
	e.Paste("short")
	if !strings.HasSuffix(rows(&e, 80), "please"+"short") {
		t.Errorf("%q", rows(&e, 80))
	}
	for range len(" pleaseshort") + 1 {
		e.Backspace()
	}
	if e.Text() != "see " {
		t.Errorf("one Backspace does not remove what is folded: %q", rows(&e, 80))
	}
}

// Nobody can type what stands for a folded text, or what a terminal would obey.
func TestTypedTextIsOnlyText(t *testing.T) {
	var e editor.Editor
	e.Fold("label", "secret")
	e.Insert("\U000f0000\x1b[2J\a\u009b")
	if got := e.Text(); got != "secret\ufffd[2J" {
		t.Errorf("%q", got)
	}
	e.Clear()
	e.Paste("\x1b]0;x\a\u202e")
	if got := rows(&e, 80); strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("%q", got)
	}
}

func TestHistory(t *testing.T) {
	var e editor.Editor
	for _, s := range []string{"one", "two", "two", "Make test"} {
		e.Remember(s)
	}
	e.Insert("draft")
	e.Older()
	e.Older()
	if e.Text() != "two" {
		t.Errorf("%q", e.Text())
	}
	e.Older()
	e.Older()
	if e.Text() != "one" {
		t.Errorf("%q", e.Text())
	}
	for range 5 {
		e.Newer()
	}
	if e.Text() != "draft" {
		t.Errorf("the draft is lost: %q", e.Text())
	}
	if e.Find("make", 0) != "Make test" || e.Find("o", 0) != "two" || e.Find("o", 1) != "one" || e.Find("x", 0) != "" {
		t.Error("search")
	}
}

// Whatever is done, the cursor is in the text and the rows fit.
func TestNothingBreaksTheEditor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e editor.Editor
		columns := rapid.IntRange(1, 30).Draw(t, "columns")
		do := map[string]func(*rapid.T){
			"insert": func(t *rapid.T) { e.Insert(rapid.StringN(0, 12, -1).Draw(t, "text")) },
			"paste":  func(t *rapid.T) { e.Paste(strings.Repeat("x\n", rapid.IntRange(0, 20).Draw(t, "lines"))) },
			"":       func(t *rapid.T) { checkLayout(t, &e, columns) },
		}
		for name, f := range map[string]func(){
			"backspace": e.Backspace, "delete": e.Delete, "left": e.Left, "right": e.Right, "home": e.Home, "end": e.End,
			"wordLeft": e.WordLeft, "wordRight": e.WordRight, "killWord": e.KillWord, "killLine": e.KillLine, "killStart": e.KillStart,
			"yank": e.Yank, "undo": e.Undo, "clear": e.Clear, "older": e.Older, "newer": e.Newer,
			"up": func() { e.Up(columns) }, "down": func() { e.Down(columns) },
			"remember": func() { e.Remember(e.Text()) }, "word": func() { e.ReplaceWord("@" + e.Word()) },
		} {
			do[name] = func(*rapid.T) { f() }
		}
		t.Repeat(do)
	})
}

func checkLayout(t *rapid.T, e *editor.Editor, columns int) {
	l := e.Layout(columns)
	if l.Row < 0 || l.Row >= len(l.Rows) || l.Col < 0 {
		t.Fatalf("the cursor is at %d, %d of %d rows", l.Row, l.Col, len(l.Rows))
	}
}
