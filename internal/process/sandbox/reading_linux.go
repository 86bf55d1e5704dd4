package sandbox

import (
	"os/exec"
	"runtime"

	"github.com/abide-run/abide/internal/process/sandbox/confine"
)

// StartReading starts a program that only has to read, such as git for a diff: what it runs
// because a file of a project says so cannot write anything, read what is hidden, or make a
// socket. Without Landlock only sockets are refused, and nothing if commands are not to be
// confined.
func (s *Sandbox) StartReading(cmd *exec.Cmd) error {
	if s == nil || s.o.Mode == Off {
		return cmd.Start()
	}
	rights := confine.Rules{Landlock: -1, Sockets: confine.NoSockets}
	if s.abi > 0 {
		rules, err := s.rulesFor(s.newPlan().named("reading"))
		if err != nil {
			return explain(err)
		}
		defer rules.Close()
		rights.Landlock = int(rules.Fd())
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := confine.Apply(rights)
		if err != nil {
			err = explain(err)
		} else {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}
