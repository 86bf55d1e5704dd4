package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// forgetTyped drops what was typed before anybody asked.
func forgetTyped(tty *os.File) error {
	return control(tty, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
}
