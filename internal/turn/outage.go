package turn

import (
	"time"

	"github.com/abide-run/abide/internal/event"
)

// Outage is what a turn knows of models that could not be reached.
type Outage struct {
	Parked    *Parked // what the turn waits for; nil if the model is to be asked at once
	Model     string  // fallback that the turn asks; empty for the session's own model
	Fallbacks int     // number of fallbacks that were used
}

// Parked is a turn that waits until its model is asked again.
type Parked struct {
	event.TurnParkedData
	At time.Time // time of the event
}

// Wait returns how long the turn waits, from At.
func (p Parked) Wait() time.Duration { return Milliseconds(p.WaitMs) }

// Left returns how long it waits for its model at most, from At.
func (p Parked) Left() time.Duration { return Milliseconds(p.LeftMs) }

// Longest is the longest time that a turn waits. A longer one counts as this: it is more than
// any clock will run, and the sum of two is still a duration.
const Longest = 100 * 365 * 24 * time.Hour

// Milliseconds returns a number of milliseconds as a duration, which is at most Longest.
func Milliseconds(n int64) time.Duration {
	return time.Duration(min(n, Longest.Milliseconds())) * time.Millisecond
}

// Park: let the turn wait until its model is asked again.
type Park struct{ Parked Parked }

func (Park) step() {}

// fold takes in an event of a running turn. Whatever makes another request than the one
// that failed ends the wait.
func (o *Outage) fold(e event.Event, body event.Payload) error {
	switch d := body.(type) {
	case event.TurnParkedData:
		head, err := e.Head()
		if err != nil {
			return err
		}
		o.Parked = &Parked{d, head.Time}
	case event.TurnFallbackData:
		o.Parked, o.Model = nil, d.Model
		o.Fallbacks++
	case event.SessionModelChangeData:
		*o = Outage{}
	case event.SessionConfiguredData, event.AssistantTurnStartData, event.AssistantMessageData:
		o.Parked = nil
	case event.HookStartData:
		if d.Kind == event.HookErrorOccurred {
			o.Parked = nil
		}
	}
	return nil
}

// Parked returns what the turn waits for, or nil if it does not wait for a model.
func (s *State) Parked() *Parked {
	if s.Turn == nil || s.Turn.Phase != Asking {
		return nil
	}
	return s.Turn.Outage.Parked
}

// OnlyParked reports whether a process that has just started would do nothing for the
// session before the time of its parked turn has come.
func (s *State) OnlyParked() bool {
	if s.Parked() == nil {
		return false
	}
	nothing := func(string) bool { return false }
	_, parked := Next(s, Now{Running: nothing, Fresh: nothing, Asked: nothing}).(Park)
	return parked
}

// AskedModel returns the model that the session asks: a fallback for the rest of a turn,
// and otherwise its own.
func (s *State) AskedModel() string {
	if s.Turn != nil && s.Turn.Outage.Model != "" {
		return s.Turn.Outage.Model
	}
	return s.Setup.Model
}

// NextFallback returns the model to ask when the present one is given up. It reports
// false if there is none left.
func (s *State) NextFallback() (string, bool) {
	list := s.Setup.Config.Outage.Fallback
	for _, name := range list[min(s.Turn.Outage.Fallbacks, len(list)):] {
		if name != s.AskedModel() {
			return name, true
		}
	}
	return "", false
}
