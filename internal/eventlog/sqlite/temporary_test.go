package sqlite

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

func TestErrorsThatMayGoAwayAreTemporary(t *testing.T) {
	exec := func(path, text string) (*sql.DB, error) {
		db, err := sql.Open("sqlite", path)
		if err == nil {
			db.SetMaxOpenConns(1)
			_, err = db.Exec(text)
		}
		t.Cleanup(func() { db.Close() })
		return db, err
	}
	for name, c := range map[string]struct {
		hurt func(path string) error
		want bool
	}{
		"locked": {func(path string) error {
			_, err := exec(path, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
			return err
		}, true},
		"newer": {func(path string) error { _, err := exec(path, "PRAGMA user_version = 99"); return err }, false},
		"foreign": {func(path string) error {
			_, err := exec(path, "PRAGMA application_id = 1; PRAGMA user_version = 0")
			return err
		}, false},
		"damaged": {func(path string) error { return os.WriteFile(path, make([]byte, 9000), 0o600) }, false},
		"no store": {func(path string) error {
			return os.WriteFile(path, []byte("a plain text, and none of ours at all, really"), 0o600)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "abide.db")
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				err = s.Close()
			}
			if err == nil {
				err = c.hurt(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err = Open(t.Context(), path, Options{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if got := isTemporary(err); got != c.want {
				t.Errorf("%v can pass: %v", err, got)
			}
		})
	}
}
