package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// A question waits for an answer. Exactly one of its three forms is set.
type question struct {
	RequestID string
	CallID    string

	Permission *event.PermissionAskedData
	Input      *event.UserInputAskedData
	External   *event.ExternalAskedData
}

// questionOf reads the event that asked a question; false if it is none.
func questionOf(e event.Event) (question, bool, error) {
	var q question
	var err error
	switch e.Type {
	case event.PermissionAsked:
		q.Permission = new(event.PermissionAskedData)
		err = e.Decode(q.Permission)
		q.RequestID, q.CallID = q.Permission.RequestID, q.Permission.ToolCallID
	case event.UserInputAsked:
		q.Input = new(event.UserInputAskedData)
		err = e.Decode(q.Input)
		q.RequestID, q.CallID = q.Input.RequestID, q.Input.ToolCallID
	case event.ExternalAsked:
		q.External = new(event.ExternalAskedData)
		err = e.Decode(q.External)
		q.RequestID, q.CallID = q.External.RequestID, q.External.ToolCallID
	default:
		return q, false, nil
	}
	return q, err == nil, err
}

// questionsOf reads the events that asked questions.
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

// kind is one word for what is asked.
func (q question) kind() string {
	switch {
	case q.Permission != nil:
		return "permission"
	case q.Input != nil:
		return "user_input"
	}
	return "external_tool"
}

// sentence says what is asked.
func (q question) sentence() string {
	switch {
	case q.Permission != nil:
		return describePermission(q.Permission.PermissionRequest)
	case q.Input != nil:
		text := q.Input.Question
		if len(q.Input.Choices) > 0 {
			text += " (" + strings.Join(q.Input.Choices, ", ") + ")"
		}
		return text
	}
	return fmt.Sprintf("a client must run its tool %s with %s", q.External.ToolName, orNothing(q.External.Arguments))
}

// describePermission says what a permission request wants.
func describePermission(raw json.RawMessage) string {
	var r struct {
		Kind            string          `json:"kind"`
		FullCommandText string          `json:"fullCommandText"`
		FileName        string          `json:"fileName"`
		Path            string          `json:"path"`
		LeadsTo         []string        `json:"leadsTo"`
		URL             string          `json:"url"`
		ServerName      string          `json:"serverName"`
		ToolName        string          `json:"toolName"`
		Args            json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "may this be done: " + string(raw)
	}
	switch r.Kind {
	case "shell":
		return "may it run this command: " + r.FullCommandText
	case "write":
		return "may it write the file " + r.FileName + linkTargets(r.LeadsTo)
	case "read":
		return "may it read " + r.Path + linkTargets(r.LeadsTo)
	case "url":
		return "may it fetch " + r.URL
	case "mcp":
		return fmt.Sprintf("may it call %s of %s with %s", r.ToolName, r.ServerName, orNothing(r.Args))
	case "custom-tool":
		return fmt.Sprintf("may it call %s with %s", r.ToolName, orNothing(r.Args))
	}
	return "may this be done: " + string(raw)
}

// linkTargets says where links lead.
func linkTargets(to []string) string {
	if len(to) == 0 {
		return ""
	}
	return ", which leads to " + strings.Join(to, ", ")
}

// change is what a permission would do to a file, as a diff; empty if it is about
// something else.
func (q question) change() string {
	var r struct{ Diff string }
	if q.Permission == nil || json.Unmarshal(q.Permission.PermissionRequest, &r) != nil {
		return ""
	}
	return r.Diff
}

// always says what a yes for the session would cover.
func (q question) always() string {
	var covered []string
	for _, g := range q.Permission.Grants {
		if g.Subject == "" {
			return "every " + g.Kind
		}
		covered = append(covered, g.Subject)
	}
	return strings.Join(covered, ", ")
}

func orNothing(args json.RawMessage) string {
	if len(args) == 0 {
		return "{}"
	}
	return string(args)
}

// An questionJSON is a question as JSON output has it.
type questionJSON struct {
	SessionID event.SessionID `json:"session_id,omitempty"`
	RequestID string          `json:"request_id"`
	Kind      string          `json:"kind"`
	Question  string          `json:"question"`
	Choices   []string        `json:"choices,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
}

func (q question) forJSON() questionJSON {
	a := questionJSON{RequestID: q.RequestID, Kind: q.kind(), Question: q.sentence()}
	switch {
	case q.Permission != nil:
		a.Request = q.Permission.PermissionRequest
	case q.Input != nil:
		a.Question, a.Choices = q.Input.Question, q.Input.Choices
	default:
		a.Tool, a.Request = q.External.ToolName, q.External.Arguments
	}
	return a
}

// The words that answer a permission question; any other text refuses it and
// tells the model why.
const (
	wordApprove = "approve"
	wordSession = "approve-session"
	wordHere    = "approve-here"
	wordAlways  = "approve-always"
	wordReject  = "reject"
)

// answer answers a question. It reports whether the answer won.
func (q question) answer(ctx context.Context, c *client.Client, id event.SessionID, text string) (bool, error) {
	switch {
	case q.Permission != nil:
		result, err := json.Marshal(decision(text))
		if err != nil {
			return false, err
		}
		return c.AnswerPermission(ctx, api.AnswerPermissionParams{SessionID: id, RequestID: q.RequestID, Result: result})
	case q.Input != nil:
		reply := api.UserInputResult{Answer: text, WasFreeform: !slices.Contains(q.Input.Choices, text)}
		return c.AnswerUserInput(ctx, api.AnswerUserInputParams{SessionID: id, RequestID: q.RequestID, Response: reply})
	}
	result, err := json.Marshal(text)
	if err != nil {
		return false, err
	}
	return c.AnswerTool(ctx, api.AnswerToolParams{SessionID: id, RequestID: q.RequestID, Result: result})
}

func decision(text string) turn.Decision {
	switch text {
	case wordApprove:
		return turn.Decision{Kind: turn.ApproveOnce}
	case wordSession:
		return turn.Decision{Kind: turn.ApproveForSession}
	case wordHere:
		return turn.Decision{Kind: turn.ApproveForLocation}
	case wordAlways:
		return turn.Decision{Kind: turn.ApprovePermanently}
	case wordReject:
		return turn.Decision{Kind: turn.Reject}
	}
	return turn.Decision{Kind: turn.Reject, Feedback: text}
}
