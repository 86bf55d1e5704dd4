package turn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/event"
)

// An Answer is a client's answer to an open question of a call. Exactly one of
// Permission, External, User and Plan is set.
type Answer struct {
	RequestID  string
	Key        string // the client's idempotency key; empty if it has none
	Permission *Decision
	External   *ExternalResult
	User       *UserReply
	Plan       *PlanReply
}

// An ExternalResult is the result of a client's tool.
type ExternalResult struct {
	Text     string          `json:"textResultForLlm"`
	Kind     string          `json:"resultType,omitempty"` // "success" if empty
	Log      string          `json:"sessionLog,omitempty"`
	Error    string          `json:"error,omitempty"`
	Contents json.RawMessage `json:"contents,omitempty"`
	Binary   json.RawMessage `json:"binaryResultsForLlm,omitempty"`
	// Shown is what the model reads if the text was shortened; empty otherwise.
	Shown string `json:"-"`
	// Thrown means that the client's tool failed without a result.
	Thrown bool `json:"-"`
}

// A UserReply is a person's answer to a question of the model.
type UserReply struct {
	Answer      string `json:"answer"`
	WasFreeform bool   `json:"wasFreeform"`
	Unable      bool   `json:"-"` // no person can answer, and Answer only says so
}

// fits reports whether the answer is of the kind that the call waits for.
func (a Answer) fits(c *Call) bool {
	switch c.Stage {
	case WaitingPermission:
		return a.Permission != nil
	case WaitingExternal:
		return a.External != nil
	case WaitingUser:
		return a.User != nil
	case WaitingPlan:
		return a.Plan != nil
	}
	return false
}

// digest returns a digest by which a client can tell whether its answer was taken.
func (a Answer) digest() *event.Answered {
	if a.Plan != nil {
		return digestOf(a.Key, a.Plan)
	}
	return digestOf(a.Key, []any{a.Permission, a.External, a.User})
}

// Give returns what is to be recorded when an answer arrives. It reports false
// if no question of that id and kind is open.
func (a Answer) Give(s *State) ([]event.Payload, bool, error) {
	c := s.Question(a.RequestID)
	if c == nil || !a.fits(c) {
		return nil, false, nil
	}
	switch {
	case a.Plan != nil:
		return a.plan(s, c), true, nil
	case a.Permission != nil:
		record, err := a.permission(s, c)
		return record, err == nil, err
	case a.External != nil:
		return []event.Payload{
			event.ExternalDoneData{RequestID: a.RequestID, Answer: a.digest()},
			externalComplete(s, c, *a.External),
		}, true, nil
	default:
		return []event.Payload{
			event.UserInputDoneData{RequestID: a.RequestID, Reply: a.User.Answer, WasFreeform: a.User.WasFreeform, Answer: a.digest()},
			userComplete(s, c, *a.User),
		}, true, nil
	}
}

// externalComplete returns the terminal record of a call that a client made.
func externalComplete(s *State, c *Call, r ExternalResult) event.ToolCompleteData {
	if r.Thrown {
		const message = "Tool execution failed"
		return failed(s, c, message, fmt.Sprintf("Failed to execute `%s` tool with arguments: %s due to error: Error: %s", c.Request.Name, c.Request.Arguments, message))
	}
	return externalOutcome(complete(s, c), r)
}

// externalOutcome returns a terminal record with the result of a client's tool.
func externalOutcome(d event.ToolCompleteData, r ExternalResult) event.ToolCompleteData {
	r.Text = cmp.Or(r.Shown, r.Text)
	switch r.Kind {
	case "", "success":
		d.Success = true
		d.Result = &event.ToolResult{Content: r.Text, DetailedContent: r.Log, Contents: r.Contents, Binary: r.Binary}
		return d
	case event.CodeRejected, event.CodeDenied, event.CodeTimeout:
		d.Error = &event.ToolError{Code: r.Kind}
	default:
		d.Error = &event.ToolError{Code: event.CodeFailure}
	}
	d.Error.Message = r.Error
	if d.Error.Message == "" {
		d.Error.Message = r.Text
	}
	if r.Text != d.Error.Message {
		d.Error.ForModel = r.Text
	}
	return d
}

// userComplete returns the terminal record of a question that a person has answered.
func userComplete(s *State, c *Call, r UserReply) event.ToolCompleteData {
	text := "User selected: " + r.Answer
	if r.WasFreeform {
		text = "User responded: " + r.Answer
	}
	d := complete(s, c)
	d.Success = true
	d.Result = &event.ToolResult{Content: text}
	return d
}
