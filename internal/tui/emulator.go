package tui

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"

	"github.com/abide-run/abide/internal/tui/text"
)

// An emulator is a terminal in memory. It takes what a command prints, says what a terminal
// would show, and sends what a terminal would send: keys in the form that the program has
// chosen, and answers to its questions. Only one goroutine uses it.
type emulator struct {
	vt      *vt.Emulator
	hidden  bool        // true if the program hides the cursor
	silent  atomic.Bool // true while old output is drawn again, whose questions were answered
	drained chan struct{}
}

// newEmulator returns a terminal of some columns and rows. What it sends is passed to send,
// until it is closed.
func newEmulator(columns, rows int, send func([]byte)) *emulator {
	e := &emulator{vt: vt.NewEmulator(columns, rows), drained: make(chan struct{})}
	e.vt.SetScrollbackSize(1)
	e.vt.SetCallbacks(vt.Callbacks{CursorVisibility: func(visible bool) { e.hidden = !visible }})
	go e.drain(send) // close waits for it
	return e
}

// drain passes on what the terminal sends.
func (e *emulator) drain(send func([]byte)) {
	defer close(e.drained)
	buf := make([]byte, 4<<10)
	for {
		n, err := e.vt.Read(buf)
		if err != nil {
			return
		}
		if n > 0 && !e.silent.Load() {
			send(bytes.Clone(buf[:n]))
		}
	}
}

// close ends the terminal.
func (e *emulator) close() {
	_ = e.vt.InputPipe().(io.Closer).Close() // a pipe in memory
	<-e.drained
}

// write takes output of the program.
func (e *emulator) write(p []byte) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the output of the command cannot be drawn: %v", fault)
		}
	}()
	_, err = e.vt.Write(p)
	return err
}

// replay takes output that was printed before. What a terminal would answer to it is not sent.
func (e *emulator) replay(p []byte) error {
	e.silent.Store(true)
	err := e.write(p)
	_, _ = e.vt.InputPipe().Write(nil) // is read when every answer before it was
	e.silent.Store(false)
	return err
}

// press sends a key.
func (e *emulator) press(k tea.Key) {
	switch {
	case k.Text != "":
		e.vt.SendText(k.Text)
	default:
		e.vt.SendKey(uv.KeyPressEvent{Code: k.Code, Mod: k.Mod})
	}
}

// paste sends a text that was pasted.
func (e *emulator) paste(s string) { e.vt.Paste(strings.ReplaceAll(s, "\n", "\r")) }

// A picture is what a terminal shows.
type picture struct {
	lines    []text.Line
	row, col int // place of the cursor; row is -1 if it is hidden
}

// picture returns what the terminal shows. Nothing in it does anything to another terminal.
func (e *emulator) picture() picture {
	p := picture{row: -1}
	for y := range e.vt.Height() {
		p.lines = append(p.lines, e.line(y))
	}
	if at := e.vt.CursorPosition(); !e.hidden {
		p.row, p.col = at.Y, at.X
	}
	return p
}

// line returns a row of the terminal.
func (e *emulator) line(y int) text.Line {
	var line text.Line
	var b strings.Builder
	var style uv.Style
	flush := func() {
		if b.Len() > 0 {
			line = append(line, text.Span{Text: b.String(), Style: styleOf(style)})
			b.Reset()
		}
	}
	for x := 0; x < e.vt.Width(); x++ {
		cell := e.vt.CellAt(x, y)
		if cell == nil {
			cell = &uv.EmptyCell
		}
		if !cell.Style.Equal(&style) {
			flush()
			style = cell.Style
		}
		b.WriteString(cellText(cell))
		x += max(0, cell.Width-1)
	}
	flush()
	return line
}

// cellText returns what a cell shows, in as many columns as it has.
func cellText(c *uv.Cell) string {
	width := max(1, c.Width)
	if c.Content == "" || c.Style.Attrs&uv.AttrConceal != 0 {
		return strings.Repeat(" ", width)
	}
	for _, s := range []string{c.Content, string([]rune(c.Content)[:1])} { // a character may be drawn wider with what joins it
		if s == text.Clean(s) && text.Width(s) == width && !strings.Contains(s, "\n") {
			return s
		}
	}
	return strings.Repeat("?", width)
}

// styleOf returns the style of a cell.
func styleOf(s uv.Style) text.Style {
	style := text.Style{
		Bold: s.Attrs&uv.AttrBold != 0, Faint: s.Attrs&uv.AttrFaint != 0, Italic: s.Attrs&uv.AttrItalic != 0,
		Underline: s.Underline != uv.UnderlineNone, Reverse: s.Attrs&uv.AttrReverse != 0,
	}
	if s.Fg != nil || s.Bg != nil {
		colours := uv.Style{Fg: s.Fg, Bg: s.Bg}
		style.Chosen = strings.TrimSuffix(strings.TrimPrefix(colours.String(), "\x1b["), "m")
	}
	return style
}
