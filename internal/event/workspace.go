package event

// The types of events about the files in a session's own folder.
const (
	WorkspaceFileChanged Type = "session.workspace_file_changed"
)

var _ = list(
	Kind{Type: WorkspaceFileChanged, body: body[WorkspaceFileChangedData], Silent: true, Inert: true},
)

// WorkspaceFileChangedData is the body of session.workspace_file_changed: a client has
// written a file in the session's own folder.
type WorkspaceFileChangedData struct {
	Path      string `json:"path"`      // relative to that folder
	Operation string `json:"operation"` // "create" or "update"
}

func (WorkspaceFileChangedData) Type() Type { return WorkspaceFileChanged }
