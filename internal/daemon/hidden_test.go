package daemon

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestTheLogAndItsKeyAreHiddenWhereverTheyAre: commands could read a log or a key that the
// settings put outside the data folder.
func TestTheLogAndItsKeyAreHiddenWhereverTheyAre(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		config Config
		want   []string
	}{
		{Config{}, []string{filepath.Join(dir, "secrets.key"), filepath.Join(dir, "abide.db"), filepath.Join(dir, "abide.db-wal")}},
		{Config{KeyFile: "/keys/mine", Store: "sqlite:/logs/a.db"}, []string{"/keys/mine", "/logs/a.db", "/logs/a.db-wal", "/logs/a.db-shm", "/logs/a.db-journal", "/logs/a.db-search", "/logs/a.db-search-wal"}},
		{Config{KeyFile: "../mine"}, []string{filepath.Join(filepath.Dir(dir), "mine")}},
	} {
		got := secretFilesOf(test.config, dir)
		for _, path := range test.want {
			if !slices.Contains(got, path) {
				t.Errorf("%+v: %s is not hidden: %q", test.config, path, got)
			}
		}
	}
}
