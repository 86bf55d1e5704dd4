package sqlite

import (
	"bytes"
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

// toVersion5 makes a store without secrets one of version 5, which does not seal them.
const toVersion5 = "DROP TABLE moved; DROP TABLE costs; DROP TABLE uncounted; DROP TABLE keys; ALTER TABLE meta DROP COLUMN clear; PRAGMA user_version = 5;"

// toVersion3 makes a store one of version 3, whose order of sessions is an index of the time
// of their last change.
const toVersion3 = toVersion5 + `DROP TRIGGER session_added; DROP TRIGGER session_modified; DROP INDEX sessions_recent;
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

// A damaged page costs the sessions on it at most: all others can be used in the next version.
func TestAnOlderStoreWithABrokenPageIsMigrated(t *testing.T) {
	const toVersion1 = toVersion3 + "DROP INDEX sessions_modified; DROP TABLE jobs; PRAGMA user_version = 1"
	breakOrder := func(t *testing.T, path string) {
		overwriteRoot(t, path, "sessions_modified", func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, 16)) })
	}
	breakRows := func(t *testing.T, path string) { overwritePage(t, path, "name of session-0030", tableLeaf) }
	for name, c := range map[string]struct {
		older string
		harm  func(t *testing.T, path string)
		whole bool // all rows can be read
	}{
		"order":             {toVersion3 + "PRAGMA user_version = 3", breakOrder, true},
		"rows":              {toVersion3 + "PRAGMA user_version = 3", breakRows, false},
		"order and rows":    {toVersion3 + "PRAGMA user_version = 4", func(t *testing.T, path string) { breakOrder(t, path); breakRows(t, path) }, false},
		"rows of version 1": {toVersion1, breakRows, false},
	} {
		t.Run(name, func(t *testing.T) {
			path, ids := big(t, 60)
			tamper(t, path, c.older)
			c.harm(t, path)
			for range 2 {
				s := open(t, path)
				checkListed(t, s, eventlog.Query{}, ids, c.whole)
				checkListed(t, s, eventlog.Query{IDPrefix: string(ids[0]), ModifiedSince: time.Now().Add(-time.Hour)}, ids[:1], true)
				plan := explainPlan(t, s, selectSessions+inOrder)
				if indexed := strings.Contains(plan, "USING INDEX sessions_recent"); indexed != c.whole {
					t.Errorf("the plan of a listing is\n%s", plan)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// checkListed checks that a query lists sessions, and that some which are not on a broken page
// go on.
func checkListed(t *testing.T, s *Store, q eventlog.Query, ids []event.SessionID, all bool) {
	t.Helper()
	var damaged, whole int
	for session, err := range s.Sessions(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if session.Damage != nil {
			damaged++
			continue
		}
		if whole++; whole > 5 {
			continue
		}
		add(t, s, session.ID, session.End, "goes on")
	}
	if damaged > 20 || all != (damaged == 0) || damaged+whole != len(ids) {
		t.Errorf("%+v: %d sessions are damaged and %d are whole, of %d", q, damaged, whole, len(ids))
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
