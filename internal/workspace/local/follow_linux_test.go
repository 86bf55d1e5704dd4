package local_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace/local"
)

// Follow ends with the process, even if a child of it keeps writing.
func TestFollowDoesNotWaitForChildren(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := process.Open(filepath.Join(dir, "processes"), process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p := local.New(dir, m).Processes
	const owner = "me"
	// A read finds nothing if it opens the pipe before the last writer has closed it.
	info, _, err := p.Start(t.Context(), process.Spec{Key: "k", Owner: owner, Command: "while true; do read x <gate && echo $x; done & echo ready; exit 3", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(t.Context(), owner, info.ID)
	var end *process.Info
	frames := 0
	for frame, err := range p.Follow(t.Context(), owner, info.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if end = frame.End; end != nil {
			break
		}
		if frames++; frames > 100 {
			t.Fatal("it goes on with what the child writes")
		}
		if _, err := p.Wait(t.Context(), owner, info.ID); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(gate, []byte("more\n"), 0o600); err != nil { // blocks until the child reads
			t.Fatal(err)
		}
		next := process.ReadRequest{Offset: frame.Offset + int64(len(frame.Data)), Wait: true}
		if _, err := p.Read(t.Context(), owner, info.ID, next); err != nil {
			t.Fatal(err)
		}
	}
	if end == nil || end.Exit == nil || end.Exit.Code != 3 || !end.Lingering {
		t.Errorf("the end is %+v", end)
	}
}
