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
// process id of the launcher, a colon, and the descriptor of the socket. The program
// removes it.
//
// On the socket the launcher sends the number of each signal that it gets, one byte each,
// and the program sends the exit code of the command if it goes on after it, one byte.
const Variable = "ABIDE_LAUNCHER"

// socket is the descriptor of the socket to the launcher; -1 without a launcher.
var socket = find()

// Socket returns the descriptor of the socket to the launcher, and false if there is no
// launcher.
func Socket() (fd int, ok bool) { return socket, socket >= 0 }

// find returns the descriptor in the environment, if the process that set it is the
// parent: the variable may come from elsewhere.
func find() int {
	text := os.Getenv(Variable)
	if text == "" {
		return -1
	}
	os.Unsetenv(Variable)
	for i := range len(text) {
		if text[i] != ':' {
			continue
		}
		pid, wrong := strconv.Atoi(text[:i])
		fd, err := strconv.Atoi(text[i+1:])
		if wrong == nil && err == nil && pid == os.Getppid() && fd > 2 {
			syscall.CloseOnExec(fd)
			return fd
		}
	}
	return -1
}
