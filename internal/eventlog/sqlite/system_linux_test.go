package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// inside tells a test that it runs in a process of its own, made for it.
const inside = "ABIDE_TEST_INSIDE"

// again is the command that runs this test alone, inside.
func again(t *testing.T) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+t.TempDir())
	return cmd
}

// within runs the test again in a user namespace, where uid 0 may mount and any
// other uid may do nothing special. It returns the folder to work in if it is
// the one inside.
func within(t *testing.T, uid int) (dir string, isInside bool) {
	if dir := os.Getenv(inside); dir != "" {
		return dir, true
	}
	cmd := again(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &failed):
		t.Skipf("skipped: %s needs a user namespace: %v", t.Name(), err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("inside: %v\n%s", err, out)
	}
	return "", false
}

func mount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Fatalf("mount: %v", err)
	}
}

func TestAFullDiskClosesTheStore(t *testing.T) {
	dir, isInside := within(t, 0)
	if !isInside {
		return
	}
	mount(t, dir, 0, "size=1m")
	s := open(t, filepath.Join(dir, "abide.db"))
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fill(t, s)
	if !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), "the disk is full: free some space") {
		t.Errorf("err = %v, want ErrClosed and the reason", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "new.db"), Options{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("a new store: err = %v, want the reason", err)
	}
	s.Close()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	freed := open(t, s.path)
	got, err := read(t, freed, "s")
	if err != nil || len(got) == 0 {
		t.Fatalf("s says %d things, %v", len(got), err)
	}
	session, err := freed.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	add(t, freed, "s", session.End, "goes on")
}

func TestAReadOnlyDiskIsRefusedWithAReason(t *testing.T) {
	dir, isInside := within(t, 0)
	if !isInside {
		return
	}
	mount(t, dir, 0, "")
	path := filepath.Join(dir, "abide.db")
	s := open(t, path)
	add(t, s, "s", eventlog.End{}, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mount(t, dir, syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	refuses(t, path, "it cannot be written", "check the permissions, and that the disk is not mounted read-only")
	refuses(t, filepath.Join(dir, "new.db"), "it cannot be written")
}

func TestAnUnreadableFileIsRefusedWithAReason(t *testing.T) {
	dir, isInside := within(t, 1000)
	if !isInside {
		return
	}
	path := filepath.Join(dir, "abide.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, "it may not be opened", "check the permissions")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	refuses(t, filepath.Join(dir, "new.db"), "it may not be opened", "check the permissions")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// The process inside appends to several sessions and says which ends were
// acknowledged, until it is killed.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		appendForever(t, open(t, filepath.Join(dir, "abide.db")))
		return
	}
	dir := t.TempDir()
	ends := make(map[event.SessionID]eventlog.End)
	for round := range 3 {
		cmd := again(t)
		cmd.Env = append(os.Environ(), inside+"="+dir)
		acknowledged := runAndKill(t, cmd, 200+round*100)
		s := open(t, filepath.Join(dir, "abide.db"))
		for id, end := range acknowledged {
			ends[id] = end
		}
		for id, end := range ends {
			checkHas(t, s, id, end)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func appendForever(t *testing.T, s *Store) {
	lines := make(chan string)
	for i := range 8 {
		id := event.SessionID(fmt.Sprint("s", i))
		var end eventlog.End
		if session, err := s.Session(t.Context(), id); err == nil {
			end = session.End
		}
		go func() {
			for {
				next, err := s.Append(context.Background(), id, batch(end, "a", "b", "c"))
				if err != nil {
					panic(err)
				}
				end = next
				lines <- fmt.Sprintf("acknowledged %s %d %x", id, end.Seq, end.Hash)
			}
		}()
	}
	for line := range lines {
		fmt.Println(line)
	}
}

// runAndKill reads so many lines, then kills, then reads what was still said.
func runAndKill(t *testing.T, cmd *exec.Cmd, lines int) map[event.SessionID]eventlog.End {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ends := make(map[event.SessionID]eventlog.End)
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		var id event.SessionID
		var seq event.Seq
		var hash []byte
		if _, err := fmt.Sscanf(scanner.Text(), "acknowledged %s %d %x", &id, &seq, &hash); err == nil {
			ends[id] = eventlog.End{Seq: seq, Hash: eventlog.Hash(hash)}
		}
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if len(ends) != 8 {
		t.Fatalf("%d sessions were acknowledged, want 8", len(ends))
	}
	return ends
}

// checkHas checks that a session's chain is whole and passes through an end.
func checkHas(t *testing.T, s *Store, id event.SessionID, want eventlog.End) {
	t.Helper()
	var end eventlog.End
	found := false
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		end = end.Next(e.Bytes)
		found = found || end == want
	}
	if !found || end.Seq%3 != 0 {
		t.Errorf("%s ends at %d; %d was acknowledged", id, end.Seq, want.Seq)
	}
}
