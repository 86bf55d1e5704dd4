// Package local implements a workspace on this machine.
//
// Below a root each folder is opened from the one above it, so that a folder that is
// renamed meanwhile cannot lead out of the root. Opening a file never blocks. Processes
// are those of a [process.Manager], and outlive this program.
package local

import (
	"path/filepath"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// New returns the workspace of a folder, which must be an absolute path. Relative paths
// are relative to it, and commands without a directory run in it. It is no boundary:
// other paths can be used too.
func New(dir string, m *process.Manager) workspace.Workspace {
	return newWorkspace(&files{dir: dir, writers: newPathLocks()}, m)
}

// Confined returns the workspace of a folder that must exist. No file call reads, writes or
// describes anything outside of the folder; below it no link is followed, except by calls
// with a scope, which follow links that stay inside. Commands are not confined: they have
// all rights of the user who runs this program.
func Confined(dir string, m *process.Manager) (workspace.Workspace, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return workspace.Workspace{}, err
	}
	return newWorkspace(&files{dir: dir, confined: real, writers: newPathLocks()}, m), nil
}

func newWorkspace(f *files, m *process.Manager) workspace.Workspace {
	return workspace.Workspace{Files: f, Processes: &processes{m, f}}
}

// files are the files of this machine, or those in one folder of it.
type files struct {
	dir      string
	confined string // folder without links that no call leaves; empty if there is none
	writers  *pathLocks
}

var _ workspace.Files = (*files)(nil)

// processes are the processes of a manager.
type processes struct {
	manager *process.Manager
	files   *files
}

var _ workspace.Processes = (*processes)(nil)
