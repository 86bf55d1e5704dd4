package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Rewind is the parts of the log that were taken back.
type Rewind struct {
	Hidden  []event.HistoryHiddenData // all rewinds, in the order in which they were recorded
	Restore []event.HistoryHiddenData // the rewinds whose files have yet to be restored
}

func (r *Rewind) fold(body event.Payload) {
	if _, ok := body.(event.FilesRestoredData); ok {
		r.Restore = r.Restore[min(1, len(r.Restore)):]
	}
}

// add takes in that a part of the log is taken back.
func (r *Rewind) add(d event.HistoryHiddenData) {
	if d.Files {
		r.Restore = append(r.Restore, d)
	}
	r.Hidden = append(slices.Clip(r.Hidden), d)
}
