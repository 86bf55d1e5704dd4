package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/editor"
	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
)

// Options are what a chat needs to know.
type Options struct {
	Client  *client.Client
	In, Out *os.File // the terminal
	Screen  screen.Options
	Blocks  block.Options
	Dir     string // working directory
	Version string
	Notify  bool // true to tell the terminal, and by it the desktop, that something waits

	// Open opens a session, or makes one if the id is empty. Its events are in the stream
	// from the moment at which it is opened.
	Open func(ctx context.Context, id event.SessionID) (Session, error)
	// First is the session to begin with; a new one if it is empty.
	First event.SessionID
	// Attach is a command that gets the terminal instead of a chat; nil for a chat.
	Attach *api.Task
	// Question returns the question that an event asks; false if it asks none.
	Question func(event.Event) (Question, bool)
	// Files lists the files below the working directory that are not ignored.
	Files func(context.Context) ([]string, error)
	// Reports are commands that show a text.
	Reports []Report
	// Messages are messages of the program itself, to be shown between the blocks.
	Messages chan string
	// Export writes the log of a session to a file.
	Export func(ctx context.Context, id event.SessionID, name string) error
}

// A Session is an open session.
type Session struct {
	ID     event.SessionID
	Dir    string
	Stream *client.Stream
	New    bool
}

// A Report is a command of the chat that shows a text.
type Report struct {
	Name, About string
	Text        func(ctx context.Context, id event.SessionID, columns int) (string, error)
}

// A Result is how a chat ended.
type Result struct {
	Session event.SessionID // the last session; empty if none was opened
	Working bool            // true if its turn was not over
	Asked   bool            // true if a question of it was open
}

// Run runs a chat until the person leaves it.
func Run(ctx context.Context, opts Options) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := openTerminal(opts.In, opts.Out)
	if err != nil {
		return Result{}, err
	}
	defer t.restore()
	columns, rows := t.size()
	c := &chat{opts: opts, ctx: ctx, terminal: t, columns: columns, rows: rows, now: time.Now}
	opts.Screen.Size, opts.Screen.Settle, opts.Screen.Paced = t.size, settleTime, true
	c.screen = screen.New(opts.Out, columns, rows, opts.Screen)
	c.reset()
	defer c.attached.Wait()
	defer cancel()
	program := tea.NewProgram(c, tea.WithContext(ctx), tea.WithInput(&watchedInput{opts.In, c.screen.Read}), tea.WithOutput(opts.Out), tea.WithoutRenderer(), tea.WithoutSignalHandler())
	c.send = program.Send
	stop := t.watchSize(func(columns, rows int) { program.Send(tea.WindowSizeMsg{Width: columns, Height: rows}) })
	if opts.Attach != nil {
		c.overlay = c.newAttachment(*opts.Attach)
	}
	var passing sync.WaitGroup
	passing.Go(func() { passMessages(ctx, opts.Messages, program.Send) })
	_, err = program.Run()
	stop()
	cancel()
	c.stopFeed()
	passing.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil // whoever ended the context knows why
	}
	if closed := c.screen.Close(); err == nil {
		err = closed
	}
	t.awaitAnswer(c.screen)
	return Result{c.session.ID, c.working, len(c.questions.open) > 0}, errors.Join(c.failed, err)
}

// settleTime is how long nothing is written when the size of the terminal has changed.
const settleTime = 300 * time.Millisecond

// passMessages passes messages of the program to the chat.
func passMessages(ctx context.Context, from <-chan string, send func(tea.Msg)) {
	for {
		select {
		case s := <-from:
			send(noteMsg(s))
		case <-ctx.Done():
			return
		}
	}
}

// noteMsg is a message of the program.
type noteMsg string

// A chat is the state of the program. Only the goroutine of the program uses it.
type chat struct {
	opts     Options
	ctx      context.Context
	terminal *terminal
	screen   *screen.Screen
	send     func(tea.Msg)
	now      func() time.Time
	columns  int
	rows     int
	failed   error // why the chat cannot go on; nil if it can

	session   Session
	feed      *feed
	talk      *block.Conversation
	questions questions
	status    status
	working   bool
	since     time.Time // when the turn began
	waits     string    // what the turn waits for, if a notice says it; else empty
	stopping  bool
	queued    []queued
	seen      []string // ids of the inputs that were delivered last
	ownTask   string   // command of the person that runs; empty if none does
	ownID     string   // id of its task; empty before it has one

	editor       editor.Editor
	early        []string // what was sent before the session was open
	search       *search
	complete     completion
	brought      brought
	overlay      overlay
	attached     sync.WaitGroup // commands that have or had the terminal
	notice       string
	noticeAt     time.Time
	lastKey      time.Time
	waitsForCalm bool
	ticking      bool
	tailing      bool
	lastEsc      time.Time
	lastCtrlC    time.Time
	leaving      bool
	lastBell     time.Time
}

// A queued input waits for the end of a turn.
type queued struct{ id, text string }

// reset forgets everything about the session.
func (c *chat) reset() {
	c.talk = block.New(c.opts.Blocks)
	c.brought = brought{}
	c.questions = questions{own: make(map[string]bool)}
	c.status = status{branch: branch(c.opts.Dir)}
	c.working, c.waits, c.stopping, c.queued = false, "", false, nil
}

// Init opens the first session.
func (c *chat) Init() tea.Cmd {
	if c.opts.Attach != nil {
		return nil
	}
	return tea.Batch(c.open(c.opts.First), c.watchElsewhere(0))
}

// View is empty: the screen draws.
func (c *chat) View() tea.View { return tea.NewView("") }

// Update takes in a key or an event.
func (c *chat) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	if _, answer := m.(uv.UnknownCsiEvent); answer {
		return c, nil // the screen has read it, and nothing is to be drawn
	}
	cmd := c.update(m)
	if c.leaving || c.failed != nil || c.screen.Err() != nil {
		return c, tea.Quit
	}
	c.draw()
	return c, cmd
}

func (c *chat) update(m tea.Msg) tea.Cmd {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		if m.Width > 0 && m.Height > 0 {
			c.columns, c.rows = m.Width, m.Height
			c.screen.Resize(m.Width, m.Height)
		}
	case tea.KeyPressMsg:
		return c.key(m)
	case tea.PasteMsg:
		return c.paste(m.Content)
	case openedMsg:
		return c.opened(m)
	case eventsMsg:
		return c.events(m)
	case lostMsg:
		c.failed = fmt.Errorf("lost the connection to the engine: %w", m.err)
	case noteMsg:
		c.remark(string(m))
	case sentMsg:
		return c.sent(m)
	case focusMsg:
		return c.focus()
	case aloneMsg:
		return c.pressedAlone(m)
	case answeredMsg:
		return c.answered(m)
	case tickMsg:
		c.ticking = false
		return c.tick()
	case tailsMsg:
		return c.tails(m)
	case func() tea.Cmd: // what a request has found, to be taken in here
		return m()
	}
	return nil
}

// do calls f in the background, and then what it returns in the program.
func (c *chat) do(f func(context.Context) (func() tea.Cmd, error)) tea.Cmd {
	return func() tea.Msg {
		then, err := f(c.ctx)
		if err != nil {
			return func() tea.Cmd { c.fail(err); return nil }
		}
		return then
	}
}

// notify shows a short notice for a while.
func (c *chat) notify(s string) {
	if s == "" {
		return
	}
	c.notice, c.noticeAt = text.OneLine(s), c.now()
}

// noticeTime is how long a notice is shown.
const noticeTime = 6 * time.Second

// fail shows an error that does not end the chat.
func (c *chat) fail(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	said := strings.TrimSpace(err.Error())
	if method, cause, found := strings.Cut(said, " failed with message: "); found && strings.HasPrefix(method, "Request ") {
		said = cause // which request of the protocol it was says nothing to a person
	}
	c.notify("error: " + said)
}

// remark adds lines of the program itself to the scrollback.
func (c *chat) remark(s string) {
	for _, l := range text.Styled("· "+text.OneLine(s), text.Style{Faint: true}).Wrap(c.columns, text.Plain("  ")) {
		c.screen.Append(l)
	}
}

// tickMsg is a moment at which what moves is drawn again.
type tickMsg struct{}

// frameTime is the time between two pictures of the spinner.
const frameTime = 120 * time.Millisecond

// tick keeps the spinner and the notice going.
func (c *chat) tick() tea.Cmd {
	if c.notice != "" && c.now().Sub(c.noticeAt) > noticeTime {
		c.notice = ""
	}
	if c.ticking || !c.working && c.notice == "" && c.ownTask == "" {
		return nil
	}
	c.ticking = true
	next := frameTime
	if !c.working {
		next = time.Second
	}
	return tea.Tick(next, func(time.Time) tea.Msg { return tickMsg{} })
}

// sentMsg is what came of a message.
type sentMsg struct {
	id, text string
	err      error
}

// submit sends a message. A turn that runs is not disturbed by it, unless it steers.
func (c *chat) submit(prompt string, steer bool) tea.Cmd {
	p := api.SendParams{SessionID: c.session.ID, Prompt: prompt}
	if steer {
		p.Mode = event.ModeSteer
	}
	if !c.working {
		c.begin()
	}
	return tea.Batch(c.tick(), func() tea.Msg {
		id, err := c.opts.Client.Send(c.ctx, p)
		return sentMsg{id, prompt, err}
	})
}

// begin notes that a turn runs.
func (c *chat) begin() {
	if !c.working {
		c.working, c.since, c.waits, c.stopping = true, c.now(), "", false
	}
}

func (c *chat) sent(m sentMsg) tea.Cmd {
	if m.err != nil {
		c.fail(m.err)
		if c.editor.Empty() {
			c.editor.Set(m.text) // nothing that was typed is lost
		}
		c.working = len(c.talk.Calls()) > 0 || c.talk.Streaming()
		return c.tick()
	}
	if !c.talkHas(m.id) {
		c.queued = append(c.queued, queued{m.id, m.text})
	}
	return nil
}

// stop stops the turn. Inputs that wait stay.
func (c *chat) stop() tea.Cmd {
	if c.stopping {
		return nil
	}
	c.stopping = true
	c.notify("stopping the turn and its commands")
	id := c.session.ID
	return tea.Batch(c.tick(), c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.Abort(ctx, api.AbortParams{SessionID: id, Reason: "user_initiated", KeepQueue: true})
		return func() tea.Cmd {
			c.stopping = false
			c.notify(stopped(r))
			return c.tick()
		}, err
	}))
}

// stopped says what was stopped.
func stopped(r api.AbortResult) string {
	s := "no turn was running"
	if r.Turn || len(r.Stopped) > 0 {
		s = "stopped"
		if n := len(r.Stopped); n > 0 {
			s += " the turn and " + plural(n, "command", "commands")
		}
	}
	if r.Background > 0 {
		s += "; " + plural(r.Background, "background command goes on", "background commands go on")
	}
	if r.Queued > 0 {
		s += "; " + plural(r.Queued, "queued message is kept", "queued messages are kept")
	}
	return s
}

// plural returns a number of things.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
