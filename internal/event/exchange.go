package event

import "encoding/json"

// The payloads of what clients ask of each other and of a session: forms,
// commands, the queue, the plan, permissions.

// ElicitationAskedData is a form that somebody is to fill in.
type ElicitationAskedData struct {
	RequestID string          `json:"requestId"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	Mode      string          `json:"mode,omitempty"` // "form" if empty
	Key       string          `json:"key,omitempty"`  // ours: the idempotency key of the request
}

// ElicitationDoneData closes a form.
type ElicitationDoneData struct {
	RequestID string          `json:"requestId"`
	Action    string          `json:"action"` // "accept", "decline" or "cancel"
	Content   json.RawMessage `json:"content,omitempty"`
	Answer    *Answered       `json:"winner,omitempty"`
}

// A Command is one that a client carries out.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// CommandExecuteData asks the client that has a command to carry it out.
type CommandExecuteData struct {
	RequestID   string `json:"requestId"`
	Command     string `json:"command"` // as a person would write it
	CommandName string `json:"commandName"`
	Args        string `json:"args"`
	InputID     string `json:"inputId,omitempty"` // ours: the queued input that it is
	Key         string `json:"key,omitempty"`     // ours: the idempotency key of the request
}

// CommandQueuedData asks those who look after the queue to carry a command out.
type CommandQueuedData struct {
	RequestID string `json:"requestId"`
	Command   string `json:"command"`
	InputID   string `json:"inputId"` // ours: the queued input that it is
}

// CommandDoneData tells that a command is done with.
type CommandDoneData struct {
	RequestID string    `json:"requestId"`
	Error     string    `json:"error,omitempty"`
	InputID   string    `json:"inputId,omitempty"` // of a queued command that nobody was asked about
	Stop      bool      `json:"stop,omitempty"`    // the queue rests until something new comes
	Answer    *Answered `json:"winner,omitempty"`
}

// QueueChangedData is how the queue stands after somebody changed it.
type QueueChangedData struct {
	Order  []string   `json:"order"`            // the inputs that are left
	Edited *QueueEdit `json:"edited,omitempty"` // one that says something else now
	Steer  string     `json:"steer,omitempty"`  // one that is to be heard in the running turn
	Paused *bool      `json:"paused,omitempty"` // whether the queue is held, if that changed
	Added  string     `json:"added,omitempty"`  // an input that was put in
	Key    string     `json:"key,omitempty"`    // the idempotency key of the request
}

// A QueueEdit is what a queued input says from now on.
type QueueEdit struct {
	InputID       string `json:"inputId"`
	Prompt        string `json:"prompt"`
	DisplayPrompt string `json:"displayPrompt,omitempty"`
}

// SessionSuspendedData tells that a session rests, in the middle of whatever it
// does, or goes on.
type SessionSuspendedData struct {
	Suspended bool `json:"suspended"`
}

// PlanChangedData tells that the plan was written.
type PlanChangedData struct {
	Operation string `json:"operation"` // "create", "update" or "delete"
}

// PermissionsChangedData tells how permissions are asked for from here on.
type PermissionsChangedData struct {
	Mode         string `json:"mode"` // "manual" or "allow-all"
	PreviousMode string `json:"previousMode"`
}

// GrantsResetData takes back what was allowed for the rest of the session.
type GrantsResetData struct{}

// CommandsChangedData lists the commands of all clients.
type CommandsChangedData struct {
	Commands []Command `json:"commands"`
}

// CapabilitiesChangedData tells what the clients of a session can do together.
type CapabilitiesChangedData struct {
	UI struct {
		Elicitation bool `json:"elicitation"`
	} `json:"ui"`
}

func (ElicitationAskedData) Type() Type    { return ElicitationAsked }
func (ElicitationDoneData) Type() Type     { return ElicitationDone }
func (CommandExecuteData) Type() Type      { return CommandExecute }
func (CommandQueuedData) Type() Type       { return CommandQueued }
func (CommandDoneData) Type() Type         { return CommandDone }
func (QueueChangedData) Type() Type        { return QueueChanged }
func (SessionSuspendedData) Type() Type    { return SessionSuspended }
func (PlanChangedData) Type() Type         { return PlanChanged }
func (PermissionsChangedData) Type() Type  { return PermissionsChanged }
func (GrantsResetData) Type() Type         { return GrantsReset }
func (CommandsChangedData) Type() Type     { return CommandsChanged }
func (CapabilitiesChangedData) Type() Type { return CapabilitiesChanged }
func (ClientRules) Type() Type             { return PermissionsConfigured }

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
