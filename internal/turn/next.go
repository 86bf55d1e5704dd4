package turn

import (
	"fmt"
	"strconv"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window"
)

// Limits bound a turn. They are part of what Next decides by.
const (
	DefaultMaxSteps = 200 // model requests in one turn
	MaxRepeats      = 12  // equal calls with equal results, one after the other
)

// A Step is what comes next. It is one of the types below.
type Step interface{ step() }

type (
	// Wait: nothing can be done until something arrives.
	Wait struct{}
	// Rest: everything is done, and this is to be recorded.
	Rest struct{}
	// Deliver: an accepted input becomes part of the conversation.
	Deliver struct {
		Input event.InputAcceptedData
		How   string // "idle", "queued" or "steering"
	}
	// Notify: the model is to be told what happened to tasks.
	Notify struct{ Reports []Report }
	// Command: a queued command is to be carried out.
	Command struct{ Input event.InputAcceptedData }
	// StartStep: a model request is about to be made.
	StartStep struct{ TurnID string }
	// AskModel: make the request.
	AskModel struct{ TurnID string }
	// Intend: record the intent of all calls of an answer.
	Intend struct{ Calls []*Call }
	// Judge: find out whether a call may be made.
	Judge struct{ Call *Call }
	// Begin: a permitted call is about to be made.
	Begin struct{ Call *Call }
	// RunTool: make the call.
	RunTool struct{ Call *Call }
	// Recover: a call was begun by a runtime that is no more.
	Recover struct{ Call *Call }
	// Restore: files have to be given back what they held.
	Restore struct{ Hidden event.HistoryHiddenData }
	// EndStep: the answer and all its calls are done with.
	EndStep struct{ TurnID string }
	// StartHook: a hook is to be asked.
	StartHook struct {
		Kind  string
		Input event.InputAcceptedData // of the hooks of inputs
		Calls []*Call                 // of preToolUse
	}
	// AskHook: ask it.
	AskHook struct{ Hook event.HookStartData }
	// Conclude: the hook about what a call gave was heard.
	Conclude struct{ Call *Call }
	// Say: the model is told what a hook wants it to be told.
	Say struct{ Words Words }
	// Fail: the turn is given up, and no hook objects.
	Fail struct{ Failure event.SessionErrorData }
	// Prepare: have the system prompt looked over before the turn begins.
	Prepare struct{}
	// GiveUp: the turn must not go on.
	GiveUp struct{ ErrorType, Reason string }
)

func (Wait) step()      {}
func (Rest) step()      {}
func (Deliver) step()   {}
func (Notify) step()    {}
func (Command) step()   {}
func (StartStep) step() {}
func (AskModel) step()  {}
func (Intend) step()    {}
func (Judge) step()     {}
func (Begin) step()     {}
func (RunTool) step()   {}
func (Recover) step()   {}
func (Restore) step()   {}
func (EndStep) step()   {}
func (GiveUp) step()    {}
func (StartHook) step() {}
func (AskHook) step()   {}
func (Conclude) step()  {}
func (Say) step()       {}
func (Fail) step()      {}
func (Prepare) step()   {}

// Now is what is true of this process and not in the log.
type Now struct {
	Asking    bool                     // a model request is under way
	Restoring bool                     // files are being given back what they held
	Running   func(callID string) bool // the call is under way
	Fresh     func(callID string) bool // this process has recorded that the call begins

	Hooks     bool                 // somebody can be asked by hooks
	Asked     func(id string) bool // the hook is being asked
	Prepare   bool                 // the system prompt of the next turn is to be looked over
	Preparing bool                 // it is being looked over

	Compacting bool            // the open compaction is under way
	Verdict    *window.Verdict // what the size of the next request asks for; nil if it was not measured for this state
}

// Next decides what comes next. It is pure: it does nothing, the functions of Now
// only look something up, and the same state gives the same step. The order of its
// cases is the order in which things are done.
//
// A request has to fit the model's window. Whether it does is not in the log, and
// finding out takes time, so that Next asks for it only when it decides by it: it
// returns Measure if now has no verdict. Whoever measures calls Next again with the
// verdict, which is of no use as soon as anything is recorded.
func Next(s *State, now Now) Step {
	switch {
	case s.Context.Compaction != nil && !now.Compacting:
		return Interrupted{}
	case len(s.Rewind.Restore) > 0 && now.Restoring:
		return Wait{}
	case len(s.Rewind.Restore) > 0:
		return Restore{s.Rewind.Restore[0]}
	case s.Life.Suspended:
		return Wait{}
	}
	for _, h := range s.Hooks.Open {
		if !now.Asked(h.ID) {
			return AskHook{h}
		}
	}
	if s.Turn == nil {
		return betweenTurns(s, now)
	}
	turnID := strconv.Itoa(s.Turn.Step)
	switch s.Turn.Phase {
	case Ready:
		return beforeRequest(s, now, turnID)
	case Asking:
		return whileAsking(s, now, turnID)
	case Calling:
		return nextCall(s.Turn, now)
	default:
		return EndStep{turnID}
	}
}

// whileAsking decides what becomes of a request that was made.
func whileAsking(s *State, now Now, turnID string) Step {
	switch {
	case now.Asking, s.Hooks.open(event.HookErrorOccurred):
		return Wait{}
	case s.Turn.Hooks.Failure != nil:
		return Fail{*s.Turn.Hooks.Failure}
	case s.Context.Compaction != nil && s.Context.Compaction.Waited():
		return Wait{}
	case s.Context.Full != "":
		return Fail{event.SessionErrorData{ErrorType: ErrorOverflow, Message: s.Context.Full}}
	}
	return AskModel{turnID}
}

func betweenTurns(s *State, now Now) Step {
	switch {
	case s.Hooks.open(event.HookAgentStop), s.Hooks.open(event.HookSessionEnd):
		return Wait{}
	case now.Hooks && s.Life.Last != nil && s.Life.Last.Final && !s.Life.Last.Asked:
		return StartHook{Kind: event.HookAgentStop}
	case s.Exchanges.Queued() != nil:
		return Wait{}
	case len(s.Queue.Inputs) > 0 && !s.queueIsHeld():
	case len(s.Tasks.Reports) > 0 && !s.Life.Aborted: // what was stopped stays so until somebody speaks
		return beforeTurn(Notify{s.Tasks.Reports}, now)
	case s.Life.Idle, len(s.Queue.Inputs) > 0: // what is left to do is not over
		return Wait{}
	case now.Hooks && s.Life.Last != nil && !s.Life.Last.Closed:
		return StartHook{Kind: event.HookSessionEnd}
	case len(s.Hooks.Open) > 0:
		return Wait{}
	default:
		return Rest{}
	}
	how := "idle"
	if !s.Life.Idle {
		how = "queued"
	}
	if in, ok := steering(s); ok {
		return beforeTurn(deliver(s, now, in, how), now)
	}
	if s.Queue.Inputs[0].Kind == event.InputCommand {
		return Command{s.Queue.Inputs[0]}
	}
	return beforeTurn(deliver(s, now, s.Queue.Inputs[0], how), now)
}

// beforeTurn is what comes before a step that opens a turn.
func beforeTurn(step Step, now Now) Step {
	switch step.(type) {
	case Deliver, Notify:
		if now.Preparing {
			return Wait{}
		}
		if now.Prepare {
			return Prepare{}
		}
	}
	return step
}

// deliver is what comes before an input is delivered, and that it is.
func deliver(s *State, now Now, in event.InputAcceptedData, how string) Step {
	switch stage := s.Hooks.Inputs[in.InputID].Stage; {
	case stage == Submitting, stage == Transforming:
		return Wait{}
	case now.Hooks && stage == Unheard:
		return StartHook{Kind: event.HookPromptSubmitted, Input: in}
	case now.Hooks && stage == Submitted:
		return StartHook{Kind: event.HookPromptTransformed, Input: in}
	}
	return Deliver{in, how}
}

func beforeRequest(s *State, now Now, turnID string) Step {
	most := s.Setup.Config.MaxSteps
	if most == 0 {
		most = DefaultMaxSteps
	}
	switch {
	case s.Turn.Repeats >= MaxRepeats:
		return GiveUp{ErrorLoop, fmt.Sprintf("The model made the same calls with the same results %d times in a row, so the turn was stopped. Send another message to go on in another way.", s.Turn.Repeats)}
	case s.Turn.Step >= most:
		return GiveUp{ErrorStepLimit, fmt.Sprintf("The turn was stopped after %d model requests, its limit. Send another message to go on.", most)}
	}
	switch {
	case s.Hooks.open(event.HookSessionStart):
		return Wait{}
	case now.Hooks && s.Life.Entry != "":
		return StartHook{Kind: event.HookSessionStart}
	case len(s.Skills.waiting) > 0:
		return Say{s.Skills.waiting[0]}
	case len(s.Turn.Hooks.Words) > 0:
		return Say{s.Turn.Hooks.Words[0]}
	}
	if in, ok := steering(s); ok {
		return deliver(s, now, in, "steering")
	}
	if len(s.Tasks.Reports) > 0 {
		return Notify{s.Tasks.Reports}
	}
	return requestIfItFits(s, now, StartStep{turnID})
}

// The types of session.error that end a turn by our own decision.
const (
	ErrorLoop      = "loop"
	ErrorStepLimit = "step_limit"
)

func nextCall(t *Turn, now Now) Step {
	if intend := inStage(t, Requested); len(intend) > 0 {
		return Intend{intend}
	}
	for _, c := range t.Calls {
		switch c.Stage {
		case Intended:
			if now.Hooks {
				return StartHook{Kind: event.HookPreToolUse, Calls: inStage(t, Intended)}
			}
			return Judge{c}
		case Cleared:
			return Judge{c}
		case Held:
			if c.Hook.Heard {
				return Conclude{c}
			}
		case Permitted:
			return Begin{c}
		case Begun:
			switch id := c.Request.ToolCallID; {
			case now.Running(id):
			case now.Fresh(id):
				return RunTool{c}
			default:
				return Recover{c}
			}
		}
	}
	return Wait{}
}

func inStage(t *Turn, stage Stage) []*Call {
	var calls []*Call
	for _, c := range t.Calls {
		if c.Stage == stage {
			calls = append(calls, c)
		}
	}
	return calls
}

// Waits reports whether an engine that has just started would do nothing: every
// next step is somebody else's, who has to answer a question or to resume the
// session. Clients with hooks may or may not come back, so both must agree.
func (s *State) Waits() bool {
	nothing := func(string) bool { return false }
	for _, hooks := range []bool{false, true} {
		_, waits := Next(s, Now{Running: nothing, Fresh: nothing, Asked: nothing, Hooks: hooks && s.Setup.Declared.Hooks}).(Wait)
		if !waits {
			return false
		}
	}
	return true
}
