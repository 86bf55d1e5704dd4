package process

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyProcesses copies the regular files of a folder of processes, as a backup does.
func copyProcesses(t *testing.T, from, to string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(from, "p*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		rel, _ := filepath.Rel(from, path)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		in.Close()
		if err == nil {
			err = os.WriteFile(filepath.Join(to, rel), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The keepers of a folder that was copied run on, on the same machine. The manager of the
// copy must leave them and their commands alone.
func TestTheProcessesOfACopyAreLostAndThoseOfTheOriginalRunOn(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	m := open(t, from, Options{})
	path, pass := gate(t)
	running := start(t, m, spec("runs", "echo ready; read x <"+path+"; echo late; exit 4")).ID
	awaitOutput(t, m, running, "ready")
	ended := run(t, m, spec("ended", "echo done; exit 3")).ID
	path2, pass2 := gate(t)
	lingers := start(t, m, spec("lingers", "(read x <"+path2+") & exit 5")).ID
	if _, err := m.Wait(t.Context(), me, lingers); err != nil {
		t.Fatal(err)
	}
	copyProcesses(t, from, to)
	for range 2 { // the second call changes nothing
		if err := RecordLost(to, "it was copied"); err != nil {
			t.Fatal(err)
		}
	}

	c := open(t, to, Options{})
	info, err := c.WaitGone(t.Context(), me, running)
	if err != nil || info.State != Lost || info.Reason != "it was copied" || len(info.Survivors) > 0 {
		t.Errorf("the copy has %+v, %v", info, err)
	}
	if strings.Count(journal(t, info), " lost ") != 1 {
		t.Errorf("the journal is %s", journal(t, info))
	}
	if got := all(t, c, running, Both); got != "ready\n" {
		t.Errorf("the output in the copy is %q", got)
	}
	for id, code := range map[ID]int{ended: 3, lingers: 5} {
		if info, err := c.WaitGone(t.Context(), me, id); err != nil || info.State != Exited || info.Exit.Code != code {
			t.Errorf("the copy has %+v, %v", info, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	if info, err := m.Get(me, running); err != nil || info.State != Running {
		t.Errorf("the original has %+v, %v", info, err)
	}
	pass()
	pass2()
	if info, err := m.WaitGone(t.Context(), me, running); err != nil || info.State != Exited || info.Exit.Code != 4 {
		t.Errorf("the original ended as %+v, %v", info, err)
	}
	if err := RecordLost(filepath.Join(to, "absent"), ""); err != nil {
		t.Error(err)
	}
}
