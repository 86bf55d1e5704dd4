// Package turn is the loop of an agent: decide from the log, do, record.
//
// [State] is what a session's log says, and nothing else: folding the same
// events gives the same state in any process. It has one part for each feature, and
// each part has a file of its own that folds events into it; lifecycle.go says what
// the moments of a session's life do to all parts. [Next] is a pure function that
// decides from the state what comes next. The session records each step before it
// chooses the next one, so that a session goes on after a crash as it always does.
//
// A tool call is intended, permitted, begun and finished, in this order. It is begun
// only after the beginning was stored, and it has exactly one terminal record.
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
	Exchanges  Exchanges
	Budget     Budget
	Tasks      Tasks
	Context    Context
	Skills     Skills
	MCP        MCP
	Rewind     Rewind
	Keys       Keys

	Turn    *Turn              // nil between turns
	History transcript.History // the conversation as the model sees it
	Memory  Memory
	todos   todos
}

// New returns the state before the first event.
func New(id event.SessionID) *State {
	return &State{Position: Position{ID: id}, Life: Life{Idle: true}}
}

// Reset turns the state into that of a session without events: its log was deleted.
func (s *State) Reset() { *s = *New(s.ID) }

// Active reports whether the session has work left to do.
func (s *State) Active() bool {
	return s.Turn != nil || len(s.Queue.Inputs) > 0 || !s.Life.Idle || len(s.Rewind.Restore) > 0
}

// Fold takes in the next event.
func (s *State) Fold(e event.Event) error {
	s.History.Add(e)
	return s.foldNext(e)
}

// Load folds a stored log. It gives the same state as folding every event, but most
// events before the last session.idle are never decoded. Whoever changes the fold
// has to keep the two rules that make this possible:
//
//   - A field that an idle session still needs is changed by lasting events alone
//     (see lasts), and its value depends on lasting events alone.
//   - Every other field is cleared when the session is idle (see lifecycle.go).
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

// lasts reports whether an event changes a field that an idle session still needs. Events
// of the lasting kinds do. A user's message does, too, while the session has no summary yet
// or the text of a skill waits for the next request: later messages change neither.
func (s *State) lasts(e event.Event) bool {
	return e.Kind().Lasting || (e.Type == event.UserMessage && (s.About.Summary == "" || len(s.Skills.waiting) > 0))
}

// count takes in what is known of an event without decoding it.
func (s *State) count(e event.Event) {
	s.advance(e)
	s.Memory.count(e)
}

// foldNext folds the next event into all parts except History.
func (s *State) foldNext(e event.Event) error {
	s.count(e)
	if err := s.foldParent(e); err != nil {
		return err
	}
	return s.foldParts(e, &s.Keys)
}

// foldParts decodes the body of an event once and gives it to each part. An event
// of a kind that this version does not know changes nothing. A log in a newer version
// of the event format is refused at its first event. The argument keys is nil if Load
// reads the keys of requests separately.
//
// Turn comes before Queue, because it looks up the input that Queue then removes.
func (s *State) foldParts(e event.Event, keys *Keys) error {
	if e.Kind().Type == "" {
		return nil
	}
	if err := event.CheckFormat(e); err != nil {
		return err
	}
	body, err := bodyOf(e)
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
	s.Budget.fold(body)
	s.Tasks.fold(e, body)
	s.Skills.fold(body)
	s.MCP.fold(body)
	s.Rewind.fold(body)
	s.Memory.fold(e, body)
	s.todos.fold(e, body)
	return s.Context.fold(e, body)
}

// bodyOf decodes the body of an event. For two frequent kinds it returns an empty body
// without decoding: no part reads their fields, and decoding takes most of the time of
// loading a log.
func bodyOf(e event.Event) (event.Payload, error) {
	switch e.Type {
	case event.AssistantTurnStart:
		return event.AssistantTurnStartData{}, nil
	case event.AssistantTurnEnd:
		return event.AssistantTurnEndData{}, nil
	}
	return e.Body()
}
