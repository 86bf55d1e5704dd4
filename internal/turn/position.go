package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Position is the session's identity and the end of its log.
type Position struct {
	ID     event.SessionID
	Seq    event.Seq // position of the last event that was folded
	Parent string    // id of the last event that clients are shown
	Shown  event.Seq // number of events that clients are shown
}

// advance moves the end of the log to an event.
func (p *Position) advance(e event.Event) {
	p.Seq = e.Seq
	if e.Kind().Listed() {
		p.Shown++
	}
}

// foldParent remembers the id of an event that clients are shown, because the next
// event names it as its parent.
func (p *Position) foldParent(e event.Event) error {
	if !e.Kind().Listed() {
		return nil
	}
	head, err := e.Head()
	p.Parent = head.ID
	return err
}

// loadParent finds the last event in a log that clients are shown.
func (p *Position) loadParent(events []event.Event) error {
	for _, e := range slices.Backward(events) {
		if e.Kind().Listed() {
			return p.foldParent(e)
		}
	}
	return nil
}
