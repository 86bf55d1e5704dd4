package api

import "github.com/abide-run/abide/internal/event"

// The methods about the own files of a session.
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

// WorkspaceInfo describes a workspace.
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

// FilesResult lists files, relative to their directory.
type FilesResult struct {
	Files []string `json:"files"`
}

// FileParams is the name and the new content of a file.
type FileParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Path      string          `json:"path"`
	Content   *string         `json:"content,omitempty"`
}

// ContentResult is the content of a file; nil if it does not exist.
type ContentResult struct {
	Content *string `json:"content"`
}

// PasteParams is a long text that was pasted.
type PasteParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Content   string          `json:"content"`
}

// PasteResult is the file with the text.
type PasteResult struct {
	Saved *SavedPaste `json:"saved"`
}

// A SavedPaste is a text that was saved to a file.
type SavedPaste struct {
	Filename  string `json:"filename"`
	FilePath  string `json:"filePath"`
	SizeBytes int    `json:"sizeBytes"`
}

// CheckpointsResult lists the summaries of compactions.
type CheckpointsResult struct {
	Checkpoints []CheckpointInfo `json:"checkpoints"`
}

// A CheckpointInfo is one summary.
type CheckpointInfo struct {
	Number   int    `json:"number"`
	Title    string `json:"title"`
	Filename string `json:"filename"`
}

// CheckpointParams is the number of a checkpoint.
type CheckpointParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Number    *int64          `json:"number"`
}

// DiffParams asks for the changes in the working directory.
type DiffParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	Mode             string          `json:"mode"`
	IgnoreWhitespace bool            `json:"ignoreWhitespace,omitempty"`
}

// The modes of a diff.
const (
	DiffUnstaged = "unstaged" // changes since the last commit
	DiffBranch   = "branch"   // changes since the default branch
	DiffSession  = "session"  // changes by the session
)

// DiffResult lists the changed files.
type DiffResult struct {
	Mode          string       `json:"mode"`
	RequestedMode string       `json:"requestedMode"`
	IsFallback    bool         `json:"isFallback"`
	BaseBranch    string       `json:"baseBranch,omitempty"`
	Unavailable   string       `json:"unavailableReason,omitempty"`
	Changes       []FileChange `json:"changes"`
}

// A FileChange is the change to one file.
type FileChange struct {
	Path        string `json:"path"`
	OldPath     string `json:"oldPath,omitempty"`
	ChangeType  string `json:"changeType"` // "added", "deleted", "modified" or "renamed"
	Diff        string `json:"diff"`
	IsTruncated bool   `json:"isTruncated,omitempty"`
}
