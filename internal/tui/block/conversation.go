// Package block shows the events of a session as blocks of text: what was said, what was
// called and what came of it.
//
//   - Finished blocks are made of stored events alone, so that the same log gives the same
//     lines, whoever reads it and whenever.
//   - Pieces of answers and calls under way are part of what [Conversation.Live] returns,
//     and of no finished block.
//   - Whatever models, commands and files have written is cleaned.
package block

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/markdown"
	"github.com/abide-run/abide/internal/tui/text"
)

// Options say how blocks look.
type Options struct {
	// Describe returns who said or did what in an event of a kind that this package does
	// not know better; who is empty if people need not see the event.
	Describe func(event.Event) (who, text string)
	// Asked returns what a question is about, in one line; empty if the event asks
	// nothing.
	Asked func(event.Event) string
	// Unfolded shows thoughts, arguments and output whole.
	Unfolded bool
}

// A Conversation folds the events of a session.
type Conversation struct {
	opts Options

	last  event.Seq         // position of the last stored event
	calls []*Call           // calls under way, in order
	asked map[string]string // what open questions are about, by request id

	message  string            // id of the message that arrives
	answer   markdown.Document // its text so far
	thoughts string            // thoughts of the model so far
	drafting string            // name of the tool whose call the model writes; empty if there is none
}

// A Call is a tool call under way.
type Call struct {
	ID      string
	Name    string
	Subject string // what it is about, in one line
	Command string // the command line of bash; empty for other tools
	Title   string // description of the command; empty if there is none
	Started time.Time
	Tail    []string // last lines of its output, which are clean

	arguments json.RawMessage
}

// New returns an empty conversation.
func New(opts Options) *Conversation {
	return &Conversation{opts: opts, asked: make(map[string]string)}
}

// Last returns the position of the last stored event.
func (c *Conversation) Last() event.Seq { return c.last }

// Calls returns the calls under way.
func (c *Conversation) Calls() []*Call { return c.calls }

// Streaming reports whether an answer is arriving.
func (c *Conversation) Streaming() bool { return c.answer.Source() != "" || c.thoughts != "" }

// Drafting returns the name of the tool whose call the model is writing; empty if it
// writes none.
func (c *Conversation) Drafting() string { return c.drafting }

// Add folds an event and returns the lines of the block that it finishes, which begins
// with an empty line if it stands apart. An event that was added before changes nothing.
func (c *Conversation) Add(e event.Event, columns int) []text.Line {
	if e.Seq > 0 {
		if e.Seq <= c.last {
			return nil
		}
		c.last = e.Seq
	}
	head, err := e.Head()
	if err != nil {
		return nil
	}
	if about := c.opts.Asked(e); about != "" {
		if data := new(closing); e.Decode(data) == nil {
			c.asked[data.RequestID] = about
		}
		return nil
	}
	if head.Agent != "" || e.Type.Hidden() && e.Type != event.HistoryHidden {
		return nil
	}
	if e.Seq == 0 {
		c.piece(e)
		return nil
	}
	return c.stored(e, head.Time, columns)
}

// A closing is the part that the ends of questions have in common.
type closing struct {
	RequestID string `json:"requestId"`
}

// piece folds an event that is not stored.
func (c *Conversation) piece(e event.Event) {
	switch e.Type {
	case event.MessageStart, event.ModelCallStart, event.AssistantTurnRetry:
		c.forget()
	case event.MessageDelta:
		if d, err := event.As[event.MessageDeltaData](e); err == nil {
			if d.MessageID != c.message {
				c.message, c.answer = d.MessageID, markdown.Document{}
			}
			c.drafting = ""
			c.answer.Append(text.Clean(d.DeltaContent))
		}
	case event.ReasoningDelta:
		if d, err := event.As[event.ReasoningDeltaData](e); err == nil {
			c.thoughts += text.Clean(d.DeltaContent)
		}
	case event.ToolCallDelta:
		if d, err := event.As[event.ToolCallDeltaData](e); err == nil && d.ToolName != "" {
			c.drafting = text.OneLine(d.ToolName)
		}
	}
}

// forget drops what has arrived of an answer.
func (c *Conversation) forget() {
	c.message, c.answer, c.thoughts, c.drafting = "", markdown.Document{}, "", ""
}

// stored folds a stored event.
func (c *Conversation) stored(e event.Event, at time.Time, columns int) []text.Line {
	switch e.Type {
	case event.UserMessage:
		return decoded(e, func(d event.UserMessageData) []text.Line { return user(d, columns) })
	case event.AssistantMessage:
		c.forget()
		return decoded(e, func(d event.AssistantMessageData) []text.Line { return c.said(d, columns) })
	case event.ToolStart:
		return decoded(e, func(d event.ToolStartData) []text.Line { return c.started(d, at) })
	case event.ToolComplete:
		return decoded(e, func(d event.ToolCompleteData) []text.Line { return c.completed(d, at, columns) })
	case event.PermissionDone:
		return decoded(e, c.decided)
	case event.UserInputDone:
		return decoded(e, c.answered)
	case event.SessionIdle:
		c.forget()
		c.calls = nil
		return nil
	case event.SystemNotification:
		return decoded(e, func(d event.SystemNotificationData) []text.Line { return notified(d, columns) })
	case event.SessionError:
		return decoded(e, func(d event.SessionErrorData) []text.Line {
			return marked("✗", text.Style{Colour: text.Red}, d.Message, columns)
		})
	case event.Abort:
		return []text.Line{nil, text.Styled("✗ stopped", text.Style{Colour: text.Yellow})}
	case event.SessionStart, event.SessionResume:
		return nil
	case event.SessionModelChange:
		if d, err := event.As[event.SessionModelChangeData](e); err == nil && d.PreviousModel == "" {
			return nil // the session has begun; its status says with which model
		}
	}
	return c.described(e, columns)
}

// described shows an event in the words of the program.
func (c *Conversation) described(e event.Event, columns int) []text.Line {
	who, what := c.opts.Describe(e)
	if who == "" {
		return nil
	}
	style := text.Style{Faint: true}
	if who == "warning" {
		style = text.Style{Colour: text.Yellow}
	}
	if who != "note" {
		what = who + ": " + what
	}
	return marked("·", style, what, columns)
}

// decoded calls f with the data of an event. An event that does not decode is shown by its
// kind, so that nobody thinks it was not there.
func decoded[T any](e event.Event, f func(T) []text.Line) []text.Line {
	d, err := event.As[T](e)
	if err != nil {
		return []text.Line{text.Styled("· "+text.OneLine(string(e.Type))+": cannot be read", text.Style{Faint: true})}
	}
	return f(d)
}

// marked returns wrapped lines behind a mark.
func marked(mark string, style text.Style, what string, columns int) []text.Line {
	var lines []text.Line
	first, rest := text.Styled(mark+" ", style), text.Plain("  ")
	for line := range strings.SplitSeq(strings.Trim(text.Clean(what), "\n"), "\n") {
		if line == "" && lines != nil {
			lines = append(lines, nil) // without the margin, which would be copied
			continue
		}
		lines = append(lines, append(first[:1:1], text.Span{Text: line, Style: style}).Wrap(columns, rest)...)
		first = rest
	}
	return lines
}

// user returns the block of a message to the model. What hooks and the program itself
// have added is not shown.
func user(d event.UserMessageData, columns int) []text.Line {
	if d.Source != "" && d.Source != "user" {
		return nil
	}
	lines := append([]text.Line{nil}, marked("›", text.Style{Bold: true, Colour: text.Blue}, fold(d.Content), columns)...)
	for _, raw := range d.Attachments {
		var a struct {
			DisplayName string `json:"displayName"`
			Path        string `json:"path"`
		}
		if json.Unmarshal(raw, &a) == nil && a.DisplayName+a.Path != "" {
			name := a.DisplayName
			if name == "" {
				name = a.Path
			}
			lines = append(lines, text.Styled("  attached: "+text.OneLine(name), text.Style{Faint: true}))
		}
	}
	return lines
}

// maxUserLines is the number of lines of a message of a person that are shown.
const maxUserLines = 40

// fold shortens a long message of a person to its beginning and end.
func fold(s string) string {
	lines := strings.Split(s, "\n")
	if len(lines) <= maxUserLines {
		return clip(s)
	}
	half := maxUserLines / 2
	return clip(strings.Join(lines[:half], "\n")) + fmt.Sprintf("\n… %d more lines …\n", len(lines)-2*half) + clip(strings.Join(lines[len(lines)-half:], "\n"))
}

// maxText is the number of bytes that are shown of a text without structure.
const maxText = 16 << 10

// clip shortens a text that is very long.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText/2], "") + fmt.Sprintf(" … %d bytes … ", len(s)-maxText) + strings.ToValidUTF8(s[len(s)-maxText/2:], "")
}

// said returns the block of an answer.
func (c *Conversation) said(d event.AssistantMessageData, columns int) []text.Line {
	var lines []text.Line
	if d.ReasoningText != "" {
		lines = append(lines, nil)
		lines = append(lines, c.thought(text.Clean(d.ReasoningText), columns)...)
	}
	if answer := markdown.Render(text.Clean(d.Content), columns); len(answer) > 0 {
		lines = append(append(lines, nil), answer...)
	}
	return lines
}

// thought returns the thoughts of the model: one line, or all of them if unfolded.
func (c *Conversation) thought(thoughts string, columns int) []text.Line {
	style := text.Style{Faint: true, Italic: true}
	if c.opts.Unfolded {
		return marked("∴", style, thoughts, columns)
	}
	first := text.OneLine(strings.SplitN(strings.TrimSpace(thoughts), "\n", 2)[0])
	line := text.Styled("∴ "+first, style).Cut(max(columns-14, 20))
	if n := strings.Count(strings.TrimSpace(thoughts), "\n"); n > 0 {
		line = append(line, text.Span{Text: fmt.Sprintf(" (+%d lines)", n), Style: text.Style{Faint: true}})
	}
	return []text.Line{line}
}

// decided shows what a person said about a permission.
func (c *Conversation) decided(d event.PermissionDoneData) []text.Line {
	about := c.asked[d.RequestID]
	delete(c.asked, d.RequestID)
	if about == "" {
		return nil
	}
	mark, style := "✓", text.Style{Colour: text.Green}
	switch d.Result.Kind {
	case event.Cancelled:
		mark, style = "·", text.Style{Faint: true}
	case event.DeniedByUser, event.DeniedNobody:
		mark, style = "✗", text.Style{Colour: text.Red}
	}
	line := text.Line{{Text: mark + " " + Decision(d.Result.Kind) + ": ", Style: style}, {Text: about}}
	if d.Result.Feedback != "" {
		line = append(line, text.Span{Text: " (" + text.OneLine(d.Result.Feedback) + ")", Style: text.Style{Faint: true}})
	}
	return []text.Line{line}
}

// Decision returns how a permission question ended, in words for people.
func Decision(kind string) string {
	switch kind {
	case event.Approved:
		return "allowed once"
	case event.ApprovedForSession:
		return "allowed for the session"
	case event.ApprovedForLocation:
		return "allowed here"
	case event.Cancelled:
		return "no longer asked"
	case event.DeniedByUser, event.DeniedNobody:
		return "refused"
	}
	return "allowed"
}

// answered shows the answer to a question of the model.
func (c *Conversation) answered(d event.UserInputDoneData) []text.Line {
	about := c.asked[d.RequestID]
	delete(c.asked, d.RequestID)
	return []text.Line{{{Text: "◇ " + about + " ", Style: text.Style{Faint: true}}, {Text: "→ " + text.OneLine(d.Reply), Style: text.Style{Bold: true}}}}
}

// notified shows what the model is told of its tasks: what has happened, to which command,
// and how it ended.
func notified(d event.SystemNotificationData, columns int) []text.Line {
	said := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(d.Content), "<system_notification>"))
	first, _, _ := strings.Cut(said, "\n")
	if sentence, _, more := strings.Cut(first, ". "); more {
		first = sentence
	}
	about := cmp.Or(element(said, "description"), element(said, "command"))
	if about != "" {
		first = strings.TrimSuffix(first, ".") + ": " + about
	}
	if code := element(said, "exit-code"); code != "" {
		first += " (exit code " + code + ")"
	}
	return []text.Line{text.Styled("◦ "+text.OneLine(first), text.Style{Faint: true}).Cut(max(columns, 40))}
}

// element returns the text of an element of a notification; empty if there is none.
func element(said, name string) string {
	_, rest, _ := strings.Cut(said, "\n<"+name+">")
	value, _, found := strings.Cut(rest, "</"+name+">")
	if !found {
		return ""
	}
	return html.UnescapeString(value)
}

// started remembers a call.
func (c *Conversation) started(d event.ToolStartData, at time.Time) []text.Line {
	c.drafting = ""
	call := &Call{ID: d.ToolCallID, Name: text.OneLine(d.ToolName), Started: at, arguments: d.Arguments}
	call.Subject, call.Command = subject(d.ToolName, d.Arguments)
	if call.Command != "" {
		var a struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(d.Arguments, &a) // a command need not have one
		call.Title = a.Description
	}
	c.calls = append(c.calls, call)
	return nil
}

// finish takes a call that is over off the list.
func (c *Conversation) finish(id string) *Call {
	at := slices.IndexFunc(c.calls, func(call *Call) bool { return call.ID == id })
	if at < 0 {
		return &Call{ID: id, Name: "call", Subject: "that began earlier"}
	}
	call := c.calls[at]
	c.calls = slices.Delete(c.calls, at, at+1)
	return call
}
