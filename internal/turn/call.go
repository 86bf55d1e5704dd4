package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/transcript"
)

// The texts that the model reads of calls that were not made.
const (
	textNobody   = "Permission denied and could not request permission from user"
	textRejected = "The user rejected this tool call."
	textByRules  = "Permission denied by the rules of this session."
	textByHook   = "Denied by preToolUse hook: "
	textUnknown  = "This call was begun when the runtime stopped, and its outcome is unknown: it may have happened, in part or in full. Check before you repeat it."
)

// TextUnknown is the result of a call that an earlier engine has begun, if nobody knows what
// became of it.
const TextUnknown = textUnknown

// Judge finds out whether an intended call may be made, and returns what is to
// be recorded: a failure, an open question, or that the call begins.
func (c Catalog) Judge(s *State, call *Call) []event.Payload {
	if record := c.Reject(s, call); record != nil {
		return record
	}
	return c.JudgeSeen(s, call, c.See(s, call))
}

// A Sight is what a look at a call has found: its permission request, or the reason why it
// cannot be made.
type Sight struct {
	Ask *approval.Request
	Err error
}

// See returns what is known of a call for which nobody has to look at files or processes.
func (c Catalog) See(s *State, call *Call) Sight {
	ask, err := c.permission(s, call)
	return Sight{ask, err}
}

// Looks reports whether somebody has to look at files or processes to judge a call, and
// returns the tool and the call to look at.
func (c Catalog) Looks(s *State, call *Call) (tool.Tool, tool.Call, bool) {
	if _, external := s.external(call.Request.Name); external {
		return nil, tool.Call{}, false
	}
	t, made := c.Tool(s, call)
	return t, made, t != nil && t.Spec().Looks
}

// Look looks at what a call would do. It needs no state, and can take long. What it returns
// after ctx has ended is not used.
func Look(ctx context.Context, t tool.Tool, call tool.Call) (found Sight) {
	defer func() {
		if p := recover(); p != nil {
			found = Sight{Err: fmt.Errorf("the tool %s broke: %v", t.Spec().Name, p)}
		}
	}()
	ask, err := t.Permission(ctx, call)
	return Sight{ask, err}
}

// Reject returns what is to be recorded of a call that cannot be made, whatever it would
// do; nil for other calls.
func (c Catalog) Reject(s *State, call *Call) []event.Payload {
	r := call.Request
	if call.Hook.Verdict.Decision == HookDeny {
		return []event.Payload{refused(s, call, event.CodeDenied, textByHook+cmp.Or(call.Hook.Verdict.Reason, "No reason provided"))}
	}
	if r.Malformed != "" {
		message, text := malformedText(r)
		return []event.Payload{failed(s, call, message, text)}
	}
	if ok, names := c.offers(s, r.Name); !ok {
		if s.MCPTool(r.Name) != nil && slices.Contains(names, searchMCP) {
			text := fmt.Sprintf("Tool '%s' cannot be called before %s has found it.", r.Name, searchMCP)
			return []event.Payload{failed(s, call, text, text)}
		}
		first := fmt.Sprintf("Tool '%s' does not exist.", r.Name)
		return []event.Payload{failed(s, call, first, first+" Available tools that can be called are "+strings.Join(names, ", ")+".")}
	}
	return nil
}

// JudgeSeen decides about a call that can be made, by what a look at it has found.
func (c Catalog) JudgeSeen(s *State, call *Call, found Sight) []event.Payload {
	r, ask, err := call.Request, found.Ask, found.Err
	if ask != nil {
		ask.Tool = r.Name
	}
	var refusal *tool.Refusal
	if errors.As(err, &refusal) {
		return []event.Payload{Complete(s, call, refusal.Result)}
	}
	if err != nil {
		return []event.Payload{failed(s, call, err.Error(), err.Error())}
	}
	if ask == nil {
		ask = withoutPermission(call)
		if call.Hook.Verdict.Decision != HookAsk && !s.isRuledOut(ask) {
			return c.begin(s, call, false, event.Decision{By: event.ByNothing})
		}
	}
	if record := s.blockedByPlan(call, ask); record != nil {
		return record
	}
	verdict := approval.Judge(s.ruleSet(), s.rules(), s.grants(), ask)
	switch {
	case verdict.Verdict == approval.Deny:
		record := refused(s, call, event.CodeDenied, deniedText(verdict))
		record.Error.ForModel = textByRules
		return []event.Payload{record}
	case call.Hook.Verdict.Decision == HookAsk, s.mustAsk(ask):
	case verdict.Verdict == approval.Allow:
		return c.begin(s, call, false, recorded(verdict, ask))
	case verdict.Verdict == approval.Grant:
		return c.begin(s, call, true, recorded(verdict, ask))
	case call.Hook.Verdict.Decision == HookAllow && !verdict.Again && call.Hook.Dir == s.Setup.Config.WorkingDirectory:
		return c.begin(s, call, true, event.Decision{By: event.ByHook, SearchPath: ask.More.SearchPath})
	}
	if !s.Setup.Declared.Permission {
		return []event.Payload{refused(s, call, event.CodeDenied, nobodyText(ask))}
	}
	return []event.Payload{event.PermissionAskedData{
		RequestID: event.NewID(), ToolCallID: r.ToolCallID,
		PermissionRequest: ask.Ask, PromptRequest: ask.Prompt,
		Grants: verdict.SessionGrants(ask), Abide: explained(call, verdict, ask),
	}}
}

// isRuledOut reports whether a rule denies, or asks about, a call that needs no permission.
func (s *State) isRuledOut(ask *approval.Request) bool {
	rules := s.rules()
	return judgeBy(event.PermissionRules{Deny: rules.Deny, Ask: slices.Concat(rules.Ask, s.managed().Ask)}, ask, true) != approval.Allow
}

// recorded returns a decision as it is stored with the call: with what it rests on, and
// with the command or the files that were judged, so that nothing else is done.
func recorded(d approval.Decision, ask *approval.Request) event.Decision {
	to := event.Decision{By: d.By, Rules: d.Rules, Grants: d.Grants, SearchPath: ask.More.SearchPath}
	if d.By != event.ByRule && d.By != event.ByGrant {
		return to
	}
	if d.Judged != nil {
		to.Command = d.Judged.String()
	}
	if ask.Kind == approval.Read || ask.Kind == approval.Write {
		to.Paths = ask.Details
	}
	return to
}

// explained returns what a person needs to know to answer a permission request.
func explained(call *Call, d approval.Decision, ask *approval.Request) *event.PermissionMore {
	more := ask.More
	more.Tool, more.Offers = call.Request.Name, d.Offers(ask)
	if call.Hook.Verdict.Decision == HookAsk {
		more.Reasons = append(more.Reasons, cmp.Or(call.Hook.Verdict.Reason, "a hook wants a person to be asked"))
	}
	if d.Reason != "" {
		more.Reasons = append(more.Reasons, d.Reason)
	}
	switch {
	case len(more.Reasons) > 0:
	case ask.Kind == approval.Read, ask.Kind == approval.Write:
		more.Reasons = []string{"it is outside of what the session may " + ask.Kind + " unasked"}
	default:
		more.Reasons = []string{"no rule or grant allows it"}
	}
	if ask.Omitted != "" {
		more.Reasons = append(more.Reasons, "it is too large to be shown whole: "+ask.Omitted)
	}
	return &more
}

// deniedText says to people what denies a call. The model reads no rules.
func deniedText(d approval.Decision) string {
	if len(d.Rules) == 0 {
		return "Permission denied: " + d.Reason + "."
	}
	return "Permission denied by the rule " + strings.Join(d.Rules, ", ") + "."
}

// nobodyText returns what the model reads if nobody can be asked.
func nobodyText(ask *approval.Request) string {
	if ask.Protected == "" {
		return textNobody
	}
	return textNobody + ": the file is protected, because " + ask.Protected + "."
}

// malformedText returns what is wrong with the arguments, for people and for the model.
func malformedText(r event.ToolRequest) (message, text string) {
	var value any
	if err := event.CheckDepth([]byte(r.Malformed)); err != nil {
		return "The arguments are nested too deeply", fmt.Sprintf("The arguments for the tool call '%s' cannot be used: %v. The arguments have been cleared. Make the call again with flatter ones.", r.Name, err)
	}
	err := json.Unmarshal([]byte(r.Malformed), &value)
	if err != nil {
		return "The arguments were not valid JSON", fmt.Sprintf("The arguments for the tool call '%s' were not valid JSON. The arguments have been cleared. Arguments: %s. JSON parse error: %v", r.Name, r.Malformed, err)
	}
	kind := "null"
	switch value.(type) {
	case []any:
		kind = "array"
	case string:
		kind = "string"
	case float64:
		kind = "number"
	case bool:
		kind = "boolean"
	}
	message = "Expected JSON object but got " + kind
	return message, "Invalid input: " + message
}

// permission returns the permission request of a call, or nil if the call needs none.
func (c Catalog) permission(s *State, call *Call) (*approval.Request, error) {
	if x, ok := s.external(call.Request.Name); ok {
		if x.SkipPermission && s.Setup.Config.Managed == nil {
			return nil, nil
		}
		ask, err := customTool(x, call.Request)
		if err == nil {
			ask.Allowed = x.SkipPermission // restrictions of the client still apply
		}
		return ask, err
	}
	if t := c.find(s, call.Request.Name); t != nil {
		return t.Permission(context.Background(), c.toolCall(s, call)) // a call of a tool with Spec.Looks does not come here, so that nothing is waited for
	}
	return nil, nil
}

// customTool returns the permission request for a call of a client's tool.
func customTool(x event.ExternalTool, r event.ToolRequest) (*approval.Request, error) {
	ask, err := json.Marshal(struct {
		Kind        string          `json:"kind"`
		ToolCallID  string          `json:"toolCallId"`
		ToolName    string          `json:"toolName"`
		Description string          `json:"toolDescription"`
		Args        json.RawMessage `json:"args"`
	}{approval.CustomTool, r.ToolCallID, x.Name, x.Description, r.Arguments})
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", x.Name, err)
	}
	return &approval.Request{Kind: approval.CustomTool, Subjects: []string{x.Name}, Ask: ask, Prompt: ask}, nil
}

// Begin returns what is to be recorded before a call is made that a person has
// permitted.
func (c Catalog) Begin(s *State, call *Call) []event.Payload {
	return c.begin(s, call, true, event.Decision{By: event.ByAnswer, RequestID: call.Approved, SearchPath: call.searchPath})
}

func (c Catalog) begin(s *State, call *Call, granted bool, decision event.Decision) []event.Payload {
	r := call.Request
	if _, ok := s.external(r.Name); ok {
		return []event.Payload{event.ExternalAskedData{
			RequestID: event.NewID(), SessionID: s.ID, ToolCallID: r.ToolCallID, ToolName: r.Name,
			Arguments: r.Arguments, WorkingDirectory: cmp.Or(call.Dir, s.Setup.Config.WorkingDirectory), Decision: &decision,
		}}
	}
	if t := c.find(s, r.Name); t != nil {
		if t.Spec().Instant {
			return c.runInstantly(s, call, t)
		}
		return []event.Payload{event.ToolBegunData{
			ToolCallID: r.ToolCallID, Key: event.NewID(), Attempt: 1, Granted: granted, Detaches: t.Spec().Detaches,
			Decision: &decision, Replay: t.Spec().Replay.String(),
		}}
	}
	// The tool was removed between the question and the answer.
	first := fmt.Sprintf("Tool '%s' does not exist.", r.Name)
	return []event.Payload{failed(s, call, first, first)}
}

// Recover returns what is to be recorded of a call that a process has begun which no
// longer runs: that the call begins again, or that its outcome is unknown.
func (c Catalog) Recover(s *State, call *Call) []event.Payload {
	t := c.find(s, call.Request.Name)
	if t == nil || call.once || t.Spec().Replay == tool.Once { // an older version may have recorded another class
		return []event.Payload{refused(s, call, event.CodeInterrupted, textUnknown)}
	}
	return []event.Payload{event.ToolBegunData{
		ToolCallID: call.Request.ToolCallID, Key: call.Key, Attempt: call.Attempt + 1, Granted: call.Granted, Detaches: call.Detaches,
		Decision: call.Decision, Replay: t.Spec().Replay.String(),
	}}
}

// Tool returns the tool of a call, and the call in the form that the tool gets.
func (c Catalog) Tool(s *State, call *Call) (tool.Tool, tool.Call) {
	made := c.toolCall(s, call)
	made.State = nil // the state changes while the tool runs
	return c.find(s, call.Request.Name), made
}

func (c Catalog) toolCall(s *State, call *Call) tool.Call {
	return tool.Call{
		Session: s.ID, ID: call.Request.ToolCallID, Key: call.Key, Attempt: call.Attempt, Begun: call.Begun,
		Arguments: call.Request.Arguments, Dir: cmp.Or(call.Dir, s.Setup.Config.WorkingDirectory),
		Sealed: s.Setup.Config.Sealed, Scope: s.scope(), Granted: call.Granted, Decision: call.Decision, Asked: call.Shown, Review: call.Review, State: s, Unread: s.unread(call),
	}
}

// Finish returns what is to be recorded when a tool of the runtime has made a call.
func Finish(s *State, call *Call, r tool.Result) []event.Payload {
	if r.Open {
		return r.Record
	}
	if asked := askReview(s, call, r); asked != nil {
		return asked
	}
	record := append(slices.Clone(r.Record), Complete(s, call, r))
	if r.Task {
		record = append(record, event.TaskStartedData{Key: call.Key, ToolCallID: call.Request.ToolCallID})
	}
	return append(record, r.Then...)
}

// Complete returns the terminal record of a call that a tool of the runtime made.
func Complete(s *State, call *Call, r tool.Result) event.ToolCompleteData {
	d := complete(s, call)
	d.Digest = r.Digest
	if r.Failed {
		d.Error = &event.ToolError{Message: r.Text, Code: r.Code}
		if r.Message != "" && r.Message != r.Text {
			d.Error.Message, d.Error.ForModel = r.Message, r.Text
		}
		return d
	}
	d.Success = true
	d.Result = &event.ToolResult{Content: r.Text, DetailedContent: r.Detailed, Contents: r.Contents, Binary: r.Binary}
	return d
}

// complete returns a terminal record without its outcome.
func complete(s *State, call *Call) event.ToolCompleteData {
	d := event.ToolCompleteData{ToolCallID: call.Request.ToolCallID, Model: s.Setup.Model}
	if s.Turn != nil {
		d.InteractionID, d.TurnID = s.Turn.InteractionID, strconv.Itoa(s.Turn.Step)
	}
	return d
}

// failed returns the terminal record of a call that could not be made.
func failed(s *State, call *Call, message, forModel string) event.ToolCompleteData {
	d := complete(s, call)
	d.Error = &event.ToolError{Message: message, Code: event.CodeFailure}
	if forModel != message {
		d.Error.ForModel = forModel
	}
	return d
}

// refused returns the terminal record of a call that was not made, or may not have
// been made.
func refused(s *State, call *Call, code, text string) event.ToolCompleteData {
	d := complete(s, call)
	d.Error = &event.ToolError{Message: text, Code: code}
	return d
}

// Interrupt returns what is to be recorded to end the unfinished calls of the turn
// that the filter accepts, and to close their questions with the given reason. What
// the calls have begun and can go on without them goes on as a task.
func Interrupt(s *State, reason string, filter func(*Call) bool) []event.Payload {
	return interrupt(s, reason, filter, false)
}

// interrupt is Interrupt. With stop, the tasks are to be ended.
func interrupt(s *State, reason string, filter func(*Call) bool, stop bool) []event.Payload {
	if s.Turn == nil {
		return nil
	}
	record := CloseHooks(s, reason, func(h event.HookStartData) bool {
		return slices.ContainsFunc(h.Calls, func(id string) bool { c := s.call(id); return c != nil && filter(c) })
	})
	for _, c := range s.Turn.Calls {
		if c.Stage == Finished || !filter(c) {
			continue
		}
		if c.Stage == Held { // the call was made, and only its hook is open
			record = append(record, *c.Hook.Outcome)
			continue
		}
		record = append(record, closeQuestion(c, reason)...)
		if (c.Stage == Begun || c.Reviewing) && c.Detaches {
			record = append(record, event.TaskStartedData{Key: c.Key, ToolCallID: c.Request.ToolCallID, Stop: stop})
		}
		record = append(record, refused(s, c, event.CodeInterrupted, transcript.Interrupted))
	}
	return record
}

// closeQuestion returns the record that closes the open question of a call without an
// answer.
func closeQuestion(c *Call, reason string) []event.Payload {
	switch c.Stage {
	case WaitingPermission:
		return []event.Payload{event.PermissionDoneData{
			RequestID: c.Question, ToolCallID: c.Request.ToolCallID,
			Result: event.PermissionResult{Kind: event.Cancelled, Reason: reason},
		}}
	case WaitingExternal:
		return []event.Payload{event.ExternalDoneData{RequestID: c.Question}}
	case WaitingUser:
		return []event.Payload{event.UserInputDoneData{RequestID: c.Question}}
	case WaitingPlan:
		return []event.Payload{event.ExitPlanDoneData{RequestID: c.Question}}
	}
	return nil
}

// Decline returns what is to be recorded to end the open permission questions and
// external calls of the turn. It ends the turn if it has no other unfinished calls.
// Questions to a person, running calls and model requests are left alone.
func Decline(s *State) []event.Payload {
	declined := func(c *Call) bool { return c.Stage == WaitingPermission || c.Stage == WaitingExternal }
	record := Interrupt(s, "The session was resumed without its pending work", declined)
	if len(record) == 0 {
		return nil
	}
	for _, c := range s.Turn.Calls {
		if c.Stage != Finished && !declined(c) {
			return record
		}
	}
	return append(record, event.AssistantTurnEndData{TurnID: strconv.Itoa(s.Turn.Step)}, event.TurnEndedData{Reason: "declined"})
}
