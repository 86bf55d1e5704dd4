package session

import (
	"context"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// Todos reads the lists that the models of sessions keep.
type Todos struct{ host *Host }

// List returns the list that the model of a session keeps of what it has to do.
func (ts Todos) List(ctx context.Context, id event.SessionID) ([]turn.Todo, error) {
	var list []turn.Todo
	err := ts.host.inspect(ctx, id, func(tx *txn) error {
		list = tx.State.Todos()
		return nil
	})
	return list, err
}
