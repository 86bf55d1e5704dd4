package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/markdown"
	"github.com/abide-run/abide/internal/tui/text"
)

// A liveView is the view of a person at a terminal. Answers are drawn Markdown. Below them is
// what is under way: the end of the answer that arrives, the last lines that a command has
// printed, and what the turn waits for, with the time since it began.
type liveView struct {
	app      *app
	progress *progress
	wrote    bool // true if an answer was written

	region *region // nil before the session is open, and after the end
	// What the region shows. It is used with the region held.
	talk   *block.Conversation
	model  string
	began  time.Time
	paused bool // true while nothing is under way
}

// newLiveView returns the view of a person at a terminal; false if stdout and stderr are not
// both terminals that can be drawn on, or if little is to be shown.
func (a *app) newLiveView() (*liveView, bool) {
	if a.quiet || a.plain || dumb() || terminal(a.out) == nil || terminal(a.err) == nil {
		return nil, false
	}
	v := &liveView{app: a, progress: a.newProgress(), began: time.Now()}
	v.talk = block.New(block.Options{Describe: describeEvent, Asked: askedAbout})
	return v, true
}

func (v *liveView) begin(o opening) {
	v.progress.begin(o)
	v.model = o.Model
	v.region = newRegion(terminal(v.app.err), v.lines)
	v.app.out.setRegion(v.region)
	v.app.err.setRegion(v.region)
}

func (v *liveView) event(e event.Event) {
	v.progress.thoughts(e)
	v.do(func() { v.note(e) })
	if e.Type == event.AssistantMessage {
		_ = decodeFor(e, v.answer) // the runner reports what does not decode
	}
	v.progress.event(e)
}

// do changes what the region shows.
func (v *liveView) do(f func()) {
	if v.region == nil {
		f()
		return
	}
	v.region.do(f)
}

// note takes in what an event says about what is under way.
func (v *liveView) note(e event.Event) {
	v.talk.Add(e, 80) // the lines of finished blocks are those of other views
	switch e.Type {
	case event.ModelCallStart:
		if d, err := event.As[event.ModelCallStartData](e); err == nil && d.Model != "" {
			v.model = d.Model
		}
	case event.UserMessage:
		v.began, v.paused = time.Now(), false
	case event.SessionIdle:
		v.paused = true
	}
}

// answer writes an answer that is complete.
func (v *liveView) answer(d event.AssistantMessageData) {
	if d.Content == "" {
		return
	}
	v.wrote = true
	v.write(d.Content)
}

// write writes Markdown to stdout.
func (v *liveView) write(s string) {
	colours := paint(v.app.out).colours
	encoder := text.Encoder{NoColour: !colours, NoStyle: !colours, ASCII: !knowsUTF8()}
	var b strings.Builder
	for _, l := range markdown.Render(text.Clean(s), width(v.app.out)) {
		b.WriteString(encoder.Encode(l) + "\n")
	}
	v.app.out.printf("%s", b.String())
}

func (v *liveView) end(r result) {
	v.close()
	if r.Result != "" && !v.wrote {
		v.write(r.Result)
	}
	v.progress.end(r)
}

// close takes the region off the terminal.
func (v *liveView) close() {
	if v.region != nil {
		v.region.close()
		v.app.out.setRegion(nil)
		v.app.err.setRegion(nil)
		v.region = nil
	}
}

// showNothing takes what is under way off the terminal: what follows is the end of the run.
func (r *runner) showNothing() {
	if v, ok := r.view.(*liveView); ok {
		v.close()
	}
}

// typed notes that the person has ended a line.
func (v *liveView) typed() {
	if v.region != nil {
		v.region.do(func() { v.region.newLine = true })
	}
}

// spinner are the pictures of the spinner, and plainSpinner those for a terminal that does
// not know UTF-8.
var (
	spinner      = []string{"◐", "◓", "◑", "◒"}
	plainSpinner = []string{"|", "/", "-", "\\"}
)

// lines returns what is under way. An answer has at most half of the terminal.
func (v *liveView) lines(columns, rows int) []text.Line {
	if v.paused || columns < 20 || rows < 4 {
		return nil
	}
	pictures := spinner
	if !knowsUTF8() {
		pictures = plainSpinner
	}
	took := time.Since(v.began)
	line := text.Line{
		{Text: pictures[int(took/frameTime)%len(pictures)] + " ", Style: text.Style{Colour: text.Magenta}},
		{Text: v.doing()},
		{Text: " " + block.Elapsed(took.Truncate(100*time.Millisecond)) + " · Ctrl-C stops", Style: text.Style{Faint: true}},
	}
	if v.talk.Streaming() {
		return append(v.talk.Arriving(columns-1, rows/2), line)
	}
	lines := []text.Line{line}
	for _, call := range v.talk.Calls() {
		for _, tail := range call.Tail {
			lines = append(lines, text.Styled("  "+tail, text.Style{Faint: true}))
		}
	}
	return lines[:min(len(lines), rows-2)]
}

// doing says what the turn does.
func (v *liveView) doing() string {
	calls := v.talk.Calls()
	switch {
	case len(calls) == 1:
		return "running " + calls[0].Name
	case len(calls) > 1:
		return fmt.Sprintf("%d calls run", len(calls))
	case v.talk.Drafting() != "":
		return "writing a call of " + v.talk.Drafting()
	case v.talk.Streaming():
		return "answering"
	case v.model != "":
		return "waiting for " + oneLine(v.model)
	}
	return "working"
}

// commands returns the commands under way.
func (v *liveView) commands() (list []*block.Call) {
	v.do(func() {
		list = slices.DeleteFunc(slices.Clone(v.talk.Calls()), func(c *block.Call) bool { return c.Command == "" })
	})
	return list
}

// tailTime is the time between two looks at the output of a command, and tailBytes how much
// of it is read.
const (
	tailTime  = 500 * time.Millisecond
	tailBytes = 2 << 10
)

// followTails reads the last lines of the commands that a turn waits for, until ctx ends.
func (v *liveView) followTails(ctx context.Context, c *client.Client, id event.SessionID) {
	tick := time.NewTicker(tailTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		calls := v.commands()
		if len(calls) == 0 {
			continue
		}
		list, err := c.Tasks(ctx, api.TasksParams{SessionID: id})
		if err != nil {
			continue // it is looked again
		}
		for _, call := range calls {
			at := slices.IndexFunc(list.Tasks, func(t api.Task) bool { return call.Is(t.Command, t.Description) })
			if at < 0 {
				continue
			}
			p := api.TaskOutputParams{SessionID: id, TaskID: list.Tasks[at].TaskID, Tail: tailBytes}
			if out, err := c.TaskOutput(ctx, p); err == nil {
				v.do(func() { call.SetTail(string(out.Data)) })
			}
		}
	}
}
