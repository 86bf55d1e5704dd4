//go:build !linux

package local

import "golang.org/x/sys/unix"

// stepFlags are the flags for opening a folder inside a path.
const stepFlags = unix.O_RDONLY
