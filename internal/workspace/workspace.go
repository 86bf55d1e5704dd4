// Package workspace defines access to the files and processes of sessions, on this
// machine or in a container or virtual machine that serves them.
//
//   - A write leaves the old file or the new one, even after a crash.
//   - Below a root no symbolic link is followed, even if files are renamed meanwhile.
//   - A process belongs to its owner. To all others it does not exist, and a request
//     without an owner is refused.
//   - A process does not depend on requests about it. If a context ends or a
//     connection breaks, the process continues, and its output can be read from any
//     offset.
//   - A start with a key that was used before finds the process of that start.
//   - An error means the same wherever the workspace is.
//
// Package local implements a workspace on this machine, package bridge serves one to
// other machines, and package workspacetest tests these promises for both.
package workspace

import "errors"

// A Workspace is the files and the processes of one machine or container.
type Workspace struct {
	Files     Files
	Processes Processes
}

// Errors of remote workspaces.
var (
	ErrLost  = errors.New("the workspace cannot be reached, and nobody knows whether it did what it was asked")
	ErrToken = errors.New("the workspace does not accept the token")
)
