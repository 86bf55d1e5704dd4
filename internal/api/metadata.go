package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The methods about what a session is like: its mode, its name, its model, where
// it works, what it does now.
const (
	ModeGet            = "session.mode.get"
	ModeSet            = "session.mode.set"
	NameGet            = "session.name.get"
	NameSetAuto        = "session.name.setAuto"
	IsProcessing       = "session.metadata.isProcessing"
	Activity           = "session.metadata.activity"
	Snapshot           = "session.metadata.snapshot"
	ContextInfo        = "session.metadata.contextInfo"
	RecomputeContext   = "session.metadata.recomputeContextTokens"
	SetDirectory       = "session.metadata.setWorkingDirectory"
	RecordContext      = "session.metadata.recordContextChange"
	ModelList          = "session.model.list"
	SetReasoningEffort = "session.model.setReasoningEffort"
	ProviderAdd        = "session.provider.add"
	ProviderEndpoint   = "session.provider.getEndpoint"
	SendMessages       = "session.sendMessages"
	InterruptTurn      = "session.interruptMainTurn"
	SessionShutdown    = "session.shutdown"
	ToolsList          = "tools.list"
	CurrentTools       = "session.tools.getCurrentMetadata"
	UsageMetrics       = "session.usage.getMetrics"
	AnswerExitPlan     = "session.ui.handlePendingExitPlanMode"
)

// ExitPlan is the request that asks a client whether a plan may be carried out.
const ExitPlan = "exitPlanMode.request"

// ModeSetResult tells that the mode was set.
type ModeSetResult struct {
	Status       string `json:"status"`
	ModeApplied  bool   `json:"modeApplied"`
	ModelChanged bool   `json:"modelChanged"`
}

// NameResult is a session's name.
type NameResult struct {
	Name *string `json:"name"`
}

// SetAutoParams suggests a name.
type SetAutoParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Summary   string          `json:"summary"`
}

// AppliedNameResult tells whether it was taken.
type AppliedNameResult struct {
	Applied bool `json:"applied"`
}

// ProcessingResult tells whether a session does something.
type ProcessingResult struct {
	Processing bool `json:"processing"`
}

// ActivityResult tells whether a session does something, and whether that can be
// stopped.
type ActivityResult struct {
	HasActiveWork bool `json:"hasActiveWork"`
	Abortable     bool `json:"abortable"`
}

// SnapshotResult is what a session is like now.
type SnapshotResult struct {
	SessionID        event.SessionID  `json:"sessionId"`
	StartTime        string           `json:"startTime"`
	ModifiedTime     string           `json:"modifiedTime"`
	CurrentMode      string           `json:"currentMode"`
	SelectedModel    string           `json:"selectedModel,omitempty"`
	WorkingDirectory string           `json:"workingDirectory"`
	WorkspacePath    *string          `json:"workspacePath"`
	Workspace        *WorkspaceResult `json:"workspace,omitempty"`
	ClientName       string           `json:"clientName,omitempty"`
	Summary          string           `json:"summary,omitempty"`
	AlreadyInUse     bool             `json:"alreadyInUse"`
	IsRemote         bool             `json:"isRemote"`
	SessionLimits    json.RawMessage  `json:"sessionLimits"` // none
}

// WorkspaceResult describes the folder of a session's own files.
type WorkspaceResult struct {
	ID   event.SessionID `json:"id"`
	Cwd  string          `json:"cwd,omitempty"`
	Name string          `json:"name,omitempty"`
}

// ContextInfoParams asks how full the context of a session is.
type ContextInfoParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Model     string          `json:"selectedModel,omitempty"`
	Prompt    int             `json:"promptTokenLimit,omitempty"` // limit that the client knows better than the runtime
	Output    int             `json:"outputTokenLimit,omitempty"`
}

// ContextInfoResult tells it.
type ContextInfoResult struct {
	Info ContextUse `json:"contextInfo"`
}

// ContextUse is what fills a context, in tokens.
type ContextUse struct {
	Model        string `json:"modelName"`
	Total        int    `json:"totalTokens"`
	System       int    `json:"systemTokens"`
	Conversation int    `json:"conversationTokens"`
	Tools        int    `json:"toolDefinitionsTokens"`
	MCPTools     int    `json:"mcpToolsTokens"` // there are none
	Prompt       int    `json:"promptTokenLimit"`
	Limit        int    `json:"limit"`               // tokens of the window, which the reply is part of
	Compaction   int    `json:"compactionThreshold"` // tokens from which on the conversation is compacted
	Buffer       int    `json:"bufferTokens"`        // tokens that are kept free
}

// RecomputeParams asks what a session takes with a model.
type RecomputeParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ModelID   string          `json:"modelId"`
}

// RecomputeResult tells it, in tokens.
type RecomputeResult struct {
	System   int `json:"systemTokenCount"`
	Messages int `json:"messagesTokenCount"`
	Total    int `json:"totalTokens"`
}

// DirectoryParams says where a session works.
type DirectoryParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	WorkingDirectory string          `json:"workingDirectory"`
}

// DirectoryResult is where it works.
type DirectoryResult struct {
	WorkingDirectory string `json:"workingDirectory"`
}

// ContextParams tells what a client knows of the place where a session works.
type ContextParams struct {
	SessionID event.SessionID          `json:"sessionId"`
	Context   event.ContextChangedData `json:"context"`
}

// ModelListResult lists the models that a session can name.
type ModelListResult struct {
	List []any `json:"list"`
}

// EffortParams says how hard a model is to think.
type EffortParams struct {
	SessionID       event.SessionID `json:"sessionId"`
	ReasoningEffort string          `json:"reasoningEffort"`
}

// EffortResult is how hard it will.
type EffortResult struct {
	ReasoningEffort string `json:"reasoningEffort"`
}

// ProviderAddParams adds providers and models to a session.
type ProviderAddParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Providers []Provider      `json:"providers,omitempty"`
	Models    []ProviderModel `json:"models,omitempty"`
}

// ProviderAddResult lists the models that were added.
type ProviderAddResult struct {
	Models []Model `json:"models"`
}

// EndpointParams asks where a session's model is.
type EndpointParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ModelID   string          `json:"modelId,omitempty"`
}

// EndpointResult is where it is, and how it is spoken to.
type EndpointResult struct {
	Type    string            `json:"type"`
	WireAPI string            `json:"wireApi,omitempty"`
	BaseURL string            `json:"baseUrl"`
	APIKey  string            `json:"apiKey,omitempty"`
	Headers map[string]string `json:"headers"`
}

// SendMessagesParams gives a session several inputs.
type SendMessagesParams struct {
	SessionID      event.SessionID   `json:"sessionId"`
	Messages       []SendParams      `json:"messages"`
	Mode           string            `json:"mode,omitempty"`
	AgentMode      string            `json:"agentMode,omitempty"`
	RequestHeaders map[string]string `json:"requestHeaders,omitempty"`
	Key            string            `json:"abideKey,omitempty"`
}

// SendMessagesResult names them.
type SendMessagesResult struct {
	MessageIDs []string `json:"messageIds"`
}

// InterruptParams stops the turn.
type InterruptParams struct {
	SessionID   event.SessionID `json:"sessionId"`
	FlushQueued bool            `json:"flushQueued,omitempty"` // true if the queue goes on with the next input; else the queue is cleared
}

// InterruptResult tells whether there was one.
type InterruptResult struct {
	Interrupted bool `json:"interrupted"`
}

// ShutdownParams ends the use of a session for everybody.
type ShutdownParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Type      string          `json:"type,omitempty"` // "routine" if empty, or "error"
	Reason    string          `json:"reason,omitempty"`
}

// ToolInfo describes a tool.
type ToolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// ToolsResult lists tools.
type ToolsResult struct {
	Tools []ToolInfo `json:"tools"`
}

// MetricsResult is what a session has used.
type MetricsResult struct {
	SessionStartTime string                 `json:"sessionStartTime"`
	APIDuration      int64                  `json:"totalApiDurationMs"`
	UserRequests     int                    `json:"totalUserRequests"`
	PremiumCost      float64                `json:"totalPremiumRequestCost"` // always 0, because premium requests exist only in accounts of GitHub
	CurrentModel     string                 `json:"currentModel,omitempty"`
	Changes          event.CodeChanges      `json:"codeChanges"`
	Models           map[string]struct{}    `json:"modelMetrics"` // always empty, because models are not counted one by one
	LastInput        int64                  `json:"lastCallInputTokens"`
	LastOutput       int64                  `json:"lastCallOutputTokens"`
	Tokens           map[string]TokenMetric `json:"tokenDetails"`
}

// A TokenMetric counts tokens of one kind.
type TokenMetric struct {
	Count int64 `json:"tokenCount"`
}

// ExitPlanParams asks whether a plan may be carried out.
type ExitPlanParams struct {
	SessionID event.SessionID `json:"sessionId"`
	event.ExitPlanAskedData
}

// AnswerExitPlanParams says whether it may.
type AnswerExitPlanParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Response  ExitPlanReply   `json:"response"`
	Key       string          `json:"abideKey,omitempty"`
	Digest    string          `json:"abideDigest,omitempty"` // see CodeChanged
}

// ExitPlanReply is what a person says of a plan.
type ExitPlanReply struct {
	Approved       *bool  `json:"approved"`
	SelectedAction string `json:"selectedAction,omitempty"`
	Feedback       string `json:"feedback,omitempty"`
}
