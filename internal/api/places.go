package api

// WorkspacesList lists the workspaces that sessions can work in.
const WorkspacesList = "workspaces.list"

// A Workspace is one in which sessions can work.
type Workspace struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"` // missing for the machine of the engine
	Dir     string `json:"cwd,omitempty"`     // folder in which sessions work; that of the workspace if missing
	Default bool   `json:"default,omitempty"` // true if it is the one of the client's new sessions
}

// WorkspacesResult lists workspaces; the machine of the engine comes first.
type WorkspacesResult struct {
	Workspaces []Workspace `json:"workspaces"`
}
