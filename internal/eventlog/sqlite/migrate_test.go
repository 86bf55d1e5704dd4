package sqlite

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A migration has the number of its place in the list.
func TestEachVersionHasAMigration(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) != schemaVersion {
		t.Fatalf("%q, %v", files, err)
	}
	for i, name := range files {
		if want := fmt.Sprintf("migrations/%03d_", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s does not begin with %s", name, want)
		}
	}
}

// toVersion3 makes a store one of version 3, whose order of sessions is an index of the time
// of their last change.
const toVersion3 = `DROP TRIGGER session_added; DROP TRIGGER session_modified; DROP INDEX sessions_recent;
	ALTER TABLE sessions DROP COLUMN recent; CREATE INDEX sessions_modified ON sessions (modified) WHERE NOT deleted;`

func TestAnOlderStoreIsListedInItsOrder(t *testing.T) {
	for _, version := range []int{3, 4} {
		path := filepath.Join(t.TempDir(), "abide.db")
		s := open(t, path)
		for _, id := range []event.SessionID{"a", "b", "c"} {
			add(t, s, id, eventlog.End{}, "text")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		tamper(t, path, toVersion3+fmt.Sprintf("UPDATE sessions SET modified = modified - 10000000 WHERE name = 'c'; PRAGMA user_version = %d", version))
		s = open(t, path)
		if got := listed(t, s); !slices.Equal(got, []event.SessionID{"b", "a", "c"}) {
			t.Errorf("version %d: sessions are listed as %q", version, got)
		}
		checkRecent(t, s)
	}
}

// The order of sessions has the time of their last change in larger units.
func TestTheOrderFollowsEveryChange(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	first := add(t, s, "first", eventlog.End{}, "a")
	end := add(t, s, "second", eventlog.End{}, "a")
	checkRecent(t, s)
	s.write.clock = time.Now().Add(time.Hour).UnixMicro() // the clock is put forward
	add(t, s, "first", first, "b")
	checkRecent(t, s)
	s.write.clock += 3 << 20
	if _, err := s.Fork(t.Context(), "fork", "second", batch(end, "b")); err != nil {
		t.Fatal(err)
	}
	checkRecent(t, s)
	if got := listed(t, s); !slices.Equal(got, []event.SessionID{"fork", "first", "second"}) {
		t.Errorf("sessions are listed as %q", got)
	}
}

// listed returns the sessions of a store in the order of a listing.
func listed(t *testing.T, s *Store) (ids []event.SessionID) {
	t.Helper()
	for session, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, session.ID)
	}
	return ids
}

// checkRecent checks the order of sessions against the times of their last changes.
func checkRecent(t *testing.T, s *Store) {
	t.Helper()
	var wrong int
	if err := s.reading.QueryRow("SELECT count(*) FROM sessions WHERE recent <> modified >> 20").Scan(&wrong); err != nil || wrong > 0 {
		t.Errorf("%d sessions are in a wrong place of the order: %v", wrong, err)
	}
}

// A program that knows no workspaces would run the commands of a session elsewhere on its
// own machine. It knows versions up to 3.
func TestOlderProgramsAreKeptOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	version, err := storedVersion(t.Context(), s.write.conn, path)
	if err != nil || version <= 3 {
		t.Errorf("the store has version %d: %v", version, err)
	}
}
