package turn

import "github.com/abide-run/abide/internal/event"

// Moments are the moments of a session's life, each with an event that stands for
// it.
var Moments = [moments]struct {
	Name string
	Body event.Payload
}{
	opened:  {"opened", event.UserMessageData{InteractionID: "next", Content: "go on"}},
	over:    {"over", event.TurnEndedData{}},
	idle:    {"idle", event.SessionIdleData{}},
	aborted: {"aborted", event.AbortData{}},
	hidden:  {"hidden", event.HistoryHiddenData{From: 1, To: 1000, Files: true}},
	forked:  {"forked", event.SessionForkedData{}},
}

// Rows returns the names of the parts that have a row in the table of the
// lifecycle, from the top to the bottom.
func Rows() []string {
	names := make([]string, len(lifecycle))
	for i, r := range lifecycle {
		names[i] = r.part
	}
	return names
}

// HasChange reports whether a cell of the table is there.
func HasChange(row, m int) bool { return lifecycle[row].changes[m] != nil }

// Change runs one cell of the table.
func (s *State) Change(row, m int, e event.Event) { lifecycle[row].changes[m](s, e, Moments[m].Body) }
