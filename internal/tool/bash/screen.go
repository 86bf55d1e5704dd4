package bash

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/tool/bash/screen"
)

// maxDrawn is the number of bytes at the end of an output from which a screen is made. A
// program that has drawn more shows what it has drawn with the last of them.
const maxDrawn = 4 << 20

// fullScreen returns the screen of a task if a program draws on all of it. The screen is made
// from the output, so it does not matter which engine has started the command.
func (c *Commands) fullScreen(ctx context.Context, t Task) (screen.Screen, bool, error) {
	if !t.Process.TTY || t.Process.Output.Bytes == 0 {
		return screen.Screen{}, false, nil
	}
	s, err := c.screen(ctx, t)
	if errors.Is(err, errNotDrawn) || errors.Is(err, process.ErrDropped) {
		return s, false, nil // the output is shown as text
	}
	return s, err == nil && s.Full, err
}

// errNotDrawn is returned for output that is no picture of a terminal.
var errNotDrawn = errors.New("the output cannot be shown as a screen")

// screen makes the screen of a task from its output.
func (c *Commands) screen(ctx context.Context, t Task) (screen.Screen, error) {
	terminal := screen.New(t.Size())
	end := t.Process.Output.Bytes
	for at := max(0, end-maxDrawn); at < end; {
		chunk, err := c.Processes.Read(ctx, t.Process.Owner, t.Process.ID, process.ReadRequest{Offset: at, Until: end})
		if err != nil {
			return screen.Screen{}, err
		}
		if err := terminal.Write(chunk.Data); err != nil {
			return screen.Screen{}, errors.Join(errNotDrawn, err)
		}
		if chunk.Next <= at {
			break
		}
		at = chunk.Next
	}
	s, err := terminal.Screen()
	if err != nil {
		return s, errors.Join(errNotDrawn, err)
	}
	return s, nil
}

// applicationKeys reports whether the program of a task wants arrow keys in their
// application form. A program whose screen is not known gets the ordinary form.
func (c *Commands) applicationKeys(ctx context.Context, t Task) bool {
	s, err := c.screen(ctx, t)
	return err == nil && s.Application
}

// Size returns the size of a task's terminal.
func (t Task) Size() screen.Size {
	if t.note.Rows > 0 && t.note.Cols > 0 {
		return screen.Size{Rows: t.note.Rows, Cols: t.note.Cols}
	}
	return screen.Size{Rows: terminalRows, Cols: terminalCols}
}

// asScreen returns an excerpt, with the screen in place of the text if a program draws on all
// of it.
func (c *Commands) asScreen(ctx context.Context, t Task, e excerpt) (excerpt, error) {
	s, full, err := c.fullScreen(ctx, t)
	if full {
		e = e.as(s)
	}
	return e, err
}

// as returns the excerpt with a screen in place of the text.
func (e excerpt) as(s screen.Screen) excerpt {
	return excerpt{text: s.String(), next: e.next, total: e.total}
}

// waitingFor returns what a program that draws on the whole screen seems to ask: the row of
// the cursor.
func waitingFor(s screen.Screen) string {
	if line := strings.TrimSpace(s.Lines[s.Row-1]); line != "" {
		return line
	}
	return "It waits for a key."
}

// readSize reads the size of a terminal from the arguments of a call. It is zero if they have
// none; a number that is missing beside the other is the usual one.
func readSize(a *argument.Set) (size screen.Size) {
	rows, hasRows := a.Number("rows")
	cols, hasCols := a.Number("cols", "columns")
	if !hasRows && !hasCols {
		return size
	}
	check := func(name string, n int64, has bool, usual, most int64) int {
		if has && (n < 1 || n > most) {
			a.Wrong(name, "Expected a number from 1 to %d", most)
		}
		if !has {
			n = usual
		}
		return int(n)
	}
	size.Rows = check("rows", rows, hasRows, terminalRows, screen.MaxRows)
	size.Cols = check("cols", cols, hasCols, terminalCols, screen.MaxCols)
	return size
}

// resize changes the size of a task's terminal, and waits a moment for what its program
// draws then.
func (c *Commands) resize(ctx context.Context, call tool.Call, t Task, size screen.Size) (Task, error) {
	if !t.Process.TTY {
		return t, fail("The command has no terminal", "%s has no terminal. Start a command with tty set to true to give it one.", t.ID)
	}
	at := t.Process.Output.Bytes
	t, err := c.Resize(ctx, call.Session, t, size)
	if errors.Is(err, process.ErrEnded) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	soon, cancel := context.WithTimeout(ctx, redrawWait)
	defer cancel()
	if _, err = waitMore(soon, c.Processes, t.Process, at); err == nil {
		_, err = waitQuiet(soon, c.Processes, t.Process, answeredWhen)
	}
	if overdue(ctx, soon, err) || errors.Is(err, process.ErrEnded) {
		err = nil
	}
	return t, err
}

// redrawWait is how long a program has to draw again after its terminal was resized.
const redrawWait = time.Second

// Resize changes the size of a task's terminal. The size is noted first: a screen for a size
// that the terminal does not have is put right by the next change, and one for a size that
// nobody knows would not be.
func (c *Commands) Resize(ctx context.Context, id event.SessionID, t Task, size screen.Size) (Task, error) {
	if !t.Process.TTY {
		return t, process.ErrNoTerminal
	}
	if err := c.recordSize(id, t.Process.Key, size); err != nil {
		return t, err
	}
	t.note.Rows, t.note.Cols = size.Rows, size.Cols
	return t, c.Processes.Resize(ctx, t.Process.Owner, t.Process.ID, process.Size{Rows: uint16(size.Rows), Cols: uint16(size.Cols)})
}

// recordSize notes the size of a task's terminal.
func (c *Commands) recordSize(id event.SessionID, key string, size screen.Size) error {
	return c.changeNote(id, key, func(n *note) { n.Rows, n.Cols = size.Rows, size.Cols })
}
