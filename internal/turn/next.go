package turn

import (
	"fmt"
	"strconv"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window"
)

// The limits of a turn. Next ends a turn that reaches one of them.
const (
	defaultMaxSteps = 200 // model requests in one turn
	MaxRepeats      = 12  // times in a row that the same steps find the same
)

// A Step is what comes next. It is one of the types below.
type Step interface{ step() }

type (
	// Wait: do nothing until the next intent arrives.
	Wait struct{}
	// Rest: record that all work is done.
	Rest struct{}
	// Deliver: make an accepted input a part of the conversation.
	Deliver struct {
		Input event.InputAcceptedData
		How   string // "idle", "queued" or "steering"
	}
	// Notify: tell the model the news of tasks.
	Notify struct{ Reports []Report }
	// Command: have a queued command carried out.
	Command struct{ Input event.InputAcceptedData }
	// StartStep: record that a model request is about to be made.
	StartStep struct{ TurnID string }
	// AskModel: make the model request.
	AskModel struct{ TurnID string }
	// Intend: record the intent to make the calls of an answer.
	Intend struct{ Calls []*Call }
	// Judge: find out whether a call may be made.
	Judge struct{ Call *Call }
	// Begin: record that a permitted call is about to be made.
	Begin struct{ Call *Call }
	// RunTool: make the call.
	RunTool struct{ Call *Call }
	// Recover: decide about a call that was begun by a process which no longer runs.
	Recover struct{ Call *Call }
	// Restore: restore the files that hidden calls have changed.
	Restore struct{ Hidden event.HistoryHiddenData }
	// EndStep: record that the answer and all its calls are finished.
	EndStep struct{ TurnID string }
	// StartHook: record that a hook is asked.
	StartHook struct {
		Kind  string
		Input event.InputAcceptedData // the input that the hook is about, if it is about one
		Calls []*Call                 // the calls that preToolUse is about
	}
	// AskHook: ask clients an open hook.
	AskHook struct{ Hook event.HookStartData }
	// Conclude: record the outcome of a call whose hook was answered.
	Conclude struct{ Call *Call }
	// Say: tell the model a text of a hook or of a skill.
	Say struct{ Words Words }
	// Fail: end the turn with the error of its last request.
	Fail struct{ Failure event.SessionErrorData }
	// Prepare: have a client rewrite the system prompt before the turn begins.
	Prepare struct{}
	// GiveUp: end the turn because it has reached a limit.
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

// Now is what is known in this process alone and is not in the log.
type Now struct {
	Asking    bool                     // a model request is under way
	Held      bool                     // another session is asked whether this one goes on: see Budget
	Due       bool                     // the model of a parked turn is to be asked now
	Restoring bool                     // files are being restored
	Running   func(callID string) bool // reports whether the call is under way
	Fresh     func(callID string) bool // reports whether this process has recorded that the call begins

	Hooks     bool                 // a client with hooks is connected, or may come back in a moment
	Asked     func(id string) bool // reports whether the hook is being asked
	Prepare   bool                 // a client has to rewrite the system prompt before the next turn
	Preparing bool                 // a client is rewriting the system prompt

	Compacting bool            // this process works on the open compaction
	Verdict    *window.Verdict // verdict on the size of the next request; nil if it was not measured for this state
}

// Next decides what comes next. It is pure: it changes nothing, the functions of Now
// only look something up, and the same arguments give the same step. The order of
// its cases is the design: an earlier case is done before a later one.
//
// A request has to fit the model's window. Whether it does is not in the log, and to
// find out takes time. So Next returns Measure when it has to know and now has no
// verdict; the caller measures and calls Next again with the verdict. A verdict is
// valid for exactly the state that was measured: it must be dropped as soon as
// anything is recorded.
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

// whileAsking decides about a request that was begun and has no answer yet.
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
	case s.Budget.holds(now):
		return s.Budget.hold(Fail{event.SessionErrorData{ErrorType: ErrorBudget, Message: textRefused}})
	case s.Parked() != nil && !now.Due:
		return Park{*s.Parked()}
	}
	return AskModel{turnID}
}

// betweenTurns decides when no turn is open.
func betweenTurns(s *State, now Now) Step {
	switch {
	case s.Hooks.open(event.HookAgentStop), s.Hooks.open(event.HookSessionEnd):
		return Wait{}
	case now.Hooks && s.Life.Last != nil && s.Life.Last.Final && !s.Life.Last.Asked:
		return StartHook{Kind: event.HookAgentStop}
	case s.Exchanges.Queued() != nil:
		return Wait{}
	case len(s.Queue.Inputs) > 0 && !s.queueIsHeld():
	case len(s.Tasks.Reports) > 0 && !s.Life.Aborted: // after an abort, news wait for the next message
		return beforeTurn(Notify{s.Tasks.Reports}, now)
	case s.Life.Idle, len(s.Queue.Inputs) > 0: // inputs that are held are work that is left
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

// beforeTurn returns a step, or what has to be done first if the step opens a turn.
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

// deliver returns the delivery of an input, or the hook that has to be asked first.
func deliver(s *State, now Now, in event.InputAcceptedData, how string) Step {
	switch stage := s.Hooks.Inputs[in.InputID].stage; {
	case stage == submitting, stage == transforming:
		return Wait{}
	case now.Hooks && stage == unasked:
		return StartHook{Kind: event.HookPromptSubmitted, Input: in}
	case now.Hooks && stage == submitted:
		return StartHook{Kind: event.HookPromptTransformed, Input: in}
	}
	return Deliver{in, how}
}

// beforeRequest decides when the model is to be asked.
func beforeRequest(s *State, now Now, turnID string) Step {
	most := s.Setup.Config.MaxSteps
	if most == 0 {
		most = defaultMaxSteps
	}
	times, _ := s.Turn.Repeats.Times()
	switch {
	case s.Turn.Finish.Failure != nil:
		return s.Turn.Finish.giveUp()
	case times >= MaxRepeats:
		return GiveUp{ErrorLoop, s.Turn.Repeats.describe()}
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
	if s.Budget.holds(now) {
		return s.Budget.hold(GiveUp{ErrorBudget, textRefused})
	}
	return requestIfItFits(s, now, StartStep{turnID})
}

// The types of the session.error of a turn that has reached a limit.
const (
	ErrorLoop      = "loop"
	ErrorStepLimit = "step_limit"
)

// nextCall decides about the calls of an answer.
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

// inStage returns the calls of a turn that are in the given stage.
func inStage(t *Turn, stage Stage) []*Call {
	var calls []*Call
	for _, c := range t.Calls {
		if c.Stage == stage {
			calls = append(calls, c)
		}
	}
	return calls
}

// Waits reports whether a process that has just started would do nothing for the
// session, because a client has to answer a question or resume it first. It must be so
// whether or not clients with hooks come back.
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
