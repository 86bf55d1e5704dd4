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
)

// A question is an open question of a session. Exactly one of Permission, Input,
// External, Plan and Form is set.
type question struct {
	RequestID string
	CallID    string // empty for a form, which no call waits for
	Agent     string // id of the agent that asks; empty if the session itself does

	Permission *event.PermissionAskedData
	Input      *event.UserInputAskedData
	External   *event.ExternalAskedData
	Plan       *event.ExitPlanAskedData
	Form       *event.ElicitationAskedData
}

// questionOf returns the question that an event asks; false if it asks none.
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
	case event.ExitPlanAsked:
		q.Plan = new(event.ExitPlanAskedData)
		err = e.Decode(q.Plan)
		q.RequestID, q.CallID = q.Plan.RequestID, q.Plan.ToolCallID
	case event.ElicitationAsked:
		q.Form = new(event.ElicitationAskedData)
		err = e.Decode(q.Form)
		q.RequestID = q.Form.RequestID
	default:
		return q, false, nil
	}
	if err == nil {
		var head event.Head
		head, err = e.Head()
		q.Agent = head.Agent
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

// sentence returns the question in words.
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
	case q.Plan != nil:
		return "may it carry out its plan: " + q.Plan.Summary
	case q.Form != nil:
		return q.Form.Message
	}
	return fmt.Sprintf("a client must run its tool %s with %s", q.External.ToolName, orNothing(q.External.Arguments))
}

// describePermission returns a permission request in words.
func describePermission(raw json.RawMessage) string {
	var r struct {
		Kind            string          `json:"kind"`
		FullCommandText string          `json:"fullCommandText"`
		FileName        string          `json:"fileName"`
		Path            string          `json:"path"`
		LeadsTo         []string        `json:"leadsTo"`
		Protected       string          `json:"protected"`
		PutBack         bool            `json:"putBack"`
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
		text := "may it write the file " + r.FileName + linkTargets(r.LeadsTo)
		if r.PutBack {
			text = "while a command ran, this was changed and put back; may the change be made again: " + r.FileName
		}
		if r.Protected != "" {
			text += "? It is protected: " + r.Protected
		}
		return text
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

// linkTargets returns the targets of symbolic links in words.
func linkTargets(to []string) string {
	if len(to) == 0 {
		return ""
	}
	return ", which leads to " + strings.Join(to, ", ")
}

// change returns the diff that a permission request is about; empty if there is none.
func (q question) change() string {
	var r struct{ Diff string }
	if q.Permission == nil || json.Unmarshal(q.Permission.PermissionRequest, &r) != nil {
		return ""
	}
	return r.Diff
}

func orNothing(args json.RawMessage) string {
	if len(args) == 0 {
		return "{}"
	}
	return string(args)
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
		a.Schema = q.Form.Schema
	default:
		a.Tool, a.Request = q.External.ToolName, q.External.Arguments
	}
	return a
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
		return c.AnswerPermission(ctx, api.AnswerPermissionParams{SessionID: id, RequestID: q.RequestID, Result: result})
	case q.Input != nil:
		reply := api.UserInputResult{Answer: text, WasFreeform: !slices.Contains(q.Input.Choices, text)}
		return c.AnswerUserInput(ctx, api.AnswerUserInputParams{SessionID: id, RequestID: q.RequestID, Response: reply})
	case q.Plan != nil:
		reply, err := q.judgePlan(text)
		if err != nil {
			return false, err
		}
		return c.AnswerPlan(ctx, api.AnswerExitPlanParams{SessionID: id, RequestID: q.RequestID, Response: reply})
	case q.Form != nil:
		filled, err := fillIn(text)
		if err != nil {
			return false, err
		}
		return c.AnswerForm(ctx, api.AnswerElicitationParams{SessionID: id, RequestID: q.RequestID, Result: filled})
	}
	result, err := json.Marshal(text)
	if err != nil {
		return false, err
	}
	return c.AnswerTool(ctx, api.AnswerToolParams{SessionID: id, RequestID: q.RequestID, Result: result})
}
