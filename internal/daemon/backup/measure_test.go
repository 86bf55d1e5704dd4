package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// TestMeasureLargeFolders measures a backup, a restore, and the deletion of half of the
// sessions, for as many sessions as the variable ABIDE_MEASURE_SESSIONS says.
func TestMeasureLargeFolders(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("ABIDE_MEASURE_SESSIONS"))
	if err != nil {
		t.Skip("skipped: set ABIDE_MEASURE_SESSIONS to a number of sessions, such as 100000")
	}
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	s := Source{Dir: dir, Store: filepath.Join(dir, "abide.db")}
	store, err := sqlite.Open(t.Context(), s.Store, sqlite.Options{Sync: eventlog.Normal})
	must(t, err)
	measure(t, "create", func() { inParallel(n, func(i int) { createSession(t, store, i) }) })
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
	logSize(t, s.Store, "before the deletion")
	measure(t, "delete the older half", func() {
		inParallel(n/2, func(i int) { must(t, store.Delete(t.Context(), sessionID(i))) })
	})
	measure(t, "append while the file gets smaller", func() { createSession(t, store, n) })
	measure(t, "until the file is small", func() { awaitSmall(t, s.Store) })
	logSize(t, s.Store, "after the deletion")
	measure(t, "delete every second of the others", func() {
		inParallel(n/4, func(i int) { must(t, store.Delete(t.Context(), sessionID(n/2+2*i))) })
	})
	measure(t, "until the file is small", func() { awaitSmall(t, s.Store) })
	logSize(t, s.Store, "after that")
	measure(t, "compact", func() { must(t, store.Compact(t.Context())) })
	logSize(t, s.Store, "after it was compacted")
	must(t, store.Close())
}

// awaitSmall waits until only a few pages of a store are free.
func awaitSmall(t *testing.T, path string) {
	for {
		space, err := sqlite.Inspect(t.Context(), path)
		must(t, err)
		if space.Free <= 8<<20 {
			return
		}
		time.Sleep(100 * time.Millisecond) // a measurement, and no test
	}
}

func logSize(t *testing.T, path, when string) {
	t.Helper()
	t.Logf("%s the file has %d MiB, its write-ahead log %d MiB", when, sizeOf(t, path)>>20, sizeOf(t, path+"-wal")>>20)
}

func measure(t *testing.T, what string, f func()) {
	t.Helper()
	at := time.Now()
	f()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%s: %v, heap %d MiB", what, time.Since(at).Round(time.Millisecond), m.HeapAlloc>>20)
}

// inParallel calls f with the numbers below n, 64 at a time.
func inParallel(n int, f func(i int)) {
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			for i := w; i < n; i += 64 {
				f(i)
			}
		})
	}
	all.Wait()
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

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}
