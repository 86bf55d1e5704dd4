package local

import "golang.org/x/sys/unix"

// stepFlags are the flags for opening a folder inside a path, which need not be readable.
const stepFlags = unix.O_PATH
