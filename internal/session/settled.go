package session

import (
	"context"

	"github.com/abide-run/abide/internal/event"
)

// Answered reports whether something that clients were asked, beside the model's
// calls, was answered lately.
func (qs Questions) Answered(ctx context.Context, id event.SessionID, requestID string) (settled bool, err error) {
	err = qs.host.look(ctx, id, func(tx *txn) error {
		_, settled = tx.State.Exchanges.Closed(requestID)
		return tx.exists()
	})
	return settled, err
}
