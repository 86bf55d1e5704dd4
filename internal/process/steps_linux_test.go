package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
)

// checkKeyIsFree runs the same start once more in a folder that a killed daemon
// left, and checks that the command has run the given number of times, and that
// the folder has nothing but the process in it.
func checkKeyIsFree(t *testing.T, dir string, s Spec, count func() int, want int) {
	t.Helper()
	m := open(t, dir, Options{})
	info := run(t, m, s)
	if info.State != Exited || count() != want {
		t.Errorf("it ran %d times, want %d: %+v", count(), want, info)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if names := namesIn(t, dir); !slices.Equal(names, []string{string(info.ID)}) {
		t.Errorf("%v is left", names)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

// killAt runs a daemon that is killed at a point, and fails if it is not.
func killAt(t *testing.T, point string, o daemonOrders) {
	t.Helper()
	o.Fault, o.Dies = "daemon@"+point, true
	v := startKillable(t, o)
	for line := v.said(); line != ""; line = v.said() {
		if !strings.HasPrefix(line, "started") {
			t.Fatalf("the daemon said %q", line)
		}
	}
}

// The next daemon undoes a start that did not happen. If it is killed at any step of
// that, the daemon after it can start the command.
func TestADaemonKilledWhileItUndoesAStart(t *testing.T) {
	for _, point := range []string{"abandoned", "renamed", "unspecified"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			command, count := counter(t)
			s := spec("k", command)
			killAt(t, "synced", daemonOrders{Dir: dir, Specs: []Spec{s}})
			killAt(t, point, daemonOrders{Dir: dir})
			checkKeyIsFree(t, dir, s, count, 1)
		})
	}
}

// A daemon that is killed at any step before it sends the Go record leaves nothing.
func TestADaemonKilledWhileItStarts(t *testing.T) {
	for _, point := range []string{"written", "unsynced", "synced"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			command, count := counter(t)
			s := spec("k", command)
			killAt(t, point, daemonOrders{Dir: dir, Specs: []Spec{s}})
			checkKeyIsFree(t, dir, s, count, 1)
		})
	}
}

// A daemon that is killed at any step of a removal leaves the process either known or
// removed.
func TestADaemonKilledWhileItRemovesAProcess(t *testing.T) {
	for _, how := range []string{"sweep", "abandon"} {
		for _, point := range []string{"renamed", "unspecified"} {
			t.Run(how+" "+point, func(t *testing.T) {
				dir := t.TempDir()
				command, count := counter(t)
				s := spec("k", command+"; echo hello")
				killAt(t, point, daemonOrders{Dir: dir, Specs: []Spec{s}, Then: how})
				checkKeyIsFree(t, dir, s, count, 2)
			})
		}
	}
}

// Output that was dropped takes no disk space after the next start, and its process is
// still known.
func TestADaemonKilledWhileItDropsOutput(t *testing.T) {
	dir := t.TempDir()
	command, count := counter(t)
	s := spec("k", command+"; echo hello")
	killAt(t, "dropped", daemonOrders{Dir: dir, Specs: []Spec{s}, Then: "forget"})
	checkKeyIsFree(t, dir, s, count, 1)
	names := namesIn(t, filepath.Join(dir, string(idOf(me, "k"))))
	if slices.ContainsFunc(names, output.IsFile) {
		t.Errorf("the output is on disk still: %v", names)
	}
}

// The files of a folder are removed in any order, and a daemon can be killed after
// each of them: the next one removes the rest.
func TestAFolderHalfRemovedIsRemoved(t *testing.T) {
	files := []string{keeper.SpecFile, keeper.ClaimFile, keeper.StateFile, output.DataFile(0), output.IndexFile(0)}
	for left := range 1 << len(files) {
		dir := t.TempDir()
		at := filepath.Join(dir, removedPrefix+string(idOf(me, "k"))+"X")
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, name := range files {
			if left>>i&1 == 1 {
				if err := os.WriteFile(filepath.Join(at, name), []byte("\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		open(t, dir, Options{})
		if names := namesIn(t, dir); len(names) > 0 {
			t.Errorf("of %05b %v is left", left, names)
		}
	}
}

// A keeper that got the Go record from a dead daemon runs the command if it can claim
// the folder and finds a spec. So the spec is removed before the daemon's own claim,
// also by the second attempt.
func TestTheSpecIsRemovedBeforeTheClaim(t *testing.T) {
	dir := t.TempDir()
	killAt(t, "synced", daemonOrders{Dir: dir, Specs: []Spec{spec("k", "true")}})
	killAt(t, "renamed", daemonOrders{Dir: dir})
	killAt(t, "unspecified", daemonOrders{Dir: dir})
	names := namesIn(t, dir)
	if len(names) != 1 {
		t.Fatalf("%v is left", names)
	}
	files := namesIn(t, filepath.Join(dir, names[0]))
	if slices.Contains(files, keeper.SpecFile) || !slices.Contains(files, keeper.ClaimFile) {
		t.Errorf("%v is left", files)
	}
}

// A folder that a daemon of an older version left without its spec is removed if the
// command was never started, or is gone.
func TestAFolderWithoutASpecIsRemovedIfNothingRunsThere(t *testing.T) {
	abandoned := record.New(keeper.Abandoned).With("boot", "b")
	claimed := record.New(keeper.Claimed).WithInt("pid", 1<<30).With("boot", "b")
	ended := record.New(keeper.Ended)
	tests := []struct {
		name    string
		files   map[string][]record.Record
		removed bool
	}{
		{"empty", nil, true},
		{"unclaimed", map[string][]record.Record{keeper.StateFile: nil}, true},
		{"abandoned", map[string][]record.Record{keeper.ClaimFile: {abandoned}, keeper.StateFile: nil}, true},
		{"abandoned, without a journal", map[string][]record.Record{keeper.ClaimFile: {abandoned}}, true},
		{"ended", map[string][]record.Record{keeper.ClaimFile: {claimed, ended}, keeper.StateFile: {claimed, ended}}, true},
		{"ended, without a journal", map[string][]record.Record{keeper.ClaimFile: {claimed, ended}}, true},
		{"not ended", map[string][]record.Record{keeper.ClaimFile: {claimed}, keeper.StateFile: {claimed}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, string(idOf(me, "k")))
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, records := range test.files {
				text := "\n"
				for _, r := range records {
					text += string(r.Line())
				}
				if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			open(t, dir, Options{})
			if removed := len(namesIn(t, dir)) == 0; removed != test.removed {
				t.Errorf("removed = %v, want %v", removed, test.removed)
			}
		})
	}
}
