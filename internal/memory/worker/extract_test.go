package worker_test

import (
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
)

// story runs a test with fake time, on a testWorker that is opened and started.
func story(t *testing.T, prepare func(*testWorker), test func(*testWorker)) {
	l := newTestWorker(t)
	if prepare != nil {
		prepare(l)
	}
	synctest.Test(t, func(t *testing.T) {
		l.T = t
		l.open()
		l.start()
		defer func() { l.close() }()
		test(l)
	})
}

func TestSpawnAndWaitAreSeparateAndDriveAnExtractionToItsEnd(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.worker.Stop()
		l.create("s")
		l.turn("s", "first")
		if got := l.looked("s"); got.Pointer != 0 {
			l.Errorf("pointer = %d before any work", got.Pointer)
		}
		jobs := l.jobs()
		if len(jobs) != 1 || jobs[0].From != 1 || jobs[0].To != l.looked("s").Seq || l.model.extractions() != 0 {
			l.Fatalf("jobs = %s, %d extractions; want one row about all of it, and nothing done", describe(jobs), l.model.extractions())
		}
		l.start()
		if err := l.worker.Wait(l.Context(), jobs[0].ID); err != nil {
			l.Fatal(err)
		}
		if got := l.looked("s"); got.Pointer != jobs[0].To {
			l.Errorf("pointer = %d, want %d", got.Pointer, jobs[0].To)
		}
		if left := l.jobs(); len(left) != 0 {
			l.Errorf("jobs = %s", describe(left))
		}
		found := l.extracted("s")
		if len(found) != 1 || found[0].From != 1 || found[0].To != jobs[0].To || found[0].JobID != jobs[0].ID {
			l.Errorf("extracted = %+v", found)
		}
	})
}

func TestAThresholdOfZeroAsksNoModel(t *testing.T) {
	for _, threshold := range []int{0, -1} {
		story(t, func(l *testWorker) { l.rules.ExtractThreshold = threshold }, func(l *testWorker) {
			l.create("s")
			l.turn("s", "first")
			l.turn("s", "second")
			synctest.Wait()
			if n := l.model.extractions(); n != 0 || len(l.jobs()) != 0 || l.looked("s").Pointer != 0 {
				l.Errorf("threshold %d: %d extractions, jobs %s", threshold, n, describe(l.jobs()))
			}
		})
	}
}

func TestADetachedExtractionAndTheNextTurnShareOneLog(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.create("s")
		gate := l.model.hold("s")
		l.turn("s", "first")
		synctest.Wait() // the extraction is under way
		if n := l.model.extractions(); n != 1 {
			l.Fatalf("%d extractions", n)
		}
		l.turn("s", "second") // goes on meanwhile
		close(gate)
		l.await("s", event.MemoryExtracted, 1)
		l.turn("s", "third")
		if _, err := l.host.Log.Verify(l.Context(), "s"); err != nil {
			l.Error(err)
		}
		if n := len(l.events("s", event.UserMessage)); n != 3 || len(l.events("s", event.SessionForked)) != 0 {
			l.Errorf("%d messages in one log, want 3", n)
		}
		if waited := l.worker.Stats().Turns; waited != 0 {
			l.Errorf("%d turns have waited for a job", waited)
		}
	})
}
