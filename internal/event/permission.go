package event

import (
	"encoding/json"
	"reflect"
)

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
	Kind{Type: PermissionsChanged, body: body[PermissionsChangedData], Silent: true, Inert: true},
	Kind{Type: GrantsReset, body: body[GrantsResetData], Hidden: true, Lasting: true},
)

// PermissionAskedData is the body of permission.requested: a person is asked whether a
// tool call may be made.
type PermissionAskedData struct {
	RequestID         string          `json:"requestId"`
	PermissionRequest json.RawMessage `json:"permissionRequest"`       // description of the call, in the protocol's form
	PromptRequest     json.RawMessage `json:"promptRequest,omitempty"` // the same for showing it to a person, in the protocol's form
	ToolCallID        string          `json:"toolCallId"`
	Grants            []Grant         `json:"grants,omitempty"` // ours: what an approval for the session covers that says nothing else
	Abide             *PermissionMore `json:"abide,omitempty"`  // ours: what a person needs to know; nil in logs of older versions
}

// PermissionMore is what a person needs to know before answering a permission request.
type PermissionMore struct {
	Tool       string           `json:"tool,omitempty"`       // name of the tool
	Reasons    []string         `json:"reasons,omitempty"`    // reasons that a person is asked, in sentences
	Dir        string           `json:"directory,omitempty"`  // directory in which a command runs
	Terminal   bool             `json:"terminal,omitempty"`   // true if a command has a terminal
	Input      bool             `json:"input,omitempty"`      // true if a command can be given input later
	Commands   []CommandReading `json:"commands,omitempty"`   // commands of a command line, in order; empty if it is not understood
	Offers     []Offer          `json:"offers,omitempty"`     // ways to approve it
	SearchPath string           `json:"searchPath,omitempty"` // value of PATH with which a command is run
}

// A CommandReading is one command of a command line, as the parser understands it.
type CommandReading struct {
	Join  string        `json:"join,omitempty"`      // sign between it and the command before: "|", "&&", "||" or ";"
	Words []string      `json:"words"`               // program and arguments, without quotes
	Files []Redirection `json:"redirects,omitempty"` // redirections
}

// A Redirection is a redirection of a command.
type Redirection struct {
	Operator string `json:"operator"` // such as ">" or "2>"
	Target   string `json:"target"`
}

// An Offer is one way to approve a permission request. An answer names it by its ID.
type Offer struct {
	ID     string  `json:"id"`               // one of the Offer constants below
	Label  string  `json:"label"`            // description of what it allows
	Grants []Grant `json:"grants,omitempty"` // grants beyond this call; empty if there are none
}

// The IDs of offers.
const (
	OfferOnce    = "once"    // this call only
	OfferCommand = "command" // this command line with these words
	OfferPrefix  = "prefix"  // every command that begins with certain words
	OfferFile    = "file"    // the files that were shown
	OfferFolder  = "folder"  // files below a folder
	OfferTool    = "tool"    // every call of a tool of a client or an MCP server
	OfferServer  = "server"  // every call of an MCP server
	OfferInput   = "input"   // every input to one running command
)

// PermissionDoneData is the body of permission.completed, which closes the question.
type PermissionDoneData struct {
	RequestID  string           `json:"requestId"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Result     PermissionResult `json:"result"`
	Grants     []Grant          `json:"grants,omitempty"` // ours: what is approved for the rest of the session
	Answer     *Answered        `json:"answer,omitempty"` // ours: answer that counted; nil if no client gave it
}

// A Grant is an approval that covers later calls. Exactly one of Command, Prefix, Folder
// and Subject says what it covers; a grant that says nothing covers nothing.
type Grant struct {
	Kind string `json:"kind"` // kind of permission request, such as "shell" or "write"
	// Subject is what is approved by its whole name: a tool, or the absolute path of one file.
	// Older versions stored names of commands in it, and files in Folder.
	Subject string `json:"subject,omitempty"`

	Command  string   `json:"command,omitempty"`   // a command line in the form that is run, word for word
	Dir      string   `json:"directory,omitempty"` // directory in which the command line runs; the working directory of whichever session if it is empty
	Terminal bool     `json:"terminal,omitempty"`  // true if it has a terminal
	Input    bool     `json:"input,omitempty"`     // true if it can be given input
	Prefix   []string `json:"prefix,omitempty"`    // words with which a command begins
	Folder   string   `json:"folder,omitempty"`    // absolute path of a folder: it and everything below it
}

// A PermissionResult says how a permission question ended.
type PermissionResult struct {
	Kind     string          `json:"kind"`               // one of the constants below
	Reason   string          `json:"reason,omitempty"`   // reason of a denial or cancellation
	Feedback string          `json:"feedback,omitempty"` // message of the person to the model about a denial
	Approval json.RawMessage `json:"approval,omitempty"` // approval beyond this call, in the protocol's form

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
	Argument *string `json:"argument"` // requests of the kind, such as a command; nil for all
	// Grant is what an approval covers that the rule was made of. If it is set, it alone
	// counts, and Argument only shows it to clients.
	Grant *Grant `json:"grant,omitempty"`
}

// Equal reports whether two rules are the same.
func (r Rule) Equal(other Rule) bool { return reflect.DeepEqual(r, other) }

// Equal reports whether two grants cover the same.
func (g Grant) Equal(other Grant) bool { return reflect.DeepEqual(g, other) }

func (PermissionAskedData) Type() Type    { return PermissionAsked }
func (PermissionDoneData) Type() Type     { return PermissionDone }
func (ClientRules) Type() Type            { return PermissionsConfigured }
func (PermissionsChangedData) Type() Type { return PermissionsChanged }
func (GrantsResetData) Type() Type        { return GrantsReset }

func (d PermissionDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
