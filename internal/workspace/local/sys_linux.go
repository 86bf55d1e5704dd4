package local

import "golang.org/x/sys/unix"

// stepFlags open a folder on the way: for that it need not be readable.
const stepFlags = unix.O_PATH
