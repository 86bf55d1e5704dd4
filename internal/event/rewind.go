package event

// The types of events about a rewind, which takes back the last part of a conversation.
const (
	HistoryHidden  Type = "history.hidden"
	FilesRestored  Type = "files.restored"
	SnapshotRewind Type = "session.snapshot_rewind"
)

var _ = list(
	Kind{Type: HistoryHidden, body: body[HistoryHiddenData], Hidden: true, Lasting: true, Shapes: true},
	Kind{Type: FilesRestored, body: body[FilesRestoredData], Hidden: true, Lasting: true},
	Kind{Type: SnapshotRewind, body: body[SnapshotRewindData], Sent: true, Silent: true},
)

// HistoryHiddenData is the body of history.hidden: a range of events is no longer shown
// to the model and to clients. The events stay in the log.
type HistoryHiddenData struct {
	From   Seq    `json:"from"` // first hidden position
	To     Seq    `json:"to"`   // last hidden position
	Reason string `json:"reason"`
	Files  bool   `json:"files,omitempty"` // true if files that calls in the range changed are to be restored; a files.restored follows
}

// FilesRestoredData is the body of files.restored: the files that hidden calls changed
// have their old content again.
type FilesRestoredData struct {
	Files []RestoredFile `json:"files"`
	Error string         `json:"error,omitempty"` // reason why no file could be restored
}

// A RestoredFile says what was done to one file.
type RestoredFile struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome"`          // one of the File constants below
	Reason  string `json:"reason,omitempty"` // reason why the file was skipped
	Added   int    `json:"linesAdded"`       // number of lines that the old content has and the file did not
	Gone    int    `json:"linesRemoved"`     // number of lines that the file had and the old content does not
}

// The outcomes of a RestoredFile.
const (
	FileRestored = "restored" // the file has its old content again
	FileRemoved  = "removed"  // a call had created the file, and it was removed
	FileSame     = "same"     // the file had its old content already
	FileSkipped  = "skipped"  // the file was not changed; Reason says why
)

// SnapshotRewindData is the body of session.snapshot_rewind: a rewind was done.
type SnapshotRewindData struct {
	UpToEventID   string `json:"upToEventId"`   // id of the first event that was taken back
	EventsRemoved int    `json:"eventsRemoved"` // number of events that are no longer shown
}

func (HistoryHiddenData) Type() Type  { return HistoryHidden }
func (FilesRestoredData) Type() Type  { return FilesRestored }
func (SnapshotRewindData) Type() Type { return SnapshotRewind }
