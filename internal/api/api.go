// Package api holds the messages of the protocol: the requests and
// answers of clients. It is the Copilot SDK protocol, version 3; methods that begin
// with "abide." are abide's own.
package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
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
	SessionDetach      = "session.detach" // the name in newer SDKs
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

	// Methods of abide.
	Attach      = "abide.attach"      // continue after a lost connection
	ContinueAll = "abide.continueAll" // continue all unfinished turns
	Questions   = "abide.questions"   // open questions of one session, or of all
	Events      = "abide.events"      // stored events, including hidden ones
	Search      = "abide.search"
	Verify      = "abide.verify"
	Status      = "abide.status" // status of one session

	Tasks      = "abide.tasks" // commands of one session, or of all
	TaskOutput = "abide.taskOutput"
	TaskStop   = "abide.taskStop"
	TaskInput  = "abide.taskInput"
	TaskResize = "abide.taskResize"
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

	CodeElsewhere  = -32010 // of abide: another server works on the session; see Elsewhere
	CodeAttachment = -32011 // of abide: a file cannot be attached
	CodeUnseen     = -32012 // of abide: the model cannot take an attachment

	// CodeChanged is the error of abide for an answer whose digest is not that of the open
	// question: the person who has answered was shown another one. The digest is the SHA-256
	// of the data of the event that asks, as it was sent, and of the bracket that ends the event.
	CodeChanged = -32013
)

// A Fault is the data of an error that says of which kind it is. Only clients that are served
// with [Fault]s get it.
type Fault struct {
	Kind string `json:"kind"`
}

// The kinds of faults. What has none is refused because of what was asked, or because of the
// state of the session.
const (
	FaultNotFound    = "not_found"
	FaultDamaged     = "damaged"     // the log of the session is damaged
	FaultUnavailable = "unavailable" // what is needed cannot be reached for the moment
	FaultFull        = "full"        // too much waits already
	FaultInternal    = "internal"    // the machine, the disk or this program has failed
)

// ConnectParams are the params of the first request on every connection.
type ConnectParams struct {
	Token string        `json:"token,omitempty"`
	Abide *ConnectAbide `json:"abide,omitempty"`
}

// ConnectAbide is sent by a relay on the private socket. It identifies the client whose
// connection the relay passes on.
type ConnectAbide struct {
	Relay    string   `json:"relay"` // identifies the client connection across engines
	Defaults Defaults `json:"defaults"`
	Store    *string  `json:"store,omitempty"` // name of the relay's store; nil if an older version did not say it
}

// The names of clients with which people use this program.
const (
	ClientCLI  = "abide" // commands and the chat
	ClientHTTP = "http"  // the console, and scripts over HTTP
)

// Defaults are the defaults of the sessions of a client.
type Defaults struct {
	Cwd      string    `json:"cwd,omitempty"`
	Env      []string  `json:"env,omitempty"`
	Model    string    `json:"model,omitempty"`
	Provider *Provider `json:"provider,omitempty"`
	Approve  string    `json:"approve,omitempty"` // approval.Workspace or approval.All
	MaxSteps int       `json:"maxSteps,omitempty"`
	Name     string    `json:"name,omitempty"`

	// Optional tools to offer.
	ExtraTools []string `json:"extraTools,omitempty"`
	// Rules of the sessions.
	Scope       event.ScopeRules      `json:"scope,omitzero"`
	Permissions event.PermissionRules `json:"permissions,omitzero"`
	// Memory sets what is remembered of the sessions.
	Memory event.MemoryRules `json:"memory,omitzero"`
	// Compaction sets when the contexts of the sessions are compacted.
	Compaction event.CompactionRules `json:"compaction,omitzero"`
	// Outage sets what the sessions do while their models cannot be reached.
	Outage event.OutageRules `json:"outage,omitzero"`
	// Budget limits what the model requests of the sessions may cost.
	Budget event.BudgetRules `json:"budget,omitzero"`
	// Providers and Models are those of fallbacks that are not of the default provider.
	Providers []Provider      `json:"providers,omitempty"`
	Models    []ProviderModel `json:"models,omitempty"`
	// MCP are the MCP servers of the sessions, by name, in the form of the protocol. Sessions of
	// a program have them only if it wants what is configured.
	MCP        json.RawMessage `json:"mcp,omitempty"`
	Programmed bool            `json:"programmed,omitempty"` // true if a program starts the sessions
	// InstructionDirectories and SkillDirectories are the folders of the user's own instructions
	// and skills, for the sessions of ClientCLI and ClientHTTP.
	InstructionDirectories []string `json:"instructionDirectories,omitempty"`
	SkillDirectories       []string `json:"skillDirectories,omitempty"`
	// Workspace is the workspace of the sessions: a name or an address; the machine of
	// the engine if empty.
	Workspace string `json:"workspace,omitempty"`
}

// ConnectResult answers ConnectParams.
type ConnectResult struct {
	OK              bool   `json:"ok"`
	ProtocolVersion int    `json:"protocolVersion"`
	Version         string `json:"version"`
}

// PingParams are the params of ping.
type PingParams struct {
	Message string `json:"message,omitempty"`
}

// PingResult is the answer to ping.
type PingResult struct {
	Message         string `json:"message"`
	Timestamp       string `json:"timestamp"`
	ProtocolVersion int    `json:"protocolVersion"`
}

// RuntimeStatus is the version of the runtime and of the protocol.
type RuntimeStatus struct {
	Version         string `json:"version"`
	ProtocolVersion int    `json:"protocolVersion"`
}

// AuthStatus is the authentication status of the client.
type AuthStatus struct {
	IsAuthenticated bool   `json:"isAuthenticated"`
	AuthType        string `json:"authType,omitempty"`
	StatusMessage   string `json:"statusMessage,omitempty"`
}

// ModelsResult lists the available models.
type ModelsResult struct {
	Models []Model `json:"models"`
}

// A Model is a model that a session can name.
type Model struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Capabilities json.RawMessage `json:"capabilities"`
}

// OpenParams are the params of session.create and session.resume.
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
	Key   string     `json:"abideKey,omitempty"`   // key of a request that may be repeated
	After *event.Seq `json:"abideAfter,omitempty"` // last position that the client saw, in a repeated request
}

// OpenAbide holds the parameters of a session that only abide knows.
type OpenAbide struct {
	Name     string   `json:"name,omitempty"`
	Approve  string   `json:"approve,omitempty"` // approval.Workspace or approval.All
	Env      []string `json:"env,omitempty"`
	MaxSteps int      `json:"maxSteps,omitempty"`
	Keep     bool     `json:"keep,omitempty"` // resume only: parameters that are not given are not changed
	// Limit limits what the model requests of this session may cost, instead of what the
	// configuration says.
	Limit event.BudgetRules `json:"limit,omitzero"`
	// Redeliver sends the open requests to a client that resumes again.
	Redeliver bool `json:"redeliver,omitempty"`
	// Workspace is where the files and commands of a new session are: a name of the
	// configuration, unix:PATH, tcp:HOST:PORT, or local. A session that exists keeps its
	// own, and refuses a client that wants another one.
	Workspace string `json:"workspace,omitempty"`
	// Sealed makes the commands of a new session sealed: they see nothing of the machine
	// but files, and need no permission. A session that exists keeps what it is.
	Sealed bool `json:"sealed,omitempty"`
}

// These types are more than a form of messages, so they have a package of their own.
type (
	// A Provider is a model endpoint that a client brings along.
	Provider = provider.Provider
	// A ProviderModel is a model of one of a session's providers.
	ProviderModel = provider.Model
)

// OpenResult is the answer to OpenParams.
type OpenResult struct {
	SessionID     event.SessionID `json:"sessionId"`
	WorkspacePath string          `json:"workspacePath,omitempty"`
	Capabilities  Capabilities    `json:"capabilities"`
	// Position is the position after which events are shown. Only relays get it.
	Position event.Seq `json:"abidePosition,omitempty"`
}

// Capabilities are the combined capabilities of the clients of a session.
type Capabilities struct {
	UI         UICapabilities `json:"ui"`
	Extensions bool           `json:"extensions"`
}

// UICapabilities are the ways to ask a person.
type UICapabilities struct {
	Elicitation bool `json:"elicitation"`
	MCPApps     bool `json:"mcpApps"`
}

// SessionParams names a session.
type SessionParams struct {
	SessionID event.SessionID `json:"sessionId"`
}

// Nothing is the empty result of methods whose callers expect an object. Methods that
// promise no result answer with null.
type Nothing struct{}

// Success reports whether a request had an effect.
type Success struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// SendParams sends an input to a session.
type SendParams struct {
	SessionID     event.SessionID   `json:"sessionId"`
	Prompt        string            `json:"prompt"`
	DisplayPrompt string            `json:"displayPrompt,omitempty"`
	Attachments   []json.RawMessage `json:"attachments,omitempty"`
	Mode          string            `json:"mode,omitempty"`
	AgentMode     string            `json:"agentMode,omitempty"`
	Source        string            `json:"source,omitempty"`
	Key           string            `json:"abideKey,omitempty"`
	// RequestHeaders are added to the model requests of the turn.
	RequestHeaders map[string]string `json:"requestHeaders,omitempty"`
	// OutputSchema is an addition of abide: the JSON schema that the answer of the turn must
	// match.
	OutputSchema json.RawMessage `json:"abideOutputSchema,omitempty"`
	// RequireAttachments is an addition of abide: the message is refused if the model is known
	// not to take its images or documents.
	RequireAttachments bool `json:"abideRequireAttachments,omitempty"`
}

// An AttachedFile is an attachment of a file with its content, which is read in the workspace of
// the session when the message is sent.
type AttachedFile struct {
	Type        string `json:"type"` // "file"
	Path        string `json:"path"` // starts at the working directory of the session if it is relative
	DisplayName string `json:"displayName,omitempty"`
	Content     bool   `json:"abideContent"` // an addition of abide: false for an attachment whose name alone the model is told
}

// SendResult is the answer to SendParams.
type SendResult struct {
	MessageID string `json:"messageId"`
}

// AbortParams stops a turn.
type AbortParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Reason    string          `json:"reason,omitempty"`
	// KeepQueue, of abide, makes it a stop that holds, also if no turn is running: queued
	// inputs are kept, and nothing begins a turn until somebody sends a message or, if
	// inputs wait, resumes the session without disableResume. What tasks report waits for
	// a message. Without it the queued inputs are dropped, and a report begins a turn.
	KeepQueue bool `json:"keepQueue,omitempty"`
	// Key makes a repeated request wait for what the first one stops, and stop nothing more.
	Key string `json:"abideKey,omitempty"`
}

// AbortResult tells what was stopped. All fields but Success are of abide.
type AbortResult struct {
	Success    bool   `json:"success"`
	Turn       bool   `json:"turn,omitempty"`       // true if a turn was running
	Compaction bool   `json:"compaction,omitempty"` // true if a compaction was under way
	Stopped    []Task `json:"stopped,omitempty"`    // the commands that were ended with the turn
	Background int    `json:"background,omitempty"` // number of commands in the background, which go on
	Queued     int    `json:"queued,omitempty"`     // number of inputs that wait
	Dropped    int    `json:"dropped,omitempty"`    // number of inputs that were dropped
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

// SessionAbide holds what only abide reports about a session in a list.
type SessionAbide struct {
	Events     event.Seq       `json:"events"`
	Hash       string          `json:"hash"`
	Active     bool            `json:"active,omitempty"`
	Unattended bool            `json:"unattended,omitempty"` // true if the unfinished turn waits until a client uses the session
	Questions  int             `json:"questions,omitempty"`
	Parent     event.SessionID `json:"parent,omitempty"`
	Damage     string          `json:"damage,omitempty"`

	Workspace *event.Workspace `json:"workspace,omitempty"` // where the files and commands are; the machine of the engine if missing
}

// ListParams asks for sessions.
type ListParams struct {
	Filter Filter `json:"filter"`
	Cursor string `json:"cursor,omitempty"` // addition of abide: nextCursor of the page before
	Limit  int    `json:"limit,omitempty"`  // addition of abide: length of a page; all sessions if 0
}

// A Filter selects sessions by where they work. Empty fields match every session.
type Filter struct {
	Cwd        string `json:"cwd,omitempty"`
	GitRoot    string `json:"gitRoot,omitempty"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`

	// The following fields are of abide.

	State          string `json:"state,omitempty"`          // see [SessionInfo.State]
	Text           string `json:"text,omitempty"`           // text in the name, or in the summary of a session without a name; case is ignored
	IDPrefix       string `json:"idPrefix,omitempty"`       // start of the id
	ModifiedSince  string `json:"modifiedSince,omitempty"`  // time in RFC 3339; the session was modified then or later
	ModifiedBefore string `json:"modifiedBefore,omitempty"` // likewise; it was modified earlier
	Unlisted       bool   `json:"unlisted,omitempty"`       // also the sessions of agents, and those without a message
}

// ListResult lists sessions, the last modified first.
type ListResult struct {
	Sessions []SessionInfo `json:"sessions"`
	// NextCursor continues the list; empty at its end. It is of abide. Sessions that
	// changed since the first page are on the last page, so that none is missed: it
	// may be longer than the limit, and may repeat sessions of earlier pages.
	NextCursor string `json:"nextCursor,omitempty"`
}

// The states of a session.
const (
	StateIdle       = "idle"
	StateActive     = "active"     // a turn is running
	StateWaiting    = "waiting"    // a question is open
	StateUnfinished = "unfinished" // an unfinished turn waits until a client uses the session
	StateDamaged    = "damaged"
)

// States are all states.
var States = []string{StateIdle, StateActive, StateWaiting, StateUnfinished, StateDamaged}

// State returns the state of a session in one word; empty if it is not known.
func (s SessionInfo) State() string {
	switch {
	case s.Abide == nil:
		return ""
	case s.Abide.Damage != "":
		return StateDamaged
	case s.Abide.Questions > 0:
		return StateWaiting
	case s.Abide.Unattended:
		return StateUnfinished
	case s.Abide.Active:
		return StateActive
	}
	return StateIdle
}

// MetadataResult describes a session; nil if it does not exist.
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

// LogResult is the answer to LogParams.
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

// ForkParams creates a session that shares the events of another.
type ForkParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ToEventID string          `json:"toEventId,omitempty"` // first event that is not included
	Name      string          `json:"name,omitempty"`
	At        event.Seq       `json:"abidePosition,omitempty"` // last position that is included; only in abide
}

// ForkResult names the new session.
type ForkResult struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name,omitempty"`
}

// TruncateParams removes an event and all after it from the history.
type TruncateParams struct {
	SessionID event.SessionID `json:"sessionId"`
	EventID   string          `json:"eventId"`
}

// TruncateResult is the number of events that are no longer shown.
type TruncateResult struct {
	EventsRemoved int `json:"eventsRemoved"`
}

// RewindParams undoes an event and all after it, or asks for a preview.
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

// RewindResult lists what was undone.
type RewindResult struct {
	Outcome       string        `json:"outcome"`
	EventsRemoved int           `json:"eventsRemoved"`
	RestoredFiles []string      `json:"restoredFiles"`
	SkippedFiles  []SkippedFile `json:"skippedFiles"`
}

// A SkippedFile is a file that was not restored.
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// RewindPreview lists what a rewind would do to files.
type RewindPreview struct {
	Available     bool          `json:"available"`
	FileCount     int           `json:"fileCount"`
	Files         []FilePreview `json:"files"`
	SkippedFiles  []SkippedFile `json:"skippedFiles"`
	EventsRemoved int           `json:"eventsRemoved"`
}

// A FilePreview is the change to a file that a rewind would undo.
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
	Digest    string          `json:"abideDigest,omitempty"` // see CodeChanged
}

// AnswerToolParams is the result of an external call: a text, an object, or an error.
type AnswerToolParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *string         `json:"error,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
	Digest    string          `json:"abideDigest,omitempty"` // see CodeChanged
}

// AnswerUserInputParams is the answer of a person to a question.
type AnswerUserInputParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Response  UserInputResult `json:"response"`
	Key       string          `json:"abideKey,omitempty"`
	Digest    string          `json:"abideDigest,omitempty"` // see CodeChanged
}

// UserInputParams asks the person at a client.
type UserInputParams struct {
	SessionID     event.SessionID `json:"sessionId"`
	RequestID     string          `json:"requestId"`
	Question      string          `json:"question"`
	Choices       []string        `json:"choices,omitempty"`
	AllowFreeform bool            `json:"allowFreeform"`
}

// UserInputResult is the answer of the person.
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

// AttachParams attaches to a session again after a lost connection. After is the last
// position that the client saw; Method and Params are the request that opened the session.
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

// A Question is an open question, with the event that asked it.
type Question struct {
	SessionID event.SessionID `json:"sessionId"`
	Event     json.RawMessage `json:"event"`
}

// ReadParams asks for at most Max stored events after a position. Hash is the hash of the
// last page: the read fails if the chain has another hash there.
type ReadParams struct {
	SessionID event.SessionID `json:"sessionId"`
	After     event.Seq       `json:"after,omitempty"`
	Hash      string          `json:"hash,omitempty"`
	Max       int             `json:"max,omitempty"`
}

// ReadResult holds stored events. Next is the position of the last one, and Hash the
// chain's hash there; More is true if there are events after it. Damage is the reason why
// reading stopped.
type ReadResult struct {
	Events []json.RawMessage `json:"events"`
	Next   event.Seq         `json:"next"`
	Hash   string            `json:"hash,omitempty"`
	More   bool              `json:"more"`
	Damage string            `json:"damage,omitempty"`
}

// SearchParams searches the messages of sessions for words, "phrases" and starts of
// words (refus*), which must all be in a message.
type SearchParams struct {
	Text    string `json:"text"`
	Max     int    `json:"max,omitempty"`
	Rebuild bool   `json:"rebuild,omitempty"` // true to build the index anew
}

// SearchResult lists the matches.
type SearchResult struct {
	Matches []SearchMatch `json:"matches"`
	More    bool          `json:"more,omitempty"`
	Behind  int           `json:"behind,omitempty"` // number of sessions that the index lacks: search again to have them searched
}

// SearchMatch is one match.
type SearchMatch struct {
	Session SessionInfo `json:"session"`
	Seq     event.Seq   `json:"position"`
	Type    event.Type  `json:"type"`
	Line    string      `json:"line"`
}

// VerifyResult is the result of a check of a session's hash chain.
type VerifyResult struct {
	SessionID event.SessionID `json:"sessionId"`
	Events    event.Seq       `json:"events"`
	Hash      string          `json:"hash"`
	Damage    *Damage         `json:"damage,omitempty"`
}

// Damage is the position at which a chain breaks, and the reason.
type Damage struct {
	Position event.Seq `json:"position"`
	Reason   string    `json:"reason"`
}

// StatusResult is the state of a session.
type StatusResult struct {
	Session   SessionInfo       `json:"session"`
	Model     string            `json:"model,omitempty"`
	Active    bool              `json:"active"`
	Queued    int               `json:"queued"`
	Totals    event.Totals      `json:"totals"`
	Questions []json.RawMessage `json:"questions"`
	Position  event.Seq         `json:"position"`
}

// LifecycleParams is the notification that the list of sessions has changed.
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

// EventParams are the params of a session.event notification. Seq is sent only to relays
// and clients of abide, and only for stored events.
type EventParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Seq       event.Seq       `json:"seq,omitempty"`
	Event     json.RawMessage `json:"event"`
}
