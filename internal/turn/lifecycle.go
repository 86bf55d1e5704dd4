package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// rest clears all that is not kept while the session is idle. It is cleared even
// if there should be nothing: what Load has skipped must not make a difference.
func (s *State) rest(d event.SessionIdleData) {
	s.Life.Idle, s.Life.Aborted, s.About.Totals = true, d.Aborted, d.Totals
	s.Turn, s.Queue.Inputs = nil, nil
	s.Hooks.Open, s.Hooks.Inputs, s.Life.Entry, s.Life.Last = nil, nil, "", nil
	s.Queue.Halted, s.Life.Suspended, s.Context.Switched = false, false, false
	s.Context.Gate.Reset()
}

// over ends the turn.
func (s *State) over(reason, message string) {
	t := s.Turn
	s.forgetTurn()
	if s.Turn = nil; t == nil {
		return
	}
	last := *t
	last.Calls = nil
	s.Life.Last = &Ending{Turn: last, Reason: reason, Error: message, Final: reason == EndComplete && !t.Stop}
}

// forgetTurn lets go of what was asked about a turn. Hooks of inputs that wait
// are not about one.
func (s *State) forgetTurn() {
	s.Life.Last = nil
	s.Hooks.Open = slices.DeleteFunc(slices.Clone(s.Hooks.Open), func(h event.HookStartData) bool { return h.InputID == "" })
}

func (s *State) aborted(d event.AbortData) {
	s.over(EndAbort, "")
	s.Life.Aborted = true
	s.Queue.Halted, s.Life.Suspended = false, false
	if !d.KeepQueue {
		s.Queue.Inputs, s.Hooks.Inputs, s.Hooks.Open = nil, nil, nil
	}
}
