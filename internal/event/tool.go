package event

import "encoding/json"

// The types of events about tool calls.
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
	Kind{Type: ExternalDone, body: body[ExternalDoneData], Inert: true, Keyed: true, Silent: true},
)

// ToolStartData is the body of tool.execution_start: a tool call is going to be made,
// once it is permitted.
type ToolStartData struct {
	ToolCallID string          `json:"toolCallId"` // id that the model gave the call
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	TurnID     string          `json:"turnId,omitempty"`
	Model      string          `json:"model,omitempty"` // model that asked for the call

	MCPServer string `json:"mcpServerName,omitempty"` // MCP server that carries out the call; empty if there is none
	MCPTool   string `json:"mcpToolName,omitempty"`   // name that the MCP server gave the tool
}

// ToolBegunData is the body of tool.execution_begun: a call is permitted and begins. It
// is stored before the tool runs, so that after a crash it is known that the call may
// have had effects.
type ToolBegunData struct {
	ToolCallID string `json:"toolCallId"`
	Key        string `json:"key"`                // unique key of the call, the same for every attempt
	Attempt    int    `json:"attempt"`            // number of the attempt: 1, 2, 3 …
	Granted    bool   `json:"granted,omitempty"`  // true if a person, a grant or a rule allowed the call, which may then leave the session's scope
	Detaches   bool   `json:"detaches,omitempty"` // true if the work of the call can go on as a task after the call has ended

	Decision *Decision `json:"decision,omitempty"` // decision that allowed the call; nil in logs of older versions
	Replay   string    `json:"replay,omitempty"`   // "once", "keyed" or "pure": whether the call may be repeated after a crash; empty in logs of older versions
}

// ToolCompleteData is the body of tool.execution_complete: the result of a call. Every
// call has exactly one.
type ToolCompleteData struct {
	ToolCallID    string      `json:"toolCallId"`
	Success       bool        `json:"success"`
	Result        *ToolResult `json:"result,omitempty"` // set if Success is true
	Error         *ToolError  `json:"error,omitempty"`  // set if Success is false
	Model         string      `json:"model,omitempty"`  // model that asked for the call
	InteractionID string      `json:"interactionId,omitempty"`
	TurnID        string      `json:"turnId,omitempty"`
	Digest        string      `json:"digest,omitempty"` // ours: the same for calls that do and find the same
}

// A ToolResult is the result of a successful call.
type ToolResult struct {
	Content         string          `json:"content"`                       // text for the model
	DetailedContent string          `json:"detailedContent,omitempty"`     // text for people, if it is different
	Contents        json.RawMessage `json:"contents,omitempty"`            // structured result for clients, in the protocol's form
	Binary          json.RawMessage `json:"binaryResultsForLlm,omitempty"` // images for the model, in the protocol's form
}

// A ToolError says why a call failed.
type ToolError struct {
	Message  string `json:"message"`
	Code     string `json:"code"`                 // one of the Code constants below
	ForModel string `json:"textForLlm,omitempty"` // text for the model; Message if empty
}

// The codes of a ToolError.
const (
	CodeFailure     = "failure"     // the tool failed, or there is no such tool
	CodeRejected    = "rejected"    // a person denied it
	CodeDenied      = "denied"      // a rule denied it, or there was nobody to ask
	CodeInterrupted = "interrupted" // the program ended during the call, which may have had effects
	CodeTimeout     = "timeout"     // the call took too long
)

// ExternalAskedData is the body of external_tool.requested: the client that has the tool
// is asked to carry out a call.
type ExternalAskedData struct {
	RequestID        string          `json:"requestId"`
	SessionID        SessionID       `json:"sessionId"`
	ToolCallID       string          `json:"toolCallId"`
	ToolName         string          `json:"toolName"`
	Arguments        json.RawMessage `json:"arguments,omitempty"`
	WorkingDirectory string          `json:"workingDirectory,omitempty"`
	Decision         *Decision       `json:"decision,omitempty"` // ours: what allowed the call; nil in logs of older versions
}

// ExternalDoneData is the body of external_tool.completed, which closes the request. The
// tool.execution_complete of the call follows in the same append.
type ExternalDoneData struct {
	RequestID string    `json:"requestId"`
	Answer    *Answered `json:"answer,omitempty"` // ours: answer that counted; nil if no client gave it
}

func (ToolStartData) Type() Type     { return ToolStart }
func (ToolBegunData) Type() Type     { return ToolBegun }
func (ToolCompleteData) Type() Type  { return ToolComplete }
func (ExternalAskedData) Type() Type { return ExternalAsked }
func (ExternalDoneData) Type() Type  { return ExternalDone }

func (d ExternalDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
