package session

import (
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// foundTurn notes that a turn that was read from the store was begun by an earlier engine:
// nothing of the session was stored since this one has started.
func (s *Session) foundTurn(index eventlog.Session) {
	s.earlier = ""
	if s.state.Turn != nil && index.Modified.Before(s.host.started.Truncate(time.Millisecond)) {
		s.earlier = event.FormatTime(index.Modified)
	}
}

// takesOver reports whether a step is one that this engine takes in the turn of an earlier one.
func (s *Session) takesOver(step turn.Step) bool {
	switch step.(type) {
	case turn.Wait, turn.Measure, turn.Rest:
		return false
	}
	return s.earlier != ""
}

// recordTakeover records once that this engine goes on with the turn of an earlier one, so
// that people see what the time between was spent on. It is called when something else is
// recorded or done in the session: looking at it is no takeover.
func (tx *txn) recordTakeover() error {
	last := tx.s.earlier
	tx.s.earlier = ""
	if last == "" || tx.State.Turn == nil {
		return nil
	}
	return tx.record(event.TurnTakenOverData{InteractionID: tx.State.Turn.InteractionID, LastTime: last})
}
