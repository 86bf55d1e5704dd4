package killtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A commandDir is the directory in which commands run. Each command records its
// process id in a file, writes its name to a pipe when it starts, and may wait at a
// gate, a pipe of its own. So the test knows how often each command ran, whatever
// becomes of the runtime.
type commandDir struct {
	t       *testing.T
	dir     string
	started *os.File
	gates   map[string]*os.File
}

func newCommandDir(t *testing.T) *commandDir {
	y := &commandDir{t: t, dir: t.TempDir(), gates: make(map[string]*os.File)}
	y.started = y.pipe("calls")
	return y
}

// pipe makes a named pipe that always has a reader and a writer, so that opening it
// never blocks.
func (y *commandDir) pipe(name string) *os.File {
	y.t.Helper()
	path := filepath.Join(y.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		y.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { f.Close() })
	return f
}

// command makes a command from a shell script. Where the script says GATE, the
// command waits until openGate is called.
func (y *commandDir) command(name, text string) string {
	if strings.Contains(text, "GATE") {
		y.gates[name] = y.pipe("gate." + name)
	}
	return fmt.Sprintf("echo $$ >>runs.%s; echo %[1]s >calls; %s", name, strings.ReplaceAll(text, "GATE", "read x <gate."+name))
}

// openGate lets a command pass its gate, now or when it gets there.
func (y *commandDir) openGate(name string) {
	y.t.Helper()
	if _, err := y.gates[name].WriteString("\n"); err != nil {
		y.t.Fatal(err)
	}
}

// awaitStarted waits until n more commands have started.
func (y *commandDir) awaitStarted(ctx context.Context, n int) error {
	y.started.SetReadDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { y.started.SetReadDeadline(time.Unix(1, 0)) })()
	for b := make([]byte, 1); n > 0; {
		if _, err := y.started.Read(b); err != nil {
			return fmt.Errorf("%d more commands should have started: %w", n, err)
		}
		n -= bytes.Count(b, []byte("\n"))
	}
	return nil
}

// pids returns the process ids of all runs of a command.
func (y *commandDir) pids(name string) (list []int) {
	y.t.Helper()
	b, err := os.ReadFile(filepath.Join(y.dir, "runs."+name))
	if err != nil && !os.IsNotExist(err) {
		y.t.Fatal(err)
	}
	for _, word := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			y.t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// runs counts how often a command was run.
func (y *commandDir) runs(name string) int { return len(y.pids(name)) }

// keeping returns the process ids of the keepers of a data folder, and those of the
// processes of its commands.
func keeping(t *testing.T, dir string) (keepers, kept []int) {
	t.Helper()
	ids, err := os.ReadDir(filepath.Join(dir, "processes"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range all {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		line, _ := os.ReadFile(proc + "/cmdline") // it may be gone by now, or somebody else's
		if bytes.HasPrefix(line, []byte("abide-keeper\x00")) {
			if keepsIn(proc, dir) {
				keepers = append(keepers, pid)
			}
			continue
		}
		env, _ := os.ReadFile(proc + "/environ")
		for _, id := range ids {
			if bytes.Contains(env, []byte("ABIDE_PROCESS="+id.Name()+"-")) {
				kept = append(kept, pid)
			}
		}
	}
	return keepers, kept
}

// keepsIn reports whether a keeper has something open in a data folder.
func keepsIn(proc, dir string) bool {
	open, _ := filepath.Glob(proc + "/fd/*")
	return slices.ContainsFunc(open, func(fd string) bool {
		to, _ := os.Readlink(fd)
		return strings.HasPrefix(to, dir+"/")
	})
}

// A keeperWatch waits in the background for keepers that are about to end: with the
// race detector a process takes a second to exit.
type keeperWatch struct {
	t       *testing.T
	ctx     context.Context
	waiting sync.WaitGroup
}

// newKeeperWatch makes a watch that the end of the test waits for.
func newKeeperWatch(t *testing.T) *keeperWatch {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	v := &keeperWatch{t: t, ctx: ctx}
	t.Cleanup(func() { v.waiting.Wait(); cancel() })
	return v
}

// checkNothingLeft fails if a process of a command is left, or a keeper that does not
// end.
func (v *keeperWatch) checkNothingLeft(t *testing.T, dir string) {
	t.Helper()
	keepers, kept := keeping(t, dir)
	if len(kept) > 0 {
		t.Errorf("the processes %v are left", kept)
	}
	for _, pid := range keepers {
		v.waiting.Go(func() {
			if err := exited(v.ctx, pid); err != nil {
				v.t.Errorf("the keeper %d of %s is left: %v", pid, dir, err)
			}
		})
	}
}

// pidfdOpen is the number of the system call.
const pidfdOpen = 434

// exited waits until a process has ended. It need not be a child of this one.
func exited(ctx context.Context, pid int) error {
	fd, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), syscall.O_NONBLOCK, 0)
	if errno == syscall.ESRCH {
		return nil
	}
	if errno != 0 {
		return errno
	}
	f := os.NewFile(fd, "pidfd")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool { // it can be read when it has ended, which may be before anybody waits
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 && err == nil
	})
}

// parent returns the process id of the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	var ppid int
	if _, err := fmt.Sscan(string(b[bytes.LastIndexByte(b, ')')+1:]), &state, &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid
}
