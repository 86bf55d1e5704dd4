package daemon

import (
	"context"
	"time"

	"github.com/abide-run/abide/internal/session"
)

// expire deletes old sessions, now and every hour.
func (n *Node) expire(ctx context.Context, host *session.Host) {
	tick := time.NewTicker(sweepPause)
	defer tick.Stop()
	for {
		if _, err := host.Retention.Expire(ctx, session.Age{Before: time.Now().Add(-n.config.Keep)}); err != nil && ctx.Err() == nil {
			n.log.Warn("some old sessions could not be deleted", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
