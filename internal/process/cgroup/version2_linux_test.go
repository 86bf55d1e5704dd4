package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// unified returns a folder of version 2 in which groups can be made.
func unified(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range memoryMounts(text) {
		if dir := filepath.Join(m.at, fmt.Sprintf("abide-test-%d", os.Getpid())); m.version == 2 && os.Mkdir(dir, 0o755) == nil {
			t.Cleanup(func() { os.Remove(dir) })
			return dir
		}
	}
	t.Skip("skipped: there is no folder of version 2 in which groups can be made")
	return ""
}

// A command is in its group from its first moment. The group needs no limit for that, so that
// it is tried where memory belongs to version 1.
func TestACommandBeginsInItsGroupOfVersion2(t *testing.T) {
	dir := unified(t)
	g := &Group{dir, 2}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command("sh", "-c", "cat /proc/self/cgroup; cat")
	cmd.Stdin = in
	var printed strings.Builder
	cmd.Stdout = &printed
	started := make(chan error)
	go func() { // its thread may not be used for anything else
		runtime.LockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		leave, err := g.Enter(cmd.SysProcAttr)
		defer leave()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if got := Processes(dir); !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("the group has the processes %v, want %d", got, cmd.Process.Pid)
	}
	if err := g.Remove(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("a group with a process is removed: %v", err)
	}
	out.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if want := "/" + filepath.Base(dir) + "\n"; !strings.Contains(printed.String(), want) {
		t.Errorf("the command is in %s, want %s", printed.String(), want)
	}
	if g.Exceeded() {
		t.Error("the limit was exceeded")
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

// Where memory belongs to no group of version 2, there is no place, and the reason is not that
// somebody forgot to give it away.
func TestAPlaceOfVersion2(t *testing.T) {
	for name, tt := range map[string]struct {
		controllers string // those of the group in which others could be made
		below       bool   // true if the group is not the top one
		container   bool   // true if the top one is that of a container
		delegated   bool   // true if the one above it was given away
		want        error
	}{
		"at the top":                    {controllers: "cpu memory pids\n"},
		"no memory":                     {controllers: "cpu pids\n", want: ErrNone},
		"below one that was given away": {controllers: "memory\n", below: true, delegated: true},
		"below one that was not":        {controllers: "memory\n", below: true, want: ErrNotDelegated},
		"below one without memory":      {controllers: "cpu\n", below: true, delegated: true, want: ErrNone},
		"in a container":                {controllers: "memory\n", container: true, want: ErrNotDelegated},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := top
			if tt.below {
				dir = filepath.Join(top, "service", "main")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			above := dir
			if tt.below { // what the group of the process has of it is decided later
				above = filepath.Dir(dir)
				writeFile(t, dir+"/cgroup.controllers", "")
			}
			writeFile(t, above+"/cgroup.controllers", tt.controllers)
			if tt.container {
				writeFile(t, dir+"/cgroup.type", "domain\n")
			}
			if tt.delegated {
				if err := unix.Setxattr(filepath.Dir(dir), "user.delegate", []byte("1"), 0); err != nil {
					t.Skip("skipped: this file system has no attributes: ", err)
				}
			}
			p, err := placeIn(mount{version: 2, root: "/", at: top}, dir)
			if err != tt.want {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			want := dir
			if tt.below {
				want = filepath.Dir(dir)
			}
			if err == nil && (p.Dir != want || p.Version != 2) {
				t.Errorf("%+v, want %s", p, want)
			}
		})
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
