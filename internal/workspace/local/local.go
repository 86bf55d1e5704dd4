// Package local implements a workspace on this machine.
//
// Below a root each folder is opened from the one above it, so that a folder that is
// renamed meanwhile cannot lead out of the root. Opening a file never blocks. Processes
// are those of a [process.Manager], and outlive this program.
package local

import (
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// New returns the workspace of a folder, which must be an absolute path. Relative paths
// are relative to it, and commands without a directory run in it. It is no boundary:
// other paths can be used too.
func New(dir string, m *process.Manager) workspace.Workspace {
	files := &files{dir, newPathLocks()}
	return workspace.Workspace{Files: files, Processes: &processes{m, files}}
}

// files are the files of this machine.
type files struct {
	dir     string
	writers *pathLocks
}

var _ workspace.Files = (*files)(nil)

// processes are the processes of a manager.
type processes struct {
	manager *process.Manager
	files   *files
}

var _ workspace.Processes = (*processes)(nil)
