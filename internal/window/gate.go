package window

import "time"

// A Gate prevents useless compactions: after a compaction, thresholds apply again only
// when the history has grown, and after several failures only after some time. Its state
// is a fold over the log; the zero value is open.
type Gate struct {
	level    int       // tokens after the last compaction, or at the last attempt
	enough   int       // growth in tokens that opens the gate after a compaction was skipped; zero otherwise
	attempts int       // number of attempts that failed since the last success
	last     time.Time // time of the last failure
}

// The conditions for opening a gate again.
const (
	growth    = 4                // divisor: the history has to grow by a quarter
	attempts  = 3                // failures after which the gate stays closed for some time
	restAfter = 10 * time.Minute // the pause after failures
)

// Settled records that a compaction succeeded and left the given number of tokens.
func (g *Gate) Settled(tokens int) { *g = Gate{level: tokens} }

// Skipped records that there was nothing to compact in a request of the given size.
// history is the size of its messages. Since skipping costs nothing, only the history has
// to grow by a quarter.
func (g *Gate) Skipped(tokens, history int) {
	*g = Gate{level: tokens, enough: max(1, history/growth)}
}

// Failed records that a compaction of a request of the given size failed.
func (g *Gate) Failed(tokens int, now time.Time) {
	*g = Gate{level: tokens, attempts: g.attempts + 1, last: now}
}

// Reset forgets failures. It is called when a person sends a message, asks for a
// compaction, or changes the model.
func (g *Gate) Reset() { g.attempts = 0 }

// Open reports whether thresholds apply to a request of the given size.
//
// The cost of a compaction is proportional to the size of the history; its benefit is
// proportional to what was added since the last one. So the history has to grow by a
// quarter first, and the cost of all compactions together stays proportional to the
// length of the conversation. Close to the limit, a quarter of the remaining tokens is
// enough, so that a threshold is reached before the limit.
func (g Gate) Open(tokens, limit int, now time.Time) bool {
	if g.attempts >= attempts && now.Sub(g.last) < restAfter {
		return false
	}
	enough := g.enough
	if enough == 0 {
		enough = max(1, min(g.level, limit-g.level)/growth)
	}
	return g.level == 0 || tokens >= g.level+enough
}
