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
}

func (p *Permission) fold(body event.Payload) {
	switch d := body.(type) {
	case event.PermissionDoneData:
		p.Grants = append(p.Grants, d.Grants...)
	case event.GrantsResetData:
		p.Grants = nil
	case event.ClientRules:
		p.Rules = d
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

// rules returns the rules of the configuration and those that clients have added.
func (s *State) rules() event.PermissionRules {
	all := s.Setup.Config.Permissions
	all.Allow, all.Deny = slices.Clip(all.Allow), slices.Clip(all.Deny)
	for _, r := range slices.Concat(s.Permission.Rules.Allow, s.Permission.Rules.FromThere) {
		all.Allow = append(all.Allow, RuleText(r))
	}
	for _, r := range s.Permission.Rules.Deny {
		all.Deny = append(all.Deny, RuleText(r))
	}
	all.Deny = append(all.Deny, s.managed().Deny...)
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

// RuleText returns a client's rule in the syntax of the configuration.
func RuleText(r event.Rule) string {
	kind := strings.ToLower(r.Kind)
	if kind == "commands" {
		kind = approval.Shell
	}
	switch {
	case r.Argument == nil || *r.Argument == "":
		return kind
	case kind == approval.CustomTool:
		return *r.Argument
	case kind == approval.Shell && !strings.Contains(*r.Argument, "*"):
		return kind + "(" + *r.Argument + " *)"
	}
	return kind + "(" + *r.Argument + ")"
}

// A Decision answers a permission question.
type Decision struct {
	Kind     string          `json:"kind"`
	Feedback string          `json:"feedback,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Approval json.RawMessage `json:"approval,omitempty"`
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
	if len(c.Grants) == 0 && d.wide() { // what was asked can only be allowed once
		kind = ApproveOnce
	}
	switch kind {
	case ApproveOnce:
		done.Result.Kind = event.Approved
		return []event.Payload{done}, nil
	case ApprovePermanently:
		return []event.Payload{d.approveWidely(done, c, event.Approved)}, nil
	case ApproveForSession:
		return []event.Payload{d.approveWidely(done, c, event.ApprovedForSession)}, nil
	case ApproveForLocation:
		done = d.approveWidely(done, c, event.ApprovedForLocation)
		done.Result.LocationKey = cmp.Or(d.Location, s.Setup.Config.WorkingDirectory, ".")
		return []event.Payload{done}, nil
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
func (d *Decision) approveWidely(done event.PermissionDoneData, c *Call, kind string) event.PermissionDoneData {
	done.Result = event.PermissionResult{Kind: kind, Approval: coverage(d.Approval, c)}
	if !d.Standing {
		done.Grants = grants(d.Approval, c)
	}
	return done
}

// coverage returns what an approval covers in the form of the protocol: what the
// answer says, or else what the question was about.
func coverage(raw json.RawMessage, c *Call) json.RawMessage {
	var said approval.Coverage
	if len(raw) > 0 && json.Unmarshal(raw, &said) == nil && said.Whole() {
		return raw
	}
	text, _ := json.Marshal(said.Completed(c.Grants, c.Request.Name)) // texts can always be encoded
	return text
}

// grants returns what an approval allows for the rest of the session. An approval
// without details allows what the question was about.
func grants(raw json.RawMessage, c *Call) []event.Grant {
	var a struct {
		Kind     string   `json:"kind"`
		Commands []string `json:"commandIdentifiers"`
		ToolName string   `json:"toolName"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &a) != nil || a.Kind == "" {
		return c.Grants
	}
	switch a.Kind {
	case "commands":
		list := make([]event.Grant, len(a.Commands))
		for i, name := range a.Commands {
			list[i] = event.Grant{Kind: approval.Shell, Subject: name}
		}
		return list
	case approval.CustomTool:
		if a.ToolName == "" {
			a.ToolName = c.Request.Name
		}
		return []event.Grant{{Kind: approval.CustomTool, Subject: a.ToolName}}
	}
	return []event.Grant{{Kind: a.Kind}}
}
