package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TCGETS

// forgetTyped discards input that was typed before the question was shown.
func forgetTyped(tty *os.File) error {
	return control(tty, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
}

// duplicate makes a descriptor the same as another.
func duplicate(from, to int) error { return unix.Dup3(from, to, 0) }
