package eventlog

import (
	"context"
	"iter"

	"github.com/abide-run/abide/internal/event"
)

// Follow yields the events after the given end, old ones first, then new ones
// as they come, until ctx is done or the consumer stops. Replay and live are
// one path: what Read has is yielded, then Wait tells when to read again.
func Follow(ctx context.Context, log Log, id event.SessionID, after End) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			for e, err := range log.ReadFrom(ctx, id, after) {
				if !yield(e, err) || err != nil {
					return
				}
				after = after.Next(e.Bytes)
			}
			if err := log.Wait(ctx, id, after.Seq); err != nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}
