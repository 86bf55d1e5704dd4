package event

// The kinds of events about what is taken back.
const (
	HistoryHidden  Type = "history.hidden"
	FilesRestored  Type = "files.restored"
	SnapshotRewind Type = "session.snapshot_rewind"
)

var _ = list(
	Kind{Type: HistoryHidden, body: body[HistoryHiddenData], Hidden: true, Lasting: true, Shapes: true},
	Kind{Type: FilesRestored, body: body[FilesRestoredData], Hidden: true, Lasting: true},
	Kind{Type: SnapshotRewind, body: body[SnapshotRewindData], Sent: true},
)

// HistoryHiddenData takes a range out of what the model and clients are shown.
// Nothing is deleted.
type HistoryHiddenData struct {
	From   Seq    `json:"from"` // first hidden position
	To     Seq    `json:"to"`   // last hidden position
	Reason string `json:"reason"`
	// Files means that the files that calls in the range have changed are to be
	// given back what they held.
	Files bool `json:"files,omitempty"`
}

// FilesRestoredData tells that files were given back what they held before the
// calls that were taken back.
type FilesRestoredData struct {
	Files []RestoredFile `json:"files"`
	Error string         `json:"error,omitempty"` // why nothing could be done
}

// A RestoredFile is what became of one file.
type RestoredFile struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome"` // one of File…
	Reason  string `json:"reason,omitempty"`
	Added   int    `json:"linesAdded"` // lines that came back
	Gone    int    `json:"linesRemoved"`
}

// The outcomes of a RestoredFile.
const (
	FileRestored = "restored" // it holds again what it held
	FileRemoved  = "removed"  // it was made by a call and is gone
	FileSame     = "same"     // there was nothing to do
	FileSkipped  = "skipped"  // it was left alone, and Reason says why
)

// SnapshotRewindData tells that history was taken back.
type SnapshotRewindData struct {
	UpToEventID   string `json:"upToEventId"`
	EventsRemoved int    `json:"eventsRemoved"`
}

func (HistoryHiddenData) Type() Type  { return HistoryHidden }
func (FilesRestoredData) Type() Type  { return FilesRestored }
func (SnapshotRewindData) Type() Type { return SnapshotRewind }
