package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The methods about forms, commands, the queue, the event log, the plan and
// permissions.
const (
	GetForeground = "session.getForeground"
	SetForeground = "session.setForeground"

	SessionSuspend = "session.suspend"
	CheckInUse     = "sessions.checkInUse"

	UIElicitation     = "session.ui.elicitation"
	AnswerElicitation = "session.ui.handlePendingElicitation"

	CommandsList    = "session.commands.list"
	CommandsInvoke  = "session.commands.invoke"
	CommandsExecute = "session.commands.execute"
	CommandsEnqueue = "session.commands.enqueue"
	CommandsRespond = "session.commands.respondToQueuedCommand"
	AnswerCommand   = "session.commands.handlePendingCommand"

	EventLogRead     = "session.eventLog.read"
	EventLogTail     = "session.eventLog.tail"
	RegisterInterest = "session.eventLog.registerInterest"
	ReleaseInterest  = "session.eventLog.releaseInterest"

	PlanRead          = "session.plan.read"
	PlanUpdate        = "session.plan.update"
	PlanDelete        = "session.plan.delete"
	PlanReadTodos     = "session.plan.readSqlTodos"
	PlanReadTodosDeps = "session.plan.readSqlTodosWithDependencies"

	QueuePending      = "session.queue.pendingItems"
	QueueSnapshot     = "session.queue.snapshot"
	QueueHasPending   = "session.queue.hasPending"
	QueueClear        = "session.queue.clear"
	QueueRemoveRecent = "session.queue.removeMostRecent"
	QueueRemoveAt     = "session.queue.removeAt"
	QueueInsertAt     = "session.queue.insertAt"
	QueueDuplicateAt  = "session.queue.duplicateAt"
	QueueMoveItem     = "session.queue.moveItem"
	QueueUpdateText   = "session.queue.updateText"
	QueueSendNow      = "session.queue.sendNow"
	QueueSetPaused    = "session.queue.setDrainPaused"

	PermissionsSetApproveAll = "session.permissions.setApproveAll"
	PermissionsSetMode       = "session.permissions.setMode"
	PermissionsGetMode       = "session.permissions.getMode"
	PermissionsConfigure     = "session.permissions.configure"
	PermissionsModifyRules   = "session.permissions.modifyRules"
	PermissionsReset         = "session.permissions.resetSessionApprovals"
	PermissionsSetRequired   = "session.permissions.setRequired"
	PermissionsPromptShown   = "session.permissions.notifyPromptShown"
	PathsList                = "session.permissions.paths.list"
	PathsAdd                 = "session.permissions.paths.add"
	PathsUpdatePrimary       = "session.permissions.paths.updatePrimary"
	PathsAllowed             = "session.permissions.paths.isPathWithinAllowedDirectories"
	PathsWorkspace           = "session.permissions.paths.isPathWithinWorkspace"
	URLsUnrestricted         = "session.permissions.urls.setUnrestrictedMode"
	LocationsResolve         = "session.permissions.locations.resolve"
	LocationsApply           = "session.permissions.locations.apply"
	LocationsAddApproval     = "session.permissions.locations.addToolApproval"
	FolderIsTrusted          = "session.permissions.folderTrust.isTrusted"
	FolderAddTrusted         = "session.permissions.folderTrust.addTrusted"

	InferenceSetProvider   = "llmInference.setProvider"
	InferenceResponseStart = "llmInference.httpResponseStart"
	InferenceResponseChunk = "llmInference.httpResponseChunk"
)

// The requests that a client is sent about models.
const (
	ProviderToken         = "providerToken.getToken"
	InferenceRequestStart = "llmInference.httpRequestStart"
	InferenceRequestChunk = "llmInference.httpRequestChunk"
)

// ForegroundResult names the session that a terminal shows.
type ForegroundResult struct {
	SessionID event.SessionID `json:"sessionId,omitempty"`
}

// InUseParams asks which sessions have clients.
type InUseParams struct {
	SessionIDs []event.SessionID `json:"sessionIds"`
}

// InUseResult lists those that have.
type InUseResult struct {
	InUse []event.SessionID `json:"inUse"`
}

// ElicitationParams puts a form to a person.
type ElicitationParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	Mode      string          `json:"mode,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
}

// ElicitationResult is what the person made of it.
type ElicitationResult struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// AnswerElicitationParams gives what a person made of a form.
type AnswerElicitationParams struct {
	SessionID event.SessionID   `json:"sessionId"`
	RequestID string            `json:"requestId"`
	Result    ElicitationResult `json:"result"`
	Key       string            `json:"abideKey,omitempty"`
	Digest    string            `json:"abideDigest,omitempty"` // see CodeChanged
}

// CommandsParams asks for commands. All kinds are listed unless it says no.
type CommandsParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Builtins  *bool           `json:"includeBuiltins,omitempty"`
	Clients   *bool           `json:"includeClientCommands,omitempty"`
	Skills    *bool           `json:"includeSkills,omitempty"`
}

// CommandsResult lists commands.
type CommandsResult struct {
	Commands []CommandInfo `json:"commands"`
}

// A CommandInfo describes a command.
type CommandInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Kind        string `json:"kind"` // CommandBuiltin, CommandClient or CommandSkill
	During      bool   `json:"allowDuringAgentExecution"`

	Input *CommandInput `json:"input,omitempty"` // nil if nothing is known of its input
}

// The kinds of commands.
const (
	CommandBuiltin = "builtin" // the runtime carries it out
	CommandClient  = "client"  // a client carries it out
	CommandSkill   = "skill"   // a message comes of it: that of a skill, or of a prompt of an MCP server
)

// A CommandInput says what is written behind the name of a command.
type CommandInput struct {
	Hint     string `json:"hint"`
	Required bool   `json:"required,omitempty"`
}

// InvokeParams carries out a command of the runtime.
type InvokeParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name"`
	Input     string          `json:"input,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
}

// InvokeResult is what the command says.
type InvokeResult struct {
	Kind string `json:"kind"` // InvokedText, InvokedDone or InvokedPrompt
	Text string `json:"text,omitempty"`

	Prompt  string `json:"prompt,omitempty"`        // message to be sent, by whoever has invoked the command
	Display string `json:"displayPrompt,omitempty"` // what people are shown of it
}

// What came of a command that was invoked.
const (
	InvokedText   = "text"         // it says something
	InvokedDone   = "completed"    // a client has carried it out
	InvokedPrompt = "agent-prompt" // a message is to be sent to the agent
)

// ExecuteParams lets a client carry out its command.
type ExecuteParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"commandName"`
	Args      string          `json:"args"`
	Key       string          `json:"abideKey,omitempty"`
}

// ExecuteResult tells what went wrong.
type ExecuteResult struct {
	Error string `json:"error,omitempty"`
}

// EnqueueParams puts a command in the queue.
type EnqueueParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Command   string          `json:"command"`
	Display   string          `json:"displayText,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
}

// EnqueueResult tells whether it is there.
type EnqueueResult struct {
	Queued bool `json:"queued"`
}

// RespondParams tells what became of a queued command.
type RespondParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Result    struct {
		Handled bool `json:"handled"`
		Stop    bool `json:"stopProcessingQueue,omitempty"`
	} `json:"result"`
	Key string `json:"abideKey,omitempty"`
}

// AnswerCommandParams tells that a command was carried out, or what went wrong.
type AnswerCommandParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Error     string          `json:"error,omitempty"`
	Key       string          `json:"abideKey,omitempty"`
}

// LogReadParams asks for events from a cursor on.
type LogReadParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	Cursor           string          `json:"cursor,omitempty"`
	Max              *int            `json:"max,omitempty"`
	WaitMs           int             `json:"waitMs,omitempty"`
	Types            json.RawMessage `json:"types,omitempty"`
	Direction        string          `json:"direction,omitempty"`
	IncludeEphemeral *bool           `json:"includeEphemeral,omitempty"`
	AgentScope       string          `json:"agentScope,omitempty"`
	AgentIDs         []string        `json:"agentIds,omitempty"`
}

// LogReadResult holds events and where to go on.
type LogReadResult struct {
	Events       []json.RawMessage `json:"events"`
	Cursor       string            `json:"cursor"`
	CursorStatus string            `json:"cursorStatus"` // "ok" or "expired"
	HasMore      bool              `json:"hasMore"`
}

// CursorResult is where the log ends.
type CursorResult struct {
	Cursor string `json:"cursor"`
}

// InterestParams says that somebody looks after a kind of events.
type InterestParams struct {
	SessionID event.SessionID `json:"sessionId"`
	EventType event.Type      `json:"eventType"`
	Key       string          `json:"abideKey,omitempty"`
}

// HandleResult names an interest.
type HandleResult struct {
	Handle string `json:"handle"`
}

// HandleParams names an interest.
type HandleParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Handle    string          `json:"handle"`
}

// PlanResult is the plan of a session.
type PlanResult struct {
	Exists  bool    `json:"exists"`
	Content *string `json:"content"`
	Path    *string `json:"path"`
}

// PlanParams writes the plan.
type PlanParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Content   *string         `json:"content"`
}

// TodosResult lists todos and what depends on what.
type TodosResult struct {
	Rows         []Todo            `json:"rows"`
	Dependencies []json.RawMessage `json:"dependencies,omitzero"`
}

// A Todo is an entry of the model's own list.
type Todo struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status"` // "pending", "in_progress" or "done"
}

// QueueItem is an input that waits.
type QueueItem struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"` // "message" or "command"
	Display   string `json:"displayText"`
	AgentMode string `json:"agentMode"`
	MessageID string `json:"messageId,omitempty"`
}

// QueueResult is what waits.
type QueueResult struct {
	Items    []QueueItem `json:"items"`
	Steering []string    `json:"steeringMessages"`
}

// HasPendingResult tells whether anything waits.
type HasPendingResult struct {
	HasPending bool `json:"hasPending"`
}

// QueueParams is about one item of the queue.
type QueueParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ID        string          `json:"id"`
	Key       string          `json:"abideKey,omitempty"`
}

// MoveParams puts an item elsewhere.
type MoveParams struct {
	QueueParams
	To int `json:"toPosition"`
}

// UpdateTextParams changes what an item says.
type UpdateTextParams struct {
	QueueParams
	Prompt  string `json:"prompt"`
	Display string `json:"displayPrompt,omitempty"`
}

// InsertParams adds an item at a place.
type InsertParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Message   SendParams      `json:"message"`
	Position  int             `json:"position"`
	Key       string          `json:"abideKey,omitempty"`
}

// PauseParams holds the queue, or lets it go.
type PauseParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Paused    *bool           `json:"paused"`
	Key       string          `json:"abideKey,omitempty"`
}

// The answers to requests about the queue.
type (
	RemovedResult struct {
		Removed bool `json:"removed"`
	}
	ChangedResult struct {
		Changed bool `json:"changed"`
	}
	UpdatedResult struct {
		Updated bool `json:"updated"`
	}
	SteeredResult struct {
		Steered bool `json:"steered"`
	}
	ItemResult struct {
		ID string `json:"id"`
	}
)

// EnabledParams turns something on or off.
type EnabledParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Enabled   *bool           `json:"enabled"`
}

// ModeParams says how permissions are asked for.
type ModeParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Mode      string          `json:"mode"`
}

// PermissionModeResult tells how permissions are asked for.
type PermissionModeResult struct {
	Mode    string `json:"mode"`
	Success bool   `json:"success,omitempty"`
}

// ConfigureParams changes how permissions are judged. What is not said stays.
type ConfigureParams struct {
	SessionID   event.SessionID `json:"sessionId"`
	ApproveAll  *bool           `json:"approveAllToolPermissionRequests,omitempty"`
	ApproveRead *bool           `json:"approveAllReadPermissionRequests,omitempty"`
	Rules       *struct {
		Approved []event.Rule `json:"approved"`
		Denied   []event.Rule `json:"denied"`
	} `json:"rules,omitempty"`
	Paths *struct {
		Workspace    string   `json:"workspacePath,omitempty"`
		Directories  []string `json:"additionalDirectories,omitempty"`
		Temp         *bool    `json:"includeTempDirectory,omitempty"`
		Unrestricted bool     `json:"unrestricted,omitempty"`
	} `json:"paths,omitempty"`
	URLs *struct {
		Allowed      []string `json:"initialAllowed,omitempty"`
		Unrestricted bool     `json:"unrestricted,omitempty"`
	} `json:"urls,omitempty"`
}

// ModifyRulesParams adds rules and takes rules away.
type ModifyRulesParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Scope     string          `json:"scope"` // "session" or "location"
	Add       []event.Rule    `json:"add,omitempty"`
	Remove    []event.Rule    `json:"remove,omitempty"`
	RemoveAll bool            `json:"removeAll,omitempty"`
}

// ResetParams takes back approvals.
type ResetParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Location  *bool           `json:"includeLocation,omitempty"`
}

// RequiredParams says whether this client is asked for permissions.
type RequiredParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Required  *bool           `json:"required"`
}

// PromptShownParams tells that a person was asked.
type PromptShownParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Message   string          `json:"message"`
}

// PathParams is about a path.
type PathParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Path      string          `json:"path"`
}

// PathsResult lists the folders that a session may use.
type PathsResult struct {
	Directories []string `json:"directories"`
	Primary     string   `json:"primary"`
}

// AllowedResult tells whether a path is among them.
type AllowedResult struct {
	Allowed bool `json:"allowed"`
}

// TrustedResult tells whether a folder is trusted.
type TrustedResult struct {
	Trusted bool `json:"trusted"`
}

// LocationParams is about the place of a folder.
type LocationParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	WorkingDirectory string          `json:"workingDirectory"`
}

// LocationResult is that place.
type LocationResult struct {
	Key  string `json:"locationKey"`
	Kind string `json:"locationType"` // "repo" or "dir"
}

// AppliedResult tells which approvals of a place hold from now on.
type AppliedResult struct {
	LocationResult
	Rules       []event.Rule `json:"appliedRules"`
	RuleCount   int          `json:"appliedRuleCount"`
	Directories int          `json:"appliedDirectoryCount"`
	Changed     bool         `json:"changed"`
}

// ApprovalParams remembers an approval for a place.
type ApprovalParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Location  string          `json:"locationKey"`
	Approval  Approval        `json:"approval"`
}

// An Approval is what is allowed.
type Approval struct {
	Kind     string   `json:"kind"`
	Commands []string `json:"commandIdentifiers,omitempty"`
	ToolName *string  `json:"toolName,omitempty"`
	Server   string   `json:"serverName,omitempty"`
}

// TokenParams asks for a token that a provider takes.
type TokenParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Provider  string          `json:"providerName"`
}

// TokenResult is the token.
type TokenResult struct {
	Token string `json:"token"`
}

// RequestStartParams begins a request to a model that the client makes.
type RequestStartParams struct {
	RequestID string              `json:"requestId"`
	SessionID event.SessionID     `json:"sessionId,omitempty"`
	Method    string              `json:"method"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers"`
	Transport string              `json:"transport,omitempty"`
	// AgentID names the agent that asks; the only agent of a session has the id of the session.
	AgentID         string `json:"agentId,omitempty"`
	InteractionType string `json:"interactionType,omitempty"`
}

// RequestChunkParams is a piece of its body, or tells that nobody wants the
// response any more.
type RequestChunkParams struct {
	RequestID    string `json:"requestId"`
	Data         string `json:"data"`
	Binary       bool   `json:"binary,omitempty"`
	End          bool   `json:"end,omitempty"`
	Cancel       bool   `json:"cancel,omitempty"`
	CancelReason string `json:"cancelReason,omitempty"`
}

// ResponseStartParams is the head of a response.
type ResponseStartParams struct {
	RequestID  string              `json:"requestId"`
	Status     int                 `json:"status"`
	StatusText string              `json:"statusText,omitempty"`
	Headers    map[string][]string `json:"headers"`
}

// ResponseChunkParams is a piece of its body.
type ResponseChunkParams struct {
	RequestID string `json:"requestId"`
	Data      string `json:"data"`
	Binary    bool   `json:"binary,omitempty"`
	End       bool   `json:"end,omitempty"`
	Error     *struct {
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	} `json:"error,omitempty"`
}

// AcceptedResult tells whether somebody waits for it.
type AcceptedResult struct {
	Accepted bool `json:"accepted"`
}
