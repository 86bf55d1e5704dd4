package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Queue is the inputs that were accepted and not delivered yet.
type Queue struct {
	Inputs []event.InputAcceptedData
	Paused bool // a client has stopped the queue, until a client starts it again
	Halted bool // a command has stopped the queue, until the next input is accepted
	Held   bool // somebody has stopped the session, until the next input is accepted or the session is resumed
}

func (q *Queue) fold(body event.Payload) {
	switch d := body.(type) {
	case event.InputAcceptedData:
		q.add(d)
	case event.SessionResumeData:
		q.Held = false
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

// add appends an input, or puts it first if it interrupts.
func (q *Queue) add(d event.InputAcceptedData) {
	q.Halted, q.Held = false, false
	if d.Mode == event.ModeInterrupt {
		q.Inputs = append([]event.InputAcceptedData{d}, q.Inputs...)
		return
	}
	q.Inputs = append(q.Inputs, d)
}

// find returns the index of an input, or -1.
func (q *Queue) find(inputID string) int {
	return slices.IndexFunc(q.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == inputID })
}

func (q *Queue) remove(inputID string) {
	if i := q.find(inputID); i >= 0 {
		q.Inputs = append(q.Inputs[:i:i], q.Inputs[i+1:]...)
	}
}

// hasHeaders reports whether a queued input came with headers for model requests.
func (q *Queue) hasHeaders(inputID string) bool {
	i := q.find(inputID)
	return i >= 0 && q.Inputs[i].Headers
}

// change gives the queue another order. Inputs that the order does not name are removed.
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
	q.Halted, q.Held = q.Halted && len(queue) > 0, q.Held && len(queue) > 0
}

// queueIsHeld reports whether no queued input may be delivered now.
func (s *State) queueIsHeld() bool {
	return s.Queue.Paused || s.Queue.Halted || s.Queue.Held || s.Exchanges.Queued() != nil
}

// steering returns the first input that is to be delivered during the running turn.
func steering(s *State) (event.InputAcceptedData, bool) {
	for _, in := range s.Queue.Inputs {
		if in.Mode == event.ModeSteer && in.Kind == "" {
			return in, true
		}
	}
	return event.InputAcceptedData{}, false
}
