//go:build !linux

package local

import "golang.org/x/sys/unix"

// stepFlags open a folder on the way.
const stepFlags = unix.O_RDONLY
