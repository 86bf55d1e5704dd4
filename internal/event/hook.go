package event

import "encoding/json"

// The types of events about hooks: questions to clients that want to change what the
// agent does. docs/EVENTS.md explains them.
const (
	HookStart Type = "hook.start"
	HookEnd   Type = "hook.end"
)

var _ = list(
	Kind{Type: HookStart, body: body[HookStartData], Answer: HookEnd, Silent: true},
	Kind{Type: HookEnd, body: body[HookEndData], Shapes: true, Silent: true},
)

// The kinds of hooks, and when clients are asked.
const (
	HookPromptSubmitted   = "userPromptSubmitted"   // before an input is delivered
	HookPromptTransformed = "userPromptTransformed" // before the model reads the delivered input
	HookSessionStart      = "sessionStart"          // in the first turn, and in the first after a resume
	HookPreToolUse        = "preToolUse"            // before anything else is done about a call
	HookPostToolUse       = "postToolUse"           // before the result of a call is final
	HookPostToolFailure   = "postToolUseFailure"    // before the failure of a call is final
	HookPreCompact        = "preCompact"            // before the context is compacted
	HookPostCompact       = "postCompact"           // after the context was compacted
	HookAgentStop         = "agentStop"             // before a turn ends with an answer of the model
	HookSessionEnd        = "sessionEnd"            // before the session is idle
	HookErrorOccurred     = "errorOccurred"         // before a turn ends with an error
	HookPreMCPToolCall    = "preMcpToolCall"        // before an MCP server is asked to carry out a call
)

// HookStartData is the body of hook.start: a question to the clients that have hooks.
// It is stored before they are asked, and open until the hook.end with the same ID.
type HookStartData struct {
	ID    string          `json:"hookInvocationId"`
	Kind  string          `json:"hookType"` // one of the Hook constants above
	Input json.RawMessage `json:"input"`    // input of the hook, in the protocol's form

	// These fields are ours. They say what the hook is about.
	InputID string            `json:"inputId,omitempty"`     // accepted input that waits to be delivered
	Calls   []string          `json:"toolCallIds,omitempty"` // tool calls that wait for the hook
	Outcome *ToolCompleteData `json:"outcome,omitempty"`     // result of a call, which is recorded after the hook
	Failure *SessionErrorData `json:"failure,omitempty"`     // error that ends the turn, unless the hook asks for a retry
}

// HookEndData is the body of hook.end: the answer of the clients to a hook.
type HookEndData struct {
	ID      string                     `json:"hookInvocationId"`
	Kind    string                     `json:"hookType"`          // one of the Hook constants above
	Success bool                       `json:"success"`           // false if no client answered; everything goes on as if there were no hook
	Output  json.RawMessage            `json:"output,omitempty"`  // answers of all clients, merged, in the protocol's form
	Error   *HookError                 `json:"error,omitempty"`   // set if Success is false
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"` // ours: outputs of a preToolUse hook, by the id of the tool call
}

// A HookError says why no client answered a hook.
type HookError struct {
	Message string `json:"message"`
}

func (HookStartData) Type() Type { return HookStart }
func (HookEndData) Type() Type   { return HookEnd }
