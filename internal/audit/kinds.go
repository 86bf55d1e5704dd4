package audit

import "encoding/json"

// A kind is what an auditor has to know of a kind of events: whether clients are
// shown it, whether it is marked ephemeral, and which members its body always has.
// The table is written from docs/EVENTS.md, and not from the engine's.
type kind struct {
	hidden, ephemeral bool
	needs             []string
}

// listed reports whether the next event names one of this kind as its parent.
func (k kind) listed() bool { return !k.hidden && !k.ephemeral }

var kinds = map[string]kind{
	"session.start":                  {needs: []string{"sessionId", "version", "producer", "startTime"}},
	"session.configured":             {hidden: true, needs: []string{"workingDirectory"}},
	"session.resume":                 {needs: []string{"resumeTime", "eventCount", "sessionWasActive"}},
	"session.named":                  {hidden: true, needs: []string{"name"}},
	"session.model_change":           {needs: []string{"newModel"}},
	"session.forked":                 {hidden: true, needs: []string{"parentSessionId", "position", "hash"}},
	"history.hidden":                 {hidden: true, needs: []string{"from", "to", "reason"}},
	"task.started":                   {hidden: true, needs: []string{"key", "toolCallId"}},
	"task.reported":                  {hidden: true, needs: []string{"key", "status", "ended"}},
	"todo.changed":                   {hidden: true, needs: []string{"id", "subject", "status"}},
	"system.notification":            {needs: []string{"content"}},
	"files.restored":                 {hidden: true, needs: []string{"files"}},
	"session.info":                   {needs: []string{"infoType", "message"}},
	"session.warning":                {needs: []string{"warningType", "message"}},
	"session.error":                  {needs: []string{"errorType", "message"}},
	"session.idle":                   {ephemeral: true, needs: []string{"totals"}},
	"instructions.loaded":            {hidden: true, needs: []string{"text"}},
	"client.declared":                {hidden: true},
	"tools.declared":                 {hidden: true, needs: []string{"tools"}},
	"session.suspended":              {hidden: true, needs: []string{"suspended"}},
	"session.mode_changed":           {needs: []string{"newMode", "previousMode"}},
	"session.context_changed":        {needs: []string{"cwd"}},
	"session.shutdown":               {needs: []string{"shutdownType"}},
	"session.task_complete":          {},
	"skill.invoked":                  {needs: []string{"name", "path", "content"}},
	"skills.found":                   {hidden: true, needs: []string{"skills"}},
	"subagent.selected":              {needs: []string{"agentName"}},
	"subagent.deselected":            {},
	"session.plan_changed":           {needs: []string{"operation"}},
	"permissions.configured":         {hidden: true},
	"grants.reset":                   {hidden: true},
	"questions.redelivered":          {hidden: true, needs: []string{"requestIds"}},
	"session.compaction_start":       {needs: []string{"compactionId", "trigger", "through"}},
	"context.epoch":                  {hidden: true, needs: []string{"epochId", "number", "kind", "from", "through"}},
	"memory.extracted":               {hidden: true, needs: []string{"from", "to", "hash"}},
	"memory.consolidated":            {hidden: true, needs: []string{"through"}},
	"memory.recalled":                {hidden: true, needs: []string{"text"}},
	"input.accepted":                 {hidden: true, needs: []string{"inputId", "prompt", "mode"}},
	"system.message":                 {needs: []string{"role", "content"}},
	"user.message":                   {needs: []string{"content", "interactionId"}},
	"assistant.turn_start":           {needs: []string{"turnId", "interactionId"}},
	"assistant.usage":                {ephemeral: true, needs: []string{"model"}},
	"assistant.message":              {needs: []string{"messageId", "content", "toolRequests"}},
	"assistant.turn_end":             {needs: []string{"turnId"}},
	"turn.ended":                     {hidden: true, needs: []string{"reason"}},
	"abort":                          {needs: []string{"reason"}},
	"queue.changed":                  {hidden: true, needs: []string{"order"}},
	"command.queued":                 {ephemeral: true, needs: []string{"requestId", "command", "inputId"}},
	"command.execute":                {ephemeral: true, needs: []string{"requestId", "commandName"}},
	"command.completed":              {ephemeral: true, needs: []string{"requestId"}},
	"elicitation.requested":          {ephemeral: true, needs: []string{"requestId", "message"}},
	"elicitation.completed":          {ephemeral: true, needs: []string{"requestId", "action"}},
	"tool.execution_start":           {needs: []string{"toolCallId", "toolName"}},
	"permission.requested":           {needs: []string{"requestId", "permissionRequest", "toolCallId"}},
	"permission.completed":           {needs: []string{"requestId", "result"}},
	"tool.execution_begun":           {hidden: true, needs: []string{"toolCallId", "key", "attempt"}},
	"external_tool.requested":        {needs: []string{"requestId", "sessionId", "toolCallId", "toolName"}},
	"external_tool.completed":        {needs: []string{"requestId"}},
	"user_input.requested":           {ephemeral: true, needs: []string{"requestId", "question", "toolCallId"}},
	"user_input.completed":           {ephemeral: true, needs: []string{"requestId"}},
	"exit_plan_mode.requested":       {ephemeral: true, needs: []string{"requestId", "summary"}},
	"exit_plan_mode.completed":       {ephemeral: true, needs: []string{"requestId", "approved"}},
	"tool.execution_complete":        {needs: []string{"toolCallId", "success"}},
	"hook.start":                     {needs: []string{"hookInvocationId", "hookType"}},
	"hook.end":                       {needs: []string{"hookInvocationId", "hookType", "success"}},
	"session.compaction_complete":    {needs: []string{"compactionId", "outcome", "success"}},
	"session.permissions_changed":    {needs: []string{"mode", "previousMode"}},
	"session.workspace_file_changed": {needs: []string{"path", "operation"}},
}

// neverStored are the kinds that are only sent. A log that has one is not ours.
var neverStored = []string{
	"pending_messages.modified", "commands.changed", "capabilities.changed", "session.title_changed", "model.call_start", "session.usage_info",
	"session.todos_changed", "subagent.started", "subagent.completed", "subagent.failed", "model.call_failure", "assistant.turn_retry",
	"assistant.idle", "session.snapshot_rewind", "assistant.streaming_delta", "assistant.message_start", "assistant.message_delta",
	"assistant.reasoning_delta", "assistant.tool_call_delta", "session.background_tasks_changed", "session.skills_loaded", "session.custom_agents_updated",
}

// A body has the members of all bodies that rules look at. Members that have
// different types in different kinds are left as they are.
type body struct {
	SessionID     string `json:"sessionId"`
	Version       int    `json:"version"`
	InputID       string `json:"inputId"`
	RequestID     string `json:"requestId"`
	ToolCallID    string `json:"toolCallId"`
	InteractionID string `json:"interactionId"`
	TurnID        string `json:"turnId"`
	Key           string `json:"key"`

	ToolName     string          `json:"toolName"`
	Arguments    json.RawMessage `json:"arguments"`
	ToolRequests []toolRequest   `json:"toolRequests"`
	Attempt      int             `json:"attempt"`
	Granted      bool            `json:"granted"`
	Detaches     bool            `json:"detaches"`
	Success      bool            `json:"success"`
	Result       json.RawMessage `json:"result"`
	Error        json.RawMessage `json:"error"`
	Content      json.RawMessage `json:"content"`
	Tools        json.RawMessage `json:"tools"`

	PermissionRequest json.RawMessage `json:"permissionRequest"`
	Grants            []grant         `json:"grants"`
	Decision          *decision       `json:"decision"`
	Replay            string          `json:"replay"`

	From      int64           `json:"from"`
	To        int64           `json:"to"`
	Through   int64           `json:"through"`
	Position  int64           `json:"position"`
	Hash      string          `json:"hash"`
	Parent    string          `json:"parentSessionId"`
	Files     json.RawMessage `json:"files"`
	KeepQueue bool            `json:"keepQueue"`
	Hold      bool            `json:"hold"`
	Aborted   bool            `json:"aborted"`
	EndsTurn  bool            `json:"endsTurn"`
	Order     []string        `json:"order"`
	Count     int64           `json:"eventCount"`
	Suspended bool            `json:"suspended"`

	Status string `json:"status"`
	Ended  bool   `json:"ended"`
	Text   string `json:"text"`
	Report int64  `json:"report"`

	CompactionID string          `json:"compactionId"`
	Number       int             `json:"number"`
	Head         json.RawMessage `json:"head"`

	Name             string                     `json:"name"`
	WorkingDirectory string                     `json:"workingDirectory"`
	ClientName       string                     `json:"clientName"`
	Approve          string                     `json:"approve"`
	Scope            scopeRules                 `json:"scope"`
	Permissions      permissionRules            `json:"permissions"`
	Agent            *agentOf                   `json:"agent"`
	HookID           string                     `json:"hookInvocationId"`
	ToolCallIDs      []string                   `json:"toolCallIds"`
	Outcome          json.RawMessage            `json:"outcome"`
	HookType         string                     `json:"hookType"`
	Outputs          map[string]json.RawMessage `json:"outputs"`
}

type (
	toolRequest struct {
		ToolCallID string          `json:"toolCallId"`
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
	}
	grant struct {
		Kind     string   `json:"kind"`
		Subject  string   `json:"subject"`
		Command  string   `json:"command"`
		Dir      string   `json:"directory"`
		Terminal bool     `json:"terminal"`
		Input    bool     `json:"input"`
		Prefix   []string `json:"prefix"`
		Folder   string   `json:"folder"`
	}
	// decision is what an event says that allowed a call.
	decision struct {
		By        string   `json:"by"`
		Rules     []string `json:"rules"`
		Grants    []grant  `json:"grants"`
		RequestID string   `json:"requestId"`
		Command   string   `json:"command"`
	}
	scopeRules struct {
		Allow []struct{ Target, Permission string } `json:"allow"`
	}
	permissionRules struct {
		Allow []string `json:"allow"`
		Deny  []string `json:"deny"`
	}
	agentOf struct {
		SessionID string `json:"sessionId"`
	}
)

// read decodes a body.
func read(data []byte) (*body, error) {
	b := new(body)
	err := json.Unmarshal(data, b)
	return b, err
}

// lacks returns the first member that a body of the kind must have and has not.
func (k kind) lacks(data []byte) string {
	if len(k.needs) == 0 {
		return ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return "" // whoever reads the body says so
	}
	for _, name := range k.needs {
		if _, has := members[name]; !has {
			return name
		}
	}
	return ""
}
