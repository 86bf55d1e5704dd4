package event

import "encoding/json"

// The kinds of events about calls.
const (
	ToolStart     Type = "tool.execution_start"
	ToolBegun     Type = "tool.execution_begun"
	ToolComplete  Type = "tool.execution_complete"
	ExternalAsked Type = "external_tool.requested"
	ExternalDone  Type = "external_tool.completed"
)

var _ = list(
	Kind{Type: ToolStart, body: body[ToolStartData]},
	Kind{Type: ToolBegun, body: body[ToolBegunData], Hidden: true},
	Kind{Type: ToolComplete, body: body[ToolCompleteData], Shapes: true, Said: true},
	Kind{Type: ExternalAsked, body: body[ExternalAskedData], Question: true, Answer: ExternalDone},
	Kind{Type: ExternalDone, body: body[ExternalDoneData], Keyed: true},
)

// ToolStartData is the intent to make a call.
type ToolStartData struct {
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	TurnID     string          `json:"turnId,omitempty"`
	Model      string          `json:"model,omitempty"`
}

// ToolBegunData tells that a call really begins. It is stored before anything
// is done.
type ToolBegunData struct {
	ToolCallID string `json:"toolCallId"`
	Key        string `json:"key"` // the same for every attempt at one call
	Attempt    int    `json:"attempt"`
	// Granted means that more than the session's scope allows the call: a person,
	// an approval for the session, a rule.
	Granted bool `json:"granted,omitempty"`
	// Detaches means that what the call does can go on without it, as a task.
	Detaches bool `json:"detaches,omitempty"`
}

// ToolCompleteData is the one terminal record of a call.
type ToolCompleteData struct {
	ToolCallID    string      `json:"toolCallId"`
	Success       bool        `json:"success"`
	Result        *ToolResult `json:"result,omitempty"`
	Error         *ToolError  `json:"error,omitempty"`
	Model         string      `json:"model,omitempty"`
	InteractionID string      `json:"interactionId,omitempty"`
	TurnID        string      `json:"turnId,omitempty"`
}

// A ToolResult is what a call gave.
type ToolResult struct {
	Content         string          `json:"content"` // what the model reads
	DetailedContent string          `json:"detailedContent,omitempty"`
	Contents        json.RawMessage `json:"contents,omitempty"`
	Binary          json.RawMessage `json:"binaryResultsForLlm,omitempty"`
}

// A ToolError tells why a call gave nothing.
type ToolError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	// ForModel is what the model reads, if that is more than the message.
	ForModel string `json:"textForLlm,omitempty"`
}

// The codes of a ToolError.
const (
	CodeFailure     = "failure"     // the tool failed, or there is no such tool
	CodeRejected    = "rejected"    // a person said no
	CodeDenied      = "denied"      // a rule said no, or nobody could be asked
	CodeInterrupted = "interrupted" // it may or may not have happened
	CodeTimeout     = "timeout"
)

// ExternalAskedData asks a client to make a call with a tool of its own.
type ExternalAskedData struct {
	RequestID        string          `json:"requestId"`
	SessionID        SessionID       `json:"sessionId"`
	ToolCallID       string          `json:"toolCallId"`
	ToolName         string          `json:"toolName"`
	Arguments        json.RawMessage `json:"arguments,omitempty"`
	WorkingDirectory string          `json:"workingDirectory,omitempty"`
}

// ExternalDoneData closes an external call; the tool's terminal record follows
// in the same append.
type ExternalDoneData struct {
	RequestID string    `json:"requestId"`
	Answer    *Answered `json:"answer,omitempty"`
}

func (ToolStartData) Type() Type     { return ToolStart }
func (ToolBegunData) Type() Type     { return ToolBegun }
func (ToolCompleteData) Type() Type  { return ToolComplete }
func (ExternalAskedData) Type() Type { return ExternalAsked }
func (ExternalDoneData) Type() Type  { return ExternalDone }

func (d ExternalDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
