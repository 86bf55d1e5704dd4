package audit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/audit/stored"
)

// decisions decides I9: whatever a call does has a recorded decision that covers it.
type decisions struct {
	grants []grant
	rules  clientRules
	skip   map[string]bool // client tools that nobody need be asked about
}

// clientRules are what clients have said about permissions.
type clientRules struct {
	AllowAll   bool            `json:"allowAll"`
	AllowReads bool            `json:"allowReads"`
	AnyURL     bool            `json:"anyUrl"`
	Allow      []any           `json:"allow"`
	Deny       []clientRule    `json:"deny"`
	FromThere  []any           `json:"fromLocation"`
	URLs       []string        `json:"urls"`
	Dirs       json.RawMessage `json:"directories"`
}

type clientRule struct {
	Kind     string
	Argument *string
}

func newDecisions() *decisions { return &decisions{skip: make(map[string]bool)} }

func (d *decisions) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "permissions.configured":
		d.rules = clientRules{}
		_ = json.Unmarshal(e.Data, &d.rules) // rules that cannot be read allow nothing
	case "tools.declared":
		d.declare(b.Tools)
	case "grants.reset":
		d.grants = nil
	case "permission.requested":
		d.shown(s, e, b)
	case "permission.completed":
		d.answered(s, e, b)
	case "tool.execution_begun", "external_tool.requested":
		if c := s.call(b.ToolCallID); c != nil {
			d.begun(s, e, b, c)
		}
	}
}

func (d *decisions) declare(raw json.RawMessage) {
	var tools []struct {
		Name string `json:"name"`
		Skip bool   `json:"skipPermission"`
	}
	_ = json.Unmarshal(raw, &tools) // if the list cannot be read, no tool is skipped
	clear(d.skip)
	for _, t := range tools {
		d.skip[t.Name] = t.Skip
	}
}

// shown compares what a person is shown with what the call is to do.
func (d *decisions) shown(s *scene, e *stored.Event, b *body) {
	c := s.call(b.ToolCallID)
	var shown struct {
		ToolCallID string  `json:"toolCallId"`
		Command    *string `json:"fullCommandText"`
	}
	if c == nil || json.Unmarshal(b.PermissionRequest, &shown) != nil {
		return
	}
	var asked struct{ Command string }
	_ = json.Unmarshal(c.arguments, &asked) // a call without a command shows none
	switch {
	case shown.ToolCallID != "" && shown.ToolCallID != c.id:
		s.broken("shown.call", e.Seq, "event %d asks about the call %s and shows the call %s", e.Seq, c.id, shown.ToolCallID)
	case runs(c.name) && shown.Command != nil && *shown.Command != asked.Command:
		s.broken("shown.command", e.Seq, "event %d shows another command than the call %s is to run", e.Seq, c.id)
	}
}

// answered takes in what an answer allows for longer.
func (d *decisions) answered(s *scene, e *stored.Event, b *body) {
	if len(b.Grants) > 0 && !approves(resultKind(b.Result)) {
		s.broken("grant.denied", e.Seq, "event %d says no (%s), and allows something for the rest of the session", e.Seq, resultKind(b.Result))
		return
	}
	d.grants = append(slices.Clip(d.grants), b.Grants...)
}

func approves(kind string) bool { return strings.HasPrefix(kind, "approved") }

// begun looks for the decision that lets a call be made.
func (d *decisions) begun(s *scene, e *stored.Event, b *body, c *call) {
	external := e.Type == "external_tool.requested"
	switch {
	case c.attempt > 0: // it was decided when it was begun first
	case c.question != "" && c.asked == "permission.requested":
		s.broken("decision.open", e.Seq, "event %d begins the call %s of %s while it is asked whether it may", e.Seq, c.id, c.name)
	case c.answer != "" && !approves(c.answer):
		s.broken("decision.denied", e.Seq, "event %d begins the call %s of %s, which was answered with %s", e.Seq, c.id, c.name, c.answer)
	case c.hook == "deny":
		s.broken("decision.hook-denied", e.Seq, "event %d begins the call %s of %s, which a hook has denied", e.Seq, c.id, c.name)
	case d.forbids(s, c.name):
		s.broken("decision.forbidden", e.Seq, "event %d begins the call %s of %s, which a rule forbids", e.Seq, c.id, c.name)
	case c.answer != "", c.hook == "allow", s.config.Approve == "all", d.rules.AllowAll: // decided
	case external && d.skip[c.name]: // its client has said so
	case external && !d.any(s):
		s.broken("decision.missing", e.Seq, "event %d has a client make the call %s of %s, and nobody has allowed it", e.Seq, c.id, c.name)
	case external:
		d.unsure(s, e, c)
	case slices.Contains(unasked, c.name): // it needs nobody's yes
	default:
		d.built(s, e, b, c)
	}
}

// unasked are the built-in tools that need nobody's yes.
var unasked = []string{
	"read_bash", "stop_bash", "list_bash", "wait", "task", "skill", "memory_search",
	"task_create", "task_update", "task_list", "ask_user", "exit_plan_mode", "task_complete",
}

// commands and files are the built-in tools that need one.
var (
	commands = []string{"bash", "exec", "write_bash"}
	files    = []string{"view", "create", "edit", "grep", "glob"}
)

// built looks at a built-in tool that needs a yes, and was not asked about.
func (d *decisions) built(s *scene, e *stored.Event, b *body, c *call) {
	command, file := slices.Contains(commands, c.name), slices.Contains(files, c.name)
	scoped := len(s.config.Scope.Allow) > 0 || s.config.Approve != ""
	switch {
	case !command && !file:
		s.unknown("decision.unrecorded", e.Seq, "event %d begins the call %s of %s; whether that tool needs a yes is not recorded", e.Seq, c.id, c.name)
	case file && !b.Granted && scoped: // the scope of the session allows it
	case b.Granted && d.any(s):
		d.unsure(s, e, c)
	default:
		s.broken("decision.missing", e.Seq, "event %d begins the call %s of %s, and nobody has allowed it", e.Seq, c.id, c.name)
	}
}

// any reports whether there is a rule or a grant that may allow something.
func (d *decisions) any(s *scene) bool {
	return len(d.grants) > 0 || len(s.config.Permissions.Allow) > 0 || len(d.rules.Allow) > 0 || len(d.rules.FromThere) > 0 ||
		d.rules.AllowReads || d.rules.AnyURL || len(d.rules.URLs) > 0
}

// unsure notes that a call was allowed by a rule or a grant, and that it is not
// recorded by which, unless one allows the whole tool.
func (d *decisions) unsure(s *scene, e *stored.Event, c *call) {
	if slices.Contains(s.config.Permissions.Allow, c.name) || slices.Contains(s.config.Permissions.Allow, "*") || slices.Contains(d.grants, grant{Kind: kindOf(c.name)}) {
		return
	}
	s.unknown("decision.which", e.Seq, "event %d begins the call %s of %s, which some rule or grant allows; which one is not recorded", e.Seq, c.id, c.name)
}

// kindOf is the kind of what a tool wants to do.
func kindOf(tool string) string {
	switch {
	case slices.Contains(commands, tool):
		return "shell"
	case tool == "create", tool == "edit":
		return "write"
	case slices.Contains(files, tool):
		return "read"
	}
	return "custom-tool"
}

// forbids reports whether a rule denies the tool as a whole.
func (d *decisions) forbids(s *scene, tool string) bool {
	for _, rule := range s.config.Permissions.Deny {
		if strings.EqualFold(rule, tool) {
			return true
		}
	}
	return slices.ContainsFunc(d.rules.Deny, func(r clientRule) bool {
		return (r.Argument == nil || *r.Argument == "") && strings.EqualFold(r.Kind, tool)
	})
}
