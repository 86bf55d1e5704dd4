package turn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/approval"
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

// A Decision answers a permission question.
type Decision struct {
	Kind     string          `json:"kind"`
	Feedback string          `json:"feedback,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Approval json.RawMessage `json:"approval,omitempty"`
	// Standing means that what it allows is remembered outside of the session.
	Standing bool `json:"-"`
	// Location is the place for which ApproveForLocation says yes.
	Location string `json:"-"`
}

// The kinds of a Decision.
const (
	ApproveOnce        = "approve-once"
	ApproveForSession  = "approve-for-session"
	ApproveForLocation = "approve-for-location"
	ApprovePermanently = "approve-permanently"
	Reject             = "reject"
	UserNotAvailable   = "user-not-available"
)

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

func (a Answer) permission(s *State, c *Call) ([]event.Payload, error) {
	done := event.PermissionDoneData{RequestID: a.RequestID, ToolCallID: c.Request.ToolCallID, Answer: a.digest()}
	d := a.Permission
	switch d.Kind {
	case ApproveOnce:
		done.Result.Kind = event.Approved
		return []event.Payload{done}, nil
	case ApprovePermanently:
		return []event.Payload{d.widely(done, c, event.Approved)}, nil
	case ApproveForSession:
		return []event.Payload{d.widely(done, c, event.ApprovedForSession)}, nil
	case ApproveForLocation:
		done = d.widely(done, c, event.ApprovedForLocation)
		done.Result.LocationKey = cmp.Or(d.Location, s.Setup.Config.WorkingDirectory, ".")
		return []event.Payload{done}, nil
	case Reject:
		done.Result = event.PermissionResult{Kind: event.DeniedByUser, Feedback: d.Feedback}
		if d.Feedback != "" {
			return []event.Payload{done, refused(s, c, event.CodeDenied, textRejected+" User feedback: "+d.Feedback)}, nil
		}
		return []event.Payload{done, refused(s, c, event.CodeRejected, textRejected)}, nil
	case UserNotAvailable:
		done.Result.Kind = event.DeniedNobody
		return []event.Payload{done, refused(s, c, event.CodeDenied, textNobody)}, nil
	}
	return nil, fmt.Errorf("result.kind: %q is not a decision; use %s, %s, %s, %s, %s or %s",
		d.Kind, ApproveOnce, ApproveForSession, ApproveForLocation, ApprovePermanently, Reject, UserNotAvailable)
}

// widely says yes for more than once: for the rest of the session, unless it is
// remembered outside of it. Typed clients cannot read such a yes without what it
// covers, so it is said even if the answer left it open.
func (d *Decision) widely(done event.PermissionDoneData, c *Call, kind string) event.PermissionDoneData {
	done.Result = event.PermissionResult{Kind: kind, Approval: coverage(d.Approval, c)}
	if !d.Standing {
		done.Grants = grants(d.Approval, c)
	}
	return done
}

// coverage is what an approval covers in the protocol's words: what the answer
// says, or else what the question was about.
func coverage(raw json.RawMessage, c *Call) json.RawMessage {
	var said approval.Coverage
	if len(raw) > 0 && json.Unmarshal(raw, &said) == nil && said.Whole() {
		return raw
	}
	text, _ := json.Marshal(said.Completed(c.Grants, c.Request.Name)) // texts can always be encoded
	return text
}

// grants says what an approval for the session covers. Without details it
// covers what the question was about.
func grants(raw json.RawMessage, c *Call) []event.Grant {
	var a struct {
		Kind     string   `json:"kind"`
		Commands []string `json:"commandIdentifiers"`
		ToolName string   `json:"toolName"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &a) != nil || a.Kind == "" {
		return c.Grants
	}
	switch a.Kind {
	case "commands":
		list := make([]event.Grant, len(a.Commands))
		for i, name := range a.Commands {
			list[i] = event.Grant{Kind: approval.Shell, Subject: name}
		}
		return list
	case approval.CustomTool:
		if a.ToolName == "" {
			a.ToolName = c.Request.Name
		}
		return []event.Grant{{Kind: approval.CustomTool, Subject: a.ToolName}}
	}
	return []event.Grant{{Kind: a.Kind}}
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
