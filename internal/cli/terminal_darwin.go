package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TIOCGETA

// forgetTyped discards input that was typed before the question was shown.
func forgetTyped(tty *os.File) error {
	const readSide = 1 // FREAD
	return control(tty, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, readSide) })
}

// duplicate makes a descriptor the same as another.
func duplicate(from, to int) error { return unix.Dup2(from, to) }
