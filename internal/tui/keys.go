package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/tui/editor"
	"github.com/abide-run/abide/internal/tui/text"
)

// twice is the time within which a key that is pressed twice means more.
const twice = time.Second

// key handles a key.
func (c *chat) key(m tea.KeyPressMsg) tea.Cmd {
	name, typed := m.Keystroke(), m.Key().Text
	c.lastKey = c.now()
	if _, attached := c.overlay.(*attachment); name == "alt+esc" && !attached {
		// Esc was pressed twice so fast that both came at once. An overlay is closed by one.
		name = "esc"
		if c.overlay == nil {
			first := c.pressed(name, "", m)
			return tea.Batch(first, c.pressed(name, "", m))
		}
	}
	return c.pressed(name, typed, m)
}

// pressed handles a key by its name, and the text that it types.
func (c *chat) pressed(name, typed string, m tea.KeyPressMsg) tea.Cmd {
	if name != "ctrl+c" {
		c.lastCtrlC = time.Time{}
	}
	if name != "esc" {
		c.lastEsc = time.Time{}
	}
	if a, ok := c.overlay.(*attachment); ok {
		if a.press(m) {
			c.detach()
		}
		return tea.Batch(c.tick(), c.awaitCalm())
	}
	if name == "ctrl+z" {
		c.suspend()
		return nil
	}
	if c.overlay != nil {
		cmd, closed := c.overlay.key(c, name, typed)
		if closed {
			c.overlay = nil
		}
		return tea.Batch(cmd, c.tick(), c.awaitCalm())
	}
	if c.search != nil {
		return c.searchKey(name, typed)
	}
	return tea.Batch(c.chatKey(name, typed), c.tick(), c.awaitCalm())
}

// chatKey handles a key for the question or the editor.
func (c *chat) chatKey(name, typed string) tea.Cmd {
	if name == "ctrl+c" {
		c.questions.pressed = ""
		return c.ctrlC()
	}
	if q := c.questions.first(); q != nil && c.questions.focused && !c.questions.typing {
		key := name
		if typed != "" {
			key = typed
		}
		return c.questionKey(key)
	}
	if c.complete.open() {
		if cmd, done := c.completionKey(name); done {
			return cmd
		}
	}
	if name == "esc" {
		return c.esc()
	}
	if cmd, ok := c.command(name); ok {
		return cmd
	}
	if c.edit(name) {
		return c.completions()
	}
	if typed != "" {
		c.editor.Insert(typed)
		return c.completions()
	}
	return nil
}

// ctrlC clears the draft, or stops the turn, or leaves if it is pressed twice.
func (c *chat) ctrlC() tea.Cmd {
	again := c.now().Sub(c.lastCtrlC) < twice
	c.lastCtrlC = c.now()
	switch {
	case again:
		c.leaving = true
		return nil
	case c.questions.typing && c.editor.Empty() && !c.questions.first().WantsText():
		c.questions.typing = false
		return nil
	case !c.editor.Empty():
		c.editor.Clear()
		c.complete.close()
		c.notify("cleared; press Ctrl-C again to leave")
		return nil
	case c.ownTask != "":
		return c.endOwn()
	case c.working:
		return c.stop()
	}
	c.notify("press Ctrl-C again to leave; nothing is lost")
	return nil
}

// esc closes what is open, or stops the turn. Twice in an empty editor it shows where the
// conversation can go back to.
func (c *chat) esc() tea.Cmd {
	again := c.now().Sub(c.lastEsc) < twice
	switch {
	case c.questions.typing && c.questions.first() != nil && !c.questions.first().WantsText():
		c.questions.typing = false
		c.editor.Clear()
	case c.questions.typing && c.questions.first() != nil && c.editor.Empty():
		c.questions.typing, c.questions.focused = false, false
		c.questions.shown = c.now().Add(calmAfterLeaving)
	case c.working:
		return c.stop()
	case c.editor.Empty() && again:
		c.lastEsc = time.Time{}
		return c.rewindPicker()
	case c.editor.Empty():
		c.lastEsc = c.now()
		c.notify("press Esc again to go back in the conversation")
	}
	return nil
}

// command handles the keys that do something other than editing. It reports false for
// other keys.
func (c *chat) command(name string) (tea.Cmd, bool) {
	switch name {
	case "enter":
		return c.enter(), true
	case "ctrl+s":
		return c.steer(), true
	case "tab":
		if q := c.questions.first(); q != nil {
			c.questions.focused = true
			c.questions.typing = q.WantsText() && c.editor.Empty()
		}
		return nil, true
	case "ctrl+d":
		if c.editor.Empty() {
			c.leaving = true
			return nil, true
		}
		return nil, false
	case "ctrl+r":
		c.search = &search{}
		return nil, true
	case "ctrl+l":
		c.screen.Redraw()
		return nil, true
	case "ctrl+o", "pgup":
		return c.history(), true
	case "ctrl+t":
		return c.tasksPicker(), true
	case "ctrl+g":
		return c.externalEditor(), true
	}
	return nil, false
}

// edit handles the keys of the editor. It reports false for other keys.
func (c *chat) edit(name string) bool {
	e := &c.editor
	switch name {
	case "shift+enter", "alt+enter", "ctrl+j":
		e.Insert("\n")
	case "backspace", "ctrl+h", "shift+backspace":
		e.Backspace()
	case "delete", "ctrl+d":
		e.Delete()
	case "left", "ctrl+b":
		e.Left()
	case "right", "ctrl+f":
		e.Right()
	case "home", "ctrl+a":
		e.Home()
	case "end", "ctrl+e":
		e.End()
	case "alt+b", "ctrl+left", "alt+left":
		e.WordLeft()
	case "alt+f", "ctrl+right", "alt+right":
		e.WordRight()
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.KillWord()
	case "ctrl+k":
		e.KillLine()
	case "ctrl+u":
		e.KillStart()
	case "ctrl+y":
		e.Yank()
	case "ctrl+_", "ctrl+/", "ctrl+shift+-":
		e.Undo()
	case "up", "ctrl+p":
		if !e.Up(c.columns - 2) {
			e.Older()
		}
	case "down", "ctrl+n":
		if !e.Down(c.columns - 2) {
			e.Newer()
		}
	default:
		return false
	}
	return true
}

// paste takes in pasted text. It never answers a question.
func (c *chat) paste(s string) tea.Cmd {
	c.lastKey = c.now()
	if a, ok := c.overlay.(*attachment); ok {
		a.paste(s)
		return nil
	}
	if c.overlay != nil || c.search != nil {
		return nil
	}
	if c.questions.focused && !c.questions.typing {
		c.questions.focused = false
		c.questions.shown = c.now().Add(calmAfterLeaving)
	}
	c.editor.Paste(s)
	return c.completions()
}

// enter sends what was typed: an answer, a command of the chat, a command of the person or
// a message. A backslash at the end is a line break.
func (c *chat) enter() tea.Cmd {
	draft := c.editor.Text()
	if strings.HasSuffix(draft, "\\") {
		c.editor.Backspace()
		c.editor.Insert("\n")
		return nil
	}
	said := strings.TrimSpace(draft)
	if said == "" {
		return nil
	}
	c.take(said)
	if q := c.questions.first(); q != nil && c.questions.typing {
		return c.answer(q, said)
	}
	if c.session.ID == "" {
		c.early = append(c.early, said)
		return nil
	}
	return c.say(said)
}

// say carries out a command of the chat or of the person, or sends a message.
func (c *chat) say(said string) tea.Cmd {
	switch {
	case strings.HasPrefix(said, "!") && len(said) > 1:
		return c.own(strings.TrimSpace(said[1:]))
	case strings.HasPrefix(said, "/"):
		if cmd, ok := c.slash(said); ok {
			return cmd
		}
	}
	return c.submit(said, false)
}

// take empties the editor and remembers what was in it.
func (c *chat) take(said string) {
	c.editor.Remember(said)
	c.editor.Clear()
	c.complete.close()
}

// steer sends a message to the turn that runs.
func (c *chat) steer() tea.Cmd {
	said := strings.TrimSpace(c.editor.Text())
	if said == "" || c.session.ID == "" {
		return nil
	}
	c.take(said)
	return c.submit(said, true)
}

// A search looks for an entry of the history.
type search struct {
	query []rune
	skip  int
}

func (c *chat) searchKey(name, typed string) tea.Cmd {
	s := c.search
	switch name {
	case "esc", "ctrl+c", "ctrl+g":
		c.search = nil
	case "enter", "tab", "right", "left":
		if found := c.editor.Find(string(s.query), s.skip); found != "" {
			c.editor.Set(found)
		}
		c.search = nil
	case "ctrl+r", "up":
		if c.editor.Find(string(s.query), s.skip+1) != "" {
			s.skip++
		}
	case "down":
		s.skip = max(0, s.skip-1)
	case "backspace":
		s.query, s.skip = s.query[:max(0, len(s.query)-1)], 0
	default:
		s.query, s.skip = append(s.query, []rune(typed)...), 0
	}
	return c.awaitCalm()
}

// lines returns what is shown instead of the editor.
func (s *search) lines(e *editor.Editor, columns int) (lines []text.Line, row, col int) {
	label := "search: " + text.Clean(string(s.query))
	line := text.Line{{Text: label, Style: text.Style{Colour: text.Cyan}}}
	if found := e.Find(string(s.query), s.skip); found != "" {
		line = append(line, text.Span{Text: "  " + text.OneLine(found)})
	}
	return []text.Line{line.Cut(columns)}, 0, min(text.Width(label), columns-1)
}
