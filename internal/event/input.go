package event

import "encoding/json"

// The types of events about inputs: what people and programs say to the model.
const (
	InputAccepted Type = "input.accepted"
	SystemMessage Type = "system.message"
	UserMessage   Type = "user.message"
	Abort         Type = "abort"
)

var _ = list(
	Kind{Type: InputAccepted, body: body[InputAcceptedData], Hidden: true, Keyed: true},
	Kind{Type: SystemMessage, body: body[SystemMessageData], Lasting: true, Silent: true},
	Kind{Type: UserMessage, body: body[UserMessageData], Shapes: true, Said: true},
	Kind{Type: Abort, body: body[AbortData], Keyed: true},
)

// SystemMessageData is the body of system.message: the system prompt, which is stored
// when it changes. With an EpochID it is a text for people about a compaction instead,
// which the model does not see as a system prompt.
type SystemMessageData struct {
	Role          string `json:"role"`                    // always "system"
	Content       string `json:"content"`                 // the whole prompt
	InteractionID string `json:"interactionId,omitempty"` // turn in which it was stored
	Context       string `json:"context,omitempty"`       // ours: part of Content that hooks added for the rest of the session
	EpochID       string `json:"epochId,omitempty"`       // ours: epoch that the compaction opened
}

// UserMessageData is the body of user.message: an input is delivered to the model.
type UserMessageData struct {
	Content            string            `json:"content"`                      // text as the person or program wrote it
	TransformedContent string            `json:"transformedContent,omitempty"` // text as the model reads it; empty if that is the time and Content
	Attachments        []json.RawMessage `json:"attachments"`                  // files, selections and images, in the protocol's form
	Delivery           string            `json:"delivery,omitempty"`           // manner of delivery: "idle" (it started a turn), "queued" (it waited for one) or "steering" (it joined a running one)
	InteractionID      string            `json:"interactionId"`                // id of the turn
	AgentMode          string            `json:"agentMode,omitempty"`          // mode of the agent that the sender asked for
	Source             string            `json:"source,omitempty"`             // origin of the text if no person wrote it, such as "hook-sessionStart"
	InputID            string            `json:"inputId"`                      // ours: id of the accepted input that is delivered
}

// AbortData is the body of abort: a turn was stopped from outside, or a session at rest
// that its tasks could wake. What tasks report then begins no turn before somebody speaks.
type AbortData struct {
	Reason    string `json:"reason"`              // one of the reasons that the protocol knows
	Detail    string `json:"detail,omitempty"`    // ours: the reason in the words of the client, if the protocol does not know it
	KeepQueue bool   `json:"keepQueue,omitempty"` // ours: true if the queued inputs are kept; otherwise they are dropped
	Hold      bool   `json:"hold,omitempty"`      // ours: true if the kept inputs wait until a further input is accepted or the session is resumed
	Key       string `json:"key,omitempty"`       // ours: idempotency key of the request
}

// Stops reports whether somebody wants the session to stop, and not only to do what
// waits in the queue instead.
func (d AbortData) Stops() bool { return !d.KeepQueue || d.Hold }

// userInitiated is the reason of an abort that a person or a client asked for.
const userInitiated = "user_initiated"

// AbortFor returns the body of an abort for a reason. Typed clients accept only the
// reasons that the protocol knows; any other reason becomes the detail.
func AbortFor(reason string) AbortData {
	switch reason {
	case userInitiated, "user_abort", "remote_command", "autopilot_credit_limit":
		return AbortData{Reason: reason}
	}
	return AbortData{Reason: userInitiated, Detail: reason}
}

// InputAcceptedData is the body of input.accepted: an input, which is stored before
// the sender gets a reply.
type InputAcceptedData struct {
	InputID       string            `json:"inputId"`
	Kind          string            `json:"kind,omitempty"`          // InputCommand, or empty for a message to the model
	Prompt        string            `json:"prompt"`                  // text for the model
	DisplayPrompt string            `json:"displayPrompt,omitempty"` // text to show to people; Prompt if empty
	Attachments   []json.RawMessage `json:"attachments,omitempty"`   // files, selections and images, in the protocol's form
	Mode          string            `json:"mode"`                    // time of delivery: ModeQueue, ModeSteer or ModeInterrupt
	AgentMode     string            `json:"agentMode,omitempty"`     // mode in which the agent is to work, one of ModeInteractive, ModePlan and ModeAutopilot; unchanged if empty
	Source        string            `json:"source,omitempty"`        // origin of the text if no person wrote it
	Key           string            `json:"key,omitempty"`           // idempotency key of the request
	Headers       bool              `json:"headers,omitempty"`       // true if the sender gave HTTP headers for the model requests of the turn; they are stored outside the log
	OutputSchema  json.RawMessage   `json:"outputSchema,omitempty"`  // JSON schema of the answer of the turn; empty if its form is free
}

// InputCommand is the kind of an input that is a slash command. The model does not
// see it.
const InputCommand = "command"

// The delivery modes of an input that is accepted during a turn.
const (
	ModeQueue     = "enqueue"   // delivered after the turn
	ModeSteer     = "immediate" // delivered before the next model request of the turn
	ModeInterrupt = "interrupt" // the turn is stopped, and the input starts the next one
)

func (InputAcceptedData) Type() Type { return InputAccepted }
func (SystemMessageData) Type() Type { return SystemMessage }
func (UserMessageData) Type() Type   { return UserMessage }
func (AbortData) Type() Type         { return Abort }

func (d AbortData) Request() Request         { return Request{Key: d.Key} }
func (d InputAcceptedData) Request() Request { return Request{Key: d.Key, ID: d.InputID} }
