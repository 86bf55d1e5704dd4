// Package workspace is where the files and the processes of sessions live: on
// this machine, or in a container or a virtual machine that serves them.
//
//   - A write leaves the old file or the new one, whatever happens.
//   - Below a root no link is followed, whatever is renamed meanwhile.
//   - A process belongs to its owner. For all others it does not exist, and who
//     does not say for whom he asks is refused.
//   - A process depends on nobody who asks about it. Contexts may end and
//     connections may break; it goes on, and its output can be read from any
//     offset.
//   - A start with a key that was used before finds the process of that start.
//   - An error means the same wherever the workspace is.
//
// Package local is the workspace on this machine, package bridge serves it to
// others, and package workspacetest holds what both promise.
package workspace

import "errors"

// A Workspace is files and processes that belong together.
type Workspace struct {
	Files     Files
	Processes Processes
}

// The errors of workspaces that are elsewhere.
var (
	ErrLost  = errors.New("the workspace cannot be reached, and nobody knows whether it did what it was asked")
	ErrToken = errors.New("the workspace does not accept the token")
)
