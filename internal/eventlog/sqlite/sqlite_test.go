package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimVariable); path != "" {
		runVictim(path)
		return
	}
	if path := os.Getenv(sealVictim); path != "" {
		runSealVictim(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// Whether appends are synced makes no difference that the suite could see.
func TestStoreKeepsThePromises(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store { return openUnsynced(t, filepath.Join(t.TempDir(), "abide.db")) })
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestCloseCopiesTheWriteAheadLogIntoTheFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "abide.db"))
	end := add(t, s, "s", eventlog.End{}, "a")
	for range 20 { // readers too
		if _, err := read(t, s, "s"); err != nil {
			t.Fatal(err)
		}
	}
	add(t, s, "s", end, "b")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("files = %v, %v; want abide.db alone", files, err)
	}
}
