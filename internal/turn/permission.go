package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// Permission is what people and clients have allowed in addition to the configuration.
type Permission struct {
	Grants []event.Grant     // permissions that people gave for the rest of the session
	Rules  event.ClientRules // the rules that clients have set
	place  string            // name of the folder that the session works in
}

func (p *Permission) fold(body event.Payload) {
	switch d := body.(type) {
	case event.PermissionDoneData:
		p.Grants = append(p.Grants, d.Grants...)
	case event.GrantsResetData:
		p.Grants = nil
	case event.ClientRules:
		p.Rules = d
	case event.SessionConfiguredData:
		if p.place != "" && p.place != d.Location() { // rules of a place hold only there
			p.Rules.Location, p.Rules.FromThere = "", nil
		}
		p.place = d.Location()
	}
}

// approved reports whether the answer to a permission question is a yes.
func approved(r event.PermissionResult) bool {
	switch r.Kind {
	case event.Approved, event.ApprovedForSession, event.ApprovedForLocation:
		return true
	}
	return false
}

// ruleSet returns the name of the rule set by which permissions are judged.
func (s *State) ruleSet() string {
	if s.managed().NoBypass && (s.Permission.Rules.AllowAll || s.Setup.Config.Approve == approval.All) {
		return approval.AskAlways
	}
	if s.Permission.Rules.AllowAll {
		return approval.All
	}
	return s.Setup.Config.Approve
}

// AllowsAll reports whether nobody is asked for permission.
func (s *State) AllowsAll() bool { return s.ruleSet() == approval.All }

// PermissionMode returns the protocol's name of the mode in which nobody is asked
// for permission, or of the one in which people are.
func PermissionMode(all bool) string {
	if all {
		return "allow-all"
	}
	return "manual"
}

// scope returns what the session may use without asking. The folders that clients
// have added are part of it, unless it is empty.
func (s *State) scope() event.ScopeRules {
	rules := scopeOf(s.Setup.Config)
	if len(rules.Allow) == 0 {
		return rules
	}
	rules.Allow = slices.Clip(rules.Allow)
	for _, dir := range slices.Concat(s.Setup.Config.Directories, s.Permission.Rules.Directories) {
		rules.Allow = append(rules.Allow, event.ScopeRule{Target: dir, Permission: approval.Write})
	}
	return rules
}

// scopeOf returns what a configuration lets the session use without asking: what
// its scope rules list, or the working directory if they list nothing and the
// session is not one that always asks.
func scopeOf(c event.SessionConfiguredData) event.ScopeRules {
	rules := c.Scope
	if len(rules.Allow) == 0 && c.Approve != approval.AskAlways && c.WorkingDirectory != "" {
		rules.Allow = []event.ScopeRule{{Target: c.WorkingDirectory, Permission: approval.Write}}
	}
	return rules
}

// unread returns the rules that deny something, and those that ask about it unless a person
// has allowed the call.
func (s *State) unread(call *Call) []string {
	rules := s.rules()
	if call.Shown != nil || call.Decision != nil && call.Decision.By == event.ByGrant {
		return rules.Deny
	}
	return slices.Concat(rules.Deny, rules.Ask, s.managed().Ask)
}

// sealedTools are the tools that need no permission in a sealed session.
var sealedTools = []string{"bash", "exec", "write_bash"}

// rules returns the rules of the configuration and those that clients have added. What
// people have approved is not among them: see grants.
func (s *State) rules() event.PermissionRules {
	all := s.Setup.Config.Permissions
	all.Allow, all.Deny = slices.Clip(all.Allow), slices.Clip(all.Deny)
	for _, r := range slices.Concat(s.Permission.Rules.Allow, s.Permission.Rules.FromThere) {
		if r.Grant == nil && !isTool(r) && !s.madeFromStar(r) {
			all.Allow = append(all.Allow, RuleText(r))
		}
	}
	for _, r := range s.Permission.Rules.Deny {
		all.Deny = append(all.Deny, RuleText(r))
	}
	all.Deny = append(all.Deny, s.managed().Deny...)
	if s.Setup.Config.Sealed { // its commands reach nothing that a person would be asked about
		all.Allow = append(all.Allow, sealedTools...)
	}
	if s.Permission.Rules.AllowReads {
		all.Allow = append(all.Allow, approval.Read)
	}
	if s.Permission.Rules.AnyURL {
		all.Allow = append(all.Allow, "url")
	}
	for _, u := range s.Permission.Rules.URLs {
		all.Allow = append(all.Allow, "url("+u+"*)")
	}
	return all
}

// Denials returns the rules that deny: those of the configuration and those that clients
// have added.
func (s *State) Denials() []string { return s.rules().Deny }

// isTool reports whether a rule is about a tool of a client by its name. No text is made
// of such a rule, because a client may call its tool bash(*).
func isTool(r event.Rule) bool {
	return strings.EqualFold(r.Kind, approval.CustomTool) && r.Argument != nil && *r.Argument != ""
}

// madeFromStar reports whether a rule for a place allows every command because somebody
// once approved a command with the name *, which older versions stored as a pattern.
func (s *State) madeFromStar(r event.Rule) bool {
	return RuleText(r) == approval.Shell+"(*)" && slices.ContainsFunc(s.Permission.Rules.FromThere, r.Equal)
}

// grants returns what people have approved beyond single calls: for the rest of the
// session, for the place where it works, and for always.
func (s *State) grants() []event.Grant {
	list := append(Narrow(s.Permission.Grants), s.MCP.samplers...)
	for _, r := range slices.Concat(s.Permission.Rules.Allow, s.Permission.Rules.FromThere) {
		switch {
		case r.Grant != nil:
			list = append(list, *r.Grant)
		case isTool(r):
			list = append(list, event.Grant{Kind: approval.CustomTool, Subject: *r.Argument})
		}
	}
	return list
}

// Narrow returns what is left of grants if some are of an older version. Those said the
// name of a command, and covered everything that begins with it: that holds only for
// names with which no command can run other code. A grant for all requests of a kind
// covers nothing any more.
func Narrow(grants []event.Grant) []event.Grant {
	var list []event.Grant
	for _, g := range grants {
		if g.Kind == approval.Shell && g.Subject != "" && !strings.HasPrefix(g.Subject, approval.InputTo) {
			list = append(list, prefixGrants([]string{g.Subject})...)
			continue
		}
		list = append(list, g)
	}
	return list
}

// prefixGrants returns grants for names of commands, such as "git status". Names of
// programs that can run other code are left out.
func prefixGrants(names []string) []event.Grant {
	var list []event.Grant
	for _, name := range names {
		if words := strings.Fields(name); approval.SafePrefix(words) {
			list = append(list, event.Grant{Kind: approval.Shell, Prefix: words})
		}
	}
	return list
}

// RuleText returns a client's rule in the syntax of the configuration. Of a rule that was
// made of an approval, it is only for people.
func RuleText(r event.Rule) string {
	kind := strings.ToLower(r.Kind)
	if kind == "commands" {
		kind = approval.Shell
	}
	switch {
	case r.Grant != nil:
		return approval.GrantText(*r.Grant)
	case r.Argument == nil || *r.Argument == "":
		return kind
	case kind == approval.CustomTool:
		return *r.Argument
	case kind == approval.Shell && !strings.Contains(*r.Argument, "*"):
		return kind + "(" + *r.Argument + " *)"
	}
	return kind + "(" + *r.Argument + ")"
}

// GrantRule returns the rule that stores a grant for longer than a session.
func GrantRule(g event.Grant) event.Rule {
	text := approval.GrantSubject(g)
	return event.Rule{Kind: g.Kind, Argument: &text, Grant: &g}
}

// A Decision answers a permission question.
type Decision struct {
	Kind     string          `json:"kind"`
	Feedback string          `json:"feedback,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Approval json.RawMessage `json:"approval,omitempty"`
	// Offer is the id of the offer of the question that is accepted. If it is empty, what
	// the approval says is read narrowly.
	Offer string `json:"abideOffer,omitempty"`
	// Standing means that the approval is stored outside of the session.
	Standing bool `json:"-"`
	// Location is the place that an ApproveForLocation is about.
	Location string `json:"-"`
}

// The kinds of a Decision.
const (
	ApproveOnce        = "approve-once"
	ApproveForSession  = "approve-for-session"
	ApproveForLocation = "approve-for-location"
	ApprovePermanently = "approve-permanently"
	Reject             = "reject"
	UserNotAvailable   = "user-not-available"
)

// permission returns what is to be recorded when a person has decided.
func (a Answer) permission(s *State, c *Call) ([]event.Payload, error) {
	done := event.PermissionDoneData{RequestID: a.RequestID, ToolCallID: c.Request.ToolCallID, Answer: a.digest()}
	d := a.Permission
	if c.Reviewing {
		return a.review(done)
	}
	kind := d.Kind
	if len(c.Grants) == 0 && d.wide() { // the request can only be allowed once
		kind = ApproveOnce
	}
	switch kind {
	case ApproveOnce:
		done.Result.Kind = event.Approved
		return []event.Payload{done}, nil
	case ApprovePermanently:
		return d.approveWidely(done, c, event.Approved)
	case ApproveForSession:
		return d.approveWidely(done, c, event.ApprovedForSession)
	case ApproveForLocation:
		done.Result.LocationKey = cmp.Or(d.Location, s.Setup.Config.WorkingDirectory, ".")
		return d.approveWidely(done, c, event.ApprovedForLocation)
	case Reject:
		done.Result = event.PermissionResult{Kind: event.DeniedByUser, Feedback: d.Feedback}
		if d.Feedback != "" {
			return []event.Payload{done, refused(s, c, event.CodeDenied, textRejected+" User feedback: "+d.Feedback)}, nil
		}
		return []event.Payload{done, refused(s, c, event.CodeRejected, textRejected)}, nil
	case UserNotAvailable:
		done.Result.Kind = event.DeniedNobody
		return []event.Payload{done, refused(s, c, event.CodeDenied, textNobody)}, nil
	}
	return nil, d.unknown()
}

// wide reports whether the decision is a yes that covers later calls, too.
func (d *Decision) wide() bool {
	return d.Kind == ApproveForSession || d.Kind == ApproveForLocation || d.Kind == ApprovePermanently
}

func (d *Decision) unknown() error {
	return fmt.Errorf("result.kind: %q is not a decision; use %s, %s, %s, %s, %s or %s",
		d.Kind, ApproveOnce, ApproveForSession, ApproveForLocation, ApprovePermanently, Reject, UserNotAvailable)
}

// approveWidely returns the record of a yes that covers later calls, too: for the
// rest of the session, unless the approval is stored outside of it. Typed clients
// cannot read such a record without what it covers, so that this is filled in if
// the answer does not say it.
func (d *Decision) approveWidely(done event.PermissionDoneData, c *Call, kind string) ([]event.Payload, error) {
	granted, err := d.Grants(c.Grants, c.Offers)
	if err != nil {
		return nil, err
	}
	done.Result.Kind, done.Result.Approval = kind, coverage(d.Approval, c, granted)
	if !d.Standing {
		done.Grants = granted
	}
	return []event.Payload{done}, nil
}

// coverage returns what an approval covers in the form of the protocol: what the
// answer says, or else what is granted.
func coverage(raw json.RawMessage, c *Call, granted []event.Grant) json.RawMessage {
	var said approval.Coverage
	if len(raw) > 0 && json.Unmarshal(raw, &said) == nil && said.Whole() {
		return raw
	}
	var shown struct{ Kind string }
	if len(granted) == 0 && json.Unmarshal(c.Shown, &shown) == nil && shown.Kind == approval.Shell {
		granted = []event.Grant{{Kind: shown.Kind}}
	}
	text, _ := json.Marshal(said.Completed(granted, c.Request.Name)) // texts can always be encoded
	return text
}

// Grants returns what an approval allows beyond the call, given what the question says
// that an approval for the session covers, and its offers. What a client says is read
// narrowly: the command, file or tool that was shown, and names of commands with which
// no command can run other code.
func (d *Decision) Grants(shown []event.Grant, offers []event.Offer) ([]event.Grant, error) {
	if d.Offer != "" {
		i := slices.IndexFunc(offers, func(o event.Offer) bool { return o.ID == d.Offer })
		if i < 0 {
			return nil, fmt.Errorf("result.abideOffer: the question has no offer %q", d.Offer)
		}
		return offers[i].Grants, nil
	}
	var a approval.Coverage
	if len(d.Approval) == 0 || json.Unmarshal(d.Approval, &a) != nil {
		return shown, nil
	}
	switch a.Kind {
	case "commands":
		list := slices.Clone(shown)
		if a.Commands != nil {
			list = append(list, prefixGrants(*a.Commands)...)
		}
		return list, nil
	case approval.MCP:
		if wide, ok := shownServer(shown, a); ok {
			return wide, nil
		}
	case approval.CustomTool:
		if a.ToolName != "" {
			return []event.Grant{{Kind: approval.CustomTool, Subject: a.ToolName}}, nil
		}
	case approval.Read, approval.Write:
		for _, o := range offers {
			if o.ID == event.OfferFolder {
				return o.Grants, nil
			}
		}
	}
	return shown, nil
}

// shownServer returns the grant for all tools of the MCP server that was shown, if an
// approval names that server and no tool.
func shownServer(shown []event.Grant, a approval.Coverage) ([]event.Grant, bool) {
	if len(shown) == 0 || a.ServerName == "" || a.ToolName != "" {
		return nil, false
	}
	if server, _, _ := strings.Cut(shown[0].Subject, "/"); server != a.ServerName {
		return nil, false
	}
	return []event.Grant{{Kind: approval.MCP, Subject: a.ServerName}}, true
}
