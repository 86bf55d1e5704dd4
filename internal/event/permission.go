package event

import "encoding/json"

// The kinds of events about permissions.
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
	Kind{Type: PermissionsChanged, body: body[PermissionsChangedData]},
	Kind{Type: GrantsReset, body: body[GrantsResetData], Hidden: true, Lasting: true},
)

// PermissionAskedData is an open question: may this be done?
type PermissionAskedData struct {
	RequestID         string          `json:"requestId"`
	PermissionRequest json.RawMessage `json:"permissionRequest"`
	PromptRequest     json.RawMessage `json:"promptRequest,omitempty"`
	ToolCallID        string          `json:"toolCallId"`
	Grants            []Grant         `json:"grants,omitempty"` // what a yes for the whole session would cover
}

// PermissionDoneData closes a permission question.
type PermissionDoneData struct {
	RequestID  string           `json:"requestId"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Result     PermissionResult `json:"result"`
	Grants     []Grant          `json:"grants,omitempty"` // what is allowed from here on
	Answer     *Answered        `json:"answer,omitempty"`
}

// A Grant is an approval for the rest of a session.
type Grant struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"` // empty covers the whole kind
}

// A PermissionResult is how a permission question ended.
type PermissionResult struct {
	Kind     string          `json:"kind"`
	Reason   string          `json:"reason,omitempty"`
	Feedback string          `json:"feedback,omitempty"`
	Approval json.RawMessage `json:"approval,omitempty"`

	LocationKey string `json:"locationKey,omitempty"` // the place of a yes for a location
}

// The kinds of a PermissionResult.
const (
	Approved            = "approved"
	ApprovedForSession  = "approved-for-session"
	ApprovedForLocation = "approved-for-location"
	DeniedByUser        = "denied-interactively-by-user"
	DeniedByRules       = "denied-by-rules"
	DeniedNobody        = "denied-no-approval-rule-and-could-not-request-from-user"
	Cancelled           = "cancelled"
)

// PermissionsChangedData tells how permissions are asked for from here on.
type PermissionsChangedData struct {
	Mode         string `json:"mode"` // "manual" or "allow-all"
	PreviousMode string `json:"previousMode"`
}

// GrantsResetData takes back what was allowed for the rest of the session.
type GrantsResetData struct{}

// ClientRules is all that clients have said about permissions, beside the
// configuration and what was allowed in answers.
type ClientRules struct {
	AllowAll    bool     `json:"allowAll,omitempty"`   // nobody is asked
	AllowReads  bool     `json:"allowReads,omitempty"` // nobody is asked about reading
	AnyPath     bool     `json:"anyPath,omitempty"`    // every folder is an allowed one
	Temp        bool     `json:"temp,omitempty"`       // so is the system's temporary folder
	AnyURL      bool     `json:"anyUrl,omitempty"`
	Allow       []Rule   `json:"allow,omitempty"`
	Deny        []Rule   `json:"deny,omitempty"`
	Primary     string   `json:"primary,omitempty"`     // the main folder; the working directory if empty
	Directories []string `json:"directories,omitempty"` // further ones
	URLs        []string `json:"urls,omitempty"`
	Location    string   `json:"location,omitempty"` // whose approvals are among Allow
	FromThere   []Rule   `json:"fromLocation,omitempty"`
}

// A Rule is about a kind of request, or those of them that its argument names.
type Rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"`
}

func (PermissionAskedData) Type() Type    { return PermissionAsked }
func (PermissionDoneData) Type() Type     { return PermissionDone }
func (ClientRules) Type() Type            { return PermissionsConfigured }
func (PermissionsChangedData) Type() Type { return PermissionsChanged }
func (GrantsResetData) Type() Type        { return GrantsReset }

func (d PermissionDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
