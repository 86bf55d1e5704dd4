package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func ignoreProgress(int64, int64) {}

// copyOneSession copies a store with one session, and returns the path of the copy, whose
// chain was verified.
func copyOneSession(t *testing.T, path string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "copy")
	if err := Copy(t.Context(), path, to, ignoreProgress); err != nil {
		t.Fatal(err)
	}
	if n := verifyCopy(t, to); n != 1 {
		t.Errorf("the copy has %d sessions", n)
	}
	return to
}

// verifyCopy returns the number of sessions of a copy, after their chains were verified.
func verifyCopy(t *testing.T, path string) int {
	t.Helper()
	c, err := OpenCopy(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	names, err := c.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range names {
		if err := c.Verify(t.Context(), id); err != nil {
			t.Errorf("session %s of the copy: %v", id, err)
		}
	}
	return len(names)
}

func TestACopyUnderLoadIsOfOneMomentAndFencesNobody(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "abide.db"), filepath.Join(dir, "copy")
	s := openUnsynced(t, path)
	addSessions(t, s, 200)
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 2 {
		writers.Go(func() { appendAllTheTime(ctx, t, s, event.SessionID(fmt.Sprint("w", w))) })
	}
	last := int64(0)
	err := Copy(t.Context(), path, to, func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d bytes of %d were copied after %d", done, total, last)
		}
		last = done
	})
	cancel()
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if n := verifyCopy(t, to); n < 200 {
		t.Errorf("the copy has %d sessions", n)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 || info.Size() != last {
		t.Errorf("the copy is %v, %v", info, err)
	}
	for _, side := range sides[1:] {
		if _, err := os.Stat(to + side); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy has a file %s: %v", side, err)
		}
	}
	add(t, s, "after", eventlog.End{}, "not fenced")
}

// appendAllTheTime appends to a session until ctx is done.
func appendAllTheTime(ctx context.Context, t *testing.T, s *Store, id event.SessionID) {
	end := eventlog.End{}
	for ctx.Err() == nil {
		var err error
		if end, err = s.Append(context.Background(), id, batch(end, "one", "two")); err != nil {
			t.Errorf("append to %s while the store is copied: %v", id, err)
			return
		}
	}
}

func TestACopyOfAClosedStoreLeavesNothingBesideIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "abide.db")
	s := open(t, path)
	add(t, s, "s", eventlog.End{}, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyOneSession(t, path)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("files = %v, %v", files, err)
	}
	if names, err := Names(t.Context(), path); err != nil || len(names) != 1 || names[0] != "s" {
		t.Errorf("names = %v, %v", names, err)
	}
}

// A store that nobody has open is read without locks. If a process opens it meanwhile, the
// copy is begun anew.
func TestAStoreThatIsOpenedMeanwhileIsCopiedAnew(t *testing.T) {
	for name, closes := range map[string]bool{"and stays open": false, "and is closed again": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "abide.db")
			s := openUnsynced(t, path)
			addSessions(t, s, 100)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			opened := false
			to := filepath.Join(t.TempDir(), "copy")
			err := Copy(t.Context(), path, to, func(int64, int64) {
				if opened {
					return
				}
				opened = true
				s := openUnsynced(t, path)
				add(t, s, "new", eventlog.End{}, "while it is copied")
				if closes {
					s.Close()
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := verifyCopy(t, to); n != 101 {
				t.Errorf("the copy has %d sessions", n)
			}
		})
	}
}

// An engine that has just emptied its write-ahead log still has the store open.
func TestAnEmptyWriteAheadLogIsThatOfAnOpenStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	add(t, s, "s", eventlog.End{}, "a")
	if !s.cutLog() || sizeOf(t, path+"-wal") != 0 {
		t.Fatal("the log was not emptied")
	}
	src, err := openSource(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	if src.frozen != nil {
		t.Error("an open store is read as one that nobody has open")
	}
}

func TestWhatIsNoStoreIsNotCopied(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("This is no database."), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := makeEmpty(empty); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                             "is a folder: name a file in it",
		pipe:                            "is not a file: name a file",
		other:                           "it is not an abide store",
		empty:                           "it is empty",
		filepath.Join(dir, "not there"): "check that its folder exists",
	} {
		err := Copy(t.Context(), path, filepath.Join(dir, "copy"), ignoreProgress)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("copying %s: %v", path, err)
		}
	}
}

// Whoever has installed a newer abide wants a backup before its engine migrates the store.
func TestAStoreOfAnOlderVersionIsCopiedAndVerifiedAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	add(t, s, "s", eventlog.End{}, "a", "b")
	if err := s.write.exec(toVersion5 + "DROP TABLE jobs; PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	to := copyOneSession(t, path)
	src, err := openSource(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	if version, err := storedVersion(t.Context(), src.conn, to); err != nil || version != 1 {
		t.Errorf("the copy has version %d, %v", version, err)
	}
}

func TestACancelledCopyEnds(t *testing.T) {
	dir := t.TempDir()
	s := openUnsynced(t, filepath.Join(dir, "abide.db"))
	addSessions(t, s, 300)
	ctx, cancel := context.WithCancel(t.Context())
	err := Copy(ctx, s.path, filepath.Join(dir, "copy"), func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the copy ended with %v", err)
	}
}

// A file of an older version cannot give pages back. After it was compacted, it can.
func TestCompactMakesAnOldFileSmaller(t *testing.T) {
	const sessions = 400
	path := filepath.Join(t.TempDir(), "abide.db")
	s := openUnsynced(t, path)
	if err := s.write.exec("PRAGMA auto_vacuum = NONE"); err == nil {
		err = s.write.exec("VACUUM")
		if err != nil {
			t.Fatal(err)
		}
	}
	s.shrinks = false
	addSessions(t, s, sessions)
	deleteHalf(t, s, sessions)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	full := sizeOf(t, path)
	s = openUnsynced(t, path)
	if s.shrinks {
		t.Fatal("the file is not like one of an older version")
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if half := sizeOf(t, path); half > full*6/10 {
		t.Errorf("the file had %d bytes, and has %d", full, half)
	}
	add(t, s, "after", eventlog.End{}, "it goes on")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = open(t, path); !s.shrinks {
		t.Error("the file still cannot give pages back")
	}
	if n := len(mustNames(t, path)); n != sessions/2+1 {
		t.Errorf("%d sessions are left", n)
	}
	checkPages(t, path)
}

func mustNames(t *testing.T, path string) []event.SessionID {
	t.Helper()
	names, err := Names(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
