// Package api holds the messages of the protocol: what clients ask and what
// they are answered. It is the Copilot SDK protocol, version 3; methods that
// begin with "abide." are our own.
package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// ProtocolVersion is the version that clients require.
const ProtocolVersion = 3

// The methods that clients call.
const (
	Connect       = "connect"
	Ping          = "ping"
	StatusGet     = "status.get"
	AuthGetStatus = "auth.getStatus"
	ModelsList    = "models.list"
	Shutdown      = "runtime.shutdown"

	SessionCreate      = "session.create"
	SessionResume      = "session.resume"
	SessionSend        = "session.send"
	SessionAbort       = "session.abort"
	SessionDestroy     = "session.destroy"
	SessionDetach      = "session.detach" // what newer SDKs call
	SessionList        = "session.list"
	SessionGetMessages = "session.getMessages"
	SessionGetMetadata = "session.getMetadata"
	SessionGetLastID   = "session.getLastId"
	SessionDelete      = "session.delete"
	SessionLog         = "session.log"
	ModelSwitchTo      = "session.model.switchTo"
	ModelGetCurrent    = "session.model.getCurrent"
	SessionsFork       = "sessions.fork"
	HistoryTruncate    = "session.history.truncate"
	HistoryCompact     = "session.history.compact"
	HistoryCancel      = "session.history.cancelBackgroundCompaction"
	HistoryAbort       = "session.history.abortManualCompaction"
	HistoryHandoff     = "session.history.summarizeForHandoff"
	HistoryUncompact   = "abide.history.uncompact"
	HistoryContext     = "abide.history.context"
	HistoryRewind      = "session.history.rewind"
	PreviewRewind      = "session.history.previewRewind"
	NameSet            = "session.name.set"

	AnswerPermission   = "session.permissions.handlePendingPermissionRequest"
	PendingPermissions = "session.permissions.pendingRequests"
	AnswerTool         = "session.tools.handlePendingToolCall"
	AnswerUserInput    = "session.ui.handlePendingUserInput"

	// Our own.
	Attach    = "abide.attach"    // go on watching where a lost connection stopped
	Questions = "abide.questions" // all open questions of one session, or of all
	Events    = "abide.events"    // stored events, hidden ones too
	Search    = "abide.search"
	Verify    = "abide.verify"
	Status    = "abide.status" // of one session

	Tasks      = "abide.tasks" // commands of one session, or of all
	TaskOutput = "abide.taskOutput"
	TaskStop   = "abide.taskStop"
)

// The messages that a client is sent.
const (
	SessionEvent     = "session.event"     // notification
	SessionLifecycle = "session.lifecycle" // notification
	UserInput        = "userInput.request" // request
)

// The codes of errors.
const (
	CodeShuttingDown           = -32000
	CodeAuthenticationRequired = -32001
	CodeAuthenticationFailed   = -32002
)

// ConnectParams is the first request on every connection.
type ConnectParams struct {
	Token string        `json:"token,omitempty"`
	Abide *ConnectAbide `json:"abide,omitempty"`
}

// ConnectAbide is what a process of ours says on the private socket: whose
// connection it passes on.
type ConnectAbide struct {
	Relay    string   `json:"relay"` // identifies the client connection across engines
	Defaults Defaults `json:"defaults"`
}

// Defaults are what the sessions of a client are like unless it says otherwise.
type Defaults struct {
	Cwd      string    `json:"cwd,omitempty"`
	Env      []string  `json:"env,omitempty"`
	Model    string    `json:"model,omitempty"`
	Provider *Provider `json:"provider,omitempty"`
	Approve  string    `json:"approve,omitempty"` // approval.Workspace or approval.All
	MaxSteps int       `json:"maxSteps,omitempty"`
	Name     string    `json:"name,omitempty"`

	// Tools that are only offered where they are named.
	ExtraTools []string `json:"extraTools,omitempty"`
	// The rules that the sessions of this process's clients have.
	Scope       event.ScopeRules      `json:"scope,omitzero"`
	Permissions event.PermissionRules `json:"permissions,omitzero"`
	// What is remembered of them.
	Memory event.MemoryRules `json:"memory,omitzero"`
	// Compaction says when their contexts are compacted.
	Compaction event.CompactionRules `json:"compaction,omitzero"`
}

// ConnectResult answers ConnectParams.
type ConnectResult struct {
	OK              bool   `json:"ok"`
	ProtocolVersion int    `json:"protocolVersion"`
	Version         string `json:"version"`
}

// PingParams asks for a sign of life.
type PingParams struct {
	Message string `json:"message,omitempty"`
}

// PingResult is the sign of life.
type PingResult struct {
	Message         string `json:"message"`
	Timestamp       string `json:"timestamp"`
	ProtocolVersion int    `json:"protocolVersion"`
}

// RuntimeStatus says what answers.
type RuntimeStatus struct {
	Version         string `json:"version"`
	ProtocolVersion int    `json:"protocolVersion"`
}

// AuthStatus says who is served.
type AuthStatus struct {
	IsAuthenticated bool   `json:"isAuthenticated"`
	AuthType        string `json:"authType,omitempty"`
	StatusMessage   string `json:"statusMessage,omitempty"`
}

// ModelsResult lists the models that can be named.
type ModelsResult struct {
	Models []Model `json:"models"`
}

// A Model can be named by a session.
type Model struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Capabilities json.RawMessage `json:"capabilities"`
}

// OpenParams creates or resumes a session.
type OpenParams struct {
	SessionID          event.SessionID      `json:"sessionId,omitempty"`
	Tools              []event.ExternalTool `json:"tools,omitempty"`
	AvailableTools     []string             `json:"availableTools"`
	ExcludedTools      []string             `json:"excludedTools,omitempty"`
	RequestPermission  bool                 `json:"requestPermission,omitempty"`
	RequestUserInput   bool                 `json:"requestUserInput,omitempty"`
	Model              string               `json:"model,omitempty"`
	ReasoningEffort    string               `json:"reasoningEffort,omitempty"`
	Streaming          bool                 `json:"streaming,omitempty"`
	WorkingDirectory   string               `json:"workingDirectory,omitempty"`
	ClientName         string               `json:"clientName,omitempty"`
	SystemMessage      json.RawMessage      `json:"systemMessage,omitempty"`
	Provider           *Provider            `json:"provider,omitempty"`
	Providers          []Provider           `json:"providers,omitempty"`
	Models             []ProviderModel      `json:"models,omitempty"`
	RequestElicitation bool                 `json:"requestElicitation,omitempty"`
	RequestExitPlan    bool                 `json:"requestExitPlanMode,omitempty"`
	Commands           []event.Command      `json:"commands,omitempty"`
	ContinuePending    *bool                `json:"continuePendingWork,omitempty"` // resume only
	DisableResumeEvent bool                 `json:"disableResume,omitempty"`       // resume only
	OpenMore
	Abide *OpenAbide `json:"abide,omitempty"`
	Key   string     `json:"abideKey,omitempty"`   // of a request that may be made again
	After *event.Seq `json:"abideAfter,omitempty"` // the last position that was seen, if it is made again
}

// OpenAbide is what only clients of ours say about a session.
type OpenAbide struct {
	Name     string   `json:"name,omitempty"`
	Approve  string   `json:"approve,omitempty"` // approval.Workspace or approval.All
	Env      []string `json:"env,omitempty"`
	MaxSteps int      `json:"maxSteps,omitempty"`
	Keep     bool     `json:"keep,omitempty"` // resume: what is not said stays as it is
	// Redeliver puts what is open to a client that resumes, once more.
	Redeliver bool `json:"redeliver,omitempty"`
}

// Provider is a client's own model endpoint.
type Provider struct {
	Name        string            `json:"name,omitempty"`
	Type        string            `json:"type,omitempty"` // "openai" if empty
	WireAPI     string            `json:"wireApi,omitempty"`
	BaseURL     string            `json:"baseUrl"`
	APIKey      string            `json:"apiKey,omitempty"`
	BearerToken string            `json:"bearerToken,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ModelID     string            `json:"modelId,omitempty"`
	HasToken    bool              `json:"hasBearerTokenProvider,omitempty"` // the client gives a token for each request
	WireModel   string            `json:"wireModel,omitempty"`
	Azure       AzureProvider     `json:"azure,omitzero"`
	// How long requests and their replies may be, in tokens.
	MaxPromptTokens int `json:"maxPromptTokens,omitempty"`
	MaxOutputTokens int `json:"maxOutputTokens,omitempty"`
	// What only processes of ours say.
	Abide *ProviderAbide `json:"abide,omitempty"`
	// Default is set if the client named no endpoint, and this is that of its
	// process.
	Default bool `json:"default,omitempty"`
}

// ProviderAbide is what somebody has written down about the models of a provider.
type ProviderAbide struct {
	ReasoningEffort string                 `json:"reasoningEffort,omitempty"` // of sessions that name none
	Models          map[string]ModelLimits `json:"models,omitempty"`          // by the name on the wire
}

// ModelLimits is what is known of a model better than by its name. What is zero
// is not known better. Prices are in US dollars for a million tokens.
type ModelLimits struct {
	Window     int      `json:"window,omitempty"`
	MaxOutput  int      `json:"maxOutput,omitempty"`
	Vision     *bool    `json:"vision,omitempty"`
	Reasoning  *bool    `json:"reasoning,omitempty"`
	Input      *float64 `json:"inputPrice,omitempty"`
	Output     *float64 `json:"outputPrice,omitempty"`
	CacheRead  *float64 `json:"cacheReadPrice,omitempty"`
	CacheWrite *float64 `json:"cacheWritePrice,omitempty"`
}

// AzureProvider is what is special about an endpoint at Azure.
type AzureProvider struct {
	APIVersion string `json:"apiVersion,omitempty"` // selects the versioned routes
}

// ProviderSecret is the part of a Provider that is never in the log.
type ProviderSecret struct {
	APIKey      string            `json:"apiKey,omitempty"`
	BearerToken string            `json:"bearerToken,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	// Named are those of the providers that a session has beside its own.
	Named map[string]ProviderSecret `json:"named,omitempty"`
}

// OpenResult answers OpenParams.
type OpenResult struct {
	SessionID     event.SessionID `json:"sessionId"`
	WorkspacePath string          `json:"workspacePath,omitempty"`
	Capabilities  Capabilities    `json:"capabilities"`
	// Position tells processes of ours that the events after it are shown.
	Position event.Seq `json:"abidePosition,omitempty"`
}

// Capabilities tells what the clients of a session can do together.
type Capabilities struct {
	UI         UICapabilities `json:"ui"`
	Extensions bool           `json:"extensions"`
}

// UICapabilities tells how people can be reached.
type UICapabilities struct {
	Elicitation bool `json:"elicitation"`
	MCPApps     bool `json:"mcpApps"`
}

// SessionParams names a session and nothing else.
type SessionParams struct {
	SessionID event.SessionID `json:"sessionId"`
}

// Nothing is the result of methods whose callers expect an object, although there
// is nothing to say. Methods that promise no result answer with null.
type Nothing struct{}

// Success tells whether a request had an effect.
type Success struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// SendParams gives a session an input.
type SendParams struct {
	SessionID     event.SessionID   `json:"sessionId"`
	Prompt        string            `json:"prompt"`
	DisplayPrompt string            `json:"displayPrompt,omitempty"`
	Attachments   []json.RawMessage `json:"attachments,omitempty"`
	Mode          string            `json:"mode,omitempty"`
	AgentMode     string            `json:"agentMode,omitempty"`
	Source        string            `json:"source,omitempty"`
	Key           string            `json:"abideKey,omitempty"`
	// RequestHeaders go along with the model requests of its turn.
	RequestHeaders map[string]string `json:"requestHeaders,omitempty"`
}

// SendResult answers SendParams.
type SendResult struct {
	MessageID string `json:"messageId"`
}

// AbortParams stops a turn.
type AbortParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Reason    string          `json:"reason,omitempty"`
}

// SessionInfo is a session in a list.
type SessionInfo struct {
	SessionID    event.SessionID `json:"sessionId"`
	StartTime    string          `json:"startTime"`
	ModifiedTime string          `json:"modifiedTime"`
	Summary      string          `json:"summary,omitempty"`
	Name         string          `json:"name,omitempty"`
	ClientName   string          `json:"clientName,omitempty"`
	IsRemote     bool            `json:"isRemote"`
	Context      *event.Place    `json:"context,omitempty"`
	Abide        *SessionAbide   `json:"abide,omitempty"`
}

// SessionAbide is what only we say of a session in a list.
type SessionAbide struct {
	Events    event.Seq       `json:"events"`
	Hash      string          `json:"hash"`
	Active    bool            `json:"active,omitempty"`
	Questions int             `json:"questions,omitempty"`
	Parent    event.SessionID `json:"parent,omitempty"`
	Damage    string          `json:"damage,omitempty"`
}

// ListParams asks for sessions.
type ListParams struct {
	Filter Filter `json:"filter"`
}

// A Filter says where sessions work. What is empty is not asked for.
type Filter struct {
	Cwd        string `json:"cwd,omitempty"`
	GitRoot    string `json:"gitRoot,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
}

// ListResult lists sessions, the last modified first.
type ListResult struct {
	Sessions []SessionInfo `json:"sessions"`
}

// MetadataResult describes a session, or none.
type MetadataResult struct {
	Session *SessionInfo `json:"session,omitempty"`
}

// LastIDResult names the session that was used last.
type LastIDResult struct {
	SessionID event.SessionID `json:"sessionId,omitempty"`
}

// EventsResult holds events as they are stored.
type EventsResult struct {
	Events []json.RawMessage `json:"events"`
}

// LogParams records a remark.
type LogParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Message   string          `json:"message"`
	Level     string          `json:"level,omitempty"`
	Ephemeral bool            `json:"ephemeral,omitempty"`
	URL       string          `json:"url,omitempty"`
}

// LogResult answers LogParams.
type LogResult struct {
	EventID string `json:"eventId"`
}

// SwitchParams changes the model.
type SwitchParams struct {
	SessionID         event.SessionID   `json:"sessionId"`
	ModelID           string            `json:"modelId"`
	ReasoningEffort   string            `json:"reasoningEffort,omitempty"`
	ModelCapabilities ModelCapabilities `json:"modelCapabilities,omitzero"`
}

// ModelResult names a session's model.
type ModelResult struct {
	ModelID         string `json:"modelId,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// ForkParams copies a session by reference.
type ForkParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ToEventID string          `json:"toEventId,omitempty"` // the first event that is not taken along
	Name      string          `json:"name,omitempty"`
	At        event.Seq       `json:"abidePosition,omitempty"` // ours: the last position that is taken along
}

// ForkResult names the new session.
type ForkResult struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name,omitempty"`
}

// TruncateParams takes back an event and all after it.
type TruncateParams struct {
	SessionID event.SessionID `json:"sessionId"`
	EventID   string          `json:"eventId"`
}

// TruncateResult tells how many events are no longer shown.
type TruncateResult struct {
	EventsRemoved int `json:"eventsRemoved"`
}

// RewindParams takes back an event and all after it, or asks what that would do.
type RewindParams struct {
	SessionID event.SessionID `json:"sessionId"`
	EventID   string          `json:"eventId"`
	Mode      string          `json:"mode,omitempty"` // ConversationAndFiles if empty
}

// The modes of RewindParams.
const (
	ConversationAndFiles = "conversation-and-files"
	ConversationOnly     = "conversation"
)

// RewindResult tells what was taken back.
type RewindResult struct {
	Outcome       string        `json:"outcome"`
	EventsRemoved int           `json:"eventsRemoved"`
	RestoredFiles []string      `json:"restoredFiles"`
	SkippedFiles  []SkippedFile `json:"skippedFiles"`
}

// A SkippedFile was left as it is.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// RewindPreview tells what a rewind would do to files.
type RewindPreview struct {
	Available     bool          `json:"available"`
	FileCount     int           `json:"fileCount"`
	Files         []FilePreview `json:"files"`
	SkippedFiles  []SkippedFile `json:"skippedFiles"`
	EventsRemoved int           `json:"eventsRemoved"`
}

// A FilePreview is what the calls that would be taken back did to a file.
type FilePreview struct {
	Path         string `json:"path"`
	ChangeType   string `json:"changeType"` // "created" or "modified"
	LinesAdded   int    `json:"linesAdded"`
	LinesRemoved int    `json:"linesRemoved"`
}

// NameParams names a session.
type NameParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name"`
}

// AnswerPermissionParams answers a permission question.
type AnswerPermissionParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result"`
	Key       string          `json:"abideKey,omitempty"`
}

// AnswerToolParams gives the result of an external call: a text, an object, or
// an error.
type AnswerToolParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *string         `json:"error,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
}

// AnswerUserInputParams gives what a person said.
type AnswerUserInputParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Response  UserInputResult `json:"response"`
	Key       string          `json:"abideKey,omitempty"`
}

// UserInputParams asks a client to put a question to a person.
type UserInputParams struct {
	SessionID     event.SessionID `json:"sessionId"`
	RequestID     string          `json:"requestId"`
	Question      string          `json:"question"`
	Choices       []string        `json:"choices,omitempty"`
	AllowFreeform bool            `json:"allowFreeform"`
}

// UserInputResult is what the person said.
type UserInputResult struct {
	Answer      string `json:"answer"`
	WasFreeform bool   `json:"wasFreeform"`
}

// PendingResult lists open permission questions.
type PendingResult struct {
	Items []PendingItem `json:"items"`
}

// PendingItem is one open permission question.
type PendingItem struct {
	RequestID string          `json:"requestId"`
	Request   json.RawMessage `json:"request"`
}

// AttachParams goes on with a session after a lost connection: After is the last
// position that was seen, Method and Params are what opened it.
type AttachParams struct {
	SessionID event.SessionID `json:"sessionId"`
	After     event.Seq       `json:"after"`
	Method    string          `json:"method"`
	Params    OpenParams      `json:"params"`
}

// QuestionsResult lists open questions of all kinds.
type QuestionsResult struct {
	Questions []Question `json:"questions"`
}

// A Question waits for an answer: the event that asked it.
type Question struct {
	SessionID event.SessionID `json:"sessionId"`
	Event     json.RawMessage `json:"event"`
}

// ReadParams asks for stored events after a position, at most Max of them. Hash
// is what the last page said: what is read then follows what was read before.
type ReadParams struct {
	SessionID event.SessionID `json:"sessionId"`
	After     event.Seq       `json:"after,omitempty"`
	Hash      string          `json:"hash,omitempty"`
	Max       int             `json:"max,omitempty"`
}

// ReadResult holds stored events. Next is the position to go on after, and Hash
// the chain's hash there; More tells whether there are events after it. Damage
// tells why reading stopped.
type ReadResult struct {
	Events []json.RawMessage `json:"events"`
	Next   event.Seq         `json:"next"`
	Hash   string            `json:"hash,omitempty"`
	More   bool              `json:"more"`
	Damage string            `json:"damage,omitempty"`
}

// SearchParams looks for a text in what was said.
type SearchParams struct {
	Text string `json:"text"`
	Max  int    `json:"max,omitempty"`
}

// SearchResult lists where it was found.
type SearchResult struct {
	Matches []SearchMatch `json:"matches"`
	More    bool          `json:"more,omitempty"`
}

// SearchMatch is one place.
type SearchMatch struct {
	Session SessionInfo `json:"session"`
	Seq     event.Seq   `json:"position"`
	Type    event.Type  `json:"type"`
	Line    string      `json:"line"`
}

// VerifyResult tells whether a session's chain is whole.
type VerifyResult struct {
	SessionID event.SessionID `json:"sessionId"`
	Events    event.Seq       `json:"events"`
	Hash      string          `json:"hash"`
	Damage    *Damage         `json:"damage,omitempty"`
}

// Damage tells where a chain breaks.
type Damage struct {
	Position event.Seq `json:"position"`
	Reason   string    `json:"reason"`
}

// StatusResult tells how a session stands.
type StatusResult struct {
	Session   SessionInfo       `json:"session"`
	Model     string            `json:"model,omitempty"`
	Active    bool              `json:"active"`
	Queued    int               `json:"queued"`
	Totals    event.Totals      `json:"totals"`
	Questions []json.RawMessage `json:"questions"`
	Position  event.Seq         `json:"position"`
}

// LifecycleParams tells that the list of sessions changed.
type LifecycleParams struct {
	Type      string             `json:"type"`
	SessionID event.SessionID    `json:"sessionId"`
	Metadata  *LifecycleMetadata `json:"metadata,omitempty"`
}

// LifecycleMetadata describes the session that changed.
type LifecycleMetadata struct {
	StartTime    string `json:"startTime"`
	ModifiedTime string `json:"modifiedTime"`
	Summary      string `json:"summary,omitempty"`
}

// EventParams is how a session.event notification is read. Seq is sent to
// processes of ours alone, and only for stored events.
type EventParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Seq       event.Seq       `json:"seq,omitempty"`
	Event     json.RawMessage `json:"event"`
}
