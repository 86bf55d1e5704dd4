package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/abide-run/abide/internal/eventlog"
)

func TestOnlyTheOwnerCanReadTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "careless"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "careless"} {
		s := open(t, filepath.Join(dir, name))
		add(t, s, "s", eventlog.End{}, "a")
		for _, side := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(s.path + side)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v; want 0600", name+side, info.Mode(), err)
			}
		}
	}
}

// A path may be a mistake: a file of somebody else keeps its mode.
func TestTheModeOfAFileThatIsNoStoreStays(t *testing.T) {
	dir := t.TempDir()
	text, theirs, pipe := filepath.Join(dir, "text"), filepath.Join(dir, "theirs"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(text, []byte(strings.Repeat("dear diary ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tamper(t, theirs, "CREATE TABLE theirs (x)")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "not an abide store", theirs: "a database of another program", pipe: "is not a file: name a file"} {
		if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: mode %v, %v; want 0644", path, info.Mode(), err)
		}
	}
}

// A write-ahead log that a crash has left contains events as well.
func TestAWriteAheadLogThatOthersCanReadIsHidden(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store"))
	add(t, s, "s", eventlog.End{}, "a")
	copied := filepath.Join(t.TempDir(), "copied")
	for _, side := range sides[:2] {
		b, err := os.ReadFile(s.path + side)
		if err == nil {
			err = os.WriteFile(copied+side, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open(t, copied)
	for _, side := range sides {
		if info, err := os.Stat(copied + side); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", copied+side, info.Mode(), err)
		}
	}
}

func TestAPathIsTakenAsItIs(t *testing.T) {
	for _, name := range []string{"with space", "100%", "a?b=c&d", "#", "file:x", "ü", "%41"} {
		dir := t.TempDir()
		s := open(t, filepath.Join(dir, name))
		add(t, s, "s", eventlog.End{}, "a")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 || files[0].Name() != name {
			t.Errorf("files = %v, %v; want %q alone", files, err, name)
		}
	}
}

func TestWhatIsStoredIsThereAfterOpeningAgain(t *testing.T) {
	for _, mode := range []eventlog.Sync{eventlog.Full, eventlog.Normal} {
		path := filepath.Join(t.TempDir(), "abide.db")
		var end eventlog.End
		for i := range 3 {
			s, err := Open(t.Context(), path, Options{Sync: mode})
			if err != nil {
				t.Fatal(err)
			}
			end = add(t, s, "s", end, fmt.Sprint(i))
			if got, err := read(t, s, "s"); err != nil || len(got) != i+1 {
				t.Errorf("%v: s says %q, %v", mode, got, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSyncingIsAsTheOptionsSay(t *testing.T) {
	for mode, want := range map[eventlog.Sync]int{eventlog.Full: 2, eventlog.Normal: 1} {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "abide.db"), Options{Sync: mode})
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := s.write.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got); err != nil || got != want {
			t.Errorf("%v: synchronous = %d, %v; want %d", mode, got, err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// refuses checks that a file cannot be opened, that the error is one sentence
// with the file, the reason and the way out, and that the file is left alone.
func refuses(t *testing.T, path string, parts ...string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	s, err := Open(context.Background(), path, Options{})
	if err == nil {
		s.Close()
		t.Fatal("it was opened")
	}
	for _, part := range append(parts, path) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("err = %v; want it to say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("err = %q; want one line", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestAStoreOfANewerVersionIsRefused(t *testing.T) {
	path := makeDamageStore(t)
	tamper(t, path, "PRAGMA user_version = 99")
	refuses(t, path, "has version 99", "versions up to 8", "use a newer abide")
	tamper(t, path, "PRAGMA journal_mode = DELETE") // a version to come may want another
	refuses(t, path, "has version 99")
	tamper(t, path, "PRAGMA user_version = 8")
	if got, err := read(t, open(t, path), "victim"); err != nil || len(got) != 8 {
		t.Errorf("victim says %q, %v", got, err)
	}
}

func TestAStoreWithAVersionThatNobodyWritesIsRefused(t *testing.T) {
	path := makeDamageStore(t)
	for _, version := range []string{"0", "-1"} {
		tamper(t, path, "PRAGMA user_version = "+version)
		refuses(t, path, "has version "+version+", which no abide writes", "abide restore")
	}
	tamper(t, path, "PRAGMA user_version = 8")
	if got, err := read(t, open(t, path), "victim"); err != nil || len(got) != 8 {
		t.Errorf("victim says %q, %v", got, err)
	}
}

func TestAFileThatIsNotAStoreIsRefused(t *testing.T) {
	t.Run("text", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "notes.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("dear diary ", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, "not an abide store", "choose another data folder")
	})
	t.Run("another program's database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "their.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA journal_mode = WAL; CREATE TABLE theirs (x)"); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, "a database of another program", "choose another data folder")
	})
	t.Run("a folder", func(t *testing.T) {
		refuses(t, t.TempDir(), "is a folder", "name a file in it")
	})
	t.Run("in no folder", func(t *testing.T) {
		refuses(t, filepath.Join(t.TempDir(), "none", "abide.db"), "cannot be opened", "check that its folder exists")
	})
	t.Run("in a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refuses(t, filepath.Join(path, "abide.db"), "not a directory")
	})
	t.Run("cut in half", func(t *testing.T) {
		path := makeDamageStore(t)
		if err := os.Truncate(path, pageSize*3/2); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, "damaged", "restore it from a backup")
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnEmptiedStoreIsRefused: a file that was cut to nothing, or whose tables were removed,
// has lost its sessions. A new store in its place would hide that.
func TestAnEmptiedStoreIsRefused(t *testing.T) {
	truncate := func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }
	for name, c := range map[string]struct {
		used bool // there is something of sessions in the data folder
		harm func(t *testing.T, path string)
		want string
	}{
		"cut": {true, truncate, "is empty, although there is something of sessions beside it: restore it from a backup"},
		"cut beside its index": {false, func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-search", []byte("x"), 0o600))
			truncate(t, path)
		}, "is empty"},
		"cut beside its log": {false, func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-wal", []byte("x"), 0o600))
			truncate(t, path)
		}, "is empty"},
		"made anew":          {true, func(t *testing.T, path string) { truncate(t, path); tamper(t, path, "PRAGMA user_version = 0; VACUUM") }, "is empty"},
		"without its events": {false, func(t *testing.T, path string) { tamper(t, path, "DROP TABLE records") }, "lacks tables, which another program has removed: restore it from a backup"},
		"without any table": {false, func(t *testing.T, path string) {
			tamper(t, path, "DROP TABLE records; DROP TABLE meta; DROP TABLE secrets; DROP TABLE jobs; DROP TABLE sessions")
		}, "lacks tables"},
	} {
		t.Run(name, func(t *testing.T) {
			path := makeDamageStore(t)
			c.harm(t, path)
			before, err := os.ReadFile(path)
			must(t, err)
			s, err := Open(t.Context(), path, Options{Used: c.used})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path+" "+c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("err = %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed, %v", err)
			}
		})
	}
}

// TestAStoreThatWasNotMadeToItsEndIsMade: a crash may leave an empty file, or one without
// tables, and the process after it makes the store.
func TestAStoreThatWasNotMadeToItsEndIsMade(t *testing.T) {
	for name, leave := range map[string]func(path string){
		"no page": func(path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"no table": func(path string) {
			must(t, os.WriteFile(path, nil, 0o600))
			tamper(t, path, fmt.Sprintf("PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL", pageSize))
			must(t, os.WriteFile(path+"-wal", []byte("x"), 0o600))
		},
		"no file, though sessions have left something": func(string) {},
	} {
		path := filepath.Join(t.TempDir(), "abide.db")
		leave(path)
		s, err := Open(t.Context(), path, Options{Used: strings.HasPrefix(name, "no file")})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		add(t, s, "s", eventlog.End{}, "a")
		must(t, s.Close())
	}
}

func TestAnOldSQLiteIsRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"3.51.3": true, "3.51.10": true, "3.54.1": true, "4.0.0": true,
		"3.51.2": false, "3.9.9": false, "2.99.99": false, "": false, "new": false,
	} {
		if err := checkOldest(version); (err == nil) != ok {
			t.Errorf("%q: err = %v", version, err)
		}
	}
}

func TestAnotherWriterIsWaitedForThenNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	if err := s.write.exec("PRAGMA busy_timeout = 1"); err != nil { // nobody commits now
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Append(t.Context(), "a", batch(eventlog.End{}, "x"))
	if err == nil || !strings.Contains(err.Error(), "another process keeps it locked: end that process") {
		t.Errorf("append: err = %v, want the reason", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", eventlog.End{}, "nothing is lost by that")
}

// Opening a store writes one page, which says that this process has it now: every page
// more is waited for at each start.
func TestOpeningWritesOnePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const head, frame = 32, 24 + pageSize
	if pages := (info.Size() - head) / frame; pages != 1 {
		t.Errorf("opening wrote %d pages", pages)
	}
}

// TestANewStoreBesideAnotherIsMentioned: a typo in the path makes a new store, and the
// sessions seem to be lost.
func TestANewStoreBesideAnotherIsMentioned(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for _, name := range []string{"abide.db", "abdie.db", "abdie.db"} {
		s, err := Open(t.Context(), filepath.Join(dir, name), Options{Warn: func(line string) { lines = append(lines, line) }})
		must(t, err)
		must(t, s.Close())
	}
	if len(lines) != 1 || !strings.Contains(lines[0], filepath.Join(dir, "abide.db")+" is there") {
		t.Errorf("lines = %q, want one that names abide.db", lines)
	}
}

// A full disk is named as such, also where SQLite only says that a file could not grow.
func TestAFullDiskIsNamed(t *testing.T) {
	for code, want := range map[int]string{
		lib.SQLITE_FULL:          "the disk is full",
		lib.SQLITE_IOERR_SHMSIZE: "the disk is full, or its quota is used up",
		lib.SQLITE_IOERR_FSYNC:   "the disk reports an error",
		lib.SQLITE_IOERR:         "the disk reports an error",
	} {
		if a, ok := known(code, errors.New("an error")); !ok || a.reason != want {
			t.Errorf("%d: %+v, want %q", code, a, want)
		}
	}
}
