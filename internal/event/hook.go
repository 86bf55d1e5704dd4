package event

import "encoding/json"

// The kinds of events about hooks.
const (
	HookStart Type = "hook.start"
	HookEnd   Type = "hook.end"
)

var _ = list(
	Kind{Type: HookStart, body: body[HookStartData], Answer: HookEnd},
	Kind{Type: HookEnd, body: body[HookEndData], Shapes: true},
)

// The kinds of hooks: when clients that want to be asked are asked.
const (
	HookPromptSubmitted   = "userPromptSubmitted"   // before an input is taken as it is
	HookPromptTransformed = "userPromptTransformed" // before the model reads it
	HookSessionStart      = "sessionStart"          // in the first turn, and in the first after a resume
	HookPreToolUse        = "preToolUse"            // before anything else is done about a call
	HookPostToolUse       = "postToolUse"           // before the result of a call is final
	HookPostToolFailure   = "postToolUseFailure"    // before the failure of a call is final
	HookPreCompact        = "preCompact"            // before the context is compacted
	HookPostCompact       = "postCompact"           // after that
	HookAgentStop         = "agentStop"             // before the last word of the model is taken as such
	HookSessionEnd        = "sessionEnd"            // before the session is idle
	HookErrorOccurred     = "errorOccurred"         // before a turn is given up
)

// HookStartData is the question to clients that have hooks. It is stored before
// it is put to them, and open until its HookEndData.
type HookStartData struct {
	ID    string          `json:"hookInvocationId"`
	Kind  string          `json:"hookType"` // one of Hook…
	Input json.RawMessage `json:"input"`

	// What it is about; ours.
	InputID string            `json:"inputId,omitempty"`     // the accepted input
	Calls   []string          `json:"toolCallIds,omitempty"` // the calls
	Outcome *ToolCompleteData `json:"outcome,omitempty"`     // what the call gave
	Failure *SessionErrorData `json:"failure,omitempty"`     // what ends the turn
}

// HookEndData is what clients said. Without success the hook counts as absent.
type HookEndData struct {
	ID      string          `json:"hookInvocationId"`
	Kind    string          `json:"hookType"`
	Success bool            `json:"success"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   *HookError      `json:"error,omitempty"`
	// Outputs is what was said of each call; ours.
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"`
}

// A HookError tells why a hook counts as absent.
type HookError struct {
	Message string `json:"message"`
}

func (HookStartData) Type() Type { return HookStart }
func (HookEndData) Type() Type   { return HookEnd }
