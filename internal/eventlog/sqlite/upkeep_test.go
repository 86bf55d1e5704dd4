package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// openUnsynced opens a store that does not wait for the disk, so that tests that write
// many megabytes take no time.
func openUnsynced(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{Sync: eventlog.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// addSessions appends one event of 64 KiB to each of n sessions.
func addSessions(t *testing.T, s *Store, n int) {
	t.Helper()
	text := strings.Repeat("x", 64<<10)
	for i := range n {
		add(t, s, sessionName(i), eventlog.End{}, text)
	}
}

func sessionName(i int) event.SessionID { return event.SessionID(fmt.Sprint("s", i)) }

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func deleteHalf(t *testing.T, s *Store, n int) {
	t.Helper()
	for i := 0; i < n; i += 2 {
		if err := s.Delete(t.Context(), sessionName(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFileShrinksAfterHalfOfTheSessionsWereDeleted(t *testing.T) {
	const sessions = 600
	path := filepath.Join(t.TempDir(), "abide.db")
	s := openUnsynced(t, path)
	addSessions(t, s, sessions)
	full := sizeOf(t, path)
	deleteHalf(t, s, sessions)
	s.upkeep.wait()
	if half := sizeOf(t, path); half > full/2+(freeAllowed+freeKept)*pageSize {
		t.Errorf("the file had %d bytes, and has %d after half of the sessions were deleted", full, half)
	}
	if log := sizeOf(t, path+"-wal"); log > walLimit {
		t.Errorf("the write-ahead log has %d bytes", log)
	}
	for i := 1; i < sessions; i += 2 {
		if texts, err := read(t, s, sessionName(i)); err != nil || len(texts) != 1 {
			t.Fatalf("session %d: %d events, %v", i, len(texts), err)
		}
	}
	checkPages(t, path)
}

// checkPages has SQLite check the whole file.
func checkPages(t *testing.T, path string) {
	t.Helper()
	s := open(t, path)
	var result string
	if err := s.reading.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("the file is %q, %v", result, err)
	}
}

// An engine that was killed between two steps leaves free pages. The next one goes on.
func TestTheNextProcessGoesOnToShrinkTheFile(t *testing.T) {
	const sessions = 400
	path := filepath.Join(t.TempDir(), "abide.db")
	s := openUnsynced(t, path)
	addSessions(t, s, sessions)
	s.upkeep.stopped = true // nothing shrinks in this process
	deleteHalf(t, s, sessions)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	full := sizeOf(t, path)
	s = openUnsynced(t, path)
	s.upkeep.wait()
	if half := sizeOf(t, path); half > full/2+(freeAllowed+freeKept)*pageSize {
		t.Errorf("the file had %d bytes, and has %d", full, half)
	}
	checkPages(t, path)
}

// While one reader begins before the other ends, there is never the moment without readers
// in which SQLite by itself begins the write-ahead log anew.
func TestTheWriteAheadLogStaysBoundedWhileOthersRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := openUnsynced(t, path)
	addSessions(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { readInTurns(ctx, t, s) })
	largest := int64(0)
	text := strings.Repeat("x", 64<<10)
	for i := range 64 << 20 / len(text) {
		add(t, s, event.SessionID(fmt.Sprint("w", i)), eventlog.End{}, text)
		largest = max(largest, sizeOf(t, path+"-wal"))
	}
	cancel()
	reading.Wait()
	t.Logf("the write-ahead log had at most %d bytes", largest)
	if largest > 4*walLimit {
		t.Errorf("the write-ahead log grew to %d bytes", largest)
	}
}

// readInTurns has two transactions that read, of which at least one is open at any time.
func readInTurns(ctx context.Context, t *testing.T, s *Store) {
	last := beginReading(t, s)
	for ctx.Err() == nil {
		next := beginReading(t, s)
		if err := last.Rollback(); err != nil {
			t.Error(err)
		}
		last = next
	}
	last.Rollback()
}

// beginReading begins a transaction that reads what is there now.
func beginReading(t *testing.T, s *Store) *sql.Tx {
	tx, err := s.reading.BeginTx(context.Background(), nil)
	var n int
	if err == nil {
		err = tx.QueryRow("SELECT sum(length(CAST(body AS TEXT))) FROM (SELECT body FROM records LIMIT 2)").Scan(&n) // takes some milliseconds, and not so long on a busy machine that no attempt to cut the log waits for it
	}
	if err != nil {
		t.Error(err)
	}
	return tx
}

// A process that reads in one long transaction keeps SQLite from beginning the log anew.
// When it ends, the log is cut without another append.
func TestTheWriteAheadLogIsCutWhenALongReaderEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := openUnsynced(t, path)
	addSessions(t, s, 1)
	tx := beginReading(t, s)
	text := strings.Repeat("x", 64<<10)
	for i := range 40 << 20 / len(text) {
		add(t, s, event.SessionID(fmt.Sprint("w", i)), eventlog.End{}, text)
	}
	if size := sizeOf(t, path+"-wal"); size <= walLimit {
		t.Fatalf("the write-ahead log has only %d bytes, the test proves nothing", size)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.upkeep.wait()
	if size := sizeOf(t, path+"-wal"); size > walLimit {
		t.Errorf("the write-ahead log still has %d bytes", size)
	}
}
