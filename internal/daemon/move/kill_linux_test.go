package move

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// copyFolder returns the same move of a copy of its folder, which nobody uses.
func copyFolder(t testing.TB, m Move, url string) Move {
	t.Helper()
	to := newMove(t, url)
	must(t, os.CopyFS(to.Dir, os.DirFS(m.Dir)))
	return to
}

// A process that is killed at any step has moved all sessions or none, and the next one finishes it.
func TestAMoveThatIsKilledAtAnyStepIsFinishedByTheNext(t *testing.T) {
	c := postgrestest.Start(t)
	pattern := newMove(t, "")
	fill(t, pattern, 2)
	want := before(t, pattern)
	steps := map[bool]int{}
	for n := 1; ; n++ {
		m := copyFolder(t, pattern, c.URL())
		if !killAt(t, m, n, 4) {
			break
		}
		there := countShown(t, m)
		moved := there > 0
		if steps[moved]++; moved && there != len(want.Sessions) {
			t.Fatalf("killed at %d, the database shows %d sessions of %d", n, there, len(want.Sessions))
		}
		r, err := m.Run(t.Context())
		must(t, err)
		if r.Sessions != len(want.Sessions) && !moved {
			t.Errorf("killed at %d, the next process reports %+v", n, r)
		}
		checkMoved(t, m, want)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
	}
	if steps[false] < 30 || steps[true] < 1 {
		t.Errorf("it was killed at %d steps before the sessions appeared, and at %d after", steps[false], steps[true])
	}
}

// countShown counts the sessions that the database shows.
func countShown(t testing.TB, m Move) (n int) {
	t.Helper()
	s, err := postgres.Open(t.Context(), m.To, eventlog.Options{KeyFile: m.KeyFile})
	must(t, err)
	defer s.Close()
	for _, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		must(t, err)
		n++
	}
	return n
}

// kills is how often a move is killed on the way.
const kills = 20

// TestAMoveThatIsKilledOftenMovesEverythingOnce moves the number of sessions in the variable
// ABIDE_MEASURE_SESSIONS, or some hundred.
func TestAMoveThatIsKilledOftenMovesEverythingOnce(t *testing.T) {
	n, parts := 500, 16
	if text := os.Getenv("ABIDE_MEASURE_SESSIONS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
		parts = 256
	}
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 0)
	addPlain(t, m, n)
	want := before(t, m)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	most := 3 * n / kills // steps of a process, so that none finishes: one for each session, and for each of its two records
	began := time.Now()
	for k := range kills {
		if !killAt(t, m, most/4+random.IntN(most-most/4), parts) {
			t.Fatalf("the move was done after %d kills", k)
		}
	}
	killed := time.Since(began)
	began = time.Now()
	r, err := m.Run(t.Context())
	must(t, err)
	t.Logf("%d kills took %v, and the last process %v: it sent %d sessions of %d", kills, killed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), r.Sent, r.Sessions)
	checkMoved(t, m, want)
}

// addPlain adds sessions with one turn of seven events, about 3 kB.
func addPlain(t testing.TB, m Move, n int) {
	t.Helper()
	s := m.openSource(t)
	defer func() { must(t, s.Close()) }()
	eventlogtest.InParallel(n, func(i int) {
		id := event.SessionID(fmt.Sprintf("session-%07d", i))
		events := make([]event.Event, 7)
		for j := range events {
			events[j] = say(t, fmt.Sprintf("message %d of session %d: the quick brown fox jumps over the lazy dog. It does so for a measurement that takes about three kilobytes of words in each of many sessions, so that reading and writing them is like work. ", j, i))
		}
		info := &eventlog.Info{Name: "measured", Listed: true}
		end, err := s.Append(context.Background(), id, eventlog.Batch{Events: events[:3], Info: info})
		if err == nil {
			_, err = s.Append(context.Background(), id, eventlog.Batch{After: end, Events: events[3:], Info: info})
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestMeasureMove measures a move of the number of sessions in the variable ABIDE_MEASURE_SESSIONS.
func TestMeasureMove(t *testing.T) {
	text := os.Getenv("ABIDE_MEASURE_SESSIONS")
	if text == "" {
		t.Skip("skipped: set ABIDE_MEASURE_SESSIONS to a number of sessions, such as 10000")
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	addPlain(t, m, n)
	var use syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	cpu := use.Utime.Nano() + use.Stime.Nano()
	began, heap := time.Now(), uint64(0)
	m.Progress = func(string, int64, int64) {
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		heap = max(heap, mem.HeapAlloc)
	}
	r, err := m.Run(t.Context())
	took := time.Since(began)
	must(t, err)
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	t.Logf("%d sessions with %d MiB of events: %v, CPU %v, at most %d MiB of heap", r.Sessions, r.Bytes>>20, took.Round(time.Millisecond),
		time.Duration(use.Utime.Nano()+use.Stime.Nano()-cpu).Round(time.Millisecond), heap>>20)
}
