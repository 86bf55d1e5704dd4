package sandbox

import (
	"os/exec"
	"runtime"

	"github.com/abide-run/abide/internal/process/sandbox/confine"
)

// StartReading starts a program that only has to read, such as git for a diff: what it runs
// because a file of a project says so cannot write anything, nor read what is hidden. Where
// nothing is confined, neither is this.
func (s *Sandbox) StartReading(cmd *exec.Cmd) error {
	if s == nil || s.abi == 0 {
		return cmd.Start()
	}
	rules, err := s.rulesFor(plan{key: "reading", devices: usualDevices})
	if err != nil {
		return explain(err)
	}
	defer rules.Close()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := confine.Apply(confine.Rules{Landlock: int(rules.Fd())})
		if err != nil {
			err = explain(err)
		} else {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}
