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
	if s.abi == 0 {
		return startWith(cmd, rights)
	}
	return s.startHeld(cmd, rights, s.newPlan().named("reading"))
}

// StartOwn starts a program that the user's own configuration names and no session has asked for,
// such as one that tells of news. It is held by the profile Workspace, with temporary folders
// and those of the settings instead of a working directory, and keeps the network.
func (s *Sandbox) StartOwn(cmd *exec.Cmd) error {
	if s == nil || s.o.Mode == Off || s.o.Mode == Auto && s.abi == 0 {
		return cmd.Start()
	}
	if s.abi == 0 {
		return explain(errNoLandlock)
	}
	if s.o.Mode == Require && s.abi < MinABI {
		return explain(errOldKernel)
	}
	p := s.plan(Request{Root: realPaths(s.o.Temp)[0], Env: cmd.Env, Repository: &Repository{}})
	p.services = nil // such as the bus, which shows news on the screen
	p = p.named("own\x00" + p.key)
	return s.startHeld(cmd, confine.Rules{Landlock: -1, Sockets: confine.AnySockets}, p)
}

// startHeld starts a program with the rules of a plan.
func (s *Sandbox) startHeld(cmd *exec.Cmd, rights confine.Rules, p plan) error {
	rules, err := s.rulesFor(p)
	if err != nil {
		return explain(err)
	}
	defer rules.Close()
	rights.Landlock = int(rules.Fd())
	return startWith(cmd, rights)
}

// startWith starts a program from a thread that has given up its rights and ends with the start.
func startWith(cmd *exec.Cmd, rights confine.Rules) error {
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
