package event

import "encoding/json"

// Place says where a session works.
type Place struct {
	Cwd        string `json:"cwd"`
	GitRoot    string `json:"gitRoot,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Repository string `json:"repository,omitempty"`
}

// SessionStartData is the first event of a session that is not a fork.
type SessionStartData struct {
	SessionID SessionID `json:"sessionId"`
	Version   int       `json:"version"` // of the event vocabulary
	Producer  string    `json:"producer"`
	// CopilotVersion is what typed clients require: the version of the runtime.
	CopilotVersion string `json:"copilotVersion"`
	StartTime      string `json:"startTime"`
	SelectedModel  string `json:"selectedModel,omitempty"`
	// ReasoningEffort is what the client asked for.
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	Context         *Place `json:"context,omitempty"`
}

// SessionResumeData tells that a client came back to a session.
type SessionResumeData struct {
	ResumeTime          string `json:"resumeTime"`
	EventCount          Seq    `json:"eventCount"`
	SelectedModel       string `json:"selectedModel,omitempty"`
	Context             *Place `json:"context,omitempty"`
	ContinuePendingWork *bool  `json:"continuePendingWork,omitempty"`
	SessionWasActive    bool   `json:"sessionWasActive"`
	Key                 string `json:"key,omitempty"` // ours: the idempotency key of the request
}

// SessionModelChangeData names the model that the next request goes to.
type SessionModelChangeData struct {
	NewModel        string `json:"newModel"`
	PreviousModel   string `json:"previousModel,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// SessionInfoData is a remark for people.
type SessionInfoData struct {
	InfoType string `json:"infoType"`
	Message  string `json:"message"`
	URL      string `json:"url,omitempty"`
}

// SessionWarningData is a remark that something is not as it should be.
type SessionWarningData struct {
	WarningType string `json:"warningType"`
	Message     string `json:"message"`
	URL         string `json:"url,omitempty"`
}

// SessionErrorData tells what went wrong.
type SessionErrorData struct {
	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"`
	ErrorCode  string `json:"errorCode,omitempty"`
	EndsTurn   bool   `json:"endsTurn,omitempty"` // the turn could not go on
}

// SessionIdleData tells that nothing is left to do. It carries the session's
// totals, so that loading need not add them up.
type SessionIdleData struct {
	Aborted bool   `json:"aborted,omitempty"`
	Totals  Totals `json:"totals"`
}

// Totals is what a session has used so far.
type Totals struct {
	Turns            int   `json:"turns"` // inputs that were worked on
	Steps            int   `json:"steps"` // model requests that were answered
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	DurationMs       int64 `json:"durationMs"` // waiting for the model
}

// Add counts one more answered request.
func (t *Totals) Add(u AssistantUsageData) {
	t.Steps++
	t.InputTokens += u.InputTokens
	t.OutputTokens += u.OutputTokens
	t.CacheReadTokens += u.CacheReadTokens
	t.CacheWriteTokens += u.CacheWriteTokens
	t.DurationMs += u.Duration
}

// SystemMessageData is the system prompt, stored when it changes.
type SystemMessageData struct {
	Role          string `json:"role"`
	Content       string `json:"content"`
	InteractionID string `json:"interactionId,omitempty"`
	// Context is what hooks have added to it for the rest of the session.
	Context string `json:"context,omitempty"`
	// EpochID is set if it is not the system prompt but what a compaction tells.
	EpochID string `json:"epochId,omitempty"`
}

// UserMessageData is an input as the model gets it.
type UserMessageData struct {
	Content            string            `json:"content"`
	TransformedContent string            `json:"transformedContent,omitempty"` // what the model reads, if that differs
	Attachments        []json.RawMessage `json:"attachments"`
	Delivery           string            `json:"delivery,omitempty"` // "idle", "queued" or "steering"
	InteractionID      string            `json:"interactionId"`
	AgentMode          string            `json:"agentMode,omitempty"`
	Source             string            `json:"source,omitempty"`
	InputID            string            `json:"inputId"` // ours: the accepted input that this delivers
}

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

// PermissionAskedData is an open question: may this be done?
type PermissionAskedData struct {
	RequestID         string          `json:"requestId"`
	PermissionRequest json.RawMessage `json:"permissionRequest"`
	PromptRequest     json.RawMessage `json:"promptRequest,omitempty"`
	ToolCallID        string          `json:"toolCallId"`
	Grants            []Grant         `json:"grants,omitempty"` // what a yes for the whole session would cover
}

// PermissionDoneData closes a permission question.
type PermissionDoneData struct {
	RequestID  string           `json:"requestId"`
	ToolCallID string           `json:"toolCallId,omitempty"`
	Result     PermissionResult `json:"result"`
	Grants     []Grant          `json:"grants,omitempty"` // what is allowed from here on
	Answer     *Answered        `json:"answer,omitempty"`
}

// A Grant is an approval for the rest of a session.
type Grant struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"` // empty covers the whole kind
}

// A PermissionResult is how a permission question ended.
type PermissionResult struct {
	Kind     string          `json:"kind"`
	Reason   string          `json:"reason,omitempty"`
	Feedback string          `json:"feedback,omitempty"`
	Approval json.RawMessage `json:"approval,omitempty"`
}

// The kinds of a PermissionResult.
const (
	Approved            = "approved"
	ApprovedForSession  = "approved-for-session"
	ApprovedForLocation = "approved-for-location"
	DeniedByUser        = "denied-interactively-by-user"
	DeniedByRules       = "denied-by-rules"
	DeniedNobody        = "denied-no-approval-rule-and-could-not-request-from-user"
	Cancelled           = "cancelled"
)

// Answered identifies the answer that won, so that a client whose reply was
// lost can tell whether it was its own.
type Answered struct {
	Digest string `json:"digest"`        // SHA-256 of the answer, in hexadecimal
	Key    string `json:"key,omitempty"` // the idempotency key it came with
}

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

// UserInputAskedData is a question of the model to a person.
type UserInputAskedData struct {
	RequestID     string   `json:"requestId"`
	Question      string   `json:"question"`
	Choices       []string `json:"choices,omitempty"`
	AllowFreeform bool     `json:"allowFreeform"`
	ToolCallID    string   `json:"toolCallId"`
}

// UserInputDoneData closes a question to a person.
type UserInputDoneData struct {
	RequestID   string    `json:"requestId"`
	Reply       string    `json:"answer,omitempty"`
	WasFreeform bool      `json:"wasFreeform"`
	Answer      *Answered `json:"winner,omitempty"`
}

// AbortData tells that a turn was stopped from outside. The queue is cleared
// unless KeepQueue is set.
type AbortData struct {
	Reason    string `json:"reason"`
	KeepQueue bool   `json:"keepQueue,omitempty"`
}

// InputAcceptedData is an input, stored before it is acknowledged.
type InputAcceptedData struct {
	InputID       string            `json:"inputId"`
	Kind          string            `json:"kind,omitempty"` // InputCommand, or empty for a message
	Prompt        string            `json:"prompt"`
	DisplayPrompt string            `json:"displayPrompt,omitempty"`
	Attachments   []json.RawMessage `json:"attachments,omitempty"`
	Mode          string            `json:"mode"` // ModeQueue, ModeSteer or ModeInterrupt
	AgentMode     string            `json:"agentMode,omitempty"`
	Source        string            `json:"source,omitempty"`
	Key           string            `json:"key,omitempty"` // idempotency key of the sender
	// Headers means that headers for the model requests of its turn are kept
	// beside the log.
	Headers bool `json:"headers,omitempty"`
}

// InputCommand is the kind of an input that is a command: the model does not
// hear of it.
const InputCommand = "command"

// How an input that comes during a turn is treated.
const (
	ModeQueue     = "enqueue"   // after the turn
	ModeSteer     = "immediate" // before the turn's next model request
	ModeInterrupt = "interrupt" // the turn is stopped and this comes next
)

// SessionConfiguredData is the whole configuration of a session from here on.
// It has no secrets: those are kept beside the log.
type SessionConfiguredData struct {
	WorkingDirectory string          `json:"workingDirectory"`
	Model            string          `json:"model,omitempty"`
	ReasoningEffort  string          `json:"reasoningEffort,omitempty"`
	Streaming        bool            `json:"streaming,omitempty"`
	SystemMessage    json.RawMessage `json:"systemMessage,omitempty"`
	Instructions     string          `json:"instructions,omitempty"`
	Provider         json.RawMessage `json:"provider,omitempty"`
	Providers        json.RawMessage `json:"providers,omitempty"`  // those that Models name
	Models           json.RawMessage `json:"models,omitempty"`     // selected as "provider/id"
	ClientHTTP       bool            `json:"clientHttp,omitempty"` // a client makes the requests to models
	AvailableTools   []string        `json:"availableTools"`       // null: all
	ExcludedTools    []string        `json:"excludedTools,omitempty"`
	ExtraTools       []string        `json:"extraTools,omitempty"` // offered though they are not by themselves
	ClientName       string          `json:"clientName,omitempty"`
	Approve          string          `json:"approve,omitempty"` // the rule set: "", "workspace" or "all"
	Scope            ScopeRules      `json:"scope,omitzero"`
	Permissions      PermissionRules `json:"permissions,omitzero"`
	MaxSteps         int             `json:"maxSteps,omitempty"`
	// Vision is set if a client knows better than we whether the model sees
	// images, and Window how many tokens fit into a request and its reply.
	Vision *bool `json:"vision,omitempty"`
	Window int   `json:"window,omitempty"`
	// Memory says what is remembered of the session.
	Memory MemoryRules `json:"memory,omitzero"`
	// Compaction is when people want it compacted, and Infinite when its client
	// does.
	Compaction CompactionRules   `json:"compaction,omitzero"`
	Infinite   *InfiniteSessions `json:"infiniteSessions,omitempty"`
	// SkipInstructions means that the project's files tell the model nothing.
	SkipInstructions bool `json:"skipCustomInstructions,omitempty"`
	// InstructionDirs are further folders with instructions.
	InstructionDirs []string `json:"instructionDirectories,omitempty"`
	// AgentExcluded are tools that only agents that the session starts have.
	AgentExcluded []string `json:"defaultAgentExcludedTools,omitempty"`
	// ExcludedAgents are agents that it cannot start.
	ExcludedAgents []string   `json:"excludedBuiltinAgents,omitempty"`
	Skills         SkillRules `json:"skills,omitzero"`
	// Agents are those that a client describes, and Selected the one of them that
	// answers. Before is what the session had before it came.
	Agents   []CustomAgent `json:"customAgents,omitempty"`
	Selected string        `json:"selectedAgent,omitempty"`
	Before   *Own          `json:"beforeAgent,omitempty"`
	// Agent is set if the session is itself an agent that another one started.
	Agent *AgentOf `json:"agent,omitempty"`
}

// InfiniteSessions says when a session is compacted, in shares of what a request
// may have. What is nil was not said.
type InfiniteSessions struct {
	Enabled    *bool    `json:"enabled,omitempty"`
	Background *float64 `json:"backgroundCompactionThreshold,omitempty"`
	Exhaustion *float64 `json:"bufferExhaustionThreshold,omitempty"`
}

// Off reports whether a client wants neither thresholds nor a folder for the
// session's own files.
func (s *InfiniteSessions) Off() bool { return s != nil && s.Enabled != nil && !*s.Enabled }

// AgentOf says whose agent a session is.
type AgentOf struct {
	Session SessionID `json:"sessionId"`
	Type    string    `json:"agentType"`
}

// ScopeRules say which files a session may use. A denial wins.
type ScopeRules struct {
	Allow []ScopeRule `json:"allow,omitempty"`
	Deny  []ScopeRule `json:"deny,omitempty"`
}

// A ScopeRule is about a file, or a folder with all that is below it.
type ScopeRule struct {
	Target     string `json:"target"`     // absolute
	Permission string `json:"permission"` // "read" or "write"
}

// PermissionRules say which calls are made without asking, which are asked about
// whatever else allows them, and which are never made.
type PermissionRules struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// InstructionsLoadedData is what the project's own files tell the model from
// here on.
type InstructionsLoadedData struct {
	Text    string              `json:"text"`
	Sources []InstructionSource `json:"sources"`
}

// An InstructionSource is a file that was read.
type InstructionSource struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of what was read
	Bytes  int    `json:"bytes"`
	Cut    bool   `json:"cut,omitempty"` // there was more
}

// ClientDeclaredData tells which kinds of questions some client of this session
// has said it can answer. It only grows.
type ClientDeclaredData struct {
	Permission bool `json:"permission,omitempty"`
	UserInput  bool `json:"userInput,omitempty"`
	ExitPlan   bool `json:"exitPlanMode,omitempty"`
	Hooks      bool `json:"hooks,omitempty"`
}

// ToolsDeclaredData is the set of client tools that is offered from here on.
type ToolsDeclaredData struct {
	Tools []ExternalTool `json:"tools"`
}

// An ExternalTool is a tool that a client carries out.
type ExternalTool struct {
	Name             string          `json:"name"`
	Description      string          `json:"description,omitempty"`
	Parameters       json.RawMessage `json:"parameters,omitempty"`
	OverridesBuiltIn bool            `json:"overridesBuiltInTool,omitempty"`
	SkipPermission   bool            `json:"skipPermission,omitempty"`
	Terminal         bool            `json:"isTerminal,omitempty"`
}

// SessionNamedData gives a session a name.
type SessionNamedData struct {
	Name string `json:"name"`
	Auto bool   `json:"auto,omitempty"` // somebody may give it a better one
}

// SessionForkedData is the first event of a fork's own: what came before is
// shared with the parent.
type SessionForkedData struct {
	Parent SessionID `json:"parentSessionId"`
	At     Seq       `json:"position"`
	Hash   string    `json:"hash"` // of the parent's chain at that position
}

// HistoryHiddenData takes a range out of what the model and clients are shown.
// Nothing is deleted.
type HistoryHiddenData struct {
	From   Seq    `json:"from"` // first hidden position
	To     Seq    `json:"to"`   // last hidden position
	Reason string `json:"reason"`
	// Files means that the files that calls in the range have changed are to be
	// given back what they held.
	Files bool `json:"files,omitempty"`
}

// FilesRestoredData tells that files were given back what they held before the
// calls that were taken back.
type FilesRestoredData struct {
	Files []RestoredFile `json:"files"`
	Error string         `json:"error,omitempty"` // why nothing could be done
}

// A RestoredFile is what became of one file.
type RestoredFile struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome"` // one of File…
	Reason  string `json:"reason,omitempty"`
	Added   int    `json:"linesAdded"` // lines that came back
	Gone    int    `json:"linesRemoved"`
}

// The outcomes of a RestoredFile.
const (
	FileRestored = "restored" // it holds again what it held
	FileRemoved  = "removed"  // it was made by a call and is gone
	FileSame     = "same"     // there was nothing to do
	FileSkipped  = "skipped"  // it was left alone, and Reason says why
)

// TaskStartedData tells that what a call began goes on without it.
type TaskStartedData struct {
	Key        string `json:"key"` // of the call
	ToolCallID string `json:"toolCallId"`
}

// TaskReportedData is news of a task. The model is told with a
// system.notification, once.
type TaskReportedData struct {
	Key    string `json:"key"`
	TaskID string `json:"taskId,omitempty"` // what the model calls it
	Status string `json:"status"`           // one of Task…
	Ended  bool   `json:"ended"`            // there will be no more news
	// Text is what the model reads. Nothing is told if it is empty.
	Text string          `json:"text,omitempty"`
	Kind json.RawMessage `json:"kind,omitempty"` // of the notification, in the protocol's form
}

// The statuses of a task.
const (
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskKilled    = "killed"
	TaskLost      = "lost"
	TaskRunning   = "running" // it goes on after it stalled
	TaskStalled   = "stalled" // it seems to wait for input
	TaskNone      = "none"    // nothing was ever begun
)

// SystemNotificationData tells the model of something that happened outside.
type SystemNotificationData struct {
	Content       string          `json:"content"` // as the model reads it
	Kind          json.RawMessage `json:"kind"`
	InteractionID string          `json:"interactionId,omitempty"`
	Report        Seq             `json:"report,omitempty"` // the task.reported that it tells of
}

// TurnEndedData ends a turn without an answer because its pending work was
// declined.
type TurnEndedData struct {
	Reason string `json:"reason"`
}

// The payloads that are sent and never stored.

// EmptyData is the body of events that say all with their name.
type EmptyData struct{ kind Type }

// Empty makes a payload without fields.
func Empty(kind Type) EmptyData { return EmptyData{kind} }

// TitleChangedData tells a session's new title.
type TitleChangedData struct {
	Title string `json:"title"`
}

// ModelCallStartData tells that a request goes out.
type ModelCallStartData struct {
	TurnID string `json:"turnId"`
	Model  string `json:"model,omitempty"`
}

// ModelCallFailureData tells that a request failed.
type ModelCallFailureData struct {
	Source       string `json:"source"`
	Model        string `json:"model,omitempty"`
	StatusCode   int    `json:"statusCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	FailureKind  string `json:"failureKind,omitempty"`
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

// SnapshotRewindData tells that history was taken back.
type SnapshotRewindData struct {
	UpToEventID   string `json:"upToEventId"`
	EventsRemoved int    `json:"eventsRemoved"`
}

// Each payload knows its kind.

func (SessionStartData) Type() Type       { return SessionStart }
func (SessionResumeData) Type() Type      { return SessionResume }
func (SessionModelChangeData) Type() Type { return SessionModelChange }
func (SessionInfoData) Type() Type        { return SessionInfo }
func (SessionWarningData) Type() Type     { return SessionWarning }
func (SessionErrorData) Type() Type       { return SessionError }
func (SessionIdleData) Type() Type        { return SessionIdle }
func (SystemMessageData) Type() Type      { return SystemMessage }
func (UserMessageData) Type() Type        { return UserMessage }
func (AssistantTurnStartData) Type() Type { return AssistantTurnStart }
func (AssistantTurnEndData) Type() Type   { return AssistantTurnEnd }
func (AssistantUsageData) Type() Type     { return AssistantUsage }
func (AssistantMessageData) Type() Type   { return AssistantMessage }
func (ToolStartData) Type() Type          { return ToolStart }
func (ToolBegunData) Type() Type          { return ToolBegun }
func (ToolCompleteData) Type() Type       { return ToolComplete }
func (PermissionAskedData) Type() Type    { return PermissionAsked }
func (PermissionDoneData) Type() Type     { return PermissionDone }
func (ExternalAskedData) Type() Type      { return ExternalAsked }
func (ExternalDoneData) Type() Type       { return ExternalDone }
func (UserInputAskedData) Type() Type     { return UserInputAsked }
func (UserInputDoneData) Type() Type      { return UserInputDone }
func (AbortData) Type() Type              { return Abort }
func (InputAcceptedData) Type() Type      { return InputAccepted }
func (SessionConfiguredData) Type() Type  { return SessionConfigured }
func (InstructionsLoadedData) Type() Type { return InstructionsLoaded }
func (ClientDeclaredData) Type() Type     { return ClientDeclared }
func (ToolsDeclaredData) Type() Type      { return ToolsDeclared }
func (SessionNamedData) Type() Type       { return SessionNamed }
func (SessionForkedData) Type() Type      { return SessionForked }
func (HistoryHiddenData) Type() Type      { return HistoryHidden }
func (FilesRestoredData) Type() Type      { return FilesRestored }
func (TaskStartedData) Type() Type        { return TaskStarted }
func (TaskReportedData) Type() Type       { return TaskReported }
func (SystemNotificationData) Type() Type { return SystemNotification }
func (TurnEndedData) Type() Type          { return TurnEnded }
func (e EmptyData) Type() Type            { return e.kind }
func (TitleChangedData) Type() Type       { return TitleChanged }
func (ModelCallStartData) Type() Type     { return ModelCallStart }
func (ModelCallFailureData) Type() Type   { return ModelCallFailure }
func (AssistantTurnRetryData) Type() Type { return AssistantTurnRetry }
func (AssistantIdleData) Type() Type      { return AssistantIdle }
func (StreamingDeltaData) Type() Type     { return StreamingDelta }
func (MessageStartData) Type() Type       { return MessageStart }
func (MessageDeltaData) Type() Type       { return MessageDelta }
func (ReasoningDeltaData) Type() Type     { return ReasoningDelta }
func (ToolCallDeltaData) Type() Type      { return ToolCallDelta }
func (SnapshotRewindData) Type() Type     { return SnapshotRewind }
