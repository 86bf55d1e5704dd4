package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/tui/text"
)

// leaveKey is the key that takes the terminal back from a command.
const leaveKey = "ctrl+]"

// An attachment is an overlay in which a command has the terminal: what is typed goes to the
// command, and what the command draws is shown. Its output is drawn on a terminal in memory
// first, so that nothing that it prints reaches the real one, and nothing that it prints can
// keep leaveKey from working.
type attachment struct {
	client *client.Client
	task   api.Task
	send   func(tea.Msg)
	below  int // rows below the screen of the command

	ctx    context.Context // ends when the terminal is taken back
	cancel context.CancelFunc
	output chan api.TaskOutputResult
	wake   chan struct{} // has an entry if there is something to do
	typing chan struct{} // has an entry if there is something to type

	mu      sync.Mutex
	todo    []func(*emulator) // for the goroutine of the emulator
	typed   []byte            // to be sent to the command
	closes  bool              // true if its input is to be closed after that
	shown   picture
	ended   string // how the command has ended; empty while it runs
	columns int    // size of the real terminal
	rows    int

	line []rune // what is being typed for a command without a terminal
}

// replayed is how much of the output is drawn to find what the terminal of a command shows.
const replayed = 1 << 20

// attach gives the terminal to a command, or shows its output if it takes no input.
func (c *chat) attach(t api.Task) tea.Cmd {
	if !t.Input {
		c.notify("the command takes no input")
		return c.showOutput(t)
	}
	c.overlay = c.newAttachment(t)
	return nil
}

// attachOnly gives the terminal to the only command that takes input, or lets the person
// choose one.
func (c *chat) attachOnly() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		list, err := c.opts.Client.Tasks(ctx, api.TasksParams{SessionID: id, Agents: true})
		open := slices.DeleteFunc(list.Tasks, func(t api.Task) bool { return !t.Input })
		return func() tea.Cmd {
			switch len(open) {
			case 0:
				c.notify("no command runs that takes input")
				return c.tick()
			case 1:
				return c.attach(open[0])
			}
			return c.tasksPicker()
		}, err
	})
}

// newAttachment begins to show a command.
func (c *chat) newAttachment(t api.Task) *attachment {
	ctx, cancel := context.WithCancel(c.ctx)
	a := &attachment{
		client: c.opts.Client, task: t, send: c.send, ctx: ctx, cancel: cancel, output: make(chan api.TaskOutputResult),
		wake: make(chan struct{}, 1), typing: make(chan struct{}, 1), columns: c.columns, rows: c.rows, below: 1,
	}
	if t.Terminal == nil {
		a.below = 2
	}
	c.attached.Go(func() { a.run(ctx, c.ctx) })
	return a
}

// detach takes the terminal back.
func (c *chat) detach() {
	c.overlay = nil
	c.leaving = c.leaving || c.opts.Attach != nil
}

// attachedMsg says that the screen of a command has changed.
type attachedMsg struct{}

// run shows the command until ctx ends, and gives its terminal the former size then.
func (a *attachment) run(ctx, after context.Context) {
	size := api.TerminalSize{Rows: usualRows, Cols: usualColumns}
	if a.task.Terminal != nil {
		size = *a.task.Terminal
	}
	e := newEmulator(size.Cols, size.Rows, a.pass)
	var work sync.WaitGroup
	work.Go(func() { a.follow(ctx) })
	work.Go(func() { a.deliver(ctx) })
	first := true
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case out := <-a.output:
			a.draw(ctx, e, out, first)
			if first {
				a.resize(ctx, e)
			}
			first = false
		case <-a.wake:
			for _, f := range a.take() {
				f(e)
			}
		}
		a.mu.Lock()
		a.shown = e.picture()
		a.mu.Unlock()
		a.send(attachedMsg{})
	}
	e.close()
	work.Wait()
	if a.task.Terminal != nil && after.Err() == nil {
		_ = a.client.ResizeTask(after, a.resizing(size)) // it may have ended
	}
}

// resizing returns the request to give the terminal of the command a size.
func (a *attachment) resizing(size api.TerminalSize) api.TaskResizeParams {
	return api.TaskResizeParams{SessionID: a.task.SessionID, TaskID: a.task.TaskID, TerminalSize: size}
}

// drawnAtOnce is how much output is drawn before it is looked whether the person has left:
// there is output that takes long.
const drawnAtOnce = 4 << 10

// draw draws what the command has printed; what it has printed before if old is true.
func (a *attachment) draw(ctx context.Context, e *emulator, out api.TaskOutputResult, old bool) {
	data := out.Data
	if a.task.Terminal == nil {
		data = []byte(strings.ReplaceAll(string(data), "\n", "\r\n"))
	}
	write := e.write
	if old {
		write = e.replay
	}
	for len(data) > 0 && ctx.Err() == nil {
		n := min(len(data), drawnAtOnce)
		if err := write(data[:n]); err != nil {
			a.end(err.Error())
		}
		data = data[n:]
	}
	if out.End {
		a.end(ending(out.Task))
	}
}

// ending says how a command has ended.
func ending(t api.Task) string {
	if t.ExitCode != nil {
		return fmt.Sprintf("exit code %d", *t.ExitCode)
	}
	return t.Status
}

// end notes how the command has ended, or why it cannot be shown.
func (a *attachment) end(how string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = text.OneLine(how)
}

// follow reads what the command prints, at most thirty times a second.
func (a *attachment) follow(ctx context.Context) {
	pause := time.NewTicker(between)
	defer pause.Stop()
	p := api.TaskOutputParams{SessionID: a.task.SessionID, TaskID: a.task.TaskID, Tail: replayed}
	for {
		r, err := a.client.TaskOutput(ctx, p)
		if err != nil {
			if ctx.Err() == nil {
				a.end(err.Error())
				a.send(attachedMsg{})
			}
			return
		}
		select {
		case a.output <- r:
		case <-ctx.Done():
			return
		}
		if r.End {
			return
		}
		p.Tail, p.Offset, p.Wait = 0, r.Next, true
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// pass takes what is to be sent to the command.
func (a *attachment) pass(p []byte) {
	a.mu.Lock()
	a.typed = append(a.typed, p...)
	a.mu.Unlock()
	signalTo(a.typing)
}

// signalTo puts an entry into a channel that has none.
func signalTo(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxTyped is how much is sent to a command at once.
const maxTyped = 64 << 10

// deliver sends what is typed to the command, in order.
func (a *attachment) deliver(ctx context.Context) {
	for {
		select {
		case <-a.typing:
		case <-ctx.Done():
			return
		}
		for {
			p := api.TaskInputParams{SessionID: a.task.SessionID, TaskID: a.task.TaskID}
			a.mu.Lock()
			n := min(len(a.typed), maxTyped)
			p.Data, a.typed = a.typed[:n:n], a.typed[n:]
			p.Close = a.closes && len(a.typed) == 0
			if p.Close {
				a.closes = false
			}
			a.mu.Unlock()
			if len(p.Data) == 0 && !p.Close {
				break
			}
			if err := a.client.TypeInto(ctx, p); err != nil && ctx.Err() == nil {
				a.refused(err)
				a.send(attachedMsg{})
			}
		}
	}
}

// refused notes that the command does not take what is typed. How it has ended says more.
func (a *attachment) refused(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == "" {
		a.ended = text.OneLine(err.Error())
	}
}

// ask lets the goroutine of the emulator do something.
func (a *attachment) ask(f func(*emulator)) {
	a.mu.Lock()
	a.todo = append(a.todo, f)
	a.mu.Unlock()
	signalTo(a.wake)
}

// take returns what is to be done.
func (a *attachment) take() []func(*emulator) {
	a.mu.Lock()
	defer a.mu.Unlock()
	todo := a.todo
	a.todo = nil
	return todo
}

// The largest terminal of a command.
const (
	mostColumns = 400
	mostRows    = 200
)

// resize gives the terminal of the command the room that there is.
func (a *attachment) resize(ctx context.Context, e *emulator) {
	a.mu.Lock()
	size := api.TerminalSize{Cols: min(max(1, a.columns), mostColumns), Rows: min(max(1, a.rows-a.below), mostRows)}
	over := a.ended != ""
	a.mu.Unlock()
	e.vt.Resize(size.Cols, size.Rows)
	if a.task.Terminal == nil || over {
		return
	}
	if err := a.client.ResizeTask(ctx, a.resizing(size)); err != nil && ctx.Err() == nil {
		a.refused(err)
	}
}

// press handles a key. It reports true if the terminal is taken back.
func (a *attachment) press(m tea.KeyPressMsg) (closed bool) {
	a.mu.Lock()
	over := a.ended != ""
	a.mu.Unlock()
	switch key := m.Keystroke(); {
	case key == leaveKey, over && key == "esc":
		a.cancel()
		return true
	case over:
	case a.task.Terminal == nil:
		a.edit(key, m.Key().Text)
	default:
		a.ask(func(e *emulator) { e.press(m.Key()) })
	}
	return false
}

// edit handles a key for a command without a terminal, which is sent whole lines.
func (a *attachment) edit(key, typed string) {
	switch key {
	case "enter":
		line := string(a.line)
		a.line = nil
		a.ask(func(e *emulator) { _ = e.write([]byte(text.Clean(line) + "\r\n")) })
		a.pass([]byte(line + "\n"))
	case "backspace":
		a.line = a.line[:max(0, len(a.line)-1)]
	case "ctrl+u", "ctrl+c":
		a.line = nil
	case "ctrl+d":
		if len(a.line) == 0 {
			a.mu.Lock()
			a.closes = true
			a.mu.Unlock()
			signalTo(a.typing)
		}
	default:
		a.line = append(a.line, []rune(typed)...)
	}
}

// paste handles pasted text.
func (a *attachment) paste(s string) {
	switch {
	case !utf8.ValidString(s):
	case a.task.Terminal != nil:
		a.ask(func(e *emulator) { e.paste(s) })
	default:
		a.line = append(a.line, []rune(strings.TrimRight(s, "\r\n"))...)
	}
}

// key is not called: press takes the keys as they are.
func (a *attachment) key(*chat, string, string) (tea.Cmd, bool) { return nil, false }

// frame returns what is shown, and the place of the cursor.
func (a *attachment) frame(columns, rows int) (lines []text.Line, row, col int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if columns != a.columns || rows != a.rows {
		a.columns, a.rows = columns, rows
		a.todo = append(a.todo, func(e *emulator) { a.resize(a.ctx, e) })
		signalTo(a.wake)
	}
	room := max(0, rows-a.below)
	lines = append(lines, a.shown.lines[:min(room, len(a.shown.lines))]...)
	for len(lines) < room {
		lines = append(lines, nil)
	}
	row, col = a.shown.row, a.shown.col
	foot := "Ctrl-] leaves, and the command goes on"
	if a.ended != "" {
		foot = a.ended + " · Ctrl-] leaves"
		row = -1
	} else if a.task.Terminal == nil {
		input := text.Styled("› ", text.Style{Bold: true, Colour: text.Blue})
		input = append(input, text.Span{Text: text.Clean(string(a.line))})
		lines = append(lines, input.Cut(columns))
		row, col = len(lines)-1, min(input.Width(), columns-1)
		foot = "Ctrl-] leaves · Enter sends a line · Ctrl-D ends the input"
	}
	foot += " · " + text.OneLine(a.task.Command)
	for len(lines) < rows-1 {
		lines = append(lines, nil)
	}
	return append(lines, bar(foot, columns, 1)...), row, col
}

// lines returns what is shown.
func (a *attachment) lines(columns, rows int) []text.Line {
	lines, _, _ := a.frame(columns, rows)
	return lines
}
