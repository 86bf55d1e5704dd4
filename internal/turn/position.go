package turn

import "github.com/abide-run/abide/internal/event"

// Position is which session it is, and where its log ends.
type Position struct {
	ID     event.SessionID
	Seq    event.Seq // the last event that was folded
	Parent string    // id of the last event that clients are shown
	Shown  event.Seq // number of events that clients are shown
}

func (s *State) count(e event.Event) {
	s.Seq = e.Seq
	if e.Kind().Listed() {
		s.Shown++
	}
	s.Memory.count(e)
}

// lastShown finds the event that the next one names as its parent.
func (s *State) lastShown(events []event.Event) error {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind().Listed() {
			head, err := events[i].Head()
			s.Parent = head.ID
			return err
		}
	}
	return nil
}
