package turn

import "github.com/abide-run/abide/internal/event"

// foldMoment takes in a moment of the session's life: what it does to all parts.
func (s *State) foldMoment(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.UserMessageData:
		s.open(Turn{InteractionID: d.InteractionID, Prompt: d.Content})
	case event.SystemNotificationData:
		s.open(Turn{InteractionID: d.InteractionID})
	case event.AssistantTurnEndData:
		if s.Turn.ends() {
			s.over(body)
		}
	case event.SessionErrorData:
		if d.EndsTurn {
			s.over(body)
		}
	case event.TurnEndedData:
		s.over(body)
	case event.AbortData:
		s.over(body)
		s.abort(d)
	case event.SessionIdleData:
		s.rest(d)
	case event.HistoryHiddenData:
		s.hide(e.Seq, d)
	case event.SessionForkedData:
		s.fork()
	}
}

// open begins a turn if there is none.
func (s *State) open(t Turn) {
	if s.Turn == nil {
		s.Life.Last = nil
		s.Hooks.forgetTurn()
		s.Context.Compactions, s.Context.Full = 0, ""
		s.Turn = &t
		s.About.Totals.Turns++
	}
}

// reopen lets the turn go on that has ended.
func (s *State) reopen(t Turn) { s.Turn, s.Life.Last = &t, nil }

// over ends the turn.
func (s *State) over(body event.Payload) {
	s.Life.Last = endingOf(s.Turn, body)
	s.Hooks.forgetTurn()
	s.Turn = nil
}

// rest clears all that is not kept while the session is idle. It is cleared even
// if there should be nothing: what Load has skipped must not make a difference.
func (s *State) rest(d event.SessionIdleData) {
	s.About.Totals = d.Totals
	s.Life = Life{Idle: true, Aborted: d.Aborted}
	s.Queue.Inputs, s.Queue.Halted = nil, false
	s.Hooks = Hooks{}
	s.Context.Switched, s.Context.Compactions, s.Context.Full = false, 0, ""
	s.Context.Gate.Reset()
	s.Turn = nil
}

func (s *State) abort(d event.AbortData) {
	s.Life.Aborted, s.Life.Suspended = true, false
	if s.Queue.Halted = false; !d.KeepQueue {
		s.Queue.Inputs, s.Hooks = nil, Hooks{}
	}
}

func (s *State) hide(at event.Seq, d event.HistoryHiddenData) {
	s.Life.Idle, s.Life.Suspended, s.Life.Last = true, false, nil
	s.Hooks.forgetTurn()
	s.Context.outdate()
	s.Skills.told, s.Skills.waiting = nil, nil // what the model was told may be among it
	s.Rewind.hide(d)
	s.Turn = nil
	s.Memory.Hidden = at
	s.todos.hide(at, d)
}

func (s *State) fork() {
	s.Life = Life{Idle: true, Aborted: s.Life.Aborted}
	s.Queue, s.Hooks, s.Exchanges, s.Tasks = Queue{}, Hooks{}, Exchanges{}, Tasks{}
	s.Rewind.Restore = nil
	s.Turn = nil
	s.Memory.Waiting, s.Memory.Aside = 0, nil // the parent's
}
