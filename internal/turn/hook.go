package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
)

// Hooks is the hooks that were asked and not answered yet, and what answered hooks
// have changed in queued inputs.
//
// A hook is a question to the clients that have a say in what happens. It is stored
// when it is asked (hook.start) and when it is answered (hook.end); the input, call
// or turn that it is about waits in between. A hook with a stored answer is never
// asked again. A hook that nobody answers changes nothing.
type Hooks struct {
	Open   []event.HookStartData
	Inputs map[string]HookedInput // inputs by their ids
}

// A HookedInput is what hooks have changed in a queued input.
type HookedInput struct {
	Text        string  // replaces the text of the input, if it is not empty
	Context     string  // a text that the model is told in addition
	Transformed *string // the message as the model reads it; nil if hooks were not asked about it
	stage       promptStage
}

// A promptStage says which hooks were asked about an input.
type promptStage int

// The stages of a HookedInput.
const (
	unasked      promptStage = iota // no hook was asked
	submitting                      // userPromptSubmitted is open
	submitted                       // userPromptSubmitted was answered
	transforming                    // userPromptTransformed is open
	transformed                     // userPromptTransformed was answered
)

// Words are a text that the model is told in a message of its own, and where it is from.
type Words struct{ Text, Source string }

// The sources of messages that come from hooks.
const (
	SourceSessionStart = transcript.SourceSessionStart
	SourceAgentStop    = "hook-agentStop"
)

// A Verdict is what preToolUse says of a call.
type Verdict struct {
	Decision string `json:"permissionDecision"` // one of Hook…, or empty
	Reason   string `json:"permissionDecisionReason"`
	Context  string `json:"additionalContext"`
}

// The decisions of a Verdict.
const (
	HookAllow = "allow" // no person is asked
	HookDeny  = "deny"
	HookAsk   = "ask" // a person is asked, even if the rules allow the call
)

// TurnHooks is what hooks say of a turn.
type TurnHooks struct {
	Words   []Words                 // messages to the model before its next request
	Kept    bool                    // a hook has made the turn go on when it was over
	Failure *event.SessionErrorData // the error that ends the turn, unless a hook has the request made again
	Retries int                     // number of requests that a hook had made again
}

// A CallHook is what hooks say of a call.
type CallHook struct {
	Verdict Verdict                 // decision of preToolUse
	Dir     string                  // working directory of the session when preToolUse was asked; its yes holds nowhere else
	Outcome *event.ToolCompleteData // the terminal record of the call, while a hook is asked about it
	Heard   bool                    // the hook about the outcome was answered
}

func (h *Hooks) fold(s *State, body event.Payload) {
	switch d := body.(type) {
	case event.HookStartData:
		h.start(s, d)
	case event.HookEndData:
		h.end(s, d)
	case event.UserMessageData:
		delete(h.Inputs, d.InputID)
		s.Turn.removeWords(d.Source)
	case event.SystemMessageData:
		if d.EpochID == "" && s.Turn != nil {
			s.Turn.removeWords(SourceSessionStart)
		}
	}
}

// removeWords removes the first words of a source: the model was told them.
func (t *Turn) removeWords(source string) { t.Hooks.Words = withoutWords(t.Hooks.Words, source) }

// dropTurn removes the hooks about a turn. The hooks about queued inputs stay.
func (h *Hooks) dropTurn() {
	h.Open = slices.DeleteFunc(slices.Clone(h.Open), func(o event.HookStartData) bool { return o.InputID == "" })
}

// find returns the index of an open hook, or -1.
func (h *Hooks) find(id string) int {
	return slices.IndexFunc(h.Open, func(o event.HookStartData) bool { return o.ID == id })
}

// open reports whether a hook of that kind is open.
func (h *Hooks) open(kind string) bool {
	return slices.ContainsFunc(h.Open, func(o event.HookStartData) bool { return o.Kind == kind })
}

// start takes in that a hook is asked. A hook about nothing that the state knows is
// not kept, because nothing would wait for its answer.
func (h *Hooks) start(s *State, d event.HookStartData) {
	if h.find(d.ID) < 0 && h.makeWait(s, d) {
		h.Open = append(slices.Clip(h.Open), d)
	}
}

// makeWait makes the input, call or turn that a hook is about wait for its answer. It
// reports false if there is none.
func (h *Hooks) makeWait(s *State, d event.HookStartData) bool {
	switch d.Kind {
	case event.HookPromptSubmitted, event.HookPromptTransformed:
		return s.Queue.find(d.InputID) >= 0 && h.makeInputWait(d)
	case event.HookAgentStop, event.HookSessionEnd:
		return s.Life.markAsked(d.Kind)
	}
	if s.Turn == nil {
		return false
	}
	switch d.Kind {
	case event.HookSessionStart:
		s.Life.clearEntry()
		return true
	case event.HookErrorOccurred:
		s.Turn.Hooks.Failure = d.Failure
		return d.Failure != nil
	}
	return s.Turn.makeCallsWait(d, s.Setup.Config.WorkingDirectory)
}

// makeInputWait makes a queued input wait for its hook.
func (h *Hooks) makeInputWait(d event.HookStartData) bool {
	p := h.Inputs[d.InputID]
	p.stage = submitting
	if d.Kind == event.HookPromptTransformed {
		var in struct {
			Transformed string `json:"transformedPrompt"`
		}
		_ = json.Unmarshal(d.Input, &in) // NewHook has written it
		p.stage, p.Transformed = transforming, &in.Transformed
	}
	if h.Inputs == nil {
		h.Inputs = make(map[string]HookedInput)
	}
	h.Inputs[d.InputID] = p
	return true
}

// makeCallsWait makes calls wait for their hook, which is asked in a working directory. It
// reports false if there are none.
func (t *Turn) makeCallsWait(d event.HookStartData, dir string) bool {
	found := false
	for _, id := range d.Calls {
		switch {
		case d.Kind == event.HookPreToolUse:
			if c := t.move(id, Checking); c != nil {
				c.Hook.Dir, found = dir, true
			}
		case d.Outcome != nil:
			if c := t.move(id, Held); c != nil {
				c.Hook.Outcome, c.Hook.Heard, found = d.Outcome, false, true
			}
		}
	}
	return found
}

// end takes in the answer to a hook.
func (h *Hooks) end(s *State, d event.HookEndData) {
	i := h.find(d.ID)
	if i < 0 {
		return
	}
	asked := h.Open[i]
	h.Open = slices.Delete(slices.Clone(h.Open), i, i+1)
	var said output
	_ = json.Unmarshal(d.Output, &said) // an output that cannot be read changes nothing
	switch asked.Kind {
	case event.HookPromptSubmitted, event.HookPromptTransformed:
		h.changeInput(asked, said)
	case event.HookAgentStop:
		s.continueTurn(said)
	}
	if s.Turn == nil {
		return
	}
	switch asked.Kind {
	case event.HookSessionStart:
		s.Turn.addWords(said.Context, SourceSessionStart)
	case event.HookErrorOccurred:
		s.Turn.retryRequest(said)
	default:
		s.Turn.changeCalls(asked, d, said)
	}
}

// An output has the fields of the outputs of all kinds of hooks.
type output struct {
	Context     string          `json:"additionalContext"`
	Prompt      string          `json:"modifiedPrompt"`
	Transformed *string         `json:"modifiedTransformedPrompt"`
	Result      json.RawMessage `json:"modifiedResult"`
	Decision    string          `json:"decision"`
	Reason      string          `json:"reason"`
	Handling    string          `json:"errorHandling"`
	Retries     int             `json:"retryCount"`
}

// changeInput applies the output of a hook to the input that it is about.
func (h *Hooks) changeInput(asked event.HookStartData, said output) {
	p, ok := h.Inputs[asked.InputID]
	if !ok {
		return // the input was delivered or removed meanwhile
	}
	if asked.Kind == event.HookPromptSubmitted {
		p.stage, p.Text, p.Context = submitted, said.Prompt, said.Context
	} else if p.stage = transformed; said.Transformed != nil {
		p.Transformed = said.Transformed
	}
	h.Inputs[asked.InputID] = p
}

// continueTurn makes the turn that has ended go on, if the output of agentStop says so.
func (s *State) continueTurn(said output) {
	if said.Decision != "block" || s.Life.Last == nil || s.Turn != nil {
		return
	}
	t := s.Life.Last.Turn
	t.nextStep()
	t.Hooks.Kept = true
	t.addWords(cmp.Or(said.Reason, "Go on."), SourceAgentStop)
	s.reopenTurn(t)
}

// addWords adds a text that the model is told before the next request.
func (t *Turn) addWords(text, source string) {
	if text != "" {
		t.Hooks.Words = append(slices.Clip(t.Hooks.Words), Words{text, source})
	}
}

// maxHookRetries is how many requests of a turn hooks can have made again.
const maxHookRetries = 5

// retryRequest has the failed request made again, if the output of errorOccurred says
// so.
func (t *Turn) retryRequest(said output) {
	if said.Handling == "retry" && t.Hooks.Retries < min(max(1, said.Retries), maxHookRetries) {
		t.Hooks.Retries++
		t.Hooks.Failure = nil
	}
}

// changeCalls applies the output of a hook to the calls that it is about.
func (t *Turn) changeCalls(h event.HookStartData, d event.HookEndData, said output) {
	for _, id := range h.Calls {
		if h.Kind == event.HookPreToolUse {
			if c := t.move(id, Cleared); c != nil && d.Success {
				c.setVerdict(d.Outputs[id])
			}
			continue
		}
		for _, c := range t.Calls {
			if c.Request.ToolCallID == id && c.Stage == Held {
				c.Hook.Heard = true
				c.changeOutcome(said)
			}
		}
	}
}

// setVerdict applies the output of preToolUse to a call. A yes in an output that cannot
// be read as a whole is none: it may be meant for other arguments.
func (c *Call) setVerdict(said json.RawMessage) {
	args := transcript.ModifiedArgs(said)
	if args == nil && asksForOtherArguments(said) || json.Unmarshal(said, &c.Hook.Verdict) != nil {
		_ = json.Unmarshal(said, &c.Hook.Verdict) // a no counts all the same
		if c.Hook.Verdict.Decision == HookAllow {
			c.Hook.Verdict = Verdict{}
		}
		return
	}
	if args != nil {
		c.replaceArguments(args)
	}
}

// asksForOtherArguments reports whether an output of preToolUse has arguments for the
// call, whatever their form.
func asksForOtherArguments(said json.RawMessage) bool {
	var has struct {
		Args any `json:"modifiedArgs"`
	}
	_ = json.Unmarshal(said, &has) // an output that cannot be read has none
	return has.Args != nil
}

// changeOutcome applies the output of postToolUse to the outcome of a call.
func (c *Call) changeOutcome(said output) {
	d := *c.Hook.Outcome
	if len(said.Result) > 0 && string(said.Result) != "null" {
		d = modified(d, said.Result)
	}
	d = withContext(d, said.Context)
	c.Hook.Outcome = &d
}

// modified returns an outcome with another result, which is a text or an object in
// the form of the protocol.
func modified(d event.ToolCompleteData, result json.RawMessage) event.ToolCompleteData {
	var r ExternalResult
	if json.Unmarshal(result, &r) != nil && json.Unmarshal(result, &r.Text) != nil {
		return d
	}
	d.Success, d.Result, d.Error = false, nil, nil
	return externalOutcome(d, r)
}

// withContext returns an outcome with a text added to what the model reads.
func withContext(d event.ToolCompleteData, text string) event.ToolCompleteData {
	if text == "" {
		return d
	}
	read := strings.TrimSpace(transcript.ResultText(d) + "\n\n" + text)
	switch {
	case d.Result != nil:
		r := *d.Result
		r.Content = read
		d.Result = &r
	case d.Error != nil:
		e := *d.Error
		e.ForModel = read
		d.Error = &e
	}
	return d
}

// HoldForHooks replaces the terminal records of calls by questions to the hooks
// about them. The terminal records are written when the hooks are answered. If hooks
// is false, nobody can be asked, and only the context that preToolUse gave is added.
func HoldForHooks(s *State, hooks bool, now time.Time, record []event.Payload) []event.Payload {
	for i, p := range record {
		d, ok := p.(event.ToolCompleteData)
		c := s.call(d.ToolCallID)
		if !ok || c == nil {
			continue
		}
		if c.Hook.Verdict.Context != "" || (hooks && asksAfter(d)) {
			record = slices.Clone(record)
			d = withContext(d, c.Hook.Verdict.Context)
			record[i] = d
		}
		if hooks && asksAfter(d) {
			record[i] = afterHook(s, c, d, now)
		}
	}
	return record
}

// asksAfter reports whether hooks are asked about an outcome. They are asked only
// about calls that were made, not about those that were refused or interrupted.
func asksAfter(d event.ToolCompleteData) bool {
	return d.Error == nil || d.Error.Code == event.CodeFailure || d.Error.Code == event.CodeTimeout
}

// afterHook returns the question about the outcome of a call.
func afterHook(s *State, c *Call, d event.ToolCompleteData, now time.Time) event.HookStartData {
	h := event.HookStartData{ID: event.NewID(), Kind: event.HookPostToolUse, Calls: []string{d.ToolCallID}, Outcome: &d}
	fields := callFields(c)
	if d.Error != nil {
		h.Kind = event.HookPostToolFailure
		fields["error"] = d.Error.Message
	} else {
		result := map[string]any{"resultType": "success", "textResultForLlm": d.Result.Content}
		if d.Result.DetailedContent != "" {
			result["sessionLog"] = d.Result.DetailedContent
		}
		fields["toolResult"] = result
	}
	h.Input = hookInput(s, now, fields)
	return h
}

// callFields returns the fields about a call in the input of a hook. The arguments
// are the text that the model wrote.
func callFields(c *Call) map[string]any {
	args := c.Request.Malformed
	if args == "" {
		args = string(c.Request.Arguments)
	}
	return map[string]any{"toolName": c.Request.Name, "toolArgs": args}
}

// hookInput returns the input of a hook: the given fields and those of every hook.
func hookInput(s *State, now time.Time, fields map[string]any) json.RawMessage {
	fields["sessionId"], fields["timestamp"], fields["cwd"] = s.ID, now.UnixMilli(), s.Setup.Config.WorkingDirectory
	b, err := json.Marshal(fields)
	if err != nil { // strings and numbers
		panic(err)
	}
	return b
}

// NewHook returns the question of a StartHook. The argument reads is the input as the
// model would read it, for userPromptTransformed; path is the file with the
// transcript, for agentStop.
func NewHook(s *State, step StartHook, now time.Time, reads, path string) event.HookStartData {
	h := event.HookStartData{ID: event.NewID(), Kind: step.Kind}
	fields := make(map[string]any)
	switch step.Kind {
	case event.HookPromptSubmitted:
		h.InputID = step.Input.InputID
		fields["prompt"] = step.Input.Prompt
	case event.HookPromptTransformed:
		h.InputID = step.Input.InputID
		fields["prompt"], fields["transformedPrompt"] = s.said(step.Input), reads
	case event.HookSessionStart:
		fields["source"], fields["initialPrompt"] = s.Life.Entry, s.Turn.Prompt
	case event.HookPreToolUse:
		list := make([]map[string]string, len(step.Calls))
		for i, c := range step.Calls {
			h.Calls = append(h.Calls, c.Request.ToolCallID)
			list[i] = map[string]string{"id": c.Request.ToolCallID, "name": c.Request.Name, "args": fmt.Sprint(callFields(c)["toolArgs"])}
		}
		fields["toolCalls"] = list
	case event.HookAgentStop:
		fields["stopReason"], fields["stop_hook_active"], fields["transcriptPath"] = "end_turn", s.Life.Last.Turn.Hooks.Kept, path
	case event.HookSessionEnd:
		fields["reason"] = s.Life.Last.Reason
		if s.Life.Last.Error != "" {
			fields["error"] = s.Life.Last.Error
		}
	}
	h.Input = hookInput(s, now, fields)
	return h
}

// ErrorHook returns the question whether a turn ends with an error.
func ErrorHook(s *State, d event.SessionErrorData, recoverable bool, now time.Time) event.HookStartData {
	return event.HookStartData{
		ID: event.NewID(), Kind: event.HookErrorOccurred, Failure: &d,
		Input: hookInput(s, now, map[string]any{"error": d.Message, "errorContext": "model_call", "recoverable": recoverable}),
	}
}

// CallInput returns the input of preToolUse for one call.
func CallInput(s *State, callID string, now time.Time) (json.RawMessage, bool) {
	c := s.call(callID)
	if c == nil {
		return nil, false
	}
	return hookInput(s, now, callFields(c)), true
}

// said returns the text of an input after the hooks that were answered.
func (s *State) said(in event.InputAcceptedData) string {
	return cmp.Or(s.Hooks.Inputs[in.InputID].Text, in.Prompt)
}

// Said returns the text of an input after the hooks that were answered, and the
// context that they have added.
func (s *State) Said(in event.InputAcceptedData) (text, context string) {
	return s.said(in), s.Hooks.Inputs[in.InputID].Context
}

// CloseHooks returns what is to be recorded when the open hooks that the filter
// accepts are given up. They change nothing.
func CloseHooks(s *State, reason string, filter func(event.HookStartData) bool) []event.Payload {
	var record []event.Payload
	for _, h := range s.Hooks.Open {
		if filter(h) {
			record = append(record, event.HookEndData{ID: h.ID, Kind: h.Kind, Error: &event.HookError{Message: reason}})
		}
	}
	return record
}

// MergeOutputs merges the outputs of several clients. A field of a later output
// replaces that of an earlier one, except that the strictest decision is kept, with its
// reason. Decisions are compared as they are read later: the case of a field's name and
// escapes in its value make no difference. A yes to the arguments of the model is none to
// those that another client has put in their place.
func MergeOutputs(outputs []json.RawMessage) json.RawMessage {
	merged := make(map[string]json.RawMessage)
	strictest, rewritten, agreed := -1, false, false
	for _, raw := range outputs {
		var one map[string]json.RawMessage
		var verdict Verdict
		if json.Unmarshal(raw, &one) != nil {
			continue
		}
		_ = json.Unmarshal(raw, &verdict) // a decision that cannot be read is none
		strict := strictness(verdict.Decision)
		if strict < strictest {
			maps.DeleteFunc(one, isDecision)
		} else if strict > strictest {
			maps.DeleteFunc(merged, isDecision)
			strictest = strict
		}
		if asksForOtherArguments(raw) {
			rewritten, agreed = true, verdict.Decision == HookAllow
		}
		maps.Copy(merged, one)
	}
	if rewritten && !agreed && strictest == strictness(HookAllow) {
		maps.DeleteFunc(merged, isDecision)
	}
	if len(merged) == 0 {
		return nil
	}
	b, err := json.Marshal(merged)
	if err != nil { // it was decoded before
		panic(err)
	}
	return b
}

// isDecision reports whether a field of an output is read as a decision or its reason.
func isDecision(name string, _ json.RawMessage) bool {
	return strings.EqualFold(name, "permissionDecision") || strings.EqualFold(name, "permissionDecisionReason")
}

// strictness returns a number that is the greater, the less a decision allows.
func strictness(decision string) int {
	return slices.Index([]string{HookAllow, HookAsk, HookDeny}, decision)
}

// withoutPermission returns the permission request for a call that needs no permission,
// in case that a hook or a rule wants a person to be asked.
func withoutPermission(call *Call) *approval.Request {
	r := call.Request
	ask, err := json.Marshal(struct {
		Kind       string          `json:"kind"`
		ToolCallID string          `json:"toolCallId"`
		ToolName   string          `json:"toolName"`
		Args       json.RawMessage `json:"toolArgs"`
		Message    string          `json:"hookMessage,omitempty"`
	}{"hook", r.ToolCallID, r.Name, r.Arguments, call.Hook.Verdict.Reason})
	if err != nil { // the arguments are an object
		panic(err)
	}
	return &approval.Request{Kind: "hook", Tool: r.Name, Subjects: []string{r.Name}, Ask: ask, Prompt: ask}
}

// withoutWords returns a list without the first words of a source.
func withoutWords(words []Words, source string) []Words {
	for i, w := range words {
		if w.Source == source {
			return slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	return words
}
