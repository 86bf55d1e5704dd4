package folder

import (
	"bytes"
	"fmt"
	"os"
)

// A Holder is the process that took the lock last.
type Holder struct {
	PID     int  // zero if it could not write it down
	Stopped bool // it was stopped and can go on; known on Linux alone
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", h.PID)
}

// Holder returns who took the lock last, for people to read: it may be dead, or
// live where process ids mean something else.
func (f *Folder) Holder() Holder {
	var h Holder
	text, err := os.ReadFile(f.path("lock"))
	if err != nil {
		return h
	}
	if _, err := fmt.Sscanf(string(text), "pid %d", &h.PID); err == nil {
		h.Stopped = isStopped(h.PID)
	}
	return h
}

// isStopped reports whether a process was stopped by a signal. Its state follows
// its name, which may hold anything.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(state) > 0 && state[0] == 'T'
}
