package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// heldReading are the escapes that the profile workspace does not hold, and that a program
// which only has to read cannot make.
var heldReading = []string{
	"connect to a socket by its path", "connect to a socket that was renamed", "send to a socket by its path", "connect with TCP", "connect with multipath TCP",
	"connect with TCP over IPv6", "connect with fast open", "exchange packets with UDP",
}

// TestAProgramThatOnlyReadsIsHeld tries every escape from a program that was started to read,
// such as git for a diff, which runs what the configuration of a repository names.
func TestAProgramThatOnlyReadsIsHeld(t *testing.T) {
	abi := sandbox.Kernel()
	if abi == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	bare := sandbox.Open(sandbox.Options{ABI: func() int { return 0 }})
	tried := 0
	for _, e := range slices.Concat(escapes, []escape{
		{name: "write to the working directory", script: `echo x > new`},
		{name: "write to a temporary folder", script: `echo x > ../tmp/new`},
	}) {
		isSocket := slices.Contains(heldReading, e.name)
		if e.open && !isSocket || e.root && os.Getuid() != 0 || e.user || e.barred || abi < e.since {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			if worked, printed := p.tryReading(t, e, (*exec.Cmd).Start); !worked {
				t.Skipf("skipped: it does not work without a sandbox either: %s", printed)
			}
			if worked, printed := p.tryReading(t, e, p.m.StartReading); worked {
				t.Errorf("it worked, and printed %s", printed)
			}
			tried++
			if worked, printed := p.tryReading(t, e, bare.StartReading); isSocket && worked {
				t.Errorf("without Landlock it worked, and printed %s", printed)
			}
		})
	}
	t.Logf("as user %d, with Landlock %d: %d escapes were tried", os.Getuid(), abi, tried)
}

// TestAProgramThatOnlyReadsIsHeldForAnOrdinaryUser does the same as a user without rights.
func TestAProgramThatOnlyReadsIsHeldForAnOrdinaryUser(t *testing.T) {
	runAsOrdinaryUser(t, "TestAProgramThatOnlyReadsIsHeld")
}

// TestAProgramOfTheUserIsHeld tries every escape from a program that the configuration of the user
// names, such as one that tells of news.
func TestAProgramOfTheUserIsHeld(t *testing.T) {
	abi := sandbox.Kernel()
	if abi == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	for _, e := range slices.Concat(escapes, []escape{{name: "write to the working directory", script: `echo x > new`}}) {
		isService := e.name == "connect to a socket of a program that runs commands" // it may tell the desktop
		if e.open || isService || e.root && os.Getuid() != 0 || e.user || e.barred || abi < e.since {
			continue
		}
		if worked, printed := p.tryReading(t, e, p.m.StartOwn); worked {
			t.Errorf("%s: it worked, and printed %s", e.name, printed)
		}
	}
	for _, e := range []escape{
		{name: "write to a temporary folder", script: `echo x > ../tmp/new`},
		{name: "connect with TCP", do: func(w world) error { return dial("tcp4", fmt.Sprint("127.0.0.1:", w.Port)) }},
	} {
		if worked, printed := p.tryReading(t, e, p.m.StartOwn); !worked {
			t.Errorf("%s: it did not work, and printed %s", e.name, printed)
		}
	}
	for name, o := range map[string]sandbox.Options{
		"there is no Landlock":  {Mode: sandbox.Require, ABI: func() int { return 0 }},
		"the Landlock is older": {Mode: sandbox.Require, ABI: func() int { return 2 }},
	} {
		if err := sandbox.Open(o).StartOwn(exec.Command("true")); err == nil {
			t.Errorf("%s, and the program is started although that is forbidden", name)
		}
	}
}

// tryReading tries to escape from a program that the manager starts and does not hold as a process
// of its own. It reports whether that worked, and what was printed.
func (p *prison) tryReading(t *testing.T, e escape, start func(*exec.Cmd) error) (bool, string) {
	t.Helper()
	env, args := p.prepare(t, e)
	if args == nil {
		args = []string{"/bin/sh", "-c", e.script}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = p.Work, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a program may signal its own group
	out, err := os.Create(p.base + "/printed")
	must(t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	must(t, start(cmd))
	err = cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	printed, err2 := os.ReadFile(out.Name())
	must(t, err2)
	return err == nil, string(printed)
}
