package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// A question is an open question of a session. Exactly one of Permission, Input,
// External, Plan and Form is set.
type question struct {
	RequestID string
	CallID    string // empty for a form, which no call waits for
	Agent     string // id of the agent that asks; empty if the session itself does
	Digest    string // of what is asked; an answer names it

	Permission *event.PermissionAskedData
	Input      *event.UserInputAskedData
	External   *event.ExternalAskedData
	Plan       *event.ExitPlanAskedData
	Form       *event.ElicitationAskedData
}

// questionOf returns the question that an event asks; false if it asks none.
func questionOf(e event.Event) (question, bool, error) {
	if !e.Kind().Question {
		return question{}, false, nil
	}
	body, err := e.Body()
	if err != nil {
		return question{}, false, err
	}
	head, err := e.Head()
	q := question{Agent: head.Agent, Digest: e.Digest()}
	switch d := body.(type) {
	case event.PermissionAskedData:
		q.Permission, q.RequestID, q.CallID = &d, d.RequestID, d.ToolCallID
	case event.UserInputAskedData:
		q.Input, q.RequestID, q.CallID = &d, d.RequestID, d.ToolCallID
	case event.ExternalAskedData:
		q.External, q.RequestID, q.CallID = &d, d.RequestID, d.ToolCallID
	case event.ExitPlanAskedData:
		q.Plan, q.RequestID, q.CallID = &d, d.RequestID, d.ToolCallID
	case event.ElicitationAskedData:
		q.Form, q.RequestID = &d, d.RequestID
	default:
		return question{}, false, nil
	}
	return q, err == nil, err
}

// questionsOf returns the questions that events ask.
func questionsOf(raw []json.RawMessage) ([]question, error) {
	list := make([]question, 0, len(raw))
	for _, b := range raw {
		e, err := event.Parse(0, b)
		if err != nil {
			return nil, err
		}
		q, ok, err := questionOf(e)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, q)
		}
	}
	return list, nil
}

// kind returns the kind of the question, as in JSON output.
func (q question) kind() string {
	switch {
	case q.Permission != nil:
		return "permission"
	case q.Input != nil:
		return "user_input"
	case q.Plan != nil:
		return "plan"
	case q.Form != nil:
		return "form"
	}
	return "external_tool"
}

// A statement is what a question says: words of the program, and a text of others that it
// is about.
type statement struct {
	words   string // words of the program
	joint   string // what stands between the words and the text on one line
	text    string // text of the model or of a client
	isName  bool   // true if the text is the name of something, which is shown on one line
	reading string // words of the program about the text; empty if there are none
}

// sentence returns the question in words, as one text.
func (q question) sentence() string {
	s := q.statement()
	text := s.words + s.joint + s.text
	if s.reading != "" {
		text += "? " + s.reading
	}
	return text
}

// inLine returns the question on one line. Of a long one it has the beginning and the end.
func (q question) inLine() string {
	s := q.statement()
	head, hidden, tail := outerParts(s.text)
	s.text = inLine(head)
	if hidden != "" {
		s.text += fmt.Sprintf(" [… %s bytes are not shown here: abide questions shows them …] %s", grouped(len(hidden)), inLine(tail))
	}
	text := inLine(s.words) + s.joint + s.text
	if s.reading != "" {
		text += "? " + inLine(s.reading)
	}
	return text
}

// statement returns what the question says.
func (q question) statement() statement {
	switch {
	case q.Permission != nil:
		return permissionStatement(q.Permission.PermissionRequest)
	case q.Input != nil:
		text := q.Input.Question
		if len(q.Input.Choices) > 0 {
			text += " (" + strings.Join(q.Input.Choices, ", ") + ")"
		}
		return statement{words: "the model asks", joint: ": ", text: text}
	case q.Plan != nil:
		return statement{words: "may it carry out its plan", joint: ": ", text: q.Plan.Summary}
	case q.asksBudget():
		return statement{words: q.Form.Message}
	case q.asksSampling():
		return statement{words: "may an MCP server ask the model", joint: ": ", text: q.Form.Message}
	case q.Form != nil:
		return statement{words: "a form is to be filled in", joint: ": ", text: q.Form.Message}
	}
	return statement{words: "a client must run its tool " + q.External.ToolName + " with", joint: " ", text: orNothing(q.External.Arguments)}
}

// A shownRequest is what people are shown of a permission request.
type shownRequest struct {
	Kind            string          `json:"kind"`
	FullCommandText string          `json:"fullCommandText"`
	FileName        string          `json:"fileName"`
	Diff            string          `json:"diff"`
	Contents        *string         `json:"newFileContents"`
	Path            string          `json:"path"`
	LeadsTo         []string        `json:"leadsTo"`
	Protected       string          `json:"protected"`
	PutBack         bool            `json:"putBack"`
	Command         string          `json:"command"` // command while which a file was changed; empty if it is not known
	URL             string          `json:"url"`
	ServerName      string          `json:"serverName"`
	ToolName        string          `json:"toolName"`
	Args            json.RawMessage `json:"args"`
}

// request returns what is shown of the permission request that the question is about; a
// zero value if there is none, or if it cannot be read.
func (q question) request() shownRequest {
	var r shownRequest
	if q.Permission == nil || json.Unmarshal(q.Permission.PermissionRequest, &r) != nil {
		return shownRequest{}
	}
	return r
}

// permissionStatement returns what a permission request says.
func permissionStatement(raw json.RawMessage) statement {
	unknown := statement{words: "may this be done", joint: ": ", text: string(raw)}
	var r shownRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return unknown
	}
	switch r.Kind {
	case "shell":
		return statement{words: "may it run this command", joint: ": ", text: r.FullCommandText}
	case "write":
		s := statement{words: "may it write the file", joint: " ", text: r.FileName + linkTargets(r.LeadsTo), isName: true}
		if r.PutBack {
			s.words, s.joint, s.text = "while a command ran, this was changed and put back; may the change be made again", ": ", r.FileName
		}
		if r.Protected != "" {
			s.reading = "It is protected: " + r.Protected
		}
		return s
	case "read":
		return statement{words: "may it read", joint: " ", text: r.Path + linkTargets(r.LeadsTo), isName: true}
	case "url":
		return statement{words: "may it fetch", joint: " ", text: r.URL, isName: true}
	case "mcp":
		return statement{words: "may it call " + r.ToolName + " of " + r.ServerName + " with", joint: " ", text: orNothing(r.Args)}
	case "custom-tool":
		return statement{words: "may it call " + r.ToolName + " with", joint: " ", text: orNothing(r.Args)}
	}
	return unknown
}

// linkTargets returns the targets of symbolic links in words.
func linkTargets(to []string) string {
	if len(to) == 0 {
		return ""
	}
	return ", which leads to " + strings.Join(to, ", ")
}

// change returns the diff that a permission request is about; empty if there is none.
func (q question) change() string { return q.request().Diff }

func orNothing(args json.RawMessage) string {
	if len(args) == 0 {
		return "{}"
	}
	return withoutHTMLEscapes(string(args))
}

// withoutHTMLEscapes returns JSON with the characters & < > as they are, which encoders like to
// write as escapes for web pages: a person has to read them.
func withoutHTMLEscapes(text string) string {
	var w strings.Builder
	for len(text) > 0 {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			break
		}
		w.WriteString(text[:at])
		text = text[at:]
		escape := text[:min(len(text), 6)]
		switch strings.ToLower(escape) {
		case `\u0026`:
			w.WriteByte('&')
		case `\u003c`:
			w.WriteByte('<')
		case `\u003e`:
			w.WriteByte('>')
		default:
			escape = text[:2] // the next character belongs to the backslash, and may be one
			w.WriteString(escape)
		}
		text = text[len(escape):]
	}
	return w.String() + text
}

// A questionJSON is a question in JSON output.
type questionJSON struct {
	SessionID event.SessionID       `json:"session_id,omitempty"`
	RequestID string                `json:"request_id"`
	Kind      string                `json:"kind"`
	Question  string                `json:"question"`
	Choices   []string              `json:"choices,omitempty"`
	Tool      string                `json:"tool,omitempty"`
	Request   json.RawMessage       `json:"request,omitempty"`
	Diff      string                `json:"diff,omitempty"`
	More      *event.PermissionMore `json:"more,omitempty"`
	Plan      string                `json:"plan,omitempty"`
	Schema    json.RawMessage       `json:"schema,omitempty"`
}

func (q question) forJSON() questionJSON {
	a := questionJSON{RequestID: q.RequestID, Kind: q.kind(), Question: q.sentence()}
	switch {
	case q.Permission != nil:
		a.Request, a.Diff, a.More = q.Permission.PermissionRequest, q.change(), q.Permission.Abide
	case q.Input != nil:
		a.Question, a.Choices = q.Input.Question, q.Input.Choices
	case q.Plan != nil:
		a.Question, a.Choices, a.Plan = q.Plan.Summary, q.Plan.Actions, q.Plan.PlanContent
	case q.Form != nil:
		a.Question, a.Schema = q.Form.Message, q.Form.Schema
	default:
		a.Tool, a.Request = q.External.ToolName, q.External.Arguments
	}
	return a
}

// hasChanged reports whether an answer was refused because the open question is not the one
// that was shown.
func hasChanged(err error) bool {
	fault, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && fault.Code == api.CodeChanged
}

// answer answers a question. It reports false if another answer came first. An
// [unclear] error means that nothing was answered.
func (q question) answer(ctx context.Context, c *client.Client, id event.SessionID, text string) (bool, error) {
	switch {
	case q.Permission != nil:
		d, err := q.decide(text)
		if err != nil {
			return false, err
		}
		result, err := json.Marshal(d)
		if err != nil {
			return false, err
		}
		return c.AnswerPermission(ctx, api.AnswerPermissionParams{SessionID: id, RequestID: q.RequestID, Result: result, Digest: q.Digest})
	case q.Input != nil:
		reply := api.UserInputResult{Answer: text, WasFreeform: !slices.Contains(q.Input.Choices, text)}
		return c.AnswerUserInput(ctx, api.AnswerUserInputParams{SessionID: id, RequestID: q.RequestID, Response: reply, Digest: q.Digest})
	case q.Plan != nil:
		reply, err := q.judgePlan(text)
		if err != nil {
			return false, err
		}
		return c.AnswerPlan(ctx, api.AnswerExitPlanParams{SessionID: id, RequestID: q.RequestID, Response: reply, Digest: q.Digest})
	case q.Form != nil:
		filled, err := q.fillIn(text)
		if err != nil {
			return false, err
		}
		return c.AnswerForm(ctx, api.AnswerElicitationParams{SessionID: id, RequestID: q.RequestID, Result: filled, Digest: q.Digest})
	case q.External != nil:
		result, err := json.Marshal(text)
		if err != nil {
			return false, err
		}
		return c.AnswerTool(ctx, api.AnswerToolParams{SessionID: id, RequestID: q.RequestID, Result: result, Digest: q.Digest})
	}
	return false, fmt.Errorf("question %s cannot be answered here", q.RequestID)
}
