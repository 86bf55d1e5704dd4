// Package launch connects the two processes of a command: the launcher, which a shell or
// an SDK has started and waits for, and the program, which the launcher has started and
// which does everything. The launcher ends when the program says so, or with it: so a
// command can be over while the engine in its program goes on for other processes.
//
// Both processes share their standard streams, their process group and their terminal
// until the program leaves the launcher. A launcher that is killed is noticed by the
// program, and the other way round.
//
// The launcher imports this package and runs before the rest of the program is
// initialised, so it imports little.
package launch

import (
	"os"
	"strconv"
	"syscall"
)

// Variable is the environment variable by which the program finds its launcher: the
// number of the inode of the socket, a colon, and its descriptor. The program removes it.
//
// On the socket the launcher sends the number of each signal that it gets, one byte each,
// and the program sends the exit code of the command if it goes on after it, one byte.
const Variable = "ABIDE_LAUNCHER"

// socket is the descriptor of the socket to the launcher; -1 without a launcher.
var socket = find()

// Socket returns the descriptor of the socket to the launcher, and false if there is no
// launcher.
func Socket() (fd int, ok bool) { return socket, socket >= 0 }

// Text returns the value of Variable for the descriptor of a socket; empty if the system
// gives it no number, or if it is none.
func Text(fd int) string {
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil || info.Mode&syscall.S_IFMT != syscall.S_IFSOCK || info.Ino == 0 {
		return ""
	}
	return strconv.FormatUint(info.Ino, 10) + ":" + strconv.Itoa(fd)
}

// find returns the descriptor in the environment, if it is the socket that the launcher
// has made: the variable may come from elsewhere. It does not ask whether the launcher is
// the parent. A launcher that was killed is not, and the program has to end with it.
//
// The variable is removed even if it is empty. If it stayed, this process would start a
// program that finds the empty one, and that program another, without end.
func find() int {
	text := os.Getenv(Variable)
	os.Unsetenv(Variable)
	for i := range len(text) {
		if text[i] != ':' {
			continue
		}
		fd, err := strconv.Atoi(text[i+1:])
		if err == nil && fd > 2 && text == Text(fd) {
			syscall.CloseOnExec(fd)
			return fd
		}
	}
	return -1
}
