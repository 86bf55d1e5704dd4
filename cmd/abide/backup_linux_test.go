package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/audit"
)

// writeAllTheTime runs turns with commands until ctx is done, and returns how many.
func writeAllTheTime(ctx context.Context, t *testing.T, dir string, n int) int {
	turns := 0
	for ctx.Err() == nil {
		p := command(t, dir, "run", "--quiet", "--yolo", fmt.Sprintf("Run `echo %d-%d`", n, turns))
		if out, err := p.Output(); err != nil {
			t.Errorf("a run beside a backup: %v, %s, stderr: %s", err, out, p.stderr)
			return turns
		}
		turns++
	}
	return turns
}

// checkRestored checks that a restored folder is in order, and that each of its sessions
// goes on. cwd is the working directory of the sessions.
func checkRestored(t *testing.T, cwd, home string) {
	t.Helper()
	if got := output(t, cwd, "--home", home, "sessions", "verify"); strings.Contains(got, "DAMAGED") {
		t.Errorf("the sessions are\n%s", got)
	}
	auditRestored(t, home)
	var list []api.SessionInfo
	must(t, json.Unmarshal([]byte(output(t, cwd, "--home", home, "sessions", "list", "--json")), &list))
	if len(list) == 0 {
		t.Fatal("there is no session")
	}
	for i, s := range list {
		if i > 0 && !s.Abide.Unattended {
			continue // the last one, and those in the middle of a turn, are enough
		}
		if got := output(t, cwd, "--home", home, "run", "--yolo", "--resume", string(s.SessionID), "Reply with exactly: ON"); !strings.HasSuffix(got, "ON\n") {
			t.Errorf("session %s goes on with %q", s.SessionID, got)
		}
	}
	auditRestored(t, home)
}

func auditRestored(t *testing.T, home string) {
	t.Helper()
	report, err := audit.Run(t.Context(), home, audit.Options{})
	must(t, err)
	for _, f := range report.Findings {
		t.Errorf("%s is broken: %s, session %q, event %d, process %q: %s", f.Invariant, f.Rule, f.Session, f.Seq, f.Process, f.Text)
	}
}

func TestABackupUnderLoadRestoresToAFolderThatVerifiesAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir, "serve")
	server.await("serves")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var turns [2]int
	for n := range turns {
		writers.Go(func() { turns[n] = writeAllTheTime(ctx, t, dir, n) })
	}
	output(t, dir, "run", "Reply with exactly: FIRST")
	const backups = 5
	for i := range backups {
		output(t, dir, "backup", "--quiet", fmt.Sprint("b", i))
	}
	cancel()
	writers.Wait()
	must(t, server.Process.Signal(syscall.SIGTERM))
	server.ends()
	for i := range backups {
		home := filepath.Join(dir, fmt.Sprint("restored", i))
		output(t, dir, "restore", "--quiet", "--home", home, fmt.Sprint("b", i))
		checkRestored(t, dir, home)
	}
	t.Logf("%d turns were taken meanwhile", turns[0]+turns[1])
}

// A restore that reads from a pipe is killed when a part of the backup was read.
func TestARestoreThatIsKilledLeavesNoFolderAndIsRepeated(t *testing.T) {
	dir := t.TempDir()
	output(t, dir, "run", "--yolo", "Run `echo one`")
	output(t, dir, "backup", "it.backup")
	all, err := os.ReadFile(filepath.Join(dir, "it.backup"))
	must(t, err)
	to := filepath.Join(dir, "to")
	for _, part := range []int{0, 600, len(all) / 3, len(all) * 2 / 3, len(all) - 1500} {
		p := command(t, dir, "restore", "--home", filepath.Join(to, "home"), "-")
		in, err := p.StdinPipe()
		must(t, err)
		p.begin()
		if _, err := io.Copy(in, bytes.NewReader(all[:part])); err != nil {
			t.Fatal(err)
		}
		must(t, p.Process.Kill())
		p.ends()
		if _, err := os.Lstat(filepath.Join(to, "home")); err == nil {
			t.Fatalf("killed after %d bytes, there is a folder", part)
		}
	}
	output(t, dir, "restore", "--home", filepath.Join(to, "home"), "it.backup")
	if list, err := os.ReadDir(to); err != nil || len(list) != 1 {
		t.Errorf("beside the folder there is %v, %v", list, err)
	}
	checkRestored(t, dir, filepath.Join(to, "home"))
}

// A folder whose engine was killed is backed up with what its log holds.
func TestAFolderWhoseEngineWasKilledIsBackedUp(t *testing.T) {
	dir := t.TempDir()
	server := start(t, dir, "serve")
	server.await("serves")
	output(t, dir, "run", "Reply with exactly: KEPT")
	must(t, server.Process.Kill())
	server.ends()
	output(t, dir, "backup", "it.backup")
	to := filepath.Join(dir, "to")
	output(t, dir, "restore", "--home", filepath.Join(to, "home"), "it.backup")
	if got := output(t, to, "sessions", "list"); !strings.Contains(got, "KEPT") {
		t.Errorf("the sessions are\n%s", got)
	}
	checkRestored(t, dir, filepath.Join(to, "home"))
}

// A command that runs when a backup is made belongs to the folder that was backed up: in the
// restored one it is lost, and it goes on.
func TestACommandThatRunsIsLostInTheRestoredFolder(t *testing.T) {
	dir := t.TempDir()
	output(t, dir, "run", "--yolo", "Run `while [ -e $PWD ] && [ ! -e go ]; do sleep 0.02; done` in the background")
	t.Cleanup(func() { must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)) }) // it also ends when its folder is removed
	output(t, dir, "backup", "it.backup")
	home := filepath.Join(dir, "to", "home")
	output(t, dir, "restore", "--home", home, "it.backup")
	auditRestored(t, home)
	if got := output(t, dir, "--home", home, "run", "--yolo", "--continue", "Reply with exactly: ON"); !strings.HasSuffix(got, "ON\n") {
		t.Errorf("the session goes on with %q", got)
	}
	for home, want := range map[string]string{home: "lost", filepath.Join(dir, "home"): "running"} {
		var tasks []struct{ Status string }
		must(t, json.Unmarshal([]byte(output(t, dir, "--home", home, "ps", "--all", "--json")), &tasks))
		if len(tasks) != 1 || tasks[0].Status != want {
			t.Errorf("in %s the commands are %+v, want one that is %s", home, tasks, want)
		}
	}
	checkRestored(t, dir, home)
}
