package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
)

// measureEach calls f with each number of the variable ABIDE_MEASURE_SESSIONS, such as
// 25000,50000,100000. Without it the test is skipped.
func measureEach(t *testing.T, f func(t *testing.T, n int)) {
	text := os.Getenv("ABIDE_MEASURE_SESSIONS")
	if text == "" {
		t.Skip("skipped: set ABIDE_MEASURE_SESSIONS to numbers of sessions, such as 25000,50000,100000")
	}
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(number, func(t *testing.T) { f(t, n) })
	}
}

// TestMeasureSessions measures listing and searching.
func TestMeasureSessions(t *testing.T) { measureEach(t, measureSessions) }

func measureSessions(t *testing.T, n int) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "abide.db"), Options{Sync: eventlog.Normal})
	if err != nil {
		t.Fatal(err)
	}
	s.search.touched.closed = true // the index is filled by the first search
	eventlogtest.InParallel(n, func(i int) {
		text := fmt.Sprintf("common%d words of session number%d about %s", i%10, i, strings.Repeat("this and that ", 10))
		speak(t, s, measuredID(i), text, text)
	})
	measure := func(what string, f func()) { measureTime(t, n, what, f) }
	spread(t, s)
	s = openAgain(t, s)
	page := func(q eventlog.Query, want int) (last eventlog.Session) {
		got := 0
		for session, err := range s.Sessions(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			if last = session; got == want {
				break
			}
			got++
		}
		return last
	}
	measure("first page of 50", func() { page(eventlog.Query{Listed: true}, 50) })
	measure("page of a folder that has none", func() { page(eventlog.Query{Listed: true, Dir: "/none"}, 50) })
	measure("busy sessions, of which there are none", func() { page(eventlog.Query{Listed: true, Busy: true}, 50) })
	measure("text in a name that none has", func() { page(eventlog.Query{Listed: true, Text: "none"}, 50) })
	measure("one by the start of its id", func() { page(eventlog.Query{Listed: true, IDPrefix: string(measuredID(n / 2)[:8])}, 50) })
	measure("all", func() { page(eventlog.Query{Listed: true}, n+1) })
	measure("first search, which fills the index", func() { found(t, s, fmt.Sprint("number", n/2)) })
	s = openAgain(t, s)
	measure("search in a new process, hit", func() { found(t, s, fmt.Sprint("number", n/2)) })
	measure("search, hit", func() { found(t, s, fmt.Sprint("number", n/2+1)) })
	measure("search, miss", func() { found(t, s, "nothing") })
	measure("search, hit in a tenth of all", func() { found(t, s, "common5") })
	measure("search, hit in all", func() { found(t, s, "words") })
	measure("delete one", func() {
		if err := s.Delete(t.Context(), measuredID(n/2)); err != nil {
			t.Fatal(err)
		}
	})
	for _, side := range []string{"", "-search"} {
		if info, err := os.Stat(s.path + side); err == nil {
			t.Logf("%7d sessions  abide.db%s has %d MB", n, side, info.Size()>>20)
		}
	}
	s.Close()
}

// spread makes the sessions of a store as old as those of a person are, a minute apart. All that
// change within the same second are read and sorted for one page, and a measurement makes thousands of
// sessions in a second.
func spread(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.writing.Exec("UPDATE sessions SET modified = modified - 60000000 * (SELECT max(id) FROM sessions) + 60000000 * id"); err != nil {
		t.Fatal(err)
	}
}

// TestMeasureDeletions measures the deletion of half of the sessions of a store, and of
// half of the others, and how its file gets smaller.
func TestMeasureDeletions(t *testing.T) { measureEach(t, measureDeletions) }

func measureDeletions(t *testing.T, n int) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "abide.db"), Options{Sync: eventlog.Normal})
	if err != nil {
		t.Fatal(err)
	}
	measure := func(what string, f func()) {
		measureTime(t, n, what, f)
		t.Logf("the file has %d MiB, its write-ahead log %d MiB", sizeOf(t, s.path)>>20, sizeOf(t, s.path+"-wal")>>20)
	}
	remove := func(i int) {
		if err := s.Delete(t.Context(), measuredID(i)); err != nil {
			t.Error(err)
		}
	}
	measure("create", func() { eventlogtest.InParallel(n, func(i int) { speakTurn(t, s, i) }) })
	measure("delete the older half", func() { eventlogtest.InParallel(n/2, remove) })
	measure("append while the file gets smaller", func() { speakTurn(t, s, n) })
	measure("until the file is small", s.upkeep.wait)
	measure("delete every second of the others", func() { eventlogtest.InParallel(n/4, func(i int) { remove(n/2 + 2*i) }) })
	measure("until the file is small", s.upkeep.wait)
	measure("compact", func() {
		if err := s.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	})
	s.Close()
}

// speakTurn makes a session with one turn of seven events, about 3 kB, in two appends.
func speakTurn(t *testing.T, s *Store, i int) {
	text := strings.Repeat("word ", 50)
	speak(t, s, measuredID(i), text, text, text)
	speak(t, s, measuredID(i), text, text, text, text)
}

func measuredID(i int) event.SessionID { return event.SessionID(fmt.Sprintf("%08d-session", i)) }

// measureTime prints how long f takes, and what the processor has to do for it: on a machine
// that does other things, too, only the latter can be compared.
func measureTime(t *testing.T, sessions int, what string, f func()) {
	t.Helper()
	began, spent := time.Now(), cpuTime()
	f()
	t.Logf("%7d sessions  %-40s %v, CPU %v", sessions, what, time.Since(began).Round(10*time.Microsecond), (cpuTime() - spent).Round(10*time.Microsecond))
}
