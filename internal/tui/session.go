package tui

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// openedMsg is a session that was opened, with what is needed to show its end.
type openedMsg struct {
	session Session
	status  api.StatusResult
	mode    string
	queue   api.QueueResult
	events  []event.Event // the last events
	cost    *float64
	err     error
}

// lastEvents is the number of events that are read to show the end of a session, and
// lastLines the number of lines that are printed of it.
const (
	lastEvents = 400
	lastLines  = 300
)

// open opens a session.
func (c *chat) open(id event.SessionID) tea.Cmd {
	return func() tea.Msg {
		m := openedMsg{}
		if m.session, m.err = c.opts.Open(c.ctx, id); m.err == nil {
			m.err = m.read(c.ctx, c.opts.Client)
		}
		return m
	}
}

// read reads how the session stands and its last events.
func (m *openedMsg) read(ctx context.Context, cl *client.Client) (err error) {
	id := m.session.ID
	if m.status, err = cl.Status(ctx, id); err != nil {
		return err
	}
	if m.mode, err = cl.Mode(ctx, id); err != nil {
		return err
	}
	if m.session.New {
		return nil
	}
	if m.queue, err = cl.Queue(ctx, id); err != nil {
		return err
	}
	if costs, err := cl.Cost(ctx, api.CostParams{SessionID: id}); err == nil && len(costs.Costs) > 0 {
		m.cost = costs.Costs[0].CostUSD
	}
	m.events, err = readEvents(ctx, cl, id, max(0, m.status.Position-lastEvents), 0)
	return err
}

// readEvents reads the events of a session after a position, up to another one; to the end
// if that is zero. Events that were taken back are left out.
func readEvents(ctx context.Context, cl *client.Client, id event.SessionID, after, to event.Seq) ([]event.Event, error) {
	var list []event.Event
	var hidden []event.HistoryHiddenData
	for e, err := range cl.Events(ctx, id, after) {
		if err != nil {
			return visible(list, hidden), err
		}
		if to > 0 && e.Seq > to {
			break
		}
		if d, err := event.As[event.HistoryHiddenData](e); e.Type == event.HistoryHidden && err == nil {
			hidden = append(hidden, d)
			continue
		}
		list = append(list, e)
	}
	return visible(list, hidden), nil
}

// visible returns the events that were not taken back.
func visible(list []event.Event, hidden []event.HistoryHiddenData) []event.Event {
	return slices.DeleteFunc(list, func(e event.Event) bool {
		return slices.ContainsFunc(hidden, func(d event.HistoryHiddenData) bool { return e.Seq >= d.From && e.Seq <= d.To })
	})
}

// opened takes a session in. A chat that has none ends if it cannot be opened.
func (c *chat) opened(m openedMsg) tea.Cmd {
	if m.err != nil {
		if m.session.Stream != nil {
			m.session.Stream.Close()
		}
		if c.session.ID == "" {
			c.failed = m.err
		}
		c.fail(m.err)
		return c.tick()
	}
	c.stopFeed()
	c.reset()
	c.session = m.session
	c.status.take(m)
	c.header(m)
	var lines []text.Line
	for _, e := range m.events {
		lines = append(lines, c.talk.Add(e, c.columns)...)
		c.remember(e)
	}
	c.screen.Append(lines[max(0, len(lines)-lastLines):]...)
	for _, raw := range m.status.Questions {
		c.ask(raw)
	}
	for _, item := range m.queue.Items {
		c.queued = append(c.queued, queued{item.ID, item.Display})
	}
	if m.status.Active {
		c.begin()
	}
	c.feed = newFeed(c.ctx, m.session, c.opts.Client, c.send)
	cmds := []tea.Cmd{c.tick(), c.awaitCalm(), c.countTasks()}
	for _, said := range c.early {
		cmds = append(cmds, c.say(said))
	}
	c.early = nil
	return tea.Batch(cmds...)
}

// header prints which session this is.
func (c *chat) header(m openedMsg) {
	s := "abide " + c.opts.Version + " · session " + string(m.session.ID)
	if name := m.status.Session.Name; name != "" {
		s += " · " + name
	}
	if m.session.Dir != "" {
		s += " · " + m.session.Dir
	}
	c.screen.Append(nil, text.Styled(text.OneLine(s), text.Style{Faint: true}))
	if m.session.New {
		c.screen.Append(text.Styled("/help lists commands and keys · leaving stops nothing", text.Style{Faint: true}))
	}
	if m.status.Position > lastEvents && !m.session.New {
		c.screen.Append(text.Styled("PgUp shows what was before", text.Style{Faint: true}))
	}
}

// remember adds what a person has said to the history of the editor.
func (c *chat) remember(e event.Event) {
	if d, err := event.As[event.UserMessageData](e); e.Type == event.UserMessage && err == nil && d.Source == "" {
		c.editor.Remember(d.Content)
	}
}

// ask takes in a question that was open when the session was opened.
func (c *chat) ask(raw json.RawMessage) {
	e, err := event.Parse(0, raw)
	if err != nil {
		return
	}
	c.talk.Add(e, c.columns)
	if q, ok := c.opts.Question(e); ok {
		c.questions.add(q, c.now())
	}
}

// eventsMsg are events that have arrived.
type eventsMsg struct {
	feed   *feed
	events []event.Event
}

// lostMsg says that the connection to the engine is over.
type lostMsg struct{ err error }

// A feed passes the events of a session to the program, at most thirty times a second.
type feed struct {
	cancel context.CancelFunc
	done   chan struct{}
	stream *client.Stream
}

// between is the time between two messages with events.
const between = time.Second / 30

func newFeed(ctx context.Context, s Session, cl *client.Client, send func(tea.Msg)) *feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{cancel: cancel, done: make(chan struct{}), stream: s.Stream}
	go f.run(ctx, cl, send) // stop waits for it
	return f
}

func (f *feed) run(ctx context.Context, cl *client.Client, send func(tea.Msg)) {
	defer close(f.done)
	pause := time.NewTicker(between)
	defer pause.Stop()
	for {
		select {
		case <-f.stream.Ready():
		case <-ctx.Done():
			return
		case <-cl.Done():
			send(lostMsg{cl.Err()})
			return
		}
		if events := f.stream.Take(); len(events) > 0 {
			send(eventsMsg{f, events})
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// stopFeed ends the feed of the session.
func (c *chat) stopFeed() {
	if c.feed == nil {
		return
	}
	c.feed.cancel()
	c.feed.stream.Close()
	feed := c.feed
	c.feed = nil
	go func() { <-feed.done }() // it may wait for the program to take its last message
}

// events takes events in.
func (c *chat) events(m eventsMsg) tea.Cmd {
	if m.feed != c.feed {
		return nil
	}
	var cmds []tea.Cmd
	for _, e := range m.events {
		if e.Seq > 0 && e.Seq <= c.talk.Last() {
			continue
		}
		cmds = append(cmds, c.event(e))
		c.screen.Append(c.talk.Add(e, c.columns)...)
	}
	return tea.Batch(append(cmds, c.tick(), c.awaitCalm(), c.followTails())...)
}

// event takes in what an event says about the chat, beside its block.
func (c *chat) event(e event.Event) tea.Cmd {
	if q, ok := c.opts.Question(e); ok {
		c.questions.add(q, c.now())
		c.bell("a question waits")
		return nil
	}
	if slices.Contains(ends, e.Type) {
		c.closed(e)
	}
	if head, err := e.Head(); err != nil || head.Agent != "" {
		return nil
	}
	c.status.event(e)
	switch e.Type {
	case event.UserMessage:
		c.delivered(e)
		c.begin()
		c.remember(e)
	case event.AssistantTurnStart, event.ModelCallStart:
		c.waits = ""
		c.begin()
	case event.SessionIdle:
		if c.working && c.now().Sub(c.since) > longTurn {
			c.bell("the turn is over")
		}
		c.working, c.waits = false, ""
	case event.SessionInfo:
		if d, err := event.As[event.SessionInfoData](e); err == nil && e.Seq == 0 {
			c.waits = text.OneLine(d.Message)
		}
	case event.SessionWarning:
		if d, err := event.As[event.SessionWarningData](e); err == nil && e.Seq == 0 {
			c.notify(d.Message)
		}
	case event.TasksChanged:
		return c.countTasks()
	case event.MCPServersLoaded, event.MCPStatusChanged, event.MCPPromptsChanged, event.SkillsChanged, event.CommandsChanged:
		return c.broughtChanged()
	}
	return nil
}

// longTurn is the length of a turn from which on its end rings.
const longTurn = 15 * time.Second

// closed takes in that a question is not open any more.
func (c *chat) closed(e event.Event) {
	var d struct {
		RequestID string
		Answer    any
		Winner    any
	}
	if e.Decode(&d) != nil || !c.questions.close(d.RequestID, c.now()) {
		return
	}
	if d.Answer == nil && d.Winner == nil {
		c.notify("the question is no longer asked")
		return
	}
	c.notify("answered elsewhere")
}

// delivered takes a message off the list of those that wait.
func (c *chat) delivered(e event.Event) {
	if d, err := event.As[event.UserMessageData](e); err == nil {
		c.queued = slices.DeleteFunc(c.queued, func(q queued) bool { return q.id == d.InputID })
		c.seen = append(c.seen, d.InputID)
		c.seen = c.seen[max(0, len(c.seen)-20):]
	}
}

// talkHas reports whether an input was delivered already.
func (c *chat) talkHas(id string) bool { return slices.Contains(c.seen, id) }

// bell tells the terminal that something waits.
func (c *chat) bell(what string) {
	if c.opts.Notify && c.now().Sub(c.lastBell) > time.Second {
		c.lastBell = c.now()
		c.screen.Send("\a\x1b]9;abide: " + text.OneLine(what) + "\a")
	}
}

// earlierEvents is the number of events that the pager reads at once, and context the
// number of events before them that are read to know what they are about.
const (
	earlierEvents = 300
	contextEvents = 60
)

// history opens the pager at the end of the conversation.
func (c *chat) history() tea.Cmd {
	id, columns := c.session.ID, c.columns
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		st, err := c.opts.Client.Status(ctx, id)
		if err != nil {
			return nil, err
		}
		from := max(0, st.Position-earlierEvents)
		lines, err := c.unfolded(ctx, id, from, st.Position, columns)
		return func() tea.Cmd {
			p := newPager("conversation", lines)
			p.atEnd = true
			p.earlier = c.before(id, from, columns)
			return c.page(p)
		}, err
	})
}

// before returns what reads the part of the conversation before a position; nil if there
// is none.
func (c *chat) before(id event.SessionID, to event.Seq, columns int) func() tea.Cmd {
	if to <= 0 {
		return nil
	}
	return func() tea.Cmd {
		return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
			from := max(0, to-earlierEvents)
			lines, err := c.unfolded(ctx, id, from, to, columns)
			return func() tea.Cmd {
				if p, ok := c.overlay.(*pager); ok {
					p.prepend(lines, c.before(id, from, columns))
				}
				return nil
			}, err
		})
	}
}

// unfolded returns the lines of a part of a conversation with everything in it.
func (c *chat) unfolded(ctx context.Context, id event.SessionID, after, to event.Seq, columns int) ([]text.Line, error) {
	events, err := readEvents(ctx, c.opts.Client, id, max(0, after-contextEvents), to)
	opts := c.opts.Blocks
	opts.Unfolded = true
	talk := block.New(opts)
	var lines []text.Line
	for _, e := range events {
		part := talk.Add(e, columns)
		if e.Seq > after {
			lines = append(lines, part...)
		}
	}
	return lines, err
}
