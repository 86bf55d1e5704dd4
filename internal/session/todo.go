package session

import (
	"context"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// Todos reads the lists of things to do that models keep.
type Todos struct{ host *Host }

// List returns the list of things to do that a session's model keeps.
func (ts Todos) List(ctx context.Context, id event.SessionID) ([]turn.Todo, error) {
	var list []turn.Todo
	err := ts.host.inspect(ctx, id, func(tx *txn) error {
		list = tx.State.Todos()
		return nil
	})
	return list, err
}
