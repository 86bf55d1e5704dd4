package event

import "encoding/json"

// The types of events about requests to the model and their answers. The protocol
// calls one model request with its tool calls a turn; docs/ARCHITECTURE.md calls it a
// step.
const (
	AssistantTurnStart Type = "assistant.turn_start"
	AssistantUsage     Type = "assistant.usage"
	AssistantMessage   Type = "assistant.message"
	AssistantTurnEnd   Type = "assistant.turn_end"
	TurnEnded          Type = "turn.ended"
	ModelCallStart     Type = "model.call_start"
	ModelCallFailure   Type = "model.call_failure"
	AssistantTurnRetry Type = "assistant.turn_retry"
	AssistantIdle      Type = "assistant.idle"
	StreamingDelta     Type = "assistant.streaming_delta"
	MessageStart       Type = "assistant.message_start"
	MessageDelta       Type = "assistant.message_delta"
	ReasoningDelta     Type = "assistant.reasoning_delta"
	ToolCallDelta      Type = "assistant.tool_call_delta"
)

var _ = list(
	Kind{Type: AssistantTurnStart, body: body[AssistantTurnStartData], Silent: true},
	Kind{Type: AssistantUsage, body: body[AssistantUsageData], Ephemeral: true, Silent: true},
	Kind{Type: AssistantMessage, body: body[AssistantMessageData], Shapes: true, Said: true},
	Kind{Type: AssistantTurnEnd, body: body[AssistantTurnEndData], Silent: true},
	Kind{Type: TurnEnded, body: body[TurnEndedData], Hidden: true},
	Kind{Type: ModelCallStart, body: body[ModelCallStartData], Sent: true, Silent: true},
	Kind{Type: ModelCallFailure, body: body[ModelCallFailureData], Sent: true, Silent: true},
	Kind{Type: AssistantTurnRetry, body: body[AssistantTurnRetryData], Sent: true, Silent: true},
	Kind{Type: AssistantIdle, body: body[AssistantIdleData], Sent: true, Silent: true},
	Kind{Type: StreamingDelta, body: body[StreamingDeltaData], Sent: true, Piece: true, Silent: true},
	Kind{Type: MessageStart, body: body[MessageStartData], Sent: true, Piece: true, Silent: true},
	Kind{Type: MessageDelta, body: body[MessageDeltaData], Sent: true, Piece: true, Grows: "deltaContent"},
	Kind{Type: ReasoningDelta, body: body[ReasoningDeltaData], Sent: true, Piece: true, Grows: "deltaContent", Silent: true},
	Kind{Type: ToolCallDelta, body: body[ToolCallDeltaData], Sent: true, Piece: true, Grows: "inputDelta", Silent: true},
)

// AssistantTurnStartData is the body of assistant.turn_start: a request to the model
// begins.
type AssistantTurnStartData struct {
	TurnID        string `json:"turnId"`        // number of the step in its turn: "0", "1", …
	InteractionID string `json:"interactionId"` // id of the turn that the step belongs to
}

// AssistantTurnEndData is the body of assistant.turn_end: an answer is recorded and
// all of its tool calls have ended.
type AssistantTurnEndData struct {
	TurnID string `json:"turnId"`
}

// AssistantUsageData is the body of assistant.usage: what one model request cost.
type AssistantUsageData struct {
	Model            string `json:"model"`
	InputTokens      int64  `json:"inputTokens"`  // tokens of the request that did not come from the cache
	OutputTokens     int64  `json:"outputTokens"` // tokens of the answer
	CacheReadTokens  int64  `json:"cacheReadTokens"`
	CacheWriteTokens int64  `json:"cacheWriteTokens"`
	CacheWrite1h     int64  `json:"cacheWrite1hTokens,omitempty"` // ours: the part of CacheWriteTokens that is cached for an hour
	ReasoningTokens  int64  `json:"reasoningTokens,omitempty"`
	Duration         int64  `json:"duration"`               // milliseconds from the request to the end of the answer
	FinishReason     string `json:"finishReason,omitempty"` // reason why the model stopped
	NumToolCalls     int    `json:"numToolCalls"`           // number of tool calls in the answer
	// CostUSD is the price of the request, if it is known. It is ours: the
	// protocol's own "cost" counts requests.
	CostUSD *float64  `json:"costUsd,omitempty"`
	Anchor  *Anchor   `json:"anchor,omitempty"`  // ours: what the provider counted
	AgentOf SessionID `json:"agentOf,omitempty"` // ours: session that the request is counted with, if an agent made it

	AnsweredBy string `json:"answeredBy,omitempty"` // ours: name that the provider gave the model that answered, if it is another
}

// AssistantMessageData is the body of assistant.message: one whole answer of the
// model.
type AssistantMessageData struct {
	MessageID     string        `json:"messageId"`
	Model         string        `json:"model,omitempty"` // model that answered
	Content       string        `json:"content"`         // text of the answer
	ToolRequests  []ToolRequest `json:"toolRequests"`    // tool calls that the answer asks for
	InteractionID string        `json:"interactionId,omitempty"`
	TurnID        string        `json:"turnId,omitempty"`
	OutputTokens  int64         `json:"outputTokens"`
	RequestID     string        `json:"requestId,omitempty"` // id that the provider gave the request
	// The reasoning of the model, which is sent back to it with the next request:
	// readable text, data that only the provider understands, and encrypted text.
	ReasoningText    string `json:"reasoningText,omitempty"`
	ReasoningOpaque  string `json:"reasoningOpaque,omitempty"`
	EncryptedContent string `json:"encryptedContent,omitempty"`
	// Earlier is the number of bytes of Content that the model has said in earlier parts of
	// the answer; see AssistantUnfinishedData. It is ours.
	Earlier int `json:"earlierBytes,omitempty"`
	// Failure is the error with which the turn ends because of how the answer ended; nil if
	// it ended well. It is ours.
	Failure *SessionErrorData `json:"failure,omitempty"`
}

// A ToolRequest is a tool call that an answer of the model asks for.
type ToolRequest struct {
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"`      // name of the tool
	Arguments  json.RawMessage `json:"arguments"` // always a JSON object
	Kind       string          `json:"type"`      // always "function"
	// Malformed is the text of the model's arguments if it is not a JSON object.
	// Arguments is then an empty object, and the call fails.
	Malformed string `json:"malformedArguments,omitempty"`

	Title     string `json:"toolTitle,omitempty"`     // title of the tool of an MCP server
	MCPServer string `json:"mcpServerName,omitempty"` // MCP server that has the tool; empty if there is none
	MCPTool   string `json:"mcpToolName,omitempty"`   // name that the MCP server gave the tool
}

// TurnEndedData is the body of turn.ended: the turn ends without an answer, because a
// client that resumed the session declined its pending work.
type TurnEndedData struct {
	Reason string `json:"reason"`
}

// ModelCallStartData is the body of model.call_start: a request is sent to a model.
type ModelCallStartData struct {
	TurnID string `json:"turnId"`
	Model  string `json:"model,omitempty"`
}

// The values of [ModelCallFailureData].FailureKind. Typed clients accept no others.
const (
	FailureAPI       = "api"       // the provider answered with an error
	FailureTransport = "transport" // there was no answer, or it broke off
)

// ModelCallFailureData is the body of model.call_failure: a request to a model failed.
type ModelCallFailureData struct {
	Source       string `json:"source"` // origin of the request: always "top_level"
	Model        string `json:"model,omitempty"`
	StatusCode   int    `json:"statusCode,omitempty"` // HTTP status of the answer, if there was one
	ErrorMessage string `json:"errorMessage,omitempty"`
	FailureKind  string `json:"failureKind,omitempty"` // FailureAPI or FailureTransport
	ErrorType    string `json:"errorType,omitempty"`   // ours: kind of the error, as in SessionErrorData
}

// AssistantTurnRetryData is the body of assistant.turn_retry: a failed request is sent
// again.
type AssistantTurnRetryData struct {
	TurnID string `json:"turnId"`
	Reason string `json:"reason"` // "api_error" or "rate_limit"
}

// AssistantIdleData is the body of assistant.idle: the turn has ended.
type AssistantIdleData struct {
	Aborted bool `json:"aborted,omitempty"` // true if the turn was stopped from outside
}

// StreamingDeltaData is the body of assistant.streaming_delta: how much of an answer
// has arrived so far.
type StreamingDeltaData struct {
	TotalResponseSizeBytes int `json:"totalResponseSizeBytes"`
}

// MessageStartData is the body of assistant.message_start: an answer begins to arrive.
type MessageStartData struct {
	MessageID string `json:"messageId"`
}

// MessageDeltaData is the body of assistant.message_delta: a piece of the text of an
// answer.
type MessageDeltaData struct {
	MessageID    string `json:"messageId"`
	DeltaContent string `json:"deltaContent"`
}

// ReasoningDeltaData is the body of assistant.reasoning_delta: a piece of the model's
// reasoning.
type ReasoningDeltaData struct {
	ReasoningID  string `json:"reasoningId"`
	DeltaContent string `json:"deltaContent"`
}

// ToolCallDeltaData is the body of assistant.tool_call_delta: a piece of the arguments
// of a tool call.
type ToolCallDeltaData struct {
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName,omitempty"`
	ToolType   string `json:"toolType,omitempty"`
	InputDelta string `json:"inputDelta"`
}

func (AssistantTurnStartData) Type() Type { return AssistantTurnStart }
func (AssistantUsageData) Type() Type     { return AssistantUsage }
func (AssistantMessageData) Type() Type   { return AssistantMessage }
func (AssistantTurnEndData) Type() Type   { return AssistantTurnEnd }
func (TurnEndedData) Type() Type          { return TurnEnded }
func (ModelCallStartData) Type() Type     { return ModelCallStart }
func (ModelCallFailureData) Type() Type   { return ModelCallFailure }
func (AssistantTurnRetryData) Type() Type { return AssistantTurnRetry }
func (AssistantIdleData) Type() Type      { return AssistantIdle }
func (StreamingDeltaData) Type() Type     { return StreamingDelta }
func (MessageStartData) Type() Type       { return MessageStart }
func (MessageDeltaData) Type() Type       { return MessageDelta }
func (ReasoningDeltaData) Type() Type     { return ReasoningDelta }
func (ToolCallDeltaData) Type() Type      { return ToolCallDelta }
