// Package local implements a workspace on this machine.
//
// Below a root each folder is opened from the one above it, so that a folder that is
// renamed meanwhile cannot lead out of the root. Opening a file never blocks. Processes
// are those of a [process.Manager], and outlive this program.
package local

import (
	"path/filepath"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/workspace"
)

// New returns the workspace of a folder, which must be an absolute path. Relative paths
// are relative to it, and commands without a directory run in it. It is no boundary:
// other paths can be used too.
func New(dir string, m *process.Manager) workspace.Workspace {
	return newWorkspace(&files{dir: dir, writers: newPathLocks()}, m)
}

// Options are the settings of a workspace that is served to others.
type Options struct {
	// Confine keeps file calls inside the folder: none of them reads, writes or describes
	// anything outside of it. Below it no link is followed, except by calls with a scope,
	// which follow links that stay inside. What commands may do is for the sandbox of the
	// process manager.
	Confine bool
	// Protected reports whether a path without links is protected, and why. Judge returns
	// that, so that an engine on another machine asks a person before it changes the file:
	// only here it is known where homes are and which files are hard links. It may be nil.
	Protected func(path string) (reason string, ok bool)
	// List is the list of protected files that Survey looks at. The zero value has those of
	// projects only.
	List protect.List
	// Roots returns the working directories of a session, for engines on other machines: only
	// here it is known where they lead to. It is nil if engines name them without links.
	Roots func(session process.Owner) (*sandbox.Roots, error)
}

// NewServed returns the workspace of a folder, which must exist.
func NewServed(dir string, m *process.Manager, o Options) (workspace.Workspace, error) {
	f := &files{dir: dir, protected: o.Protected, list: o.List, writers: newPathLocks()}
	if o.Confine {
		var err error
		if f.confined, err = filepath.EvalSymlinks(dir); err != nil {
			return workspace.Workspace{}, err
		}
	}
	w := newWorkspace(f, m)
	w.Processes.(*processes).roots = o.Roots
	return w, nil
}

// Guarding returns the files of a workspace of this package with another list of protected
// files.
func Guarding(w workspace.Workspace, list protect.List) workspace.Guarded {
	f := *w.Files.(*files)
	f.list = list
	return &f
}

func newWorkspace(f *files, m *process.Manager) workspace.Workspace {
	f.manager = m
	return workspace.Workspace{Files: f, Processes: &processes{manager: m, files: f}}
}

// files are the files of this machine, or those in one folder of it.
type files struct {
	dir       string
	confined  string                                     // folder without links that no call leaves; empty if there is none
	protected func(path string) (reason string, ok bool) // nil if nothing is protected beside what a scope protects
	list      protect.List
	manager   *process.Manager // processes that Survey looks at; nil if there are none
	writers   *pathLocks
}

var _ workspace.Files = (*files)(nil)

// processes are the processes of a manager.
type processes struct {
	manager *process.Manager
	files   *files
	roots   func(session process.Owner) (*sandbox.Roots, error) // nil if specs name roots without links
}

var _ workspace.Processes = (*processes)(nil)
