package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// The fence of a session is the same for as long as a server owns it, however often it claims it, and
// greater for each later owner. Who does not own it has none.
func TestFencesRiseWithTheOwners(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("fences")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	beginS(t, a)
	fence := func(s *Store) eventlog.Fence {
		t.Helper()
		f, err := s.Fence(t.Context(), "s")
		if err != nil || f.Family != "s" || f.Number == 0 {
			t.Fatalf("the fence is %+v, %v", f, err)
		}
		return f
	}
	first := fence(a)
	if err := a.Claim(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if again := fence(a); again != first {
		t.Errorf("the fence is %+v and, after another claim, %+v", first, again)
	}
	if f, err := b.Fence(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("the fence of another server is %+v, %v", f, err)
	}
	if f, err := b.Fence(t.Context(), "unknown"); f != (eventlog.Fence{}) || err != nil {
		t.Errorf("the fence of a session that is not stored is %+v, %v", f, err)
	}
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	b.claimsSoon(t, "s")
	second := fence(b)
	if err := b.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	a.claimsSoon(t, "s")
	if third := fence(a); !(first.Number < second.Number && second.Number < third.Number) {
		t.Errorf("the fences are %+v, %+v and %+v", first, second, third)
	}
}

// A server that must not write begins no changes elsewhere either.
func TestAServerWithoutABeatBeginsNothingElsewhere(t *testing.T) {
	c := postgrestest.Start(t)
	a := join(t, c.SchemaURL("silent"), "a", Pace{Beat: time.Hour, Suspend: time.Hour, Dead: time.Hour})
	beginS(t, a)
	a.life.noteBeat(sinceBoot() - 2*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := a.Fence(ctx, "s"); !errors.Is(err, context.Canceled) {
		t.Errorf("the fence is %+v, %v", f, err)
	}
	a.life.noteBeat(sinceBoot())
	if _, err := a.Fence(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	a.queue.Shut(eventlog.ErrFenced)
	if f, err := a.Fence(t.Context(), "s"); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("the fence of a server that was taken for dead is %+v, %v", f, err)
	}
}
