package tui

import (
	"time"

	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
)

// draw shows the state of the chat.
func (c *chat) draw() {
	if a, ok := c.overlay.(*attachment); ok {
		lines, row, col := a.frame(c.columns, c.rows)
		c.screen.Draw(screen.Frame{Overlay: lines, Row: row, Col: col})
		return
	}
	if c.overlay != nil {
		c.screen.Draw(screen.Frame{Overlay: c.overlay.lines(c.columns, c.rows), Row: -1})
		return
	}
	c.screen.Draw(c.frame())
}

// frame returns the live region: what is under way, the question, the editor and the
// status. It leaves two rows of the terminal free. What is needed to type comes first
// when there is little room. What is under way has at most half of the rows: a terminal
// that becomes smaller moves what does not fit into its scrollback, for good.
func (c *chat) frame() screen.Frame {
	room := max(1, c.rows-2)
	input, row, col := c.inputLines(max(1, room/3))
	room -= len(input)
	var below, between []text.Line
	if room > 0 {
		below = append(below, c.status.line(c.columns))
		room--
	}
	if popup := c.complete.lines(c.columns, min(room, maxPopup)); len(popup) > 0 {
		below = append(popup, below...)
		room -= len(popup)
	}
	between = c.progress(min(room, maxNotice))
	room -= len(between)
	asked := c.questionLines(room)
	room -= len(asked)
	waiting := c.queuedLines(min(room, maxQueued))
	room -= len(waiting)
	var lines []text.Line
	most := c.rows / 2
	if c.screen != nil && c.screen.Slow() {
		most = slowRows
	}
	live := c.talk.Live(c.columns, max(0, min(room-1, most)), c.now())
	if len(live) > 0 && room > 1 {
		lines = append(append(lines, nil), live...)
	} else if room > 0 && len(asked)+len(between)+len(waiting) > 0 || room > 1 {
		lines = append(lines, nil)
	}
	lines = append(lines, waiting...)
	lines = append(lines, asked...)
	lines = append(lines, between...)
	row += len(lines)
	lines = append(append(lines, input...), below...)
	if c.questions.focused && !c.questions.typing && len(asked) > 0 {
		row = -1 // nothing is typed; a terminal that becomes smaller cuts off what is below its cursor
	}
	return screen.Frame{Lines: lines, Row: row, Col: col}
}

// slowRows is the number of rows of what is under way on a slow terminal.
const slowRows = 2

// maxQueued is the number of messages that wait of which a line is shown, maxPopup the number
// of completions, and maxNotice the number of lines of a notice.
const (
	maxQueued = 3
	maxPopup  = 6
	maxNotice = 3
)

// queuedLines returns the messages that wait.
func (c *chat) queuedLines(most int) []text.Line {
	var lines []text.Line
	for i, q := range c.queued {
		if len(lines) == most {
			break
		}
		if len(lines) == most-1 && i < len(c.queued)-1 {
			lines = append(lines, text.Styled(plural(len(c.queued)-i, "more message waits", "more messages wait"), text.Style{Faint: true}))
			break
		}
		if c.working {
			lines = append(lines, text.Styled("waits: "+text.OneLine(q.text), text.Style{Faint: true}).Cut(c.columns))
		}
	}
	return lines
}

// spinner are the pictures of the spinner.
var spinner = []string{"◐", "◓", "◑", "◒"}

// plainSpinner are those for a terminal that does not know UTF-8.
var plainSpinner = []string{"|", "/", "-", "\\"}

// progress returns the lines above the editor: what the turn does and for how long, or a
// notice.
func (c *chat) progress(most int) []text.Line {
	faint := text.Style{Faint: true}
	switch {
	case c.search != nil || most <= 0:
		return nil
	case c.notice != "":
		return c.noticeLines(most)
	case c.ownTask != "":
		return []text.Line{text.Styled("! "+text.OneLine(c.ownTask)+" runs; Ctrl-C ends it", faint).Cut(c.columns)}
	case !c.working:
		return nil
	}
	pictures := spinner
	if c.opts.Screen.Encoder.ASCII {
		pictures = plainSpinner
	}
	since := c.now().Sub(c.since)
	picture := pictures[int(since/frameTime)%len(pictures)]
	return []text.Line{text.Line{
		{Text: picture + " ", Style: text.Style{Colour: text.Magenta}},
		{Text: c.doing()},
		{Text: " " + block.Elapsed(since.Truncate(100*time.Millisecond)) + " · Esc stops", Style: faint},
	}.Cut(c.columns)}
}

// noticeLines returns the notice in at most some lines: it may be the reason of an error.
func (c *chat) noticeLines(most int) []text.Line {
	style := text.Style{Colour: text.Yellow}
	lines := text.Styled("· "+c.notice, style).Wrap(c.columns, text.Plain("  "))
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = append(lines[most-1], text.Span{Text: " …", Style: style})
	}
	for i, l := range lines {
		lines[i] = l.Cut(c.columns)
	}
	return lines
}

// doing says what the turn does or waits for.
func (c *chat) doing() string {
	calls := c.talk.Calls()
	switch {
	case c.stopping:
		return "stopping"
	case len(c.questions.open) > 0:
		return "waiting for your answer"
	case c.waits != "":
		return c.waits
	case len(calls) == 1:
		return "running " + calls[0].Name
	case len(calls) > 1:
		return plural(len(calls), "call runs", "calls run")
	case c.talk.Drafting() != "":
		return "writing a call of " + c.talk.Drafting()
	case c.talk.Streaming():
		return "answering"
	case c.status.model != "":
		return "waiting for " + text.OneLine(shortModel(c.status.model))
	}
	return "working"
}

// inputLines returns the rows of the editor, and the position of the cursor in them.
func (c *chat) inputLines(most int) (lines []text.Line, row, col int) {
	mark := text.Span{Text: "› ", Style: text.Style{Bold: true, Colour: text.Blue}}
	switch {
	case c.search != nil:
		return c.search.lines(&c.editor, c.columns)
	case c.questions.typing && c.questions.first() != nil:
		mark = text.Span{Text: "◇ ", Style: text.Style{Bold: true, Colour: text.Yellow}}
	case c.questions.focused && c.questions.first() != nil:
		mark = text.Span{Text: "  "}
	}
	l := c.editor.Layout(c.columns - 2)
	from := max(0, min(l.Row-most/2, len(l.Rows)-most))
	for i := from; i < min(len(l.Rows), from+most); i++ {
		lines = append(lines, append(text.Line{mark}, l.Rows[i]...))
		mark = text.Span{Text: "  "}
	}
	if c.editor.Empty() && !c.working && len(c.talk.Calls()) == 0 && c.questions.first() == nil {
		lines[0] = append(lines[0], text.Span{Text: c.hint(), Style: text.Style{Faint: true}})
	}
	return lines, l.Row - from, l.Col + 2
}

// hint says what can be typed into an empty editor.
func (c *chat) hint() string {
	if c.session.ID == "" {
		return "opening the session"
	}
	return "ask, or / for commands, @ for files, ! for a command of your own"
}
