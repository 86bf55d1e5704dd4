package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TIOCGETA

// forgetTyped drops what was typed before anybody asked.
func forgetTyped(tty *os.File) error {
	const readSide = 1 // FREAD
	return control(tty, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, readSide) })
}
