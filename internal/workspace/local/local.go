// Package local is the workspace on this machine.
//
// Files are reached from one open folder to the next, so that below a root
// nothing that is renamed meanwhile leads elsewhere. Nothing that is opened makes
// us wait. Processes are those of a [process.Manager], which outlive us.
package local

import (
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// New returns the workspace of a folder, which is absolute: it is where relative
// paths start and where commands run that do not say where. It confines nothing.
func New(dir string, m *process.Manager) workspace.Workspace {
	files := &Files{dir}
	return workspace.Workspace{Files: files, Processes: &Processes{m, files}}
}

// Files are the files of this machine.
type Files struct{ dir string }

var _ workspace.Files = (*Files)(nil)

// Processes are the processes of a manager.
type Processes struct {
	manager *process.Manager
	files   *Files
}

var _ workspace.Processes = (*Processes)(nil)
