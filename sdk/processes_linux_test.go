package sdk

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processes returns the ids of the processes that serve programs from the folder. There
// are two for each that was started: a launcher, and what it has launched. Only the first
// ends at once if it is killed; the other one has to notice that.
func (h *home) processes() (pids []int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	h.must(err)
	for _, dir := range all {
		arguments, err := os.ReadFile(dir + "/cmdline")
		if err != nil || !slices.ContainsFunc(bytes.Split(arguments, []byte{0}), func(a []byte) bool { return string(a) == "--headless" }) {
			continue // it has ended, or is none of ours
		}
		variables, err := os.ReadFile(dir + "/environ")
		if err != nil || !slices.ContainsFunc(bytes.Split(variables, []byte{0}), func(v []byte) bool { return string(v) == "COPILOT_HOME="+h.dir }) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		h.must(err)
		pids = append(pids, pid)
	}
	return pids
}

// awaitProcesses waits until no more than so many processes of the folder are left.
func (h *home) awaitProcesses(most int) {
	h.t.Helper()
	for end := time.Now().Add(limit); ; {
		pids := h.processes()
		switch {
		case len(pids) <= most:
			return
		case time.Now().After(end):
			h.t.Fatalf("the processes %v of the folder have not ended, want %d of them", pids, most)
		}
		awaitOne(pids, time.Until(end))
	}
}

// awaitOne waits until one of some processes has ended, which need not be children.
func awaitOne(pids []int, most time.Duration) {
	var watched []unix.PollFd
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return // it has ended
		}
		defer unix.Close(fd)
		watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = unix.Poll(watched, int(most.Milliseconds())) // whoever calls looks again
}

// killProcesses kills the processes of the folder that are left, and waits for their end.
func (h *home) killProcesses() {
	h.t.Helper()
	for _, pid := range h.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	h.awaitProcesses(0)
}
