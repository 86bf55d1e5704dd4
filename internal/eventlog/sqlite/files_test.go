package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
)

func TestAStoreWhoseFilesWereMovedRefusesAppends(t *testing.T) {
	move := func(from, to string) error { return os.Rename(from, to) }
	for name, hurt := range map[string]func(dir string) error{
		"folder deleted": os.RemoveAll,
		"folder renamed": func(dir string) error { return move(dir, dir+".old") },
		"folder replaced by a copy": func(dir string) error {
			return errors.Join(move(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		},
		"folder replaced by a file": func(dir string) error {
			return errors.Join(move(dir, dir+".old"), os.WriteFile(dir, nil, 0o600))
		},
		"database removed": func(dir string) error { return os.Remove(filepath.Join(dir, "abide.db")) },
		"log removed":      func(dir string) error { return os.Remove(filepath.Join(dir, "abide.db-wal")) },
		"index removed":    func(dir string) error { return os.Remove(filepath.Join(dir, "abide.db-shm")) },
		"database replaced by a copy": func(dir string) error {
			path := filepath.Join(dir, "abide.db")
			text, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, text, 0o600))
		},
	} {
		for when, quiet := range map[string]bool{"at once": false, "after a while": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "data")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				s := open(t, filepath.Join(dir, "abide.db"))
				end := add(t, s, "s", eventlog.End{}, "a")
				if quiet {
					awaitTick(t, s.files.seen)
					s.files.quiet = true // the state after a second without a change of the folder
				}
				if err := hurt(dir); err != nil {
					t.Fatal(err)
				}
				refusesAll(t, s, end)
			})
		}
	}
}

// A read opens a new connection if all others are in use. It must not fail with an error of
// its own when the folder is gone: the engine ends with the reason that says so.
func TestAReadThatFindsTheFilesGoneClosesTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(dir, "abide.db"))
	end := add(t, s, "s", eventlog.End{}, "a")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	s.reading.SetMaxIdleConns(-1)
	if _, err := s.Session(t.Context(), "s"); !errors.Is(err, eventlog.ErrGone) || !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("the read failed with %v", err)
	}
	refusesAll(t, s, end)
}

// awaitTick waits until the next change of a folder gives it another time than it has.
func awaitTick(t *testing.T, seen dirState) {
	t.Helper()
	for dir := t.TempDir(); ; {
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if now, err := stat(dir); err != nil || now.changed != seen.changed {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// refusesAll checks that nothing is acknowledged any more, of whatever kind.
func refusesAll(t *testing.T, s *Store, end eventlog.End) {
	t.Helper()
	_, appended := s.Append(t.Context(), "s", eventlog.Batch{After: end, Events: half(1)})
	kept := s.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "key", Value: []byte("value")})
	for what, err := range map[string]error{"an append": appended, "a secret": kept, "the end of the store": s.Err()} {
		if !errors.Is(err, eventlog.ErrGone) || !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), filepath.Dir(s.path)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAFolderWithoutPermissionDoesNotCloseTheStore(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("skipped: a folder without permissions, because root may enter it")
	}
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "abide.db"))
	end := add(t, s, "s", eventlog.End{}, "a")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	add(t, s, "s", end, "b")
}
