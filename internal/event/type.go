package event

// A Type is the kind of an event.
type Type string

// The kinds of events that are stored. docs/EVENTS.md explains each.
const (
	SessionStart       Type = "session.start"
	SessionResume      Type = "session.resume"
	SessionModelChange Type = "session.model_change"
	SessionInfo        Type = "session.info"
	SessionWarning     Type = "session.warning"
	SessionError       Type = "session.error"
	SessionIdle        Type = "session.idle"
	SystemMessage      Type = "system.message"
	UserMessage        Type = "user.message"
	AssistantTurnStart Type = "assistant.turn_start"
	AssistantUsage     Type = "assistant.usage"
	AssistantMessage   Type = "assistant.message"
	AssistantTurnEnd   Type = "assistant.turn_end"
	ToolStart          Type = "tool.execution_start"
	ToolComplete       Type = "tool.execution_complete"
	PermissionAsked    Type = "permission.requested"
	PermissionDone     Type = "permission.completed"
	ExternalAsked      Type = "external_tool.requested"
	ExternalDone       Type = "external_tool.completed"
	UserInputAsked     Type = "user_input.requested"
	UserInputDone      Type = "user_input.completed"
	SystemNotification Type = "system.notification"
	Abort              Type = "abort"
	ElicitationAsked   Type = "elicitation.requested"
	ElicitationDone    Type = "elicitation.completed"
	CommandExecute     Type = "command.execute"
	CommandQueued      Type = "command.queued"
	CommandDone        Type = "command.completed"
	PlanChanged        Type = "session.plan_changed"
	PermissionsChanged Type = "session.permissions_changed"
	ModeChanged        Type = "session.mode_changed"
	ContextChanged     Type = "session.context_changed"
	SessionShutdown    Type = "session.shutdown"
	CompactionStart    Type = "session.compaction_start"
	CompactionComplete Type = "session.compaction_complete"
	ExitPlanAsked      Type = "exit_plan_mode.requested"
	ExitPlanDone       Type = "exit_plan_mode.completed"

	// Our own, hidden from clients that do not ask for them.
	InputAccepted      Type = "input.accepted"
	ToolBegun          Type = "tool.execution_begun"
	SessionConfigured  Type = "session.configured"
	ClientDeclared     Type = "client.declared"
	ToolsDeclared      Type = "tools.declared"
	InstructionsLoaded Type = "instructions.loaded"
	SessionNamed       Type = "session.named"
	SessionForked      Type = "session.forked"
	HistoryHidden      Type = "history.hidden"
	FilesRestored      Type = "files.restored"
	TaskStarted        Type = "task.started"
	TaskReported       Type = "task.reported"
	TurnEnded          Type = "turn.ended"
	QueueChanged       Type = "queue.changed"
	SessionSuspended   Type = "session.suspended"
	GrantsReset        Type = "grants.reset"
	MemoryExtracted    Type = "memory.extracted"
	MemoryConsolidated Type = "memory.consolidated"
	MemoryRecalled     Type = "memory.recalled"
	ContextEpoch       Type = "context.epoch"

	PermissionsConfigured Type = "permissions.configured"
)

// The kinds of events that are only sent, never stored.
const (
	PendingMessagesModified Type = "pending_messages.modified"
	TitleChanged            Type = "session.title_changed"
	ModelCallStart          Type = "model.call_start"
	ModelCallFailure        Type = "model.call_failure"
	AssistantTurnRetry      Type = "assistant.turn_retry"
	AssistantIdle           Type = "assistant.idle"
	StreamingDelta          Type = "assistant.streaming_delta"
	MessageStart            Type = "assistant.message_start"
	MessageDelta            Type = "assistant.message_delta"
	ReasoningDelta          Type = "assistant.reasoning_delta"
	ToolCallDelta           Type = "assistant.tool_call_delta"
	SnapshotRewind          Type = "session.snapshot_rewind"
	TasksChanged            Type = "session.background_tasks_changed"
	CommandsChanged         Type = "commands.changed"
	CapabilitiesChanged     Type = "capabilities.changed"
)

// traits says what is special about a kind.
type traits struct{ hidden, ephemeral bool }

var special = map[Type]traits{
	InputAccepted:      {hidden: true},
	ToolBegun:          {hidden: true},
	SessionConfigured:  {hidden: true},
	ClientDeclared:     {hidden: true},
	ToolsDeclared:      {hidden: true},
	InstructionsLoaded: {hidden: true},
	SessionNamed:       {hidden: true},
	SessionForked:      {hidden: true},
	HistoryHidden:      {hidden: true},
	FilesRestored:      {hidden: true},
	TaskStarted:        {hidden: true},
	TaskReported:       {hidden: true},
	TodoChanged:        {hidden: true},
	TurnEnded:          {hidden: true},
	QueueChanged:       {hidden: true},
	SessionSuspended:   {hidden: true},
	GrantsReset:        {hidden: true},
	MemoryExtracted:    {hidden: true},
	MemoryConsolidated: {hidden: true},
	MemoryRecalled:     {hidden: true},

	QuestionsRedelivered: {hidden: true},
	SkillsFound:          {hidden: true},
	ContextEpoch:         {hidden: true},

	PermissionsConfigured: {hidden: true},

	// Stored all the same: work depends on them.
	SessionIdle:    {ephemeral: true},
	AssistantUsage: {ephemeral: true},
	UserInputAsked: {ephemeral: true},
	UserInputDone:  {ephemeral: true},

	ElicitationAsked: {ephemeral: true},
	ElicitationDone:  {ephemeral: true},
	CommandExecute:   {ephemeral: true},
	CommandQueued:    {ephemeral: true},
	CommandDone:      {ephemeral: true},
	ExitPlanAsked:    {ephemeral: true},
	ExitPlanDone:     {ephemeral: true},

	PendingMessagesModified: {ephemeral: true},
	TitleChanged:            {ephemeral: true},
	ModelCallStart:          {ephemeral: true},
	ModelCallFailure:        {ephemeral: true},
	AssistantTurnRetry:      {ephemeral: true},
	AssistantIdle:           {ephemeral: true},
	StreamingDelta:          {ephemeral: true},
	MessageStart:            {ephemeral: true},
	MessageDelta:            {ephemeral: true},
	ReasoningDelta:          {ephemeral: true},
	ToolCallDelta:           {ephemeral: true},
	SnapshotRewind:          {ephemeral: true},
	TasksChanged:            {ephemeral: true},
	TodosChanged:            {ephemeral: true},
	CommandsChanged:         {ephemeral: true},
	CapabilitiesChanged:     {ephemeral: true},
}

// Hidden reports whether ordinary clients are not shown events of this kind.
func (t Type) Hidden() bool { return special[t].hidden }

// Ephemeral reports whether clients expect never to see an event of this kind
// again. Some are stored even so.
func (t Type) Ephemeral() bool { return special[t].ephemeral }

// Piece reports whether it is a part of an answer that will follow as a whole.
func (t Type) Piece() bool {
	switch t {
	case StreamingDelta, MessageStart, MessageDelta, ReasoningDelta, ToolCallDelta:
		return true
	}
	return false
}

// Listed reports whether stored events of this kind are part of the history
// that clients read back.
func (t Type) Listed() bool { s := special[t]; return !s.hidden && !s.ephemeral }
