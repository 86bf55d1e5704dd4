package folder

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A Holder is the process that took the lock last.
type Holder struct {
	PID     int       // process id; zero if it is not known
	Stopped bool      // true if the process was stopped by a signal; known only on Linux
	Since   time.Time // time at which it took the lock; zero if that is not known
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", h.PID)
}

// Holder returns the process that took the lock last, for messages only: it may be dead,
// or its process id may belong to another namespace.
func (f *Folder) Holder() Holder {
	var h Holder
	text, err := os.ReadFile(f.path("lock"))
	if err != nil {
		return h
	}
	var since string
	if n, _ := fmt.Sscanf(string(text), "pid %d\nsince %s", &h.PID, &since); n > 0 {
		h.Stopped = isStopped(h.PID)
	}
	h.Since, _ = time.Parse(time.RFC3339, since) // zero if the text was not written to its end
	return h
}

// InUse reports whether a process holds the lock of a folder, and which. It creates
// nothing: a folder that does not exist is not in use.
func InUse(dir string) (Holder, bool) {
	f := &Folder{dir: dir}
	file, err := os.OpenFile(f.path("lock"), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return Holder{}, false
	}
	defer file.Close() // releases the lock, if it was free
	if err := flock(file, syscall.LOCK_SH|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
		return Holder{}, false
	}
	return f.Holder(), true
}

// isStopped reports whether a process was stopped by a signal. In /proc the state follows
// the name of the process, which may contain any character.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(state) > 0 && state[0] == 'T'
}
