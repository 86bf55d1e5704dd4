package sqlite

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// setModified changes the time of the last change of a session in the file, as an append
// would have done whose clock showed that time.
func setModified(t *testing.T, s *Store, id event.SessionID, to time.Time) {
	t.Helper()
	if _, err := s.writing.Exec("UPDATE sessions SET modified = ? WHERE name = ?", to.UnixMicro(), string(id)); err != nil {
		t.Fatal(err)
	}
}

// openAgain closes a store and opens its file.
func openAgain(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, s.path)
}

func TestModifiedNeverGoesBackwards(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 100 * 365 * 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "abide.db"))
			end := add(t, s, "s", eventlog.End{}, "a")
			before := time.Now().Add(ahead).Truncate(time.Microsecond)
			setModified(t, s, "s", before)
			s = openAgain(t, s) // the clock was set back meanwhile
			add(t, s, "s", end, "b")
			got, err := s.Session(t.Context(), "s")
			if err != nil || !got.Modified.After(before) {
				t.Errorf("modified = %v, %v; want a time after %v", got.Modified, err, before)
			}
		})
	}
}

// TestAClockThatIsSetBackKeepsTheOrder checks that the last change comes first, also
// after the clock was set back between two engines.
func TestAClockThatIsSetBackKeepsTheOrder(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	add(t, s, "first", eventlog.End{}, "a")
	add(t, s, "absurd", eventlog.End{}, "a")
	setModified(t, s, "first", time.Now().Add(time.Hour))
	setModified(t, s, "absurd", time.Now().Add(24*365*time.Hour))
	s = openAgain(t, s)
	add(t, s, "second", eventlog.End{}, "a")
	first, err := s.Session(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Session(t.Context(), "second")
	if err != nil || !second.Modified.After(first.Modified) {
		t.Errorf("second was modified at %v, %v; want it after %v", second.Modified, err, first.Modified)
	}
	if second.Modified.After(time.Now().Add(2 * time.Hour)) {
		t.Errorf("second was modified at %v: one session with an absurd time changes that of others", second.Modified)
	}
}

// TestListingsFollowTheIndex checks that no listing sorts or scans the table: the cost of
// a page does not depend on the number of sessions before or after it, except those that
// changed in the same second.
func TestListingsFollowTheIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	now := time.Now()
	place := eventlog.Place{Began: now, Modified: now, Row: 7}
	for want, queries := range map[string][]eventlog.Query{
		"USING INDEX sessions_recent": {
			{}, {After: place}, {Dir: "/x", Listed: true}, {Dir: "/x", After: place}, {Busy: true}, {Busy: true, After: place},
			{ModifiedSince: now}, {ModifiedBefore: now, After: place},
		},
		"USING INDEX names": {{IDPrefix: "a"}, {IDPrefix: "a", After: place}},
	} {
		for _, q := range queries {
			where, args := conditions(q)
			plan := explainPlan(t, s, selectSessions+where+inOrder+" LIMIT 10", args...)
			if !strings.Contains(plan, want) || strings.Contains(plan, "SCAN s\n") || strings.Contains(plan, "B-TREE FOR ORDER BY") && q.IDPrefix == "" {
				t.Errorf("plan of %+v:\n%swant %s", q, plan, want)
			}
		}
	}
}

// explainPlan returns the plan of a query, one step a line.
func explainPlan(t *testing.T, s *Store, query string, args ...any) (plan string) {
	t.Helper()
	rows, err := s.reading.Query("EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan += step + "\n"
	}
	return plan
}

// TestABrokenPageOfTheOrderCostsNothing damages the index that listings follow. It holds
// nothing that the table lacks, so that no session may suffer from it.
func TestABrokenPageOfTheOrderCostsNothing(t *testing.T) {
	for name, harm := range map[string]func(page []byte){
		"head":    func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, 16)) },
		"zeros":   func(page []byte) { clear(page) },
		"entries": func(page []byte) { clear(page[pageSize/2:]) },
	} {
		t.Run(name, func(t *testing.T) {
			path, ids := big(t, 30)
			overwriteRoot(t, path, "sessions_recent", harm)
			s := open(t, path)
			check := func(want int) {
				t.Helper()
				listed := 0
				for session, err := range s.Sessions(t.Context(), eventlog.Query{}) {
					if listed++; err != nil || session.Damage != nil {
						t.Fatalf("%s: %v, %v", session.ID, session.Damage, err)
					}
				}
				if listed != want {
					t.Errorf("%d sessions are listed, want %d", listed, want)
				}
			}
			check(len(ids))
			for _, id := range ids {
				session, err := s.Session(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				add(t, s, id, session.End, "goes on")
			}
			add(t, s, "new", eventlog.End{}, "n")
			if err := s.Delete(t.Context(), ids[0]); err != nil {
				t.Error(err)
			}
			check(len(ids))
			s = openAgain(t, s)
			check(len(ids))
		})
	}
}

// overwriteRoot changes the first page of an index.
func overwriteRoot(t *testing.T, path, index string, harm func(page []byte)) {
	t.Helper()
	page := rootPage(t, path, index)
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	harm(all[(page-1)*pageSize : page*pageSize])
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

func rootPage(t *testing.T, path, index string) (page int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", index).Scan(&page); err != nil {
		t.Fatal(err)
	}
	return page
}
