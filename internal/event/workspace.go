package event

// The kinds of events about the files of a session's own.
const (
	WorkspaceFileChanged Type = "session.workspace_file_changed"
)

var _ = list(
	Kind{Type: WorkspaceFileChanged, body: body[WorkspaceFileChangedData]},
)

// WorkspaceFileChangedData names it, below the folder of those files.
type WorkspaceFileChangedData struct {
	Path      string `json:"path"`
	Operation string `json:"operation"` // "create" or "update"
}

func (WorkspaceFileChangedData) Type() Type { return WorkspaceFileChanged }
