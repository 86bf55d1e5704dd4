package postgres

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// TestMeasureStoredSessions measures what depends on the number of stored sessions, for each number
// in the variable ABIDE_MEASURE_SESSIONS, such as 100000,1000000.
func TestMeasureStoredSessions(t *testing.T) {
	text := os.Getenv("ABIDE_MEASURE_SESSIONS")
	if text == "" {
		t.Skip("skipped: set ABIDE_MEASURE_SESSIONS to numbers of sessions, such as 100000,1000000")
	}
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(number, func(t *testing.T) { measureStored(t, n) })
	}
}

func measureStored(t *testing.T, n int) {
	c := postgrestest.Start(t)
	address := c.SchemaURL("stored")
	s := open(t, address)
	measure := func(what string, f func()) {
		t.Helper()
		began := time.Now()
		f()
		t.Logf("%8d sessions  %-44s %v", n, what, time.Since(began).Round(10*time.Microsecond))
	}
	multiply(t, c, s, n)
	s.Close()
	measure("start of an engine", func() { s = open(t, address) })
	s.Close()
	measure("start of a server", func() { s = join(t, address, "a", patient) })
	page := func(q eventlog.Query, want int) {
		t.Helper()
		got := 0
		for _, err := range s.Sessions(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			if got++; got == want {
				return
			}
		}
	}
	id := event.SessionID(fmt.Sprintf("stored-%08d", n/2))
	for range 2 { // the second time, the server has the pages in memory
		measure("first page of 50", func() { page(eventlog.Query{Listed: true}, 50) })
		measure("open one and read it", func() {
			got := 0
			for _, err := range s.Read(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got++
			}
			if got != 4 {
				t.Errorf("session %s has %d events", id, got)
			}
		})
		measure("one by the start of its id", func() { page(eventlog.Query{IDPrefix: string(id)}, 2) })
		measure("look for what nobody works on", func() {
			if due, err := s.ClaimDue(t.Context(), 10); err != nil || len(due) > 0 {
				t.Errorf("due: %v, %v", due, err)
			}
		})
	}
	measure("append to one", func() {
		one, err := s.Session(t.Context(), id)
		if err == nil {
			_, err = s.Append(t.Context(), id, eventlog.Batch{After: one.End, Events: []event.Event{messageOf(t, "a special one")}})
		}
		if err != nil {
			t.Error(err)
		}
	})
	find := func(word string) {
		found, err := s.Search(t.Context(), eventlog.Search{Text: word, Max: 50})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d matches, more %v, %d sessions behind", word, len(found.Matches), found.More, found.Behind)
	}
	const most = 30 * time.Second
	measure("first search, which is given half a minute", func() {
		if _, err := s.Search(t.Context(), eventlog.Search{Text: "special", Patience: most}); err != nil {
			t.Error(err)
		}
	})
	c.Exec(t, "stored", "UPDATE sessions SET words = seq") // what was not read by now would be read by the next search
	measure("search, hit", func() { find("special") })
	measure("search, miss", func() { find("nothing") })
	measure("search, hit in all", func() { find("words") })
	t.Log(c.Exec(t, "stored", `SELECT string_agg(relname || ' ' || pg_size_pretty(pg_total_relation_size(oid)), ', ' ORDER BY pg_total_relation_size(oid) DESC) FROM pg_class
		WHERE relnamespace = 'stored'::regnamespace AND relkind = 'r' AND pg_total_relation_size(oid) > 1000000`))
	s.Close()
}

// multiply stores a session, and then copies of it, a minute apart.
func multiply(t *testing.T, c *postgrestest.Cluster, s *Store, n int) {
	t.Helper()
	text := strings.Repeat("some words ", 20)
	var events []event.Event
	for i := range 4 {
		events = append(events, messageOf(t, fmt.Sprint(text, i)))
	}
	info := &eventlog.Info{Name: "measured", Listed: true, Dir: "/work"}
	end, err := s.Append(t.Context(), "stored", eventlog.Batch{Events: events[:2], Info: info})
	if err == nil {
		_, err = s.Append(t.Context(), "stored", eventlog.Batch{After: end, Events: events[2:], Info: info})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Exec(t, "stored", fmt.Sprintf(`INSERT INTO sessions (name, seq, head, created, modified, active, info, dir, busy, listed)
		SELECT convert_to('stored-' || lpad(i::text, 8, '0'), 'UTF8'), seq, head, created - (%d - i::bigint) * 60000000, modified - (%d - i::bigint) * 60000000, active, info, dir, busy, listed
		FROM sessions, generate_series(1, %d) AS i ORDER BY i`, n, n, n-1))
	c.Exec(t, "stored", `INSERT INTO records (session, first, head, body) SELECT s.id, r.first, r.head, r.body FROM sessions s, records r, sessions o
		WHERE o.name = 'stored' AND r.session = o.id AND s.id <> o.id ORDER BY s.id, r.first`)
	c.Exec(t, "stored", "ANALYZE")
}

func messageOf(t testing.TB, text string) event.Event {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.UserMessageData{Content: text})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
