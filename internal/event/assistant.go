package event

import "encoding/json"

// The kinds of events about requests to the model, and its answers.
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
	Kind{Type: AssistantTurnStart, body: body[AssistantTurnStartData]},
	Kind{Type: AssistantUsage, body: body[AssistantUsageData], Ephemeral: true},
	Kind{Type: AssistantMessage, body: body[AssistantMessageData], Shapes: true, Said: true},
	Kind{Type: AssistantTurnEnd, body: body[AssistantTurnEndData]},
	Kind{Type: TurnEnded, body: body[TurnEndedData], Hidden: true},
	Kind{Type: ModelCallStart, body: body[ModelCallStartData], Sent: true},
	Kind{Type: ModelCallFailure, body: body[ModelCallFailureData], Sent: true},
	Kind{Type: AssistantTurnRetry, body: body[AssistantTurnRetryData], Sent: true},
	Kind{Type: AssistantIdle, body: body[AssistantIdleData], Sent: true},
	Kind{Type: StreamingDelta, body: body[StreamingDeltaData], Sent: true, Piece: true},
	Kind{Type: MessageStart, body: body[MessageStartData], Sent: true, Piece: true},
	Kind{Type: MessageDelta, body: body[MessageDeltaData], Sent: true, Piece: true},
	Kind{Type: ReasoningDelta, body: body[ReasoningDeltaData], Sent: true, Piece: true},
	Kind{Type: ToolCallDelta, body: body[ToolCallDeltaData], Sent: true, Piece: true},
)

// AssistantTurnStartData tells that the model is asked.
type AssistantTurnStartData struct {
	TurnID        string `json:"turnId"`
	InteractionID string `json:"interactionId"`
}

// AssistantTurnEndData tells that an answer and its tool calls are done with.
type AssistantTurnEndData struct {
	TurnID string `json:"turnId"`
}

// AssistantUsageData is what one model request cost.
type AssistantUsageData struct {
	Model            string `json:"model"`
	InputTokens      int64  `json:"inputTokens"`
	OutputTokens     int64  `json:"outputTokens"`
	CacheReadTokens  int64  `json:"cacheReadTokens"`
	CacheWriteTokens int64  `json:"cacheWriteTokens"`
	ReasoningTokens  int64  `json:"reasoningTokens,omitempty"`
	Duration         int64  `json:"duration"` // milliseconds
	Initiator        string `json:"initiator,omitempty"`
	APIEndpoint      string `json:"apiEndpoint,omitempty"`
	FinishReason     string `json:"finishReason,omitempty"`
	NumToolCalls     int    `json:"numToolCalls"`
	// CostUSD is there if the price was known. The protocol's own cost counts
	// requests.
	CostUSD *float64 `json:"costUsd,omitempty"`
	Anchor  *Anchor  `json:"anchor,omitempty"` // ours
}

// AssistantMessageData is one whole answer of the model.
type AssistantMessageData struct {
	MessageID        string        `json:"messageId"`
	Model            string        `json:"model,omitempty"`
	Content          string        `json:"content"`
	ToolRequests     []ToolRequest `json:"toolRequests"`
	InteractionID    string        `json:"interactionId,omitempty"`
	TurnID           string        `json:"turnId,omitempty"`
	OutputTokens     int64         `json:"outputTokens"`
	RequestID        string        `json:"requestId,omitempty"`
	ReasoningText    string        `json:"reasoningText,omitempty"`
	ReasoningOpaque  string        `json:"reasoningOpaque,omitempty"`
	EncryptedContent string        `json:"encryptedContent,omitempty"`
}

// A ToolRequest is a call that the model wants made.
type ToolRequest struct {
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"` // always an object
	Kind       string          `json:"type"`      // "function"
	// Malformed holds the model's arguments if they were not a JSON object;
	// Arguments is then empty, and the call fails.
	Malformed string `json:"malformedArguments,omitempty"`
}

// TurnEndedData ends a turn without an answer because its pending work was
// declined.
type TurnEndedData struct {
	Reason string `json:"reason"`
}

// ModelCallStartData tells that a request goes out.
type ModelCallStartData struct {
	TurnID string `json:"turnId"`
	Model  string `json:"model,omitempty"`
}

// The values of failureKind. Typed clients know no others.
const (
	FailureAPI       = "api"       // the provider answered with an error
	FailureTransport = "transport" // there was no answer, or not a whole one
)

// ModelCallFailureData tells that a request failed.
type ModelCallFailureData struct {
	Source       string `json:"source"`
	Model        string `json:"model,omitempty"`
	StatusCode   int    `json:"statusCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	FailureKind  string `json:"failureKind,omitempty"` // FailureAPI or FailureTransport
	ErrorType    string `json:"errorType,omitempty"`   // what kind of error it was, in our words
}

// AssistantTurnRetryData tells that a request is made again.
type AssistantTurnRetryData struct {
	TurnID string `json:"turnId"`
	Reason string `json:"reason"` // "api_error" or "rate_limit"
}

// AssistantIdleData tells that the turn is over.
type AssistantIdleData struct {
	Aborted bool `json:"aborted,omitempty"`
}

// StreamingDeltaData counts what has arrived of an answer.
type StreamingDeltaData struct {
	TotalResponseSizeBytes int `json:"totalResponseSizeBytes"`
}

// MessageStartData tells that an answer begins to arrive.
type MessageStartData struct {
	MessageID string `json:"messageId"`
}

// MessageDeltaData is a piece of an answer's text.
type MessageDeltaData struct {
	MessageID    string `json:"messageId"`
	DeltaContent string `json:"deltaContent"`
}

// ReasoningDeltaData is a piece of the model's reasoning.
type ReasoningDeltaData struct {
	ReasoningID  string `json:"reasoningId"`
	DeltaContent string `json:"deltaContent"`
}

// ToolCallDeltaData is a piece of a call's arguments.
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
