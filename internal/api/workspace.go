package api

import "github.com/abide-run/abide/internal/event"

// The methods about the files that a session has of its own.
const (
	WorkspaceGet             = "session.workspaces.getWorkspace"
	WorkspaceEnsure          = "session.workspaces.ensure"
	WorkspaceListFiles       = "session.workspaces.listFiles"
	WorkspaceReadFile        = "session.workspaces.readFile"
	WorkspaceCreateFile      = "session.workspaces.createFile"
	WorkspaceSavePaste       = "session.workspaces.saveLargePaste"
	WorkspaceListCheckpoints = "session.workspaces.listCheckpoints"
	WorkspaceReadCheckpoint  = "session.workspaces.readCheckpoint"
	WorkspaceDiff            = "session.workspaces.diff"
)

// GetWorkspaceResult describes the folder of a session.
type GetWorkspaceResult struct {
	Path      string         `json:"path,omitempty"`
	Workspace *WorkspaceInfo `json:"workspace"`
}

// WorkspaceInfo is what is known of it.
type WorkspaceInfo struct {
	ID           event.SessionID `json:"id"`
	Cwd          string          `json:"cwd,omitempty"`
	GitRoot      string          `json:"git_root,omitempty"`
	Name         string          `json:"name,omitempty"`
	UserNamed    bool            `json:"user_named"`
	ClientName   string          `json:"client_name,omitempty"`
	SummaryCount int             `json:"summary_count"`
	CreatedAt    string          `json:"created_at"`
	UpdatedAt    string          `json:"updated_at"`
}

// FilesResult lists files, from their folder on.
type FilesResult struct {
	Files []string `json:"files"`
}

// FileParams names a file, and what it is to hold.
type FileParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Path      string          `json:"path"`
	Content   *string         `json:"content,omitempty"`
}

// ContentResult is what a file holds; nil if there is none.
type ContentResult struct {
	Content *string `json:"content"`
}

// PasteParams is a long text that somebody pasted.
type PasteParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Content   string          `json:"content"`
}

// PasteResult tells where it is.
type PasteResult struct {
	Saved *SavedPaste `json:"saved"`
}

// A SavedPaste is a text that is kept in a file.
type SavedPaste struct {
	Filename  string `json:"filename"`
	FilePath  string `json:"filePath"`
	SizeBytes int    `json:"sizeBytes"`
}

// CheckpointsResult lists what compactions have written down.
type CheckpointsResult struct {
	Checkpoints []CheckpointInfo `json:"checkpoints"`
}

// A CheckpointInfo is one summary.
type CheckpointInfo struct {
	Number   int    `json:"number"`
	Title    string `json:"title"`
	Filename string `json:"filename"`
}

// CheckpointParams names one by its number.
type CheckpointParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Number    *int64          `json:"number"`
}

// DiffParams asks what has changed in the working directory.
type DiffParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	Mode             string          `json:"mode"`
	IgnoreWhitespace bool            `json:"ignoreWhitespace,omitempty"`
}

// The modes of a diff.
const (
	DiffUnstaged = "unstaged" // since the last commit
	DiffBranch   = "branch"   // since the default branch
	DiffSession  = "session"  // what the session did
)

// DiffResult tells it.
type DiffResult struct {
	Mode          string       `json:"mode"`
	RequestedMode string       `json:"requestedMode"`
	IsFallback    bool         `json:"isFallback"`
	BaseBranch    string       `json:"baseBranch,omitempty"`
	Unavailable   string       `json:"unavailableReason,omitempty"`
	Changes       []FileChange `json:"changes"`
}

// A FileChange is what has changed in one file.
type FileChange struct {
	Path        string `json:"path"`
	OldPath     string `json:"oldPath,omitempty"`
	ChangeType  string `json:"changeType"` // "added", "deleted", "modified" or "renamed"
	Diff        string `json:"diff"`
	IsTruncated bool   `json:"isTruncated,omitempty"`
}
