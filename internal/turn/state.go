// Package turn is the loop of an agent: decide from the log, do, record.
//
// [State] is what a session's log says, and nothing else: folding the same
// events gives the same state, in any process. [Next] decides from it what
// comes next, and is pure. Whoever carries a step out records it before the next
// one is chosen, so that going on after a crash is the same as going on.
//
// A call goes intended → permitted → begun → finished. It is begun only after
// that was stored, and it has exactly one terminal record.
package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
)

// A State is what the log says of a session: one part for each feature.
type State struct {
	Position
	About      About
	Setup      Setup
	Prompt     Prompt
	Permission Permission
	Queue      Queue
	Life       Life
	Hooks      Hooks
	Exchanges  Exchanges // what clients were asked beside the model's calls
	Tasks      Tasks
	Context    Context
	Skills     Skills
	Rewind     Rewind
	Keys       Keys

	Turn    *Turn              // nil between turns
	History transcript.History // what the model sees
	Memory  Memory             // how far the session was remembered
	todos   todos              // what the model has written down to be done
}

// New returns the state before the first event.
func New(id event.SessionID) *State {
	return &State{Position: Position{ID: id}, Life: Life{Idle: true}}
}

// Reset makes the state that of a session without events, which was deleted.
func (s *State) Reset() { *s = *New(s.ID) }

// Active reports whether there is anything left to do.
func (s *State) Active() bool {
	return s.Turn != nil || len(s.Queue.Inputs) > 0 || !s.Life.Idle || len(s.Rewind.Restore) > 0
}

// Fold takes in the next event.
func (s *State) Fold(e event.Event) error {
	s.History.Add(e)
	return s.foldNext(e)
}

// Load folds a stored log. The state is the one that folding every event gives,
// but most of what happened before the session was last idle is never decoded.
// Two rules make that so, and whoever changes the fold has to keep them:
//
//   - What only some kinds of events change (see lasts) depends on nothing else.
//   - Everything else is cleared when the session is idle (see lifecycle.go).
func (s *State) Load(events []event.Event) error {
	before, rest := cutAtIdle(events)
	for _, e := range before {
		s.count(e)
		if s.lasts(e) {
			if err := s.foldParts(e, nil); err != nil {
				return err
			}
		}
	}
	if err := s.Keys.load(before); err != nil {
		return err
	}
	for _, e := range rest {
		if err := s.foldNext(e); err != nil {
			return err
		}
	}
	s.History.Load(events)
	if err := s.Context.loadMeasured(events); err != nil {
		return err
	}
	return s.loadParent(events)
}

// cutAtIdle cuts a log in two. The second part begins with the last session.idle,
// or is the whole log if there is none.
func cutAtIdle(events []event.Event) (before, rest []event.Event) {
	for i, e := range slices.Backward(events) {
		if e.Type == event.SessionIdle {
			return events[:i], events[i:]
		}
	}
	return nil, events
}

// lasts reports whether an event changes what an idle session still knows. A
// message does so only as long as the session has no summary, or as a skill waits
// to be told.
func (s *State) lasts(e event.Event) bool {
	return e.Kind().Lasting || (e.Type == event.UserMessage && (s.About.Summary == "" || len(s.Skills.waiting) > 0))
}

// count takes in what can be told of an event without decoding it.
func (s *State) count(e event.Event) {
	s.advance(e)
	s.Memory.count(e)
}

// foldNext takes in the next event, but for the conversation.
func (s *State) foldNext(e event.Event) error {
	s.count(e)
	if err := s.foldParent(e); err != nil {
		return err
	}
	return s.foldParts(e, &s.Keys)
}

// foldParts decodes the body of an event, once, and has each part take what it
// needs. An event of a kind that this version does not know means nothing. Keys
// is nil if the keys of requests are loaded in another way.
//
// The turn comes before the queue: it looks up the input that the queue then
// lets go of.
func (s *State) foldParts(e event.Event, keys *Keys) error {
	if e.Kind().Type == "" {
		return nil
	}
	body, err := e.Body()
	if err != nil {
		return err
	}
	if keys != nil {
		keys.fold(e, body)
	}
	s.foldMoments(e, body)
	s.About.fold(s, body)
	s.Setup.fold(body)
	s.Prompt.fold(body)
	s.Permission.fold(body)
	if err := s.Turn.fold(s, e, body); err != nil {
		return err
	}
	s.Queue.fold(body)
	s.Life.fold(body)
	s.Hooks.fold(s, body)
	s.Exchanges.fold(e, body)
	s.Tasks.fold(e, body)
	s.Skills.fold(body)
	s.Rewind.fold(body)
	s.Memory.fold(e, body)
	s.todos.fold(e, body)
	return s.Context.fold(e, body)
}
