package turn

import "github.com/abide-run/abide/internal/event"

// Rewind is what was taken back.
type Rewind struct {
	Hidden  []event.HistoryHiddenData // in the order in which it was taken back
	Restore []event.HistoryHiddenData // the rewinds whose files have yet to be restored
}
