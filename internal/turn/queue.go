package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Queue is what was accepted and is not delivered yet.
type Queue struct {
	Inputs []event.InputAcceptedData
	Paused bool // the queue is held until somebody lets it go
	Halted bool // the queue is held until something new comes
}

func (s *State) inputAccepted(d event.InputAcceptedData) {
	s.Queue.Halted = false
	if d.Mode == event.ModeInterrupt {
		s.Queue.Inputs = append([]event.InputAcceptedData{d}, s.Queue.Inputs...)
		return
	}
	s.Queue.Inputs = append(s.Queue.Inputs, d)
}

func (s *State) unqueue(inputID string) {
	for i, in := range s.Queue.Inputs {
		if in.InputID == inputID {
			s.Queue.Inputs = append(s.Queue.Inputs[:i:i], s.Queue.Inputs[i+1:]...)
			delete(s.Hooks.Inputs, inputID)
			return
		}
	}
}

// headed reports whether an input that waits came with headers.
func (s *State) headed(inputID string) bool {
	return slices.ContainsFunc(s.Queue.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == inputID && in.Headers })
}

// commandTaken takes a command out of the queue: something has happened.
func (s *State) commandTaken(inputID string) {
	if inputID != "" {
		s.unqueue(inputID)
		s.Life.Idle, s.Life.Aborted = false, false
	}
}

// queueChanged puts the queue in another order. What the order does not name is
// gone.
func (s *State) queueChanged(d event.QueueChangedData) {
	var queue []event.InputAcceptedData
	for _, id := range d.Order {
		i := slices.IndexFunc(s.Queue.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == id })
		if i < 0 {
			continue
		}
		in := s.Queue.Inputs[i]
		if d.Edited != nil && d.Edited.InputID == id {
			in.Prompt, in.DisplayPrompt = d.Edited.Prompt, d.Edited.DisplayPrompt
		}
		if d.Steer == id {
			in.Mode = event.ModeSteer
		}
		queue = append(queue, in)
	}
	s.Queue.Inputs = queue
	if d.Paused != nil {
		s.Queue.Paused = *d.Paused
	}
	s.Queue.Halted = s.Queue.Halted && len(queue) > 0
}

// held reports whether the queue is not to be worked on now.
func (s *State) held() bool { return s.Queue.Paused || s.Queue.Halted || s.Exchanges.Queued() != nil }

// steering returns the first input that wants to be heard before the rest.
func steering(s *State) (event.InputAcceptedData, bool) {
	for _, in := range s.Queue.Inputs {
		if in.Mode == event.ModeSteer && in.Kind == "" {
			return in, true
		}
	}
	return event.InputAcceptedData{}, false
}
