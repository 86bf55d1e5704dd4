package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// maxSessions is the number of sessions that the picker shows.
const maxSessions = 500

// urgency orders sessions: those that wait for somebody come first.
var urgency = map[string]int{api.StateWaiting: 0, api.StateUnfinished: 1, api.StateActive: 2}

// sessionPicker lets a person open another session.
func (c *chat) sessionPicker() tea.Cmd {
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		var list []api.SessionInfo
		for s, err := range c.opts.Client.Sessions(ctx, api.Filter{}) {
			if err != nil {
				return nil, err
			}
			if list = append(list, s); len(list) == maxSessions {
				break
			}
		}
		slices.SortStableFunc(list, func(a, b api.SessionInfo) int { return urgent(a) - urgent(b) })
		p := &picker{
			title: "sessions", filters: true, refilter: (*chat).searchSessions,
			hint: "type to search names, folders and text · Enter opens · Esc closes",
			pick: func(c *chat, v any) tea.Cmd { return c.open(v.(event.SessionID)) },
		}
		for _, s := range list {
			p.choices = append(p.choices, sessionChoice(s, ""))
		}
		return func() tea.Cmd { return c.page(p) }, nil
	})
}

// urgent returns the rank of a session in the picker.
func urgent(s api.SessionInfo) int {
	if n, ok := urgency[s.State()]; ok {
		return n
	}
	return len(urgency)
}

// sessionChoice returns the entry of a session. A line of it that a search has found is
// shown with it.
func sessionChoice(s api.SessionInfo, line string) choice {
	name := s.Name
	if name == "" {
		name = s.Summary
	}
	dir := ""
	if s.Context != nil {
		dir = s.Context.Cwd
	}
	state := s.State()
	style := text.Style{Faint: true}
	switch state {
	case api.StateWaiting:
		style = text.Style{Colour: text.Yellow, Bold: true}
	case api.StateUnfinished, api.StateActive:
		style = text.Style{Colour: text.Cyan}
	case api.StateDamaged:
		style = text.Style{Colour: text.Red}
	}
	label := text.Line{
		{Text: fmt.Sprintf("%-10s ", state), Style: style},
		{Text: fmt.Sprintf("%-8s ", ago(s.ModifiedTime)), Style: text.Style{Faint: true}},
		{Text: text.OneLine(name)},
		{Text: "  " + text.OneLine(dir), Style: text.Style{Faint: true}},
	}
	if line != "" {
		label = append(label, text.Span{Text: "  “" + text.OneLine(line) + "”", Style: text.Style{Faint: true, Italic: true}})
	}
	return choice{label, strings.Join([]string{string(s.SessionID), name, dir, state, line}, " "), s.SessionID}
}

// ago returns how long ago a time was.
func ago(stamp string) string {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return ""
	}
	switch d := time.Since(t); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// searchSessions adds the sessions in which the text was said.
func (c *chat) searchSessions(query string) tea.Cmd {
	if len([]rune(query)) < 3 {
		return nil
	}
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		found, err := c.opts.Client.Search(ctx, api.SearchParams{Text: strings.TrimSpace(query) + "*", Max: 50})
		if err != nil {
			return func() tea.Cmd { return nil }, nil // half a query may be none
		}
		return func() tea.Cmd {
			p, ok := c.overlay.(*picker)
			if !ok || string(p.filter) != query {
				return nil
			}
			for _, m := range found.Matches {
				if !slices.ContainsFunc(p.matches(), func(ch choice) bool { return ch.value == m.Session.SessionID }) {
					ch := sessionChoice(m.Session, m.Line)
					ch.search += " " + query
					p.choices = append(p.choices, ch)
				}
			}
			return nil
		}, nil
	})
}

// A turning is a message that the conversation can go back to.
type turning struct {
	id   string // id of the event
	seq  event.Seq
	said string
}

// rewindPicker lets a person choose the message to go back to. It changes nothing by
// itself.
func (c *chat) rewindPicker() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		events, err := readEvents(ctx, c.opts.Client, id, 0, 0)
		if err != nil {
			return nil, err
		}
		previews := make(map[string][]text.Line)
		p := &picker{title: "go back to before a message", filters: true, hint: "Enter goes back, files too · Ctrl-X the conversation alone · Ctrl-F forks before it · Esc closes"}
		for _, e := range slices.Backward(events) {
			d, err := event.As[event.UserMessageData](e)
			if e.Type != event.UserMessage || err != nil || d.Source != "" {
				continue
			}
			head, _ := e.Head() // the event was read
			p.choices = append(p.choices, choice{
				text.Line{{Text: fmt.Sprintf("%6d  ", e.Seq), Style: text.Style{Faint: true}}, {Text: text.OneLine(d.Content)}},
				d.Content, turning{head.ID, e.Seq, d.Content},
			})
		}
		p.pick = func(c *chat, v any) tea.Cmd { return c.rewind(v.(turning), api.ConversationAndFiles) }
		p.keys = map[string]func(c *chat, v any) (tea.Cmd, bool){
			"ctrl+x": func(c *chat, v any) (tea.Cmd, bool) { return c.rewind(v.(turning), api.ConversationOnly), true },
			"ctrl+f": func(c *chat, v any) (tea.Cmd, bool) { return c.forkBefore(v.(turning)), true },
		}
		p.preview = func(v any) []text.Line { return c.previewRewind(previews, v.(turning)) }
		return func() tea.Cmd { return c.page(p) }, nil
	})
}

// previewRewind returns what going back would do. It is read when it is shown first.
func (c *chat) previewRewind(known map[string][]text.Line, t turning) []text.Line {
	if lines, ok := known[t.id]; ok {
		return lines
	}
	known[t.id] = []text.Line{nil, text.Styled("reading what would change", text.Style{Faint: true})}
	id := c.session.ID
	go func() { // its end is a message to the program
		r, err := c.opts.Client.PreviewRewind(c.ctx, api.RewindParams{SessionID: id, EventID: t.id})
		c.send(func() tea.Cmd {
			known[t.id] = rewindLines(r, c.session.Dir, err)
			return nil
		})
	}()
	return known[t.id]
}

// rewindLines says what going back would do.
func rewindLines(r api.RewindPreview, dir string, err error) []text.Line {
	if err != nil {
		return []text.Line{nil, text.Styled(text.OneLine(err.Error()), text.Style{Colour: text.Red})}
	}
	lines := []text.Line{nil, text.Styled(plural(r.EventsRemoved, "event would be taken back", "events would be taken back"), text.Style{Bold: true})}
	for _, f := range r.Files {
		lines = append(lines, text.Plain(fmt.Sprintf("  would restore %s (%s, +%d -%d lines)", text.OneLine(below(dir, f.Path)), f.ChangeType, f.LinesAdded, f.LinesRemoved)))
	}
	for _, f := range r.SkippedFiles {
		lines = append(lines, text.Styled(fmt.Sprintf("  would leave %s: %s", text.OneLine(below(dir, f.Path)), text.OneLine(f.Reason)), text.Style{Colour: text.Yellow}))
	}
	if len(r.Files) == 0 {
		lines = append(lines, text.Plain("  no file would change"))
	}
	return lines
}

// below returns a path as it is called in a folder.
func below(dir, path string) string {
	if rest, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/"); found && dir != "" {
		return rest
	}
	return path
}

// rewind goes back to before a message, and puts the message into the editor.
func (c *chat) rewind(t turning, mode string) tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.Rewind(ctx, api.RewindParams{SessionID: id, EventID: t.id, Mode: mode})
		return func() tea.Cmd {
			c.remark(fmt.Sprintf("went back to before %q: %s, %s", text.Plain(text.OneLine(t.said)).Cut(60), plural(r.EventsRemoved, "event was taken back", "events were taken back"), plural(len(r.RestoredFiles), "file restored", "files restored")))
			for _, f := range r.SkippedFiles {
				c.remark("left " + f.Path + ": " + f.Reason)
			}
			if c.editor.Empty() {
				c.editor.Set(t.said)
			}
			return nil
		}, err
	})
}

// forkBefore goes on in a copy of the session that ends before a message.
func (c *chat) forkBefore(t turning) tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.Fork(ctx, api.ForkParams{SessionID: id, ToEventID: t.id})
		return func() tea.Cmd {
			if c.editor.Empty() {
				c.editor.Set(t.said)
			}
			return c.open(r.SessionID)
		}, err
	})
}

// tasksPicker shows the commands of the session.
func (c *chat) tasksPicker() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		list, err := c.opts.Client.Tasks(ctx, api.TasksParams{SessionID: id, All: true, Agents: true})
		tails := make(map[string][]text.Line)
		p := &picker{
			title: "commands of this session", hint: "Enter shows the output · Ctrl-A gives it the terminal · Ctrl-X stops it · Esc closes",
			pick: func(c *chat, v any) tea.Cmd { return c.showOutput(v.(api.Task)) },
			keys: map[string]func(c *chat, v any) (tea.Cmd, bool){
				"ctrl+x": func(c *chat, v any) (tea.Cmd, bool) { return c.stopTask(v.(api.Task)), true },
				"ctrl+a": func(_ *chat, v any) (tea.Cmd, bool) {
					return func() tea.Msg { return func() tea.Cmd { return c.attach(v.(api.Task)) } }, true
				},
			},
			preview: func(v any) []text.Line { return c.previewTask(tails, v.(api.Task)) },
		}
		for _, t := range slices.Backward(list.Tasks) {
			p.choices = append(p.choices, choice{taskLabel(t), t.Command, t})
		}
		return func() tea.Cmd { c.status.tasks = running(list.Tasks); return c.page(p) }, err
	})
}

// running returns how many commands run.
func running(list []api.Task) int {
	n := 0
	for _, t := range list {
		if t.Status == "running" {
			n++
		}
	}
	return n
}

// taskLabel returns the line of a command.
func taskLabel(t api.Task) text.Line {
	style, state := text.Style{Faint: true}, t.Status
	switch {
	case t.Status == "running":
		style = text.Style{Colour: text.Cyan}
	case t.ExitCode != nil:
		state = fmt.Sprintf("exit %d", *t.ExitCode)
	case t.Signal != "":
		state = t.Signal
	}
	return text.Line{
		{Text: fmt.Sprintf("%-10s ", state), Style: style},
		{Text: fmt.Sprintf("%-8s ", ago(t.Started)), Style: text.Style{Faint: true}},
		{Text: text.OneLine(t.Command)},
	}
}

// previewTask returns the end of the output of a command. It is read when it is shown
// first.
func (c *chat) previewTask(known map[string][]text.Line, t api.Task) []text.Line {
	if lines, ok := known[t.TaskID]; ok {
		return lines
	}
	known[t.TaskID] = nil
	go func() { // its end is a message to the program
		r, err := c.opts.Client.TaskOutput(c.ctx, api.TaskOutputParams{SessionID: t.SessionID, TaskID: t.TaskID, Tail: tailBytes})
		c.send(func() tea.Cmd {
			var call block.Call
			call.SetTail(string(r.Data))
			known[t.TaskID] = []text.Line{nil}
			for _, l := range call.Tail {
				known[t.TaskID] = append(known[t.TaskID], text.Styled("  "+l, text.Style{Faint: true}))
			}
			if err != nil {
				known[t.TaskID] = []text.Line{text.Styled(text.OneLine(err.Error()), text.Style{Colour: text.Red})}
			}
			return nil
		})
	}()
	return nil
}

// maxShown is how much of the output of a command the pager shows.
const maxShown = 4 << 20

// showOutput shows the output of a command, and goes on while it runs.
func (c *chat) showOutput(t api.Task) tea.Cmd {
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.TaskOutput(ctx, api.TaskOutputParams{SessionID: t.SessionID, TaskID: t.TaskID, Tail: maxShown})
		return func() tea.Cmd {
			p := newPager(text.OneLine(t.Command), text.Lines(strings.TrimRight(text.Clean(string(r.Data)), "\n"), text.Style{}))
			p.atEnd = true
			c.overlay = p
			if r.End {
				return nil
			}
			return c.followOutput(p, t, r.Next)
		}, err
	})
}

// followOutput adds what a command puts out to the pager, as long as it is shown.
func (c *chat) followOutput(p *pager, t api.Task, from int64) tea.Cmd {
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		r, err := c.opts.Client.TaskOutput(ctx, api.TaskOutputParams{SessionID: t.SessionID, TaskID: t.TaskID, Offset: from, Wait: true})
		return func() tea.Cmd {
			if c.overlay != p {
				return nil
			}
			p.add(text.Clean(string(r.Data)))
			if r.End {
				return nil
			}
			return c.followOutput(p, t, r.Next)
		}, err
	})
}

// add adds text at the end of a pager. One that shows its end goes on showing it.
func (p *pager) add(s string) {
	end := p.top >= len(p.broken)-max(1, p.rows-1)
	for i, part := range strings.Split(s, "\n") {
		if i == 0 && len(p.body) > 0 {
			last := len(p.body) - 1
			p.body[last] = append(p.body[last], text.Span{Text: part})
			continue
		}
		p.body = append(p.body, text.Plain(part))
	}
	p.fit(p.width)
	p.atEnd = end
}

// stopTask ends a command.
func (c *chat) stopTask(t api.Task) tea.Cmd {
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		ended, err := c.opts.Client.StopTask(ctx, api.TaskParams{SessionID: t.SessionID, TaskID: t.TaskID})
		return func() tea.Cmd {
			c.notify(ended.Status + ": " + t.Command)
			return tea.Batch(c.tick(), c.countTasks())
		}, err
	})
}
