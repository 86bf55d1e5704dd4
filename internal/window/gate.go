package window

import "time"

// A Gate keeps thresholds from firing for nothing: after a compaction they fire
// again only when the history has grown, and after several failures only after a
// while. Its state is a fold over the log; the zero value is open.
type Gate struct {
	level    int // tokens after the last compaction, or at the last attempt
	enough   int // growth after which there may be something to do, if there was nothing
	attempts int // that failed, one after the other
	last     time.Time
}

// When a gate opens again.
const (
	growth    = 4 // a quarter of what is there, or of what is left
	attempts  = 3
	restAfter = 10 * time.Minute
)

// Settled takes in that a compaction ended with so many tokens.
func (g *Gate) Settled(tokens int) { *g = Gate{level: tokens} }

// Skipped takes in that there was nothing to compact at that size, of which so many
// tokens are history. It has cost nothing, so that it is only the history that has
// to grow by a part.
func (g *Gate) Skipped(tokens, history int) {
	*g = Gate{level: tokens, enough: max(1, history/growth)}
}

// Failed takes in that a compaction failed at that size.
func (g *Gate) Failed(tokens int, now time.Time) {
	*g = Gate{level: tokens, attempts: g.attempts + 1, last: now}
}

// Reset forgets failures: somebody has spoken, asked for a compaction, or changed
// the model.
func (g *Gate) Reset() { g.attempts = 0 }

// Open reports whether a threshold may fire.
//
// What a compaction costs goes with what is there; what it can win is what has
// come since. So it has to have grown by a part of what was there, and the cost
// of all compactions stays in proportion to what was ever said. Close to the
// limit the part is one of what is left, so that the threshold comes first.
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
