package front

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// asInit is the program as the first process of a container: it starts the program as its
// child, passes signals on to it, and waits for every process that becomes its child, so
// that none stays a zombie. When the program ends, the container does. It reports false if
// the program could not be started.
//
// The program itself could not wait for all children: it would take the end of its own
// children away from those parts of it that wait for them.
func asInit() (code int, ok bool) {
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !fromTerminal(s) {
			signal.Notify(signals, s)
		} else {
			signal.Ignore(s)
		}
	}
	pid, err := syscall.ForkExec(executable(), os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		signal.Reset()
		return 0, false
	}
	go func() { // ends with the process
		for s := range signals {
			syscall.Kill(pid, s.(syscall.Signal)) // a program that has ended needs no signal
		}
	}()
	for {
		var status syscall.WaitStatus
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), true // the first process cannot kill itself
		case ended == pid, err != nil && err != syscall.EINTR:
			return status.ExitStatus(), true
		}
	}
}

// fromTerminal reports whether a terminal sends a signal to the program by itself.
func fromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0
}
