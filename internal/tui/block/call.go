package block

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/markdown"
	"github.com/abide-run/abide/internal/tui/text"
)

const (
	maxSubject    = 400 // columns of what a call is about; a terminal wraps it
	maxOutput     = 6   // last lines of output that are shown of a call
	maxDiff       = 60  // lines of a diff that are shown of a call
	maxOutputLine = 400 // columns of a line of output
)

// subject returns what a call is about in one line, and the command line of a command.
func subject(name string, arguments json.RawMessage) (about, command string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(arguments, &fields) != nil {
		return short(string(arguments)), ""
	}
	value := func(key string) string {
		var s string
		_ = json.Unmarshal(fields[key], &s) // a value that is no text is not what the call is about
		return s
	}
	if name == "bash" {
		return short(value("command")), value("command")
	}
	for _, key := range []string{"path", "pattern", "query", "question", "summary", "description", "name", "id", "task", "prompt"} {
		if s := value(key); s != "" {
			return short(s), ""
		}
	}
	if len(fields) == 0 {
		return "", ""
	}
	return short(string(arguments)), ""
}

// About returns what a call is about in one line.
func About(name string, arguments json.RawMessage) string {
	about, _ := subject(name, arguments)
	return about
}

// short returns a text of others on one line of bounded length.
func short(s string) string { return text.Plain(text.OneLine(clip(s))).Cut(maxSubject).String() }

// completed returns the block of a call that is over.
func (c *Conversation) completed(d event.ToolCompleteData, at time.Time, columns int) []text.Line {
	call := c.finish(d.ToolCallID)
	mark, style := "✓", text.Style{Colour: text.Green}
	if d.Error != nil {
		mark, style = "✗", text.Style{Colour: text.Red}
	}
	line := call.line(text.Span{Text: mark + " ", Style: style})
	if took := at.Sub(call.Started); !call.Started.IsZero() && took >= time.Second {
		line = append(line, text.Span{Text: "  " + Elapsed(took), Style: text.Style{Faint: true}})
	}
	lines := []text.Line{line}
	if c.opts.Unfolded && len(call.arguments) > 0 {
		lines = append(lines, arguments(call.arguments)...)
	}
	switch {
	case d.Error != nil:
		return append(lines, marked(" ", text.Style{Colour: text.Red}, clip(d.Error.Message), columns)...)
	case d.Result == nil:
		return lines
	case changes(d.Result.DetailedContent):
		return append(lines, c.diff(d.Result.DetailedContent)...)
	}
	return append(lines, c.output(call, d.Result.Content)...)
}

// line returns the line of a call, behind a mark.
func (call *Call) line(mark text.Span) text.Line {
	return text.Line{mark, {Text: call.Name, Style: text.Style{Bold: true}}, {Text: " " + call.Subject}}
}

// changes reports whether a text is a diff that changes something. Tools that read show
// what they have read as a diff without a change.
func changes(diff string) bool {
	_, hunks, found := strings.Cut(diff, "\n@@")
	return found && strings.HasPrefix(diff, "\ndiff --git ") && (strings.Contains(hunks, "\n+") || strings.Contains(hunks, "\n-"))
}

// diff returns the lines of a change.
func (c *Conversation) diff(diff string) []text.Line {
	lines := markdown.Diff(text.Clean(diff))
	if c.opts.Unfolded || len(lines) <= maxDiff {
		return lines
	}
	more := len(lines) - maxDiff
	return append(lines[:maxDiff:maxDiff], text.Styled(fmt.Sprintf("  … %d more lines: Ctrl-O shows all of it", more), text.Style{Faint: true}))
}

// quiet are the tools whose output is for the model alone.
var quiet = []string{"view", "grep", "glob", "edit", "create", "todo", "plan", "recall", "skill", "done", "ask_user"}

// output returns the last lines of the output of a call. Of a tool that reads, only the
// number of lines is told.
func (c *Conversation) output(call *Call, output string) []text.Line {
	clean := strings.Trim(text.Clean(output), "\n")
	if clean == "" {
		return nil
	}
	lines := strings.Split(clean, "\n")
	style := text.Style{Faint: true}
	if task := background(output); task != "" && !c.opts.Unfolded {
		return []text.Line{text.Styled("  runs in the background as task "+text.OneLine(task), style)}
	}
	switch {
	case c.opts.Unfolded:
		return text.Lines(clean, style)
	case slices.Contains(quiet, call.Name):
		return nil
	}
	var out []text.Line
	if more := len(lines) - maxOutput; more > 1 {
		out = append(out, text.Styled(fmt.Sprintf("  … %d lines: Ctrl-O shows them", more), style))
		lines = lines[more:]
	}
	for _, line := range lines {
		out = append(out, text.Styled("  "+line, style).Cut(maxOutputLine))
	}
	return out
}

// background returns the id of the task that goes on after a call, if its result says so;
// else empty.
func background(result string) string {
	var r struct {
		Status string `json:"status"`
		TaskID string `json:"task_id"`
	}
	if json.Unmarshal([]byte(result), &r) != nil || !strings.HasPrefix(r.Status, "background") {
		return ""
	}
	return r.TaskID
}

// arguments returns the arguments of a call, one a line.
func arguments(raw json.RawMessage) []text.Line {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return text.Lines(text.Clean(string(raw)), text.Style{Faint: true})
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var lines []text.Line
	for _, name := range names {
		var s string
		if json.Unmarshal(fields[name], &s) != nil {
			s = string(fields[name])
		}
		lines = append(lines, text.Styled("  "+text.OneLine(name)+":", text.Style{Faint: true}))
		lines = append(lines, text.Lines(strings.Trim(text.Clean(s), "\n"), text.Style{})...)
	}
	return lines
}

// maxTail is the number of lines that are shown of the output of a call under way.
const maxTail = 3

// SetTail sets the end of the output of a call under way.
func (call *Call) SetTail(output string) {
	lines := strings.Split(strings.Trim(text.Clean(lastScreen(output)), "\n"), "\n")
	call.Tail = lines[max(0, len(lines)-maxTail):]
	if len(call.Tail) == 1 && call.Tail[0] == "" {
		call.Tail = nil
	}
}

// lastScreen returns the output without what a carriage return overwrites, as programs
// that show their progress do.
func lastScreen(output string) string {
	lines := strings.Split(strings.ReplaceAll(output, "\r\n", "\n"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}

// Live returns the lines of what is under way: the end of the answer that arrives, or of
// the thoughts before it, and the calls.
func (c *Conversation) Live(columns, rows int, now time.Time) []text.Line {
	var lines []text.Line
	switch {
	case c.answer.Source() != "":
		lines = c.answer.Tail(columns)
	case c.thoughts != "":
		lines = c.lastThoughts(columns)
	}
	for _, call := range c.calls {
		line := call.line(text.Span{Text: "▸ ", Style: text.Style{Colour: text.Yellow}})
		took := "  " + Elapsed(now.Sub(call.Started))
		lines = append(lines, append(line.Cut(columns-len(took)-1), text.Span{Text: took, Style: text.Style{Faint: true}}))
		for _, tail := range call.Tail {
			lines = append(lines, text.Styled("  "+tail, text.Style{Faint: true}))
		}
	}
	return split(lines, columns, rows)
}

// Arriving returns the last rows of the answer that arrives, or of the thoughts before it.
func (c *Conversation) Arriving(columns, rows int) []text.Line {
	switch {
	case c.answer.Source() != "":
		return split(c.answer.Tail(columns), columns, rows)
	case c.thoughts != "":
		return split(c.lastThoughts(columns), columns, rows)
	}
	return nil
}

// Is reports whether a command is the one that the call runs. A command that a rule allows is
// run from its words, and listed with them quoted.
func (call *Call) Is(command, description string) bool {
	return command == call.Command || call.Title != "" && description == call.Title
}

// lastThoughts returns the last lines of the thoughts.
func (c *Conversation) lastThoughts(columns int) []text.Line {
	const most = 3
	recent := c.thoughts[max(0, len(c.thoughts)-most*2*max(columns, 40)):]
	lines := marked("∴", text.Style{Faint: true, Italic: true}, strings.ToValidUTF8(recent, ""), columns)
	return lines[max(0, len(lines)-most):]
}

// split breaks lines that are too wide for the terminal, and returns the last rows.
func split(lines []text.Line, columns, rows int) []text.Line {
	var out []text.Line
	for i := len(lines) - 1; i >= 0 && len(out) < rows; i-- {
		parts := lines[i].Break(columns)
		slices.Reverse(parts)
		out = append(out, parts...)
	}
	slices.Reverse(out)
	return out[max(0, len(out)-rows):]
}

// Elapsed formats a length of time for people.
func Elapsed(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
