package turn

import (
	"maps"

	"github.com/abide-run/abide/internal/event"
)

// Attempt tells how often an open question was put to clients.
func (s *State) Attempt(requestID string) int { return 1 + s.Exchanges.redelivered[requestID] }

func (s *State) foldRedelivered(d event.QuestionsRedeliveredData) {
	counts := maps.Clone(s.Exchanges.redelivered)
	if counts == nil {
		counts = make(map[string]int)
	}
	for _, id := range d.RequestIDs {
		counts[id]++
	}
	s.Exchanges.redelivered = counts
}
