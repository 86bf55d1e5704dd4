package event

import "encoding/json"

// The types of events about permissions to make tool calls.
const (
	PermissionAsked       Type = "permission.requested"
	PermissionDone        Type = "permission.completed"
	PermissionsConfigured Type = "permissions.configured"
	PermissionsChanged    Type = "session.permissions_changed"
	GrantsReset           Type = "grants.reset"
)

var _ = list(
	Kind{Type: PermissionAsked, body: body[PermissionAskedData], Question: true, Answer: PermissionDone},
	Kind{Type: PermissionDone, body: body[PermissionDoneData], Lasting: true, Keyed: true},
	Kind{Type: PermissionsConfigured, body: body[ClientRules], Hidden: true, Lasting: true},
	Kind{Type: PermissionsChanged, body: body[PermissionsChangedData], Silent: true},
	Kind{Type: GrantsReset, body: body[GrantsResetData], Hidden: true, Lasting: true},
)

// PermissionAskedData is the body of permission.requested: a person is asked whether a
// tool call may be made.
type PermissionAskedData struct {
	RequestID         string          `json:"requestId"`
	PermissionRequest json.RawMessage `json:"permissionRequest"`       // what the call would do, in the protocol's form
	PromptRequest     json.RawMessage `json:"promptRequest,omitempty"` // the same for showing it to a person, in the protocol's form
	ToolCallID        string          `json:"toolCallId"`
	Grants            []Grant         `json:"grants,omitempty"` // ours: what an approval for the session would cover
}

// PermissionDoneData is the body of permission.completed, which closes the question.
type PermissionDoneData struct {
	RequestID  string           `json:"requestId"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Result     PermissionResult `json:"result"`
	Grants     []Grant          `json:"grants,omitempty"` // ours: what is approved for the rest of the session
	Answer     *Answered        `json:"answer,omitempty"` // ours: answer that counted; nil if no client gave it
}

// A Grant is an approval for the rest of a session.
type Grant struct {
	Kind    string `json:"kind"`              // kind of permission request, such as "shell" or "write"
	Subject string `json:"subject,omitempty"` // what is approved, such as a command; empty for all requests of the kind
}

// A PermissionResult says how a permission question ended.
type PermissionResult struct {
	Kind     string          `json:"kind"`               // one of the constants below
	Reason   string          `json:"reason,omitempty"`   // why it was denied or cancelled
	Feedback string          `json:"feedback,omitempty"` // what the person says to the model about a denial
	Approval json.RawMessage `json:"approval,omitempty"` // what was approved beyond this call, in the protocol's form

	LocationKey string `json:"locationKey,omitempty"` // location of an approval that holds for one
}

// The kinds of a PermissionResult.
const (
	Approved            = "approved"                                                // for this call
	ApprovedForSession  = "approved-for-session"                                    // for the rest of the session
	ApprovedForLocation = "approved-for-location"                                   // for all sessions in the same folder
	DeniedByUser        = "denied-interactively-by-user"                            // by a person
	DeniedNobody        = "denied-no-approval-rule-and-could-not-request-from-user" // there was no client to ask
	Cancelled           = "cancelled"                                               // the turn was stopped before anybody answered
)

// PermissionsChangedData is the body of session.permissions_changed: whether people are
// asked for permissions from here on.
type PermissionsChangedData struct {
	Mode         string `json:"mode"` // "manual" (people are asked) or "allow-all"
	PreviousMode string `json:"previousMode"`
}

// GrantsResetData is the body of grants.reset: all grants of the session are revoked.
type GrantsResetData struct{}

// ClientRules is the body of permissions.configured: all permissions that clients have
// set by requests of the protocol, beside the configuration of the session and the
// grants in answers.
type ClientRules struct {
	AllowAll    bool     `json:"allowAll,omitempty"`   // true if nobody is asked about anything
	AllowReads  bool     `json:"allowReads,omitempty"` // true if nobody is asked about reading
	AnyPath     bool     `json:"anyPath,omitempty"`    // true if all folders are allowed
	Temp        bool     `json:"temp,omitempty"`       // true if the temporary folder of the system is allowed
	AnyURL      bool     `json:"anyUrl,omitempty"`     // true if all URLs are allowed
	Allow       []Rule   `json:"allow,omitempty"`
	Deny        []Rule   `json:"deny,omitempty"`
	Primary     string   `json:"primary,omitempty"`      // main allowed folder; the working directory if empty
	Directories []string `json:"directories,omitempty"`  // further allowed folders
	URLs        []string `json:"urls,omitempty"`         // allowed URLs
	Location    string   `json:"location,omitempty"`     // folder that the rules in FromThere were stored for
	FromThere   []Rule   `json:"fromLocation,omitempty"` // further rules like Allow, from approvals for that folder
}

// A Rule allows or denies requests of one kind.
type Rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"` // which requests of the kind, such as a command; nil for all
}

func (PermissionAskedData) Type() Type    { return PermissionAsked }
func (PermissionDoneData) Type() Type     { return PermissionDone }
func (ClientRules) Type() Type            { return PermissionsConfigured }
func (PermissionsChangedData) Type() Type { return PermissionsChanged }
func (GrantsResetData) Type() Type        { return GrantsReset }

func (d PermissionDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
