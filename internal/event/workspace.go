package event

// WorkspaceFileChanged tells that a client has written a file of the session's
// own.
const WorkspaceFileChanged Type = "session.workspace_file_changed"

// WorkspaceFileChangedData names it, below the folder of those files.
type WorkspaceFileChangedData struct {
	Path      string `json:"path"`
	Operation string `json:"operation"` // "create" or "update"
}

// Type is the kind of the event.
func (WorkspaceFileChangedData) Type() Type { return WorkspaceFileChanged }
