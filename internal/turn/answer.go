package turn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/event"
)

// An Answer is what a client says to an open question. Exactly one of
// Permission, External, User and Plan is set.
type Answer struct {
	RequestID  string
	Key        string // the client's idempotency key, if it has one
	Permission *Decision
	External   *ExternalResult
	User       *UserReply
	Plan       *PlanReply
}

// An ExternalResult is what a client's tool gave.
type ExternalResult struct {
	Text     string          `json:"textResultForLlm"`
	Kind     string          `json:"resultType,omitempty"` // "success" if empty
	Log      string          `json:"sessionLog,omitempty"`
	Error    string          `json:"error,omitempty"`
	Contents json.RawMessage `json:"contents,omitempty"`
	Binary   json.RawMessage `json:"binaryResultsForLlm,omitempty"`
	// Shown is what the model reads, if that is less than the text.
	Shown string `json:"-"`
	// Thrown is set if the client's tool broke instead of giving a result.
	Thrown bool `json:"-"`
}

// A UserReply is what a person said.
type UserReply struct {
	Answer      string `json:"answer"`
	WasFreeform bool   `json:"wasFreeform"`
	Unable      bool   `json:"-"` // there is no answer, only the news that none can be had
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

// digest identifies the answer for whoever asks whether it won.
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

func externalComplete(s *State, c *Call, r ExternalResult) event.ToolCompleteData {
	if r.Thrown {
		const message = "Tool execution failed"
		return failed(s, c, message, fmt.Sprintf("Failed to execute `%s` tool with arguments: %s due to error: Error: %s", c.Request.Name, c.Request.Arguments, message))
	}
	return externalOutcome(complete(s, c), r)
}

// externalOutcome is the terminal record of a call with the result that a client
// gives it.
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
