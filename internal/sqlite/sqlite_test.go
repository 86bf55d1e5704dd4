package sqlite

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStoreKeepsThePromises(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store { return open(t, filepath.Join(t.TempDir(), "abide.db")) })
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
