package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// TestTheFirstProcessOfAContainerReaps: an orphan of a killed keeper is ended, and its entry
// in the table of processes is freed. A signal and the exit code pass through.
func TestTheFirstProcessOfAContainerReaps(t *testing.T) {
	dir := t.TempDir()
	p := command(t, dir, "workspace")
	p.Env = append(p.Env, "ABIDE_COMMANDS_SANDBOX=off") // a command in the sandbox cannot kill its keeper
	p.Args = append([]string{"sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`, p.Path}, p.Args[1:]...)
	p.Path = "/bin/sh"
	p.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	pipe, err := p.StdoutPipe()
	must(t, err)
	p.out = bufio.NewReader(pipe)
	if err := p.Start(); err != nil {
		t.Skipf("there are no user namespaces here: %v", err)
	}
	if line, _ := p.out.ReadString('\n'); !strings.HasPrefix(line, "abide dev serves") {
		_ = p.Wait()
		t.Skipf("there is no /proc of its own here: %s", p.stderr)
	}
	ws := connect(t, bridge.ClientOptions{Address: p.await(`^listening on (unix:\S+)\n`)[1]})
	orphan := filepath.Join(dir, "orphan")
	_, _, err = ws.Processes.Start(t.Context(), process.Spec{
		Key: "orphan", Owner: "s", Command: "echo $$ > " + orphan + ".new; mv " + orphan + ".new " + orphan + "; kill -9 $PPID; exec sleep 1000",
	})
	if err != nil {
		t.Logf("the keeper may be killed before it reports the start: %v", err)
	}
	waits, _, err := ws.Processes.Start(t.Context(), process.Spec{
		Key: "waits", Owner: "s", Limits: process.Limits{Time: 2 * time.Minute},
		Command: "until [ -e " + orphan + " ]; do sleep 0.01; done; while [ -e /proc/$(cat " + orphan + ") ]; do sleep 0.01; done; echo reaped",
	})
	must(t, err)
	if _, err = ws.Processes.Wait(t.Context(), "s", waits.ID); err != nil {
		t.Fatal(err)
	}
	out, _, err := ws.Processes.View(t.Context(), "s", waits.ID, 0)
	if out != "reaped\n" || err != nil {
		t.Errorf("the orphan is still there: %q, %v", out, err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	if _, code := p.ends(); code != 143 {
		t.Errorf("exit code %d, want that of the program", code)
	}
}
