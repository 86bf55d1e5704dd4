package event

import "encoding/json"

// The kinds of events about what is said to the model.
const (
	InputAccepted Type = "input.accepted"
	SystemMessage Type = "system.message"
	UserMessage   Type = "user.message"
	Abort         Type = "abort"
)

var _ = list(
	Kind{Type: InputAccepted, body: body[InputAcceptedData], Hidden: true, Keyed: true},
	Kind{Type: SystemMessage, body: body[SystemMessageData], Lasting: true},
	Kind{Type: UserMessage, body: body[UserMessageData], Shapes: true, Said: true},
	Kind{Type: Abort, body: body[AbortData]},
)

// SystemMessageData is the system prompt, stored when it changes.
type SystemMessageData struct {
	Role          string `json:"role"`
	Content       string `json:"content"`
	InteractionID string `json:"interactionId,omitempty"`
	// Context is what hooks have added to it for the rest of the session.
	Context string `json:"context,omitempty"`
	// EpochID is set if it is not the system prompt but what a compaction tells.
	EpochID string `json:"epochId,omitempty"`
}

// UserMessageData is an input as the model gets it.
type UserMessageData struct {
	Content            string            `json:"content"`
	TransformedContent string            `json:"transformedContent,omitempty"` // what the model reads, if that differs
	Attachments        []json.RawMessage `json:"attachments"`
	Delivery           string            `json:"delivery,omitempty"` // "idle", "queued" or "steering"
	InteractionID      string            `json:"interactionId"`
	AgentMode          string            `json:"agentMode,omitempty"`
	Source             string            `json:"source,omitempty"`
	InputID            string            `json:"inputId"` // ours: the accepted input that this delivers
}

// AbortData tells that a turn was stopped from outside. The queue is cleared
// unless KeepQueue is set.
type AbortData struct {
	Reason    string `json:"reason"`           // one that the protocol knows
	Detail    string `json:"detail,omitempty"` // the reason in other words, if there are any
	KeepQueue bool   `json:"keepQueue,omitempty"`
}

// UserInitiated is the reason of an abort that somebody asked for.
const UserInitiated = "user_initiated"

// AbortFor is an abort for a reason. Typed clients can read only the reasons that
// the protocol knows; any other words become the detail.
func AbortFor(reason string) AbortData {
	switch reason {
	case UserInitiated, "user_abort", "remote_command", "autopilot_credit_limit":
		return AbortData{Reason: reason}
	}
	return AbortData{Reason: UserInitiated, Detail: reason}
}

// InputAcceptedData is an input, stored before it is acknowledged.
type InputAcceptedData struct {
	InputID       string            `json:"inputId"`
	Kind          string            `json:"kind,omitempty"` // InputCommand, or empty for a message
	Prompt        string            `json:"prompt"`
	DisplayPrompt string            `json:"displayPrompt,omitempty"`
	Attachments   []json.RawMessage `json:"attachments,omitempty"`
	Mode          string            `json:"mode"` // ModeQueue, ModeSteer or ModeInterrupt
	AgentMode     string            `json:"agentMode,omitempty"`
	Source        string            `json:"source,omitempty"`
	Key           string            `json:"key,omitempty"` // idempotency key of the sender
	// Headers means that headers for the model requests of its turn are kept
	// beside the log.
	Headers bool `json:"headers,omitempty"`
}

// InputCommand is the kind of an input that is a command: the model does not
// hear of it.
const InputCommand = "command"

// How an input that comes during a turn is treated.
const (
	ModeQueue     = "enqueue"   // after the turn
	ModeSteer     = "immediate" // before the turn's next model request
	ModeInterrupt = "interrupt" // the turn is stopped and this comes next
)

func (InputAcceptedData) Type() Type { return InputAccepted }
func (SystemMessageData) Type() Type { return SystemMessage }
func (UserMessageData) Type() Type   { return UserMessage }
func (AbortData) Type() Type         { return Abort }

func (d InputAcceptedData) Request() Request { return Request{Key: d.Key, ID: d.InputID} }
