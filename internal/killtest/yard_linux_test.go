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
)

// A yard is where commands run that can be watched from outside. Each writes
// down that it runs, calls out, and may wait at a gate. Whatever becomes of the
// runtime, the yard knows how many there were.
type yard struct {
	t     *testing.T
	dir   string
	calls *os.File
	gates map[string]*os.File
}

func newYard(t *testing.T) *yard {
	y := &yard{t: t, dir: t.TempDir(), gates: make(map[string]*os.File)}
	y.calls = y.pipe("calls")
	return y
}

// pipe makes a named pipe that has a reader and a writer at any time, so that
// nobody is held up when it is opened.
func (y *yard) pipe(name string) *os.File {
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

// command makes a command of a text. Where that says GATE it waits until it is
// let through.
func (y *yard) command(name, text string) string {
	if strings.Contains(text, "GATE") {
		y.gates[name] = y.pipe("gate." + name)
	}
	return fmt.Sprintf("echo $$ >>runs.%s; echo %[1]s >calls; %s", name, strings.ReplaceAll(text, "GATE", "read x <gate."+name))
}

// let lets a command through its gate, now or when it comes there.
func (y *yard) let(name string) {
	y.t.Helper()
	if _, err := y.gates[name].WriteString("\n"); err != nil {
		y.t.Fatal(err)
	}
}

// hear waits until so many commands have called out.
func (y *yard) hear(ctx context.Context, n int) error {
	y.calls.SetReadDeadline(time.Time{})
	defer context.AfterFunc(ctx, func() { y.calls.SetReadDeadline(time.Unix(1, 0)) })()
	for b := make([]byte, 1); n > 0; {
		if _, err := y.calls.Read(b); err != nil {
			return fmt.Errorf("%d more commands should have called out: %w", n, err)
		}
		n -= bytes.Count(b, []byte("\n"))
	}
	return nil
}

// pids are the numbers of the processes that a command was run in.
func (y *yard) pids(name string) (list []int) {
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
func (y *yard) runs(name string) int { return len(y.pids(name)) }

// keeping finds the keepers of a data folder, and kept the processes of its
// commands.
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

// A vigil waits for keepers that are about to end, while the test goes on: with
// the race detector a program takes a second for that.
type vigil struct {
	t       *testing.T
	ctx     context.Context
	waiting sync.WaitGroup
}

// newVigil begins a vigil that is over when the test is.
func newVigil(t *testing.T) *vigil {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	v := &vigil{t: t, ctx: ctx}
	t.Cleanup(func() { v.waiting.Wait(); cancel() })
	return v
}

// nothingLeft fails if a process of a command is left, or a keeper that does not
// end.
func (v *vigil) nothingLeft(t *testing.T, dir string) {
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

// exited waits until a process, which need not be a child, has ended.
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
	looked := false
	return raw.Read(func(uintptr) bool { // it can be read when it has ended
		again := looked
		looked = true
		return again
	})
}

// parent returns who started a process.
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
