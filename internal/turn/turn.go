package turn

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/transcript"
)

// A Turn is the work on one input, and on the inputs that were delivered during it.
type Turn struct {
	InteractionID string
	Mode          string // mode in which the agent works; empty for that of the session
	Phase         Phase
	Step          int // number of the current model request, from 0
	Calls         []*Call
	Stop          bool       // the turn ends after this step, even if the model has made calls
	Repeats       Repeats    // number of times that the last steps were repeated
	Prompt        string     // text of the message that opened the turn
	Headers       []string   // ids of the inputs that came with headers for model requests
	Hooks         TurnHooks  // decisions of hooks about the turn
	Outage        Outage     // models that could not be reached
	Finish        TurnFinish // what becomes of answers that are not whole
	Output        TurnOutput // form that the answer must have
}

// A Phase is where a turn stands.
type Phase int

// The phases of a turn.
const (
	Ready    Phase = iota // the model is to be asked
	Asking                // the model is being asked
	Calling               // the calls of its answer are being made
	Answered              // the step can be ended
)

// A Call is a tool call of the current step.
type Call struct {
	Request  event.ToolRequest
	Stage    Stage
	Dir      string          // working directory of the session when the call was judged; empty before
	Question string          // request id of the open question in a Waiting stage
	Asked    event.Event     // event of the open question
	Grants   []event.Grant   // grants of a yes for the whole session, if permission was asked
	Offers   []event.Offer   // ways to say yes, if permission was asked
	Shown    json.RawMessage // the request that a person saw, if permission was asked
	Approved string          // id of the permission request that a person approved
	Decision *event.Decision // decision that allowed the call; nil before it begins
	Granted  bool            // the call may use what the session's scope does not list
	Detaches bool            // the work of the call can go on as a task
	once     bool            // the last attempt was recorded as one that must not be repeated
	Key      string          // key of the call for its tool; the same in every attempt
	Attempt  int
	Begun    time.Time // time at which the first attempt was recorded
	// Reviewing is true while the open permission question is about what the call has
	// done. Review is that question and, later, its answer; nil if there was none.
	Reviewing  bool
	Review     *tool.Review
	Hook       CallHook // decisions of hooks about the call
	searchPath string   // value of PATH of the command that a person saw, if permission was asked
	digest     string   // digest of the call and its result, if its tool gave one
	text       string   // text of the result, if its tool gave no digest
}

// A Stage is how far a call has come.
type Stage int

// The stages of a call.
const (
	Requested         Stage = iota // the model has asked for the call
	Intended                       // tool.execution_start is stored
	Checking                       // the hook preToolUse is open
	Cleared                        // the hook preToolUse was answered
	WaitingPermission              // a person has to permit the call
	Permitted                      // a person has permitted the call
	WaitingExternal                // a client makes the call
	WaitingUser                    // a person has to answer
	WaitingPlan                    // a person has to approve a plan
	Begun                          // the runtime makes the call
	Held                           // the call was made, and a hook is asked about its outcome
	Finished                       // the terminal record is stored
)

// Waiting reports whether the call waits for an answer of a client.
func (c *Call) Waiting() bool {
	return c.Stage == WaitingPermission || c.Stage == WaitingExternal || c.Stage == WaitingUser || c.Stage == WaitingPlan
}

// Questions returns the calls that wait for an answer.
func (s *State) Questions() []*Call {
	if s.Turn == nil {
		return nil
	}
	var open []*Call
	for _, c := range s.Turn.Calls {
		if c.Waiting() {
			open = append(open, c)
		}
	}
	return open
}

// Asks reports whether a call waits for a person to answer a question or judge a plan.
func (s *State) Asks() bool {
	for _, c := range s.Questions() {
		if c.Stage == WaitingUser || c.Stage == WaitingPlan {
			return true
		}
	}
	return false
}

// Question returns the call that waits for an answer to the given request.
func (s *State) Question(requestID string) *Call {
	for _, c := range s.Questions() {
		if c.Question == requestID {
			return c
		}
	}
	return nil
}

// Calling reports whether the call with the given key is not finished.
func (s *State) Calling(key string) bool {
	return s.Turn != nil && slices.ContainsFunc(s.Turn.Calls, func(c *Call) bool { return c.Key == key && c.Stage != Finished })
}

// call returns the unfinished call of that id.
func (s *State) call(id string) *Call {
	if s.Turn == nil {
		return nil
	}
	for _, c := range s.Turn.Calls {
		if c.Request.ToolCallID == id && c.Stage != Finished {
			return c
		}
	}
	return nil
}

// fold takes in the events of a running turn. They change nothing if t is nil.
func (t *Turn) fold(s *State, e event.Event, body event.Payload) error {
	if t == nil {
		return nil
	}
	if err := t.Outage.fold(e, body); err != nil {
		return err
	}
	t.Finish.fold(t, body)
	t.Output.fold(&s.Queue, body)
	switch d := body.(type) {
	case event.UserMessageData:
		t.addMessage(d, s.Queue.hasHeaders(d.InputID))
	case event.ModeChangedData:
		t.Mode = ""
	case event.AssistantTurnStartData:
		t.Phase = Asking
	case event.AssistantMessageData:
		t.addCalls(d.ToolRequests)
	case event.AssistantTurnEndData:
		t.Repeats.count(t.Calls)
		t.nextStep()
	case event.ToolStartData:
		t.move(d.ToolCallID, Intended)
	case event.PermissionAskedData:
		t.askPermission(e, d)
		t.settle(s, d.ToolCallID)
	case event.PermissionDoneData:
		t.endPermission(d)
	case event.ExternalAskedData:
		t.ask(e, d.ToolCallID, WaitingExternal, d.RequestID)
	case event.UserInputAskedData:
		t.ask(e, d.ToolCallID, WaitingUser, d.RequestID)
	case event.ExitPlanAskedData:
		t.ask(e, d.ToolCallID, WaitingPlan, d.RequestID)
	case event.ToolBegunData:
		head, err := e.Head()
		if err != nil {
			return err
		}
		t.beginCall(d, head.Time)
		t.settle(s, d.ToolCallID)
	case event.ToolCompleteData:
		t.finishCall(s, d)
	case event.EmptyData:
		t.Stop = t.Stop || d.Type() == event.TaskDone
	}
	return nil
}

// addMessage takes in a message that opens the turn or is delivered during it.
func (t *Turn) addMessage(d event.UserMessageData, headers bool) {
	if headers {
		t.Headers = append(slices.Clip(t.Headers), d.InputID)
	}
	if d.AgentMode != "" {
		t.Mode = d.AgentMode
	}
}

// addCalls takes in the calls that the model asks for.
func (t *Turn) addCalls(requests []event.ToolRequest) {
	t.Phase, t.Calls = Calling, make([]*Call, len(requests))
	for i, r := range requests {
		t.Calls[i] = &Call{Request: r}
	}
	t.endCalling()
}

// beginCall takes in that a call is begun, for the first time or again.
func (t *Turn) beginCall(d event.ToolBegunData, at time.Time) {
	c := t.move(d.ToolCallID, Begun)
	if c == nil {
		return
	}
	if c.Begun.IsZero() {
		c.Begun = at
	}
	c.Key, c.Attempt, c.Granted, c.Detaches, c.Decision = d.Key, d.Attempt, d.Granted, d.Detaches, d.Decision
	c.once = d.Replay == tool.Once.String()
}

// settle keeps the working directory in which a call was judged: the call is made there,
// also if the session has another one by then. A person was shown the first one.
func (t *Turn) settle(s *State, id string) {
	for _, c := range t.Calls {
		if c.Request.ToolCallID == id && c.Dir == "" {
			c.Dir = s.Setup.Config.WorkingDirectory
		}
	}
}

// finishCall takes in the terminal record of a call.
func (t *Turn) finishCall(s *State, d event.ToolCompleteData) {
	c := t.move(d.ToolCallID, Finished)
	if c == nil {
		return
	}
	t.Stop = t.Stop || s.endsTurn(c, d)
	if c.digest = d.Digest; c.digest == "" {
		c.text = transcript.ResultText(d)
	}
	t.endCalling()
}

// ends reports whether the turn is over when its current step ends.
func (t *Turn) ends() bool {
	return t != nil && (t.Stop || len(t.Calls) == 0) && !t.Finish.Again && t.Finish.Failure == nil
}

// nextStep begins the next step: the model is to be asked again.
func (t *Turn) nextStep() {
	t.Phase, t.Calls = Ready, nil
	t.Step++
}

// endsTurn reports whether the result of a call ends the turn.
func (s *State) endsTurn(c *Call, d event.ToolCompleteData) bool {
	if d.Error != nil {
		return d.Error.Code == event.CodeRejected
	}
	x, external := s.external(c.Request.Name)
	return external && x.Terminal && d.Success
}

// move brings a call to a stage and returns it. It returns nil if the call is not
// part of the current step or is finished.
func (t *Turn) move(callID string, to Stage) *Call {
	for _, c := range t.Calls {
		if c.Request.ToolCallID == callID && c.Stage != Finished {
			c.Stage, c.Question, c.Asked = to, "", event.Event{}
			return c
		}
	}
	return nil
}

// ask makes a call wait for the answer to a question.
func (t *Turn) ask(e event.Event, callID string, stage Stage, requestID string) *Call {
	c := t.move(callID, stage)
	if c != nil {
		c.Question, c.Asked = requestID, e
	}
	return c
}

// endCalling ends the phase Calling if every call is finished.
func (t *Turn) endCalling() {
	for _, c := range t.Calls {
		if c.Stage != Finished {
			return
		}
	}
	t.Phase = Answered
}

// replaceArguments gives the call other arguments than the model did.
func (c *Call) replaceArguments(args json.RawMessage) {
	c.Request.Arguments, c.Request.Malformed = args, ""
}

// withoutCalls returns the turn as it is kept when it is over.
func (t Turn) withoutCalls() Turn {
	t.Calls = nil
	return t
}

// askPermission takes in a permission question. A question about a call that was begun
// is a review.
func (t *Turn) askPermission(e event.Event, d event.PermissionAskedData) {
	begun := slices.ContainsFunc(t.Calls, func(c *Call) bool { return c.Request.ToolCallID == d.ToolCallID && c.Stage == Begun })
	c := t.ask(e, d.ToolCallID, WaitingPermission, d.RequestID)
	switch {
	case c == nil:
	case begun:
		c.Reviewing, c.Review = true, &tool.Review{Shown: d.PermissionRequest}
	default:
		c.Grants, c.Shown = d.Grants, d.PermissionRequest
		if d.Abide != nil {
			c.Offers, c.searchPath = d.Abide.Offers, d.Abide.SearchPath
		}
	}
}

// endPermission takes in the answer to a permission question.
func (t *Turn) endPermission(d event.PermissionDoneData) {
	i := slices.IndexFunc(t.Calls, func(c *Call) bool { return c.Request.ToolCallID == d.ToolCallID && c.Reviewing })
	if i < 0 {
		if approved(d.Result) {
			if c := t.move(d.ToolCallID, Permitted); c != nil {
				c.Approved = d.RequestID
			}
		}
		return
	}
	c := t.Calls[i]
	c.Reviewing = false
	c.Review = &tool.Review{Shown: c.Review.Shown, Approved: approved(d.Result), Feedback: d.Result.Feedback}
	t.move(d.ToolCallID, Begun)
}
