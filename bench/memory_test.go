package main

import "testing"

func TestTurnsAreMeasuredWhileSessionsAreRemembered(t *testing.T) {
	var err error
	func() {
		defer stopping(&err)
		const n = 10
		m := openRemembering(place{dir: t.TempDir()}, n)
		defer m.close()
		on, off := m.measure(2)
		if len(on) == 0 || len(off) == 0 || median(on) == 0 {
			t.Errorf("%d turns with upkeep, %d without", len(on), len(off))
		}
		if done, failing := m.outcome(); done != n-1 || failing != 1 || m.worker.Stats().Turns != 0 {
			t.Errorf("%d sessions were consolidated, %d failed, stats %+v", done, failing, m.worker.Stats())
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
}
