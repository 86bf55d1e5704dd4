package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// An Exchange is what somebody asked the clients of a session outside of the
// model's calls: to fill in a form, to carry out a command. It is open until it
// is answered, whoever is there.
type Exchange struct {
	RequestID string
	Asked     event.Event
	Command   string // of a command: its text
	InputID   string // of a queued command: the input that it is
}

// Form reports whether it is a form for a person.
func (x Exchange) Form() bool { return x.Asked.Type == event.ElicitationAsked }

// Exchanges is what was asked of clients and how it ended.
type Exchanges struct {
	Open []Exchange
	done []settled // the last ones that ended, for those who ask again

	redelivered map[string]int // how often open questions were put to clients again, by request id
}

type settled struct {
	id    string
	event event.Event
}

// Find returns what is open under an id, or nil.
func (x *Exchanges) Find(requestID string) *Exchange {
	for i := range x.Open {
		if x.Open[i].RequestID == requestID {
			return &x.Open[i]
		}
	}
	return nil
}

// Queued returns the command from the queue that somebody works on, or nil.
func (x *Exchanges) Queued() *Exchange {
	for i := range x.Open {
		if x.Open[i].InputID != "" {
			return &x.Open[i]
		}
	}
	return nil
}

// Settled returns how an exchange ended, if that was lately.
func (x *Exchanges) Settled(requestID string) (event.Event, bool) {
	for _, d := range x.done {
		if d.id == requestID {
			return d.event, true
		}
	}
	return event.Event{}, false
}

// Forms returns the open forms.
func (x *Exchanges) Forms() []Exchange {
	var forms []Exchange
	for _, o := range x.Open {
		if o.Form() {
			forms = append(forms, o)
		}
	}
	return forms
}

func (x *Exchanges) ask(o Exchange) { x.Open = append(slices.Clip(x.Open), o) }

func (x *Exchanges) settle(requestID string, e event.Event) *Exchange {
	o := x.Find(requestID)
	if o == nil {
		return nil
	}
	was := *o
	x.Open = slices.DeleteFunc(slices.Clone(x.Open), func(o Exchange) bool { return o.RequestID == requestID })
	if x.done = append(slices.Clip(x.done), settled{requestID, e}); len(x.done) > maxRecent {
		x.done = slices.Clone(x.done[1:])
	}
	return &was
}

// foldExchange is the meaning of the events of forms, commands and the queue.
func (s *State) foldExchange(e event.Event) error {
	switch e.Type {
	case event.ElicitationAsked:
		return with(e, func(d event.ElicitationAskedData) {
			s.Exchanges.ask(Exchange{RequestID: d.RequestID, Asked: e})
		})
	case event.ElicitationDone:
		return with(e, func(d event.ElicitationDoneData) { s.Exchanges.settle(d.RequestID, e) })
	case event.CommandExecute:
		return with(e, func(d event.CommandExecuteData) {
			s.commandTaken(d.InputID)
			s.Exchanges.ask(Exchange{RequestID: d.RequestID, Asked: e, Command: d.Command, InputID: d.InputID})
		})
	case event.CommandQueued:
		return with(e, func(d event.CommandQueuedData) {
			s.commandTaken(d.InputID)
			s.Exchanges.ask(Exchange{RequestID: d.RequestID, Asked: e, Command: d.Command, InputID: d.InputID})
		})
	case event.CommandDone:
		return with(e, func(d event.CommandDoneData) {
			s.commandTaken(d.InputID)
			s.Exchanges.settle(d.RequestID, e)
			s.Queue.Halted = d.Stop && len(s.Queue.Inputs) > 0
		})
	case event.QueueChanged:
		return with(e, s.queueChanged)
	case event.SessionSuspended:
		return with(e, func(d event.SessionSuspendedData) { s.Life.Suspended = d.Suspended })
	case event.PermissionsConfigured:
		return with(e, func(d event.ClientRules) { s.Permission.Rules = d })
	case event.GrantsReset:
		s.Permission.Grants = nil
	case event.SkillsFound:
		s.Setup.Offered++
		return with(e, func(d event.SkillsFoundData) { s.Skills.Found = d.Skills })
	case event.SkillInvoked:
		return with(e, s.skillInvoked)
	case event.QuestionsRedelivered:
		return with(e, s.foldRedelivered)
	}
	return nil
}

// commandTaken takes a command out of the queue: something has happened.
func (s *State) commandTaken(inputID string) {
	if inputID != "" {
		s.unqueue(inputID)
		s.Life.Idle, s.Life.Aborted = false, false
	}
}

// queueChanged puts the queue in another order. What the order does not name is
// gone.
func (s *State) queueChanged(d event.QueueChangedData) {
	var queue []event.InputAcceptedData
	for _, id := range d.Order {
		i := slices.IndexFunc(s.Queue.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == id })
		if i < 0 {
			continue
		}
		in := s.Queue.Inputs[i]
		if d.Edited != nil && d.Edited.InputID == id {
			in.Prompt, in.DisplayPrompt = d.Edited.Prompt, d.Edited.DisplayPrompt
		}
		if d.Steer == id {
			in.Mode = event.ModeSteer
		}
		queue = append(queue, in)
	}
	s.Queue.Inputs = queue
	if d.Paused != nil {
		s.Queue.Paused = *d.Paused
	}
	s.Queue.Halted = s.Queue.Halted && len(queue) > 0
}

// held reports whether the queue is not to be worked on now.
func (s *State) held() bool { return s.Queue.Paused || s.Queue.Halted || s.Exchanges.Queued() != nil }

// A Filled form is what a person made of it.
type Filled struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// The actions of a Filled form.
const (
	Accept  = "accept"
	Dismiss = "decline"
	Cancel  = "cancel"
)

// FillIn returns what is to be recorded when a form was filled in. It reports
// false if no such form is open.
func (s *State) FillIn(requestID, key string, f Filled) ([]event.Payload, bool, error) {
	o := s.Exchanges.Find(requestID)
	if o == nil || !o.Form() {
		return nil, false, nil
	}
	switch f.Action {
	case Accept, Dismiss, Cancel:
	default:
		return nil, false, fmt.Errorf("result.action: %q is unknown; use %s, %s or %s", f.Action, Accept, Dismiss, Cancel)
	}
	return []event.Payload{event.ElicitationDoneData{
		RequestID: requestID, Action: f.Action, Content: f.Content, Answer: digestOf(key, f),
	}}, true, nil
}

// A Carried command is what became of it.
type Carried struct {
	Error string `json:"error,omitempty"`
	Stop  bool   `json:"stop,omitempty"`
}

// CarryOut returns what is to be recorded when a client has carried out a command
// of the given kind. It reports false if no such command is open.
func (s *State) CarryOut(kind event.Type, requestID, key string, c Carried) ([]event.Payload, bool) {
	o := s.Exchanges.Find(requestID)
	if o == nil || o.Asked.Type != kind {
		return nil, false
	}
	return []event.Payload{event.CommandDoneData{RequestID: requestID, Error: c.Error, Stop: c.Stop, Answer: digestOf(key, c)}}, true
}

// DropCommand returns what is to be recorded if nobody is to carry out the
// command from the queue any more.
func (s *State) DropCommand(reason string) []event.Payload {
	if o := s.Exchanges.Queued(); o != nil {
		return []event.Payload{event.CommandDoneData{RequestID: o.RequestID, Error: reason}}
	}
	return nil
}

// Suspend returns what is to be recorded when a session is to rest in the middle
// of what it does: open permissions are cancelled, all else waits.
func Suspend(s *State) []event.Payload {
	asks := func(c *Call) bool { return c.Stage == WaitingPermission }
	return append(Interrupt(s, "Session suspended", asks), event.SessionSuspendedData{Suspended: true})
}

func digestOf(key string, answer any) *event.Answered {
	b, err := json.Marshal(answer)
	if err != nil { // strings and raw JSON that was decoded before
		panic(err)
	}
	sum := sha256.Sum256(b)
	return &event.Answered{Digest: hex.EncodeToString(sum[:]), Key: key}
}

// ruleSet is how permissions are judged in this session.
func (s *State) ruleSet() string {
	if s.Permission.Rules.AllowAll {
		return approval.All
	}
	return s.Setup.Config.Approve
}

// AllowsAll reports whether nobody is asked for permission.
func (s *State) AllowsAll() bool { return s.ruleSet() == approval.All }

// PermissionMode is what the protocol calls it if nobody is asked, or if people
// are.
func PermissionMode(all bool) string {
	if all {
		return "allow-all"
	}
	return "manual"
}

// scope is what the session may use without asking, with the folders that
// clients have added if it may use any.
func (s *State) scope() event.ScopeRules {
	rules := scopeOf(s.Setup.Config)
	if len(rules.Allow) == 0 {
		return rules
	}
	rules.Allow = slices.Clip(rules.Allow)
	for _, dir := range s.Permission.Rules.Directories {
		rules.Allow = append(rules.Allow, event.ScopeRule{Target: dir, Permission: approval.Write})
	}
	return rules
}

// rules are all rules of the session: those it was given, and those that clients
// have added.
func (s *State) rules() event.PermissionRules {
	all := s.Setup.Config.Permissions
	all.Allow, all.Deny = slices.Clip(all.Allow), slices.Clip(all.Deny)
	for _, r := range slices.Concat(s.Permission.Rules.Allow, s.Permission.Rules.FromThere) {
		all.Allow = append(all.Allow, RuleText(r))
	}
	for _, r := range s.Permission.Rules.Deny {
		all.Deny = append(all.Deny, RuleText(r))
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

// RuleText is a client's rule in the words of ours.
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
