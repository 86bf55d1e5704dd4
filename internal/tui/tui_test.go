package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// asked is a question of a test.
type asked struct{ id string }

func (q asked) ID() string { return q.id }
func (q asked) Lines(int, bool) []text.Line {
	return text.Lines(strings.Repeat("line\n", 50), text.Style{})
}
func (q asked) Explain(int) []text.Line          { return nil }
func (q asked) Keys() string                     { return "[y]es [n]o" }
func (q asked) Answer(key string) (string, bool) { return key, key == "y" || key == "n" }
func (q asked) WantsText() bool                  { return false }
func (q asked) Send(context.Context, event.SessionID, string) (string, bool, error) {
	return "", true, nil
}

// newChat returns a chat at a moment, without a terminal.
func newChat(columns, rows int) (*chat, *time.Time) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &chat{columns: columns, rows: rows, now: func() time.Time { return now }, ctx: context.Background()}
	c.opts.Blocks = block.Options{Describe: func(event.Event) (string, string) { return "", "" }, Asked: func(event.Event) string { return "" }}
	c.reset()
	c.session.ID = "s"
	return c, &now
}

// A question has the keys only when nobody types, nobody has typed for a moment, and it was
// there to be seen.
func TestWhenAQuestionTakesTheKeys(t *testing.T) {
	if calm < 500*time.Millisecond {
		t.Errorf("a question takes the keys %v after a key", calm)
	}
	c, now := newChat(80, 24)
	c.questions.add(asked{"q1"}, *now)
	focused := func(after time.Duration) bool {
		*now = now.Add(after)
		c.focus()
		return c.questions.focused
	}
	if focused(calm - time.Millisecond) {
		t.Error("it has the keys before it could be seen")
	}
	c.editor.Insert("a draft")
	if focused(time.Hour) {
		t.Error("it has the keys of somebody who has typed something")
	}
	c.editor.Clear()
	c.lastKey = *now
	if focused(calm - time.Millisecond) {
		t.Error("it has the keys right after a key")
	}
	if !focused(time.Millisecond) {
		t.Error("it never gets the keys")
	}
	c.questions.add(asked{"q2"}, *now)
	c.answered(answeredMsg{id: "q1", done: true})
	if c.questions.first().ID() != "q2" || c.questions.focused || focused(calm-time.Millisecond) {
		t.Error("the next question has the keys at once")
	}
	if !focused(time.Millisecond) {
		t.Error("the next question never gets the keys")
	}
	for _, key := range []string{"enter", "space", " ", "f1"} {
		if cmd := c.questionKey(key); cmd != nil || !c.questions.focused {
			t.Errorf("%q answers", key)
		}
	}
	c.paste("yes\n")
	if c.questions.focused || c.editor.Text() != "yes\n" {
		t.Error("a paste is no draft")
	}
}

// Somebody who types a message while a question has the keys answers nothing, whatever
// letters it begins with.
func TestAMessageAnswersNoQuestion(t *testing.T) {
	for _, message := range []string{"yes, and then the tests", "no", "can you", "use y", "run it", "do it", "?!", "yy"} {
		c, now := newChat(80, 24)
		c.questions.add(asked{"q"}, *now)
		*now = now.Add(calm)
		c.focus()
		for i, r := range message {
			c.chatKey(string(r), string(r))
			if pending := c.questions.pressed; pending != "" && i > 0 {
				t.Errorf("%q: %q waits to be an answer", message, pending)
			}
			if i == 0 { // the moment of the first key is over too early only if no other key follows
				*now = now.Add(alone / 2)
			}
		}
		c.pressedAlone(aloneMsg{now.Add(-alone / 2)})
		if c.editor.Text() != message || c.questions.focused || c.questions.sending != "" || c.questions.typing || c.questions.help || c.overlay != nil {
			t.Errorf("%q is taken for %q; the question has the keys: %t, is answered: %t", message, c.editor.Text(), c.questions.focused, c.questions.sending != "")
		}
	}
}

// A letter alone answers, after a moment or with Enter.
func TestALetterAloneAnswers(t *testing.T) {
	for name, then := range map[string]func(*chat, time.Time) bool{
		"a moment": func(c *chat, at time.Time) bool { c.pressedAlone(aloneMsg{at}); return true },
		"Enter":    func(c *chat, _ time.Time) bool { c.chatKey("enter", ""); return true },
		"another moment": func(c *chat, at time.Time) bool {
			c.pressedAlone(aloneMsg{at.Add(-1)})
			return false
		},
		"Esc":    func(c *chat, at time.Time) bool { c.chatKey("esc", ""); c.pressedAlone(aloneMsg{at}); return false },
		"Ctrl-C": func(c *chat, at time.Time) bool { c.chatKey("ctrl+c", ""); c.pressedAlone(aloneMsg{at}); return false },
		"its end": func(c *chat, at time.Time) bool {
			c.questions.add(asked{"q2"}, at)
			c.questions.close("q", at)
			c.questions.focused = true
			c.pressedAlone(aloneMsg{at})
			return false
		},
	} {
		c, now := newChat(80, 24)
		c.questions.add(asked{"q"}, *now)
		*now = now.Add(calm)
		c.focus()
		if c.chatKey("y", "y"); c.questions.sending != "" {
			t.Errorf("%s: the key is an answer at once", name)
		}
		if answers := then(c, *now); (c.questions.sending != "") != answers || !c.editor.Empty() {
			t.Errorf("%s: answered is %q, want %t; the editor has %q", name, c.questions.sending, answers, c.editor.Text())
		}
	}
}

// However small the terminal is, the live region leaves two rows, and the editor is in it.
func TestTheFrameFits(t *testing.T) {
	for columns := 1; columns < 120; columns += 7 {
		for rows := 1; rows < 40; rows++ {
			c, now := newChat(columns, rows)
			c.questions.add(asked{"q"}, *now)
			c.begin()
			c.notify("a notice " + strings.Repeat("that is long ", 20))
			for i := range 10 {
				c.queued = append(c.queued, queued{fmt.Sprint(i), "waits"})
				c.complete.found = append(c.complete.found, offer{"@x", ""})
			}
			c.editor.Insert(strings.Repeat("word ", 200))
			f := c.frame()
			if len(f.Lines) > max(1, rows-2) {
				t.Fatalf("%dx%d: %d lines", columns, rows, len(f.Lines))
			}
			if f.Row < 0 || f.Row >= len(f.Lines) {
				t.Fatalf("%dx%d: the cursor is in row %d of %d", columns, rows, f.Row, len(f.Lines))
			}
		}
	}
}

// TestANoticeIsReadToItsEnd: an error that does not fit into a line goes on in the next ones.
func TestANoticeIsReadToItsEnd(t *testing.T) {
	c, _ := newChat(40, 24)
	c.fail(errors.New("session s is damaged at event 4: the chain breaks; see: abide sessions verify s"))
	var shown []string
	for _, l := range c.frame().Lines {
		shown = append(shown, l.String())
	}
	want := "· error: session s is damaged at event\n  4: the chain breaks; see: abide\n  sessions verify s"
	if all := strings.Join(shown, "\n"); !strings.Contains(all, want) {
		t.Errorf("shown:\n%s\nwant:\n%s", all, want)
	}
}

func TestFilesAreFoundByTheirNames(t *testing.T) {
	files := []string{"a/b/main.go", "cmd/main_test.go", "docs/remain.md", "main.go", "x.txt"}
	var got []string
	for _, o := range matchingFiles(files, "main") {
		got = append(got, o.word)
	}
	if want := "@main.go @cmd/main_test.go @a/b/main.go @docs/remain.md"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", strings.Join(got, " "), want)
	}
}

func TestTheLastCodeBlockIsCopied(t *testing.T) {
	if got := lastCode("x\n```go\none\n```\n\n```\ntwo\n  three\n```\nend"); got != "two\n  three" {
		t.Errorf("%q", got)
	}
}

// The end of a question may be shown before its answer is acknowledged: then it was not
// answered elsewhere.
func TestAnAnswerOfOnesOwnIsNotOneFromElsewhere(t *testing.T) {
	for own, elsewhere := range map[bool]bool{true: false, false: true} {
		c, now := newChat(80, 24)
		q := asked{"q"}
		c.questions.add(q, *now)
		if own {
			c.answer(q, "y")
		}
		if got := c.questions.close("q", *now); got != elsewhere {
			t.Errorf("answered here: %v; said to be answered elsewhere: %v", own, got)
		}
	}
}
