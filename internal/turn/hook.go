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

// Hooks is what clients with hooks are being asked.
type Hooks struct {
	Open   []event.HookStartData
	Inputs map[string]HookedInput // what hooks have made of accepted inputs, by their ids
}

// A hook is a question to the clients that want a say in what happens. It is
// stored when it is put (hook.start) and when it is answered (hook.end), and
// what it is about waits in between. An answer that is stored is never asked for
// again. A hook that nobody answers counts as absent.

// A HookedInput is what hooks have made of an input that is not delivered yet.
type HookedInput struct {
	Text        string  // instead of what was said; empty for none
	Context     string  // what the model is told beside it
	Transformed *string // what the model reads; nil if that is not settled
	Stage       PromptStage
}

// A PromptStage is how far the hooks of an input have come.
type PromptStage int

// The stages of a HookedInput.
const (
	Unheard      PromptStage = iota // no hook was asked
	Submitting                      // userPromptSubmitted is open
	Submitted                       // it was answered
	Transforming                    // userPromptTransformed is open
	Transformed                     // it was answered
)

// Words are what a hook wants the model to be told in a message of its own.
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
	HookAllow = "allow" // nobody else is asked
	HookDeny  = "deny"
	HookAsk   = "ask" // a person is asked, whatever the rules allow
)

// TurnHooks is what hooks say of a turn.
type TurnHooks struct {
	Words   []Words                 // what the model is to be told before its next request
	Kept    bool                    // a hook did not let the turn end
	Failure *event.SessionErrorData // why the turn is given up, if no hook objects
	Retries int                     // number of times that a hook has objected
}

// A CallHook is what hooks say of a call.
type CallHook struct {
	Verdict Verdict                 // what preToolUse says
	Outcome *event.ToolCompleteData // what the call gave, while a hook is asked about that
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

// removeWords takes in that the model was told the words of a source.
func (t *Turn) removeWords(source string) { t.Hooks.Words = withoutWords(t.Hooks.Words, source) }

// dropTurn lets go of the hooks about a turn. Those of inputs that wait are not
// about one.
func (h *Hooks) dropTurn() {
	h.Open = slices.DeleteFunc(slices.Clone(h.Open), func(o event.HookStartData) bool { return o.InputID == "" })
}

// find returns the place of an open hook, or -1.
func (h *Hooks) find(id string) int {
	return slices.IndexFunc(h.Open, func(o event.HookStartData) bool { return o.ID == id })
}

// open reports whether a hook of that kind is open.
func (h *Hooks) open(kind string) bool {
	return slices.ContainsFunc(h.Open, func(o event.HookStartData) bool { return o.Kind == kind })
}

// start takes in that a hook is asked. One that is about nothing is not kept:
// nobody would wait for it.
func (h *Hooks) start(s *State, d event.HookStartData) {
	if h.find(d.ID) < 0 && h.makeWait(s, d) {
		h.Open = append(slices.Clip(h.Open), d)
	}
}

// makeWait lets what a hook is about wait for it.
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
	return s.Turn.makeCallsWait(d)
}

// makeInputWait lets an input wait for its hook.
func (h *Hooks) makeInputWait(d event.HookStartData) bool {
	p := h.Inputs[d.InputID]
	p.Stage = Submitting
	if d.Kind == event.HookPromptTransformed {
		var in struct {
			Transformed string `json:"transformedPrompt"`
		}
		_ = json.Unmarshal(d.Input, &in) // we wrote it
		p.Stage, p.Transformed = Transforming, &in.Transformed
	}
	if h.Inputs == nil {
		h.Inputs = make(map[string]HookedInput)
	}
	h.Inputs[d.InputID] = p
	return true
}

// makeCallsWait lets calls wait for their hook.
func (t *Turn) makeCallsWait(d event.HookStartData) bool {
	found := false
	for _, id := range d.Calls {
		switch {
		case d.Kind == event.HookPreToolUse:
			found = t.move(id, Checking) != nil || found
		case d.Outcome != nil:
			if c := t.move(id, Held); c != nil {
				c.Hook.Outcome, c.Hook.Heard, found = d.Outcome, false, true
			}
		}
	}
	return found
}

// end takes in what a hook says.
func (h *Hooks) end(s *State, d event.HookEndData) {
	i := h.find(d.ID)
	if i < 0 {
		return
	}
	asked := h.Open[i]
	h.Open = slices.Delete(slices.Clone(h.Open), i, i+1)
	var said output
	_ = json.Unmarshal(d.Output, &said) // what cannot be read says nothing
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

// An output is all that hooks can say, of every kind.
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

func (h *Hooks) changeInput(asked event.HookStartData, said output) {
	p, ok := h.Inputs[asked.InputID]
	if !ok {
		return // it was taken back meanwhile
	}
	if asked.Kind == event.HookPromptSubmitted {
		p.Stage, p.Text, p.Context = Submitted, said.Prompt, said.Context
	} else if p.Stage = Transformed; said.Transformed != nil {
		p.Transformed = said.Transformed
	}
	h.Inputs[asked.InputID] = p
}

// continueTurn lets the turn go on if the hook does not let it end.
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

// addWords makes words of a hook wait for the next model request.
func (t *Turn) addWords(text, source string) {
	if text != "" {
		t.Hooks.Words = append(slices.Clip(t.Hooks.Words), Words{text, source})
	}
}

// maxHookRetries is how often a hook can have the model asked again in a turn.
const maxHookRetries = 5

func (t *Turn) retryRequest(said output) {
	if said.Handling == "retry" && t.Hooks.Retries < min(max(1, said.Retries), maxHookRetries) {
		t.Hooks.Retries++
		t.Hooks.Failure = nil
	}
}

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

// setVerdict takes in what preToolUse says of a call.
func (c *Call) setVerdict(said json.RawMessage) {
	if json.Unmarshal(said, &c.Hook.Verdict) != nil {
		return
	}
	if args := transcript.ModifiedArgs(said); args != nil {
		c.replaceArguments(args)
	}
}

// changeOutcome takes in what postToolUse says of a result.
func (c *Call) changeOutcome(said output) {
	d := *c.Hook.Outcome
	if len(said.Result) > 0 && string(said.Result) != "null" {
		d = modified(d, said.Result)
	}
	d = withContext(d, said.Context)
	c.Hook.Outcome = &d
}

// modified is an outcome with another result: a text, or an object in the
// protocol's form.
func modified(d event.ToolCompleteData, result json.RawMessage) event.ToolCompleteData {
	var r ExternalResult
	if json.Unmarshal(result, &r) != nil && json.Unmarshal(result, &r.Text) != nil {
		return d
	}
	d.Success, d.Result, d.Error = false, nil, nil
	return externalOutcome(d, r)
}

// withContext adds to what the model reads of an outcome.
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

// HoldForHooks turns the outcomes among what is to be recorded into what hooks are
// asked about, if there are any; they are final when the hooks are heard.
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

// asksAfter reports whether a call was made, so that there is something to ask
// about: one that was refused or interrupted was not.
func asksAfter(d event.ToolCompleteData) bool {
	return d.Error == nil || d.Error.Code == event.CodeFailure || d.Error.Code == event.CodeTimeout
}

// afterHook is the question about what a call gave.
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

// callFields are what tool hooks are told of a call. The arguments are text, as
// the model wrote them.
func callFields(c *Call) map[string]any {
	args := c.Request.Malformed
	if args == "" {
		args = string(c.Request.Arguments)
	}
	return map[string]any{"toolName": c.Request.Name, "toolArgs": args}
}

// hookInput is what a hook is told, with what every hook is told.
func hookInput(s *State, now time.Time, fields map[string]any) json.RawMessage {
	fields["sessionId"], fields["timestamp"], fields["cwd"] = s.ID, now.UnixMilli(), s.Setup.Config.WorkingDirectory
	b, err := json.Marshal(fields)
	if err != nil { // strings and numbers
		panic(err)
	}
	return b
}

// NewHook is the question that a step wants asked. Reads is what the model would
// read of the input, for the hook that is about that, and path where the log can
// be read, for the one that may want to.
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

// ErrorHook is the question whether a turn is to be given up.
func ErrorHook(s *State, d event.SessionErrorData, recoverable bool, now time.Time) event.HookStartData {
	return event.HookStartData{
		ID: event.NewID(), Kind: event.HookErrorOccurred, Failure: &d,
		Input: hookInput(s, now, map[string]any{"error": d.Message, "errorContext": "model_call", "recoverable": recoverable}),
	}
}

// CallInput is what preToolUse is told of one call.
func CallInput(s *State, callID string, now time.Time) (json.RawMessage, bool) {
	c := s.call(callID)
	if c == nil {
		return nil, false
	}
	return hookInput(s, now, callFields(c)), true
}

// said is an input as hooks have left it.
func (s *State) said(in event.InputAcceptedData) string {
	return cmp.Or(s.Hooks.Inputs[in.InputID].Text, in.Prompt)
}

// Said is an input as hooks have left it, and what the model is told beside it.
func (s *State) Said(in event.InputAcceptedData) (text, context string) {
	return s.said(in), s.Hooks.Inputs[in.InputID].Context
}

// CloseHooks ends the open hooks that the filter is for: they count as absent.
func CloseHooks(s *State, reason string, filter func(event.HookStartData) bool) []event.Payload {
	var record []event.Payload
	for _, h := range s.Hooks.Open {
		if filter(h) {
			record = append(record, event.HookEndData{ID: h.ID, Kind: h.Kind, Error: &event.HookError{Message: reason}})
		}
	}
	return record
}

// MergeOutputs makes one output of those of several clients. A later one is
// heard over an earlier one, except that the strictest decision holds.
func MergeOutputs(outputs []json.RawMessage) json.RawMessage {
	merged := make(map[string]json.RawMessage)
	for _, raw := range outputs {
		var one map[string]json.RawMessage
		if json.Unmarshal(raw, &one) != nil {
			continue
		}
		if strictness(merged["permissionDecision"]) > strictness(one["permissionDecision"]) {
			delete(one, "permissionDecision")
			delete(one, "permissionDecisionReason")
		}
		maps.Copy(merged, one)
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

func strictness(decision json.RawMessage) int {
	return slices.Index([]string{`"allow"`, `"ask"`, `"deny"`}, string(decision))
}

// askedByHook is the request to let a call be made that needs nobody's yes but
// for the hook that wants a person asked.
func askedByHook(call *Call) *approval.Request {
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
	return &approval.Request{Kind: "hook", Subjects: []string{r.Name}, Unclear: true, Ask: ask, Prompt: ask}
}

// withoutWords returns what is left to be told when the model was told the first words
// of a source.
func withoutWords(words []Words, source string) []Words {
	for i, w := range words {
		if w.Source == source {
			return slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	return words
}
