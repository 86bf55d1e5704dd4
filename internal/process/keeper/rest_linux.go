package keeper

import (
	"slices"
	"time"
)

// resting is when a command is ended that has nothing to do and that nobody uses.
type resting struct {
	after time.Duration // time without a daemon after which it is ended; zero while it has something to do
	endAt time.Time     // time at which it is ended; zero while a daemon is there
}

// noteDaemons takes in whether a daemon is there.
func (k *keeper) noteDaemons(now time.Time) {
	there := slices.ContainsFunc(k.conns, func(c *conn) bool { return c.shown && !c.closed })
	switch {
	case k.after == 0 || there:
		k.endAt = time.Time{}
	case k.endAt.IsZero():
		k.endAt = now.Add(k.after)
	}
}
