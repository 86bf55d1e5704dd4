package audit

import (
	"encoding/json"
	"reflect"
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
	Allow      []clientRule    `json:"allow"`
	Deny       []clientRule    `json:"deny"`
	FromThere  []clientRule    `json:"fromLocation"`
	URLs       []string        `json:"urls"`
	Dirs       json.RawMessage `json:"directories"`
}

type clientRule struct {
	Kind     string
	Argument *string
	Grant    *grant
}

// text is how an event names the rule.
func (r clientRule) text() string {
	kind := strings.ToLower(r.Kind)
	if kind == "commands" {
		kind = "shell"
	}
	switch {
	case r.Argument == nil || *r.Argument == "":
		return kind
	case kind == "custom-tool":
		return *r.Argument
	case kind == "shell" && !strings.Contains(*r.Argument, "*"):
		return kind + "(" + *r.Argument + " *)"
	}
	return kind + "(" + *r.Argument + ")"
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
		Kind       string  `json:"kind"`
		ToolCallID string  `json:"toolCallId"`
		Command    *string `json:"fullCommandText"`
	}
	if c == nil || json.Unmarshal(b.PermissionRequest, &shown) != nil {
		return
	}
	var asked struct{ Command string }
	_ = json.Unmarshal(c.arguments, &asked) // a call without a command shows none
	switch {
	case shown.Kind == "":
		s.broken("shown.nothing", e.Seq, "event %d asks about the call %s of %s, and does not say what it wants to do", e.Seq, c.id, c.name)
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
	case c.attempt > 0 && !reflect.DeepEqual(c.decision, b.Decision):
		s.broken("decision.changed", e.Seq, "event %d begins the call %s of %s again, and says that something else allows it than event %d", e.Seq, c.id, c.name, c.begun)
	case c.attempt > 0: // it was decided when it was begun first
	case c.question != "" && c.asked == "permission.requested":
		s.broken("decision.open", e.Seq, "event %d begins the call %s of %s while it is asked whether it may", e.Seq, c.id, c.name)
	case c.answer != "" && !approves(c.answer):
		s.broken("decision.denied", e.Seq, "event %d begins the call %s of %s, which was answered with %s", e.Seq, c.id, c.name, c.answer)
	case c.hook == "deny":
		s.broken("decision.hook-denied", e.Seq, "event %d begins the call %s of %s, which a hook has denied", e.Seq, c.id, c.name)
	case d.forbids(s, c.name):
		s.broken("decision.forbidden", e.Seq, "event %d begins the call %s of %s, which a rule forbids", e.Seq, c.id, c.name)
	case b.Decision != nil:
		d.recorded(s, e, b, c)
	case c.answer != "", c.hook == "allow", s.config.Approve == "all", d.rules.AllowAll: // somebody has decided
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

// recorded looks for the ground of a decision that is recorded: what it names must be
// in the log, and allow this call.
func (d *decisions) recorded(s *scene, e *stored.Event, b *body, c *call) {
	if why := d.baseless(s, b, c, e.Type == "external_tool.requested"); why != "" {
		s.broken("decision.baseless", e.Seq, "event %d begins the call %s of %s, allowed by %s, and %s", e.Seq, c.id, c.name, b.Decision.By, why)
		return
	}
	byWords := b.Decision.By == "rule" || b.Decision.By == "grant"
	switch exact := exactly(b.Decision.Grants); {
	case runs(c.name) && byWords && b.Decision.Command == "" && !d.wholeTool(b.Decision, c.name):
		s.broken("decision.words", e.Seq, "event %d begins the call %s of %s, which rules or grants allow, and does not say which words were judged", e.Seq, c.id, c.name)
	case exact != "" && len(b.Decision.Rules) == 0 && exact != b.Decision.Command:
		s.broken("decision.words", e.Seq, "event %d runs another command in the call %s than the one that was approved", e.Seq, c.id)
	}
}

// wholeTool reports whether a rule that the decision names allows every call of a tool.
func (d *decisions) wholeTool(by *decision, tool string) bool {
	return slices.ContainsFunc(by.Rules, func(rule string) bool { return rule == tool || rule == "*" || rule == kindOf(tool) })
}

// exactly returns the command that a single grant approves word for word; empty if it is
// not such a grant.
func exactly(grants []grant) string {
	if len(grants) != 1 {
		return ""
	}
	return grants[0].Command
}

// baseless returns why the log does not have what a decision names; empty if it has.
func (d *decisions) baseless(s *scene, b *body, c *call, external bool) string {
	by := b.Decision
	switch by.By {
	case "answer":
		if c.answer == "" || c.answered != by.RequestID || by.RequestID == "" {
			return "no answer to the request " + by.RequestID + " allows it"
		}
	case "hook":
		if c.hook != "allow" {
			return "no hook has allowed it"
		}
	case "set":
		if s.config.Approve != "all" && !d.rules.AllowAll {
			return "people are asked in this session"
		}
	case "scope":
		scoped := len(s.config.Scope.Allow) > 0 || s.config.Approve != ""
		if external || slices.Contains(commands, c.name) || b.Granted || !scoped {
			return "no scope can"
		}
	case "nothing":
		if external && !d.skip[c.name] || !external && (slices.Contains(commands, c.name) || slices.Contains(files, c.name)) {
			return "the tool needs somebody's yes"
		}
	case "rule", "grant":
		return d.unfounded(s, by)
	default:
		return "nothing of that name can"
	}
	return ""
}

// unfounded returns the rule or grant of a decision that is not in force; empty if all
// are.
func (d *decisions) unfounded(s *scene, by *decision) string {
	rules, grants := d.inForce(s)
	for _, rule := range by.Rules {
		if !slices.Contains(rules, rule) {
			return "there is no rule " + rule
		}
	}
	for _, g := range by.Grants {
		if !slices.ContainsFunc(grants, func(has grant) bool { return reflect.DeepEqual(has, g) }) {
			return "there is no such grant"
		}
	}
	if len(by.Rules)+len(by.Grants) == 0 || by.By == "grant" && len(by.Grants) == 0 {
		return "none is named"
	}
	return ""
}

// inForce returns the rules that allow something at the moment, and the grants.
func (d *decisions) inForce(s *scene) ([]string, []grant) {
	rules, grants := slices.Clone(s.config.Permissions.Allow), slices.Clone(d.grants)
	for _, r := range slices.Concat(d.rules.Allow, d.rules.FromThere) {
		switch {
		case r.Grant != nil:
			grants = append(grants, *r.Grant)
		case strings.EqualFold(r.Kind, "custom-tool") && r.Argument != nil:
			grants = append(grants, grant{Kind: "custom-tool", Subject: *r.Argument})
		default:
			rules = append(rules, r.text())
		}
	}
	if s.config.Sealed {
		rules = append(rules, commands...)
	}
	if d.rules.AllowReads {
		rules = append(rules, "read")
	}
	if d.rules.AnyURL {
		rules = append(rules, "url")
	}
	for _, u := range d.rules.URLs {
		rules = append(rules, "url("+u+"*)")
	}
	return rules, grants
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
	if slices.Contains(s.config.Permissions.Allow, c.name) || slices.Contains(s.config.Permissions.Allow, "*") || slices.ContainsFunc(d.grants, func(g grant) bool { return reflect.DeepEqual(g, grant{Kind: kindOf(c.name)}) }) {
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
