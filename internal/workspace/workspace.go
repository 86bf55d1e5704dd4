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

import (
	"errors"
	"time"
)

// A Workspace is the files and the processes of one machine or container.
type Workspace struct {
	Files     Files
	Processes Processes
}

// A Description is what a workspace says of itself.
type Description struct {
	Identity string // made once and kept in the data folder of the workspace; empty if it has none
	Version  string // version of the program
	Dir      string // folder of relative paths, and of commands without a directory
	Time     time.Time
	DiskFree int64    // bytes that are free on the disk of Dir; negative if that is unknown
	DiskSize int64    // bytes of the disk of Dir
	Env      []string // environment of commands that are given none
}

// Errors of remote workspaces.
var (
	ErrLost  = errors.New("the workspace cannot be reached, and nobody knows whether it did what it was asked")
	ErrToken = errors.New("the workspace does not accept the token")
	// ErrAway means that no connection could be made: the workspace was not asked.
	ErrAway = errors.New("the workspace cannot be reached")
	// ErrOther means that a workspace was reached, but not the one that is wanted.
	ErrOther = errors.New("it is another workspace than before")
	// ErrProtocol means that both sides do not understand each other.
	ErrProtocol = errors.New("the workspace has another version of the protocol")
	// ErrCertificate means that nobody vouches for the workspace.
	ErrCertificate = errors.New("the certificate of the workspace is not trusted")
	// ErrNeedsTLS and ErrHasNoTLS mean that only one side uses TLS: nothing was asked.
	ErrNeedsTLS = errors.New("the workspace answers with TLS only")
	ErrHasNoTLS = errors.New("the workspace answers without TLS")
)

// Unusable reports whether an error means that a workspace cannot be used now, whatever
// it is asked. It says nothing about the files and processes there.
func Unusable(err error) bool {
	for _, reason := range []error{ErrLost, ErrToken, ErrAway, ErrOther, ErrProtocol, ErrCertificate, ErrNeedsTLS, ErrHasNoTLS} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
