package bridge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

// smallDisk returns a folder on a disk of a megabyte of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("abide-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("only root can make a small disk, so a full one was not tried:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills the disk of a folder, but for a few bytes.
func fill(t *testing.T, dir string, left int) {
	t.Helper()
	var disk syscall.Statfs_t
	must(t, syscall.Statfs(dir, &disk))
	must(t, os.WriteFile(filepath.Join(dir, "filler"), make([]byte, int(disk.Bfree)*int(disk.Bsize)-left), 0o600))
}

// onSmallDisks runs a test with a workspace on a small disk, with and without a bridge.
func onSmallDisks(t *testing.T, test func(t *testing.T, dir string, ws workspace.Workspace)) {
	for _, network := range []string{"local", "unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			dir := smallDisk(t)
			m := workspacetest.Manager(t, filepath.Join(dir, "processes"))
			t.Cleanup(func() { must(t, m.Close()) })
			ws := local.New(dir, m)
			if network != "local" {
				ws = bridgetest.Over(t, network, ws)
			}
			test(t, dir, ws)
		})
	}
}

func TestAFullDiskLosesNoFile(t *testing.T) {
	onSmallDisks(t, func(t *testing.T, dir string, ws workspace.Workspace) {
		at, large := filepath.Join(dir, "f"), bytes.Repeat([]byte("new "), 1<<19)
		must(t, os.WriteFile(at, []byte("old"), 0o640))
		s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir, Mode: scope.Write}}, nil)
		must(t, err)
		draft := func(name string) error {
			d, err := ws.Files.Create(t.Context(), workspace.At(name), workspace.WriteOptions{})
			if err != nil {
				return err
			}
			defer func() { must(t, d.Close()) }()
			if _, err = d.Write(large); err == nil {
				err = d.Commit()
			}
			return err
		}
		for what, err := range map[string]error{
			"write":         ws.Files.WriteFile(t.Context(), workspace.At("f"), large, workspace.WriteOptions{}),
			"new file":      ws.Files.WriteFile(t.Context(), workspace.At("new"), large, workspace.WriteOptions{New: true}),
			"draft":         draft("f"),
			"draft of new":  draft("new"),
			"change":        ws.Files.Apply(t.Context(), s, workspace.Change{Path: at, Leads: at, Before: workspace.Digest([]byte("old")), New: large, Key: "k"}),
			"change of new": ws.Files.Apply(t.Context(), s, workspace.Change{Path: filepath.Join(dir, "new"), Leads: filepath.Join(dir, "new"), New: large, Key: "k2"}),
		} {
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got, err := os.ReadFile(at); string(got) != "old" || err != nil {
			t.Errorf("the old file has %d bytes, %v", len(got), err)
		}
		entries, err := os.ReadDir(dir)
		if must(t, err); len(entries) != 2 { // the file, and the folder of processes
			t.Errorf("there is %v", entries)
		}
		must(t, ws.Files.WriteFile(t.Context(), workspace.At("f"), []byte("small"), workspace.WriteOptions{}))
	})
}

// runTool makes a call of a tool.
func runTool(t *testing.T, tools map[string]tool.Tool, dir, name, key string, arguments map[string]any) tool.Result {
	t.Helper()
	data, err := json.Marshal(arguments)
	must(t, err)
	r, err := tools[name].Run(t.Context(), tool.Call{Session: "s", ID: key, Key: key, Attempt: 1, Arguments: data, Dir: dir})
	must(t, err)
	return r
}

// The tools say that the disk is full, and the model can go on when there is room again.
func TestAFullDiskIsNamedToTheModel(t *testing.T) {
	onSmallDisks(t, func(t *testing.T, dir string, ws workspace.Workspace) {
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o640))
		tools, large := toolsOver(t, ws, dir, t.TempDir()), strings.Repeat("new ", 1<<19)
		for name, r := range map[string]tool.Result{
			"edit":   runTool(t, tools, dir, "edit", "a", map[string]any{"path": "f", "old_str": "old", "new_str": large}),
			"create": runTool(t, tools, dir, "create", "b", map[string]any{"path": "new", "file_text": large}),
		} {
			if !r.Failed || !strings.Contains(r.Text, "no space left on device") {
				t.Errorf("%s: %.300s", name, r.Text)
			}
		}
		if got, err := os.ReadFile(filepath.Join(dir, "f")); string(got) != "old" || err != nil {
			t.Errorf("%.20q, %v", got, err)
		}
		if r := runTool(t, tools, dir, "edit", "c", map[string]any{"path": "f", "old_str": "old", "new_str": "small"}); r.Failed {
			t.Errorf("an edit that fits: %s", r.Text)
		}
	})
}

// A file whose old content cannot be kept, because the disk of the engine is full, is not
// changed.
func TestACheckpointOnAFullDisk(t *testing.T) {
	for _, network := range []string{"local", "unix"} {
		dir, keep := t.TempDir(), smallDisk(t)
		ws := local.New(dir, nil)
		if network != "local" {
			ws = bridgetest.Over(t, network, ws)
		}
		tools := toolsOver(t, ws, dir, filepath.Join(keep, "kept"))
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600))
		fill(t, keep, 0)
		edit := func(key string) tool.Result {
			return runTool(t, tools, dir, "edit", key, map[string]any{"path": "f", "old_str": "old", "new_str": "new"})
		}
		if r := edit("a"); !r.Failed || !strings.Contains(r.Text, "no space left on device") {
			t.Errorf("%s: %s", network, r.Text)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "f")); string(got) != "old" || err != nil {
			t.Errorf("%s: %q, %v", network, got, err)
		}
		must(t, os.Remove(filepath.Join(keep, "filler")))
		if r := edit("b"); r.Failed {
			t.Errorf("%s: when there is room again: %s", network, r.Text)
		}
	}
}

// A command whose output fills the disk ends as it does otherwise, and what was kept of its
// output can be read.
func TestACommandFillsTheDisk(t *testing.T) {
	onSmallDisks(t, func(t *testing.T, dir string, ws workspace.Workspace) {
		run := ws.Processes
		p, _, err := run.Start(t.Context(), process.Spec{Owner: "me", Key: "k", Command: "echo first; head -c 3000000 /dev/zero; exit 7"})
		must(t, err)
		p, err = run.Wait(t.Context(), "me", p.ID)
		if err != nil || p.Exit == nil || p.Exit.Code != 7 {
			t.Fatalf("it ended as %+v, %v", p, err)
		}
		chunk, err := run.Read(t.Context(), "me", p.ID, process.ReadRequest{Limit: 6})
		if err != nil || string(chunk.Data) != "first\n" {
			t.Errorf("%q, %v", chunk.Data, err)
		}
		if kept := p.Output.Bytes; kept != 3_000_006 || p.Output.Omitted == 0 {
			t.Errorf("%+v", p.Output)
		}
	})
}

func TestACommandOnAFullDiskIsNotStarted(t *testing.T) {
	onSmallDisks(t, func(t *testing.T, dir string, ws workspace.Workspace) {
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o600))
		fill(t, dir, 0)
		_, _, err := ws.Processes.Start(t.Context(), process.Spec{Owner: "me", Key: "k", Command: "echo ran > ran"})
		if err == nil || !strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("%v", err)
		}
		must(t, os.Remove(filepath.Join(dir, "filler")))
		p, _, err := ws.Processes.Start(t.Context(), process.Spec{Owner: "me", Key: "k2", Command: "echo ran > ran"})
		must(t, err)
		if p, err = ws.Processes.Wait(t.Context(), "me", p.ID); err != nil || p.Exit == nil || p.Exit.Code != 0 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
