package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// A status is what the last line says about the session.
type status struct {
	model     string
	mode      string
	used      int64 // tokens of the last request
	limit     int   // tokens that fit into the window of the model; zero if it is not known
	in, out   int64 // tokens sent and received
	cost      float64
	priced    bool // true if the cost of a request is known
	branch    string
	tasks     int // commands in the background
	elsewhere int // questions of other sessions
}

// take takes in how a session stands that was opened.
func (s *status) take(m openedMsg) {
	s.model, s.mode = m.status.Model, m.mode
	t := m.status.Totals
	s.in, s.out = t.InputTokens+t.CacheReadTokens+t.CacheWriteTokens, t.OutputTokens
	if m.cost != nil {
		s.cost, s.priced = *m.cost, true
	}
	if dir := m.session.Dir; dir != "" {
		s.branch = branch(dir)
	}
}

// event takes in what an event says about the session.
func (s *status) event(e event.Event) {
	switch e.Type {
	case event.ModelCallStart:
		if d, err := event.As[event.ModelCallStartData](e); err == nil && d.Model != "" {
			s.model = d.Model
		}
	case event.SessionModelChange:
		if d, err := event.As[event.SessionModelChangeData](e); err == nil {
			s.model = d.NewModel
		}
	case event.ModeChanged:
		if d, err := event.As[event.ModeChangedData](e); err == nil {
			s.mode = d.NewMode
		}
	case event.UsageInfo:
		if d, err := event.As[event.UsageInfoData](e); err == nil {
			s.used, s.limit = d.CurrentTokens, d.TokenLimit
		}
	case event.AssistantUsage:
		if d, err := event.As[event.AssistantUsageData](e); err == nil {
			s.in += d.InputTokens + d.CacheReadTokens + d.CacheWriteTokens
			s.out += d.OutputTokens
			if d.CostUSD != nil {
				s.cost, s.priced = s.cost+*d.CostUSD, true
			}
		}
	}
}

// line returns the last line of the chat. What is most important comes first: a narrow
// terminal cuts the end.
func (s *status) line(columns int) text.Line {
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if s.elsewhere > 0 {
		add("⚑ " + plural(s.elsewhere, "question elsewhere", "questions elsewhere"))
	}
	add(text.OneLine(shortModel(s.model)))
	if s.mode != "" && s.mode != event.ModeInteractive {
		add(s.mode + " mode")
	}
	if s.limit > 0 {
		add(gauge(float64(s.used)/float64(s.limit), 8) + fmt.Sprintf(" %d%%", int(100*s.used/int64(s.limit))))
	}
	if s.in+s.out > 0 {
		add("↑" + count(s.in) + " ↓" + count(s.out))
	}
	if s.priced {
		add(fmt.Sprintf("$%.2f", s.cost))
	}
	if s.tasks > 0 {
		add(plural(s.tasks, "command runs", "commands run"))
	}
	add(text.OneLine(s.branch))
	return text.Styled(strings.Join(parts, " · "), text.Style{Faint: true}).Cut(columns)
}

// shortModel returns the name of a model without the folder of its scenario.
func shortModel(name string) string {
	if kind, file, found := strings.Cut(name, ":/"); found {
		return kind + ":" + filepath.Base(file)
	}
	return name
}

// gauge draws how much of something is used.
func gauge(share float64, cells int) string {
	full := max(0, min(cells, int(share*float64(cells)+0.5)))
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// count formats a number of tokens.
func count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// branch returns the branch of the repository that a folder is in; empty if there is none.
func branch(dir string) string {
	for ; dir != ""; dir = parent(dir) {
		git := filepath.Join(dir, ".git")
		info, err := os.Stat(git)
		if err != nil {
			continue
		}
		if !info.IsDir() { // a worktree names its folder
			b, _ := os.ReadFile(git) // without it there is no branch
			git = strings.TrimSpace(strings.TrimPrefix(string(b), "gitdir:"))
		}
		b, _ := os.ReadFile(filepath.Join(git, "HEAD"))
		head := strings.TrimSpace(string(b))
		if name, ok := strings.CutPrefix(head, "ref: refs/heads/"); ok {
			return name
		}
		return head[:min(len(head), 8)]
	}
	return ""
}

// parent returns the folder above; empty above the root.
func parent(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

// countTasks counts the commands of the session that run.
func (c *chat) countTasks() tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		list, err := c.opts.Client.Tasks(ctx, api.TasksParams{SessionID: id, Agents: true})
		return func() tea.Cmd {
			if id == c.session.ID {
				c.status.tasks = len(list.Tasks)
			}
			return nil
		}, err
	})
}

// lookElsewhere is the time between two looks at the questions of other sessions.
const lookElsewhere = 15 * time.Second

// watchElsewhere counts the questions of other sessions, after some time and then again
// and again.
func (c *chat) watchElsewhere(after time.Duration) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-time.After(after):
		case <-c.ctx.Done():
			return nil
		}
		list, err := c.opts.Client.Questions(c.ctx, "")
		return func() tea.Cmd {
			if err == nil {
				n := 0
				for _, q := range list {
					if q.SessionID != c.session.ID {
						n++
					}
				}
				c.status.elsewhere = n
			}
			return c.watchElsewhere(lookElsewhere)
		}
	}
}

// tailsMsg are the ends of the output of commands under way, by the id of the call.
type tailsMsg struct{ tails map[string]string }

// tailTime is the time between two looks at the output of a command.
const tailTime = 300 * time.Millisecond

// tailBytes is how much of the output is read.
const tailBytes = 2 << 10

// followTails reads the output of the commands that the turn waits for.
func (c *chat) followTails() tea.Cmd {
	calls := slices.DeleteFunc(slices.Clone(c.talk.Calls()), func(call *block.Call) bool { return call.Command == "" })
	if len(calls) == 0 || c.tailing {
		return nil
	}
	c.tailing = true
	id, cl := c.session.ID, c.opts.Client
	return func() tea.Msg {
		select {
		case <-time.After(tailTime):
		case <-c.ctx.Done():
			return nil
		}
		tails := make(map[string]string)
		list, err := cl.Tasks(c.ctx, api.TasksParams{SessionID: id})
		if err != nil {
			return tailsMsg{}
		}
		for _, call := range calls {
			at := slices.IndexFunc(list.Tasks, func(t api.Task) bool { return call.Is(t.Command, t.Description) })
			if at < 0 {
				continue
			}
			if out, err := cl.TaskOutput(c.ctx, api.TaskOutputParams{SessionID: id, TaskID: list.Tasks[at].TaskID, Tail: tailBytes}); err == nil {
				tails[call.ID] = string(out.Data)
			}
		}
		return tailsMsg{tails}
	}
}

// tails takes in the output of commands.
func (c *chat) tails(m tailsMsg) tea.Cmd {
	c.tailing = false
	for _, call := range c.talk.Calls() {
		if tail, ok := m.tails[call.ID]; ok {
			call.SetTail(tail)
		}
	}
	return c.followTails()
}
