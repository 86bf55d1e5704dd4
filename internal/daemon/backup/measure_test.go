package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// TestMeasureLargeFolders measures a backup and a restore for each number of sessions in
// the variable ABIDE_MEASURE_SESSIONS, such as 25000,50000,100000.
func TestMeasureLargeFolders(t *testing.T) {
	text := os.Getenv("ABIDE_MEASURE_SESSIONS")
	if text == "" {
		t.Skip("skipped: set ABIDE_MEASURE_SESSIONS to numbers of sessions, such as 25000,50000,100000")
	}
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(number)
		must(t, err)
		t.Run(number, func(t *testing.T) { measureFolder(t, n) })
	}
}

func measureFolder(t *testing.T, n int) {
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	s := Source{Dir: dir, Store: filepath.Join(dir, "abide.db")}
	store, err := sqlite.Open(t.Context(), s.Store, sqlite.Options{Sync: eventlog.Normal})
	must(t, err)
	measure(t, "create", func() { eventlogtest.InParallel(n, func(i int) { createSession(t, store, i) }) })
	file := filepath.Join(t.TempDir(), "b")
	measure(t, "backup beside the open store", func() {
		_, err := s.WriteFile(t.Context(), file, false)
		must(t, err)
	})
	restored := filepath.Join(t.TempDir(), "r")
	measure(t, "restore", func() {
		r, err := Target{Dir: restored}.ReadFile(t.Context(), file)
		if err != nil || r.Sessions != n {
			t.Fatalf("restored %+v, %v", r, err)
		}
	})
	must(t, store.Close())
}

func measure(t *testing.T, what string, f func()) {
	t.Helper()
	at, spent := time.Now(), cpuTime(t)
	f()
	spent = cpuTime(t) - spent
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%s: %v, CPU %v, heap %d MiB", what, time.Since(at).Round(time.Millisecond), spent.Round(time.Millisecond), m.HeapAlloc>>20)
}

// cpuTime returns what the process has spent so far. On a machine that does other things, too,
// only that can be compared.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sessionID(i int) event.SessionID { return event.SessionID(fmt.Sprintf("session-%07d", i)) }

// createSession makes a session with one turn of seven events, about 3 kB.
func createSession(t *testing.T, store *sqlite.Store, i int) {
	events := make([]event.Event, 7)
	for j := range events {
		events[j] = say(strings.Repeat("word ", 50))
	}
	info := &eventlog.Info{Name: "measured", Listed: true}
	end, err := store.Append(t.Context(), sessionID(i), eventlog.Batch{Events: events[:3], Info: info})
	if err == nil {
		_, err = store.Append(t.Context(), sessionID(i), eventlog.Batch{After: end, Events: events[3:], Info: info})
	}
	if err != nil {
		t.Error(err)
	}
}
