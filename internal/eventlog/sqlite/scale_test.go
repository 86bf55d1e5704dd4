package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// TestManySessions measures listing and searching in stores of 1,000, 10,000 and 100,000
// sessions, and prints the figures. It takes minutes: set ABIDE_SCALE to run it.
func TestManySessions(t *testing.T) {
	if os.Getenv("ABIDE_SCALE") == "" {
		t.Skip("set ABIDE_SCALE=1 to measure stores of up to 100,000 sessions")
	}
	for _, n := range []int{1000, 10_000, 100_000} {
		measureSessions(t, n)
	}
}

func measureSessions(t *testing.T, n int) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "abide.db"), Options{Sync: eventlog.Normal})
	if err != nil {
		t.Fatal(err)
	}
	s.search.touched.closed = true // the index is filled by the first search
	var writers sync.WaitGroup
	for w := range 64 {
		writers.Go(func() {
			for i := w; i < n; i += 64 {
				text := fmt.Sprintf("common%d words of session number%d about %s", i%10, i, strings.Repeat("this and that ", 10))
				speak(t, s, event.SessionID(fmt.Sprintf("%08d-session", i)), text, text)
			}
		})
	}
	writers.Wait()
	measure := func(what string, f func()) {
		began := time.Now()
		f()
		t.Logf("%7d sessions  %-40s %v", n, what, time.Since(began).Round(10*time.Microsecond))
	}
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
	measure("one by the start of its id", func() { page(eventlog.Query{Listed: true, IDPrefix: "00000500"}, 50) })
	measure("all", func() { page(eventlog.Query{Listed: true}, n+1) })
	measure("first search, which fills the index", func() { found(t, s, "number500") })
	s = openAgain(t, s)
	measure("search in a new process, hit", func() { found(t, s, "number500") })
	measure("search, hit", func() { found(t, s, "number501") })
	measure("search, miss", func() { found(t, s, "nothing") })
	measure("search, hit in a tenth of all", func() { found(t, s, "common5") })
	measure("search, hit in all", func() { found(t, s, "words") })
	measure("delete one", func() {
		if err := s.Delete(t.Context(), "00000500-session"); err != nil {
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
