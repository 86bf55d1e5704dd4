package session

import (
	"context"

	"github.com/abide-run/abide/internal/event"
)

// Settled reports whether something that clients were asked, beside the model's
// calls, was answered lately.
func (h *Host) Settled(ctx context.Context, id event.SessionID, requestID string) (settled bool, err error) {
	err = h.look(ctx, id, func(tx *txn) error {
		_, settled = tx.State.Exchanges.Closed(requestID)
		return tx.exists()
	})
	return settled, err
}
