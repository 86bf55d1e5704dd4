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

func (q *Queue) fold(body event.Payload) {
	switch d := body.(type) {
	case event.InputAcceptedData:
		q.add(d)
	case event.QueueChangedData:
		q.change(d)
	case event.UserMessageData:
		q.remove(d.InputID)
	case event.CommandExecuteData:
		q.remove(d.InputID)
	case event.CommandQueuedData:
		q.remove(d.InputID)
	case event.CommandDoneData:
		q.remove(d.InputID)
		q.Halted = d.Stop && len(q.Inputs) > 0
	}
}

// add lets an input wait. One that interrupts is the next.
func (q *Queue) add(d event.InputAcceptedData) {
	q.Halted = false
	if d.Mode == event.ModeInterrupt {
		q.Inputs = append([]event.InputAcceptedData{d}, q.Inputs...)
		return
	}
	q.Inputs = append(q.Inputs, d)
}

// find returns the place of an input in the queue, or -1.
func (q *Queue) find(inputID string) int {
	return slices.IndexFunc(q.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == inputID })
}

func (q *Queue) remove(inputID string) {
	if i := q.find(inputID); i >= 0 {
		q.Inputs = append(q.Inputs[:i:i], q.Inputs[i+1:]...)
	}
}

// hasHeaders reports whether an input that waits came with headers.
func (q *Queue) hasHeaders(inputID string) bool {
	i := q.find(inputID)
	return i >= 0 && q.Inputs[i].Headers
}

// change puts the queue in another order. What the order does not name is gone.
func (q *Queue) change(d event.QueueChangedData) {
	var queue []event.InputAcceptedData
	for _, id := range d.Order {
		i := q.find(id)
		if i < 0 {
			continue
		}
		in := q.Inputs[i]
		if d.Edited != nil && d.Edited.InputID == id {
			in.Prompt, in.DisplayPrompt = d.Edited.Prompt, d.Edited.DisplayPrompt
		}
		if d.Steer == id {
			in.Mode = event.ModeSteer
		}
		queue = append(queue, in)
	}
	q.Inputs = queue
	if d.Paused != nil {
		q.Paused = *d.Paused
	}
	q.Halted = q.Halted && len(queue) > 0
}

// queueIsHeld reports whether the queue is not to be worked on now.
func (s *State) queueIsHeld() bool {
	return s.Queue.Paused || s.Queue.Halted || s.Exchanges.Queued() != nil
}

// steering returns the first input that wants to be heard before the rest.
func steering(s *State) (event.InputAcceptedData, bool) {
	for _, in := range s.Queue.Inputs {
		if in.Mode == event.ModeSteer && in.Kind == "" {
			return in, true
		}
	}
	return event.InputAcceptedData{}, false
}
