package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/abide-run/abide/docs"
)

// A kind is what an auditor has to know of a kind of events: whether clients are
// shown it, whether it is marked ephemeral, whether it is only sent, and which members
// its body always has.
type kind struct {
	hidden, ephemeral, sent bool
	needs                   []string
}

// listed reports whether the next event names one of this kind as its parent.
func (k kind) listed() bool { return !k.hidden && !k.ephemeral }

// kinds are all kinds. They are read from docs/EVENTS.md, which is what clients are
// promised, and not from the engine's table.
// The document is read when a log is first audited: most processes never do that.
var kinds = sync.OnceValue(func() map[string]kind { return readKinds(docs.Events) })

// readKinds reads the rows of the document's tables.
func readKinds(document string) map[string]kind {
	kindRow := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| ([SEH–]) \\|")
	kindName := regexp.MustCompile("`([^`]+)`")
	all := make(map[string]kind)
	for _, row := range kindRow.FindAllStringSubmatch(document, -1) {
		for _, name := range kindName.FindAllStringSubmatch(row[1], -1) {
			all[name[1]] = kind{hidden: row[2] == "H", ephemeral: row[2] == "E", sent: row[2] == "–", needs: needs[name[1]]}
		}
	}
	return all
}

// needs are the members that bodies always have, by kind. Those that logs of older
// versions lack are not here.
var needs = map[string][]string{
	"session.start":                  {"sessionId", "version", "producer", "startTime"},
	"session.configured":             {"workingDirectory"},
	"session.resume":                 {"resumeTime", "eventCount", "sessionWasActive"},
	"session.named":                  {"name"},
	"session.model_change":           {"newModel"},
	"session.forked":                 {"parentSessionId", "position", "hash"},
	"history.hidden":                 {"from", "to", "reason"},
	"task.started":                   {"key", "toolCallId"},
	"task.reported":                  {"key", "status", "ended"},
	"todo.changed":                   {"id", "subject", "status"},
	"system.notification":            {"content"},
	"files.restored":                 {"files"},
	"session.info":                   {"infoType", "message"},
	"session.warning":                {"warningType", "message"},
	"session.error":                  {"errorType", "message"},
	"session.idle":                   {"totals"},
	"instructions.loaded":            {"text"},
	"tools.declared":                 {"tools"},
	"session.suspended":              {"suspended"},
	"session.mode_changed":           {"newMode", "previousMode"},
	"session.context_changed":        {"cwd"},
	"session.shutdown":               {"shutdownType"},
	"skill.invoked":                  {"name", "path", "content"},
	"skills.found":                   {"skills"},
	"mcp.offered":                    {"tools"},
	"mcp.called":                     {"callId", "server", "tool"},
	"mcp.found":                      {"names"},
	"subagent.selected":              {"agentName"},
	"session.plan_changed":           {"operation"},
	"questions.redelivered":          {"requestIds"},
	"session.compaction_start":       {"compactionId", "trigger", "through"},
	"context.epoch":                  {"epochId", "number", "kind", "from", "through"},
	"memory.extracted":               {"from", "to", "hash"},
	"memory.consolidated":            {"through"},
	"memory.recalled":                {"text"},
	"input.accepted":                 {"inputId", "prompt", "mode"},
	"system.message":                 {"role", "content"},
	"user.message":                   {"content", "interactionId"},
	"assistant.turn_start":           {"turnId", "interactionId"},
	"assistant.usage":                {"model"},
	"assistant.message":              {"messageId", "content", "toolRequests"},
	"assistant.unfinished":           {"messageId", "cause", "action", "content"},
	"assistant.turn_end":             {"turnId"},
	"turn.ended":                     {"reason"},
	"abort":                          {"reason"},
	"queue.changed":                  {"order"},
	"command.queued":                 {"requestId", "command", "inputId"},
	"command.execute":                {"requestId", "commandName"},
	"command.completed":              {"requestId"},
	"elicitation.requested":          {"requestId", "message"},
	"elicitation.completed":          {"requestId", "action"},
	"budget.raised":                  {"requestId", "limits"},
	"tool.execution_start":           {"toolCallId", "toolName"},
	"permission.requested":           {"requestId", "permissionRequest", "toolCallId"},
	"permission.completed":           {"requestId", "result"},
	"tool.execution_begun":           {"toolCallId", "key", "attempt"},
	"external_tool.requested":        {"requestId", "sessionId", "toolCallId", "toolName"},
	"external_tool.completed":        {"requestId"},
	"user_input.requested":           {"requestId", "question", "toolCallId"},
	"user_input.completed":           {"requestId"},
	"exit_plan_mode.requested":       {"requestId", "summary"},
	"exit_plan_mode.completed":       {"requestId", "approved"},
	"tool.execution_complete":        {"toolCallId", "success"},
	"hook.start":                     {"hookInvocationId", "hookType"},
	"hook.end":                       {"hookInvocationId", "hookType", "success"},
	"session.compaction_complete":    {"compactionId", "outcome", "success"},
	"session.permissions_changed":    {"mode", "previousMode"},
	"session.workspace_file_changed": {"path", "operation"},
}

// A body has the members of all bodies that rules look at, in groups. Members that have
// different types in different kinds are left as they are.
type body struct {
	idMembers
	callMembers
	permissionMembers
	rangeMembers
	turnMembers
	taskMembers
	setupMembers
	hookMembers
	budgetMembers
}

type (
	// idMembers are the ids that a body refers to.
	idMembers struct {
		SessionID     string   `json:"sessionId"`
		InputID       string   `json:"inputId"`
		RequestID     string   `json:"requestId"`
		ToolCallID    string   `json:"toolCallId"`
		ToolCallIDs   []string `json:"toolCallIds"`
		InteractionID string   `json:"interactionId"`
		TurnID        string   `json:"turnId"`
		CompactionID  string   `json:"compactionId"`
		HookID        string   `json:"hookInvocationId"`
		Parent        string   `json:"parentSessionId"`
		Key           string   `json:"key"`
		Prompt        string   `json:"prompt"`
	}

	// callMembers are about a call of a tool and its result.
	callMembers struct {
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
	}

	// permissionMembers are about the permission for a call.
	permissionMembers struct {
		PermissionRequest json.RawMessage `json:"permissionRequest"`
		Grants            []grant         `json:"grants"`
		Decision          *decision       `json:"decision"`
		Replay            string          `json:"replay"`
	}

	// rangeMembers are positions in a log, and what was there.
	rangeMembers struct {
		From     int64           `json:"from"`
		To       int64           `json:"to"`
		Through  int64           `json:"through"`
		Position int64           `json:"position"`
		Hash     string          `json:"hash"`
		Number   int             `json:"number"`
		Count    int64           `json:"eventCount"`
		Files    json.RawMessage `json:"files"`
		Head     json.RawMessage `json:"head"`
	}

	// turnMembers are about the end of a turn, and the inputs that wait.
	turnMembers struct {
		KeepQueue bool     `json:"keepQueue"`
		Hold      bool     `json:"hold"`
		Aborted   bool     `json:"aborted"`
		EndsTurn  bool     `json:"endsTurn"`
		Order     []string `json:"order"`
		Suspended bool     `json:"suspended"`
	}

	// taskMembers are about what a task has reported.
	taskMembers struct {
		Status string `json:"status"`
		Ended  bool   `json:"ended"`
		Text   string `json:"text"`
		Report int64  `json:"report"`
	}

	// setupMembers are about the configuration of a session.
	setupMembers struct {
		Version          int             `json:"version"`
		Name             string          `json:"name"`
		WorkingDirectory string          `json:"workingDirectory"`
		ClientName       string          `json:"clientName"`
		Approve          string          `json:"approve"`
		Scope            scopeRules      `json:"scope"`
		Permissions      permissionRules `json:"permissions"`
		Agent            *agentOf        `json:"agent"`
		Workspace        *place          `json:"workspace"`
		Sealed           bool            `json:"sealed"`
	}

	// hookMembers are about what a hook was asked and has said.
	hookMembers struct {
		HookType string                     `json:"hookType"`
		Outcome  json.RawMessage            `json:"outcome"`
		Outputs  map[string]json.RawMessage `json:"outputs"`
	}

	// budgetMembers are about the question whether to go on although a budget is reached.
	budgetMembers struct {
		Action string          `json:"action"`
		Budget *budget         `json:"budget"`
		Limits json.RawMessage `json:"limits"`
	}
)

// budget is what a question about a budget offers.
type budget struct {
	Raised json.RawMessage `json:"raised"`
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

// read decodes a body. If a member has the wrong type, the error names it as it stands in
// the body, without its group.
func read(data []byte) (*body, error) {
	b := new(body)
	err := json.Unmarshal(data, b)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		_, member, _ := strings.Cut(wrong.Field, "Members.")
		err = fmt.Errorf("%s has the wrong type: %s", cmp.Or(member, "it"), wrong.Value)
	}
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
