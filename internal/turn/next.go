package turn

import (
	"fmt"
	"strconv"

	"github.com/abide-run/abide/internal/event"
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
	// GiveUp: the turn must not go on.
	GiveUp struct{ ErrorType, Reason string }
)

func (Wait) step()      {}
func (Rest) step()      {}
func (Deliver) step()   {}
func (Notify) step()    {}
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

// Now is what is true of this process and not in the log.
type Now struct {
	Asking    bool                     // a model request is under way
	Restoring bool                     // files are being given back what they held
	Running   func(callID string) bool // the call is under way
	Fresh     func(callID string) bool // this process has recorded that the call begins
}

// Next decides what comes next. It is pure: it does nothing, and the same state
// gives the same step.
func Next(s *State, now Now) Step {
	switch {
	case len(s.Restore) > 0 && now.Restoring:
		return Wait{}
	case len(s.Restore) > 0:
		return Restore{s.Restore[0]}
	case s.Turn == nil:
		return betweenTurns(s)
	}
	turnID := strconv.Itoa(s.Turn.Step)
	switch s.Turn.Phase {
	case Ready:
		return beforeRequest(s, turnID)
	case Asking:
		if now.Asking {
			return Wait{}
		}
		return AskModel{turnID}
	case Calling:
		return nextCall(s.Turn, now)
	default:
		return EndStep{turnID}
	}
}

func betweenTurns(s *State) Step {
	switch {
	case len(s.Queue) > 0:
	case len(s.Reports) > 0 && !s.Aborted: // what was stopped stays so until somebody speaks
		return Notify{s.Reports}
	case s.Idle:
		return Wait{}
	default:
		return Rest{}
	}
	how := "idle"
	if !s.Idle {
		how = "queued"
	}
	if in, ok := steering(s); ok {
		return Deliver{in, how}
	}
	return Deliver{s.Queue[0], how}
}

// steering returns the first input that wants to be heard before the rest.
func steering(s *State) (event.InputAcceptedData, bool) {
	for _, in := range s.Queue {
		if in.Mode == event.ModeSteer {
			return in, true
		}
	}
	return event.InputAcceptedData{}, false
}

func beforeRequest(s *State, turnID string) Step {
	most := s.Config.MaxSteps
	if most == 0 {
		most = DefaultMaxSteps
	}
	switch {
	case s.Turn.Repeats >= MaxRepeats:
		return GiveUp{ErrorLoop, fmt.Sprintf("The model made the same calls with the same results %d times in a row, so the turn was stopped. Send another message to go on in another way.", s.Turn.Repeats)}
	case s.Turn.Step >= most:
		return GiveUp{ErrorStepLimit, fmt.Sprintf("The turn was stopped after %d model requests, its limit. Send another message to go on.", most)}
	}
	if in, ok := steering(s); ok {
		return Deliver{in, "steering"}
	}
	if len(s.Reports) > 0 {
		return Notify{s.Reports}
	}
	return StartStep{turnID}
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
			return Judge{c}
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
