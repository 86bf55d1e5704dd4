package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// tell appends events to a session.
func tell(t *testing.T, s *Store, id event.SessionID, end eventlog.End, texts ...string) eventlog.End {
	t.Helper()
	for _, text := range texts {
		next, err := say(t, s, id, end, text)
		if err != nil {
			t.Fatal(err)
		}
		end = next
	}
	return end
}

// A standby that lags is promoted. A server notices that, also if nothing is written: sessions with
// acknowledged events that are missing wait for a person, the others go on, and fences are greater
// than any before.
func TestEventsThatAFailoverHasLostAreNoticed(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("failover")
	a := join(t, url, "a", patient)
	whole := tell(t, a, "whole", eventlog.End{}, "a", "b")
	lost := tell(t, a, "lost", eventlog.End{}, "a")
	c.Save(t)
	lost = tell(t, a, "lost", lost, "b", "c")
	tell(t, a, "unborn", eventlog.End{}, "a")
	for range 3 { // numbers that the standby does not know
		if err := a.Release(t.Context(), "lost"); err != nil {
			t.Fatal(err)
		}
		a.claimsSoon(t, "lost")
	}
	before, err := a.Fence(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}
	tell(t, a, "lost", lost, "d")
	c.FailOver(t)
	until(t, "a server that notices", func() bool { return a.Err() != nil })
	if err := a.Err(); !errors.Is(err, eventlog.ErrFenced) || !errors.Is(err, errLostEvents) {
		t.Errorf("the server ends with %v", err)
	}
	b := join(t, url, "b", strict)
	b.claimsSoon(t, "lost")
	after, err := b.Fence(t.Context(), "lost")
	if err != nil || after.Era <= before.Era || after.Number <= before.Number {
		t.Errorf("the fences are %+v before and %+v after, %v", before, after, err)
	}
	one, err := b.Session(t.Context(), "lost")
	if err != nil || one.Damage == nil || one.Damage.Seq != 2 || !strings.Contains(one.Damage.Reason, "4 events were acknowledged") || !strings.Contains(one.Damage.Reason, "abide sessions verify lost") {
		t.Errorf("the session that has lost events is %+v, %v", one, err)
	}
	var damage *eventlog.Damage
	if _, err := say(t, b, "lost", one.End, "x"); !errors.As(err, &damage) {
		t.Errorf("it goes on without a person: %v", err)
	}
	if err := b.Quarantine(t.Context(), "lost", nil); err != nil {
		t.Fatal(err)
	}
	tell(t, b, "lost", one.End, "x")
	b.claimsSoon(t, "whole")
	tell(t, b, "whole", whole, "c")
	if got := said(t, b, "whole"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the other session says %q", got)
	}
}

// Where a standby has everything, servers go on.
func TestAFailoverThatLosesNothingIsSurvived(t *testing.T) {
	c := postgrestest.Start(t)
	a := join(t, c.SchemaURL("clean"), "a", patient)
	end := tell(t, a, "s", eventlog.End{}, "a", "b")
	before := a.era.number.Load()
	c.Save(t)
	c.FailOver(t)
	until(t, "a beat in the new era", func() bool { return a.era.number.Load() > before })
	tell(t, a, "s", end, "c")
	if got := said(t, a, "s"); !slices.Equal(got, []string{"a", "b", "c"}) || a.Err() != nil {
		t.Errorf("the session says %q, the store %v", got, a.Err())
	}
}

// A process alone ends, so that nothing in its memory is newer than the log.
func TestAProcessAloneNoticesLostEvents(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("alone")
	s := open(t, url)
	end := tell(t, s, "s", eventlog.End{}, "a")
	other := tell(t, s, "other", eventlog.End{}, "a")
	c.Save(t)
	tell(t, s, "s", end, "b")
	c.FailOver(t)
	if _, err := say(t, s, "other", other, "b"); !errors.Is(err, eventlog.ErrClosed) || !errors.Is(err, errLostEvents) {
		t.Errorf("a write after the failover: %v", err)
	}
	next := open(t, url)
	if one, err := next.Session(t.Context(), "s"); err != nil || one.Damage == nil {
		t.Errorf("the session that has lost an event is %+v, %v", one, err)
	}
	tell(t, next, "other", other, "b")
}
