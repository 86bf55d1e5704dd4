package session

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

func TestAClockThatIsSetWhileATurnIsParked(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ wait, left, since, further, spent time.Duration }{
		"right":               {30 * time.Second, time.Hour, 10 * time.Second, 20 * time.Second, 10 * time.Second},
		"a day back":          {30 * time.Second, time.Hour, 10*time.Second - day, 30 * time.Second, 0},
		"a day ahead":         {30 * time.Second, time.Hour, 10*time.Second + day, 0, time.Hour - heldTime},
		"long, a day back":    {3 * time.Hour, 3 * time.Hour, -day, 3 * time.Hour, 0},
		"long, a day ahead":   {3 * time.Hour, 3 * time.Hour, day, 0, 3*time.Hour - heldTime},
		"short, a day ahead":  {time.Second, 5 * time.Second, day, 0, 0},
		"patience of nothing": {0, 0, day, 0, 0},
		"before all time":     {time.Minute, time.Hour, math.MinInt64, time.Minute, 0},
		"after all time":      {time.Minute, time.Hour, math.MaxInt64, 0, time.Hour - heldTime},
	} {
		if further, spent := stillToWait(c.wait, c.left, c.since); further != c.further || spent != c.spent {
			t.Errorf("%s: the turn waits %s and has spent %s, want %s and %s", name, further, spent, c.further, c.spent)
		}
	}
}

func TestPeopleAreToldTheTimesOfTheirClock(t *testing.T) {
	defer func(before *time.Location) { time.Local = before }(time.Local)
	time.Local = time.FixedZone("TEST", 2*60*60)
	at := time.Date(2030, 5, 6, 20, 0, 0, 0, time.UTC)
	parked := func(wait, left time.Duration) turn.Parked {
		return turn.Parked{TurnParkedData: event.TurnParkedData{Message: "It is down.", WaitMs: wait.Milliseconds(), LeftMs: left.Milliseconds()}, At: at}
	}
	told := func(p turn.Parked) turn.Parked { p.Told = true; return p }
	for _, c := range []struct {
		parked turn.Parked
		now    time.Time
		want   string
	}{
		{parked(10*time.Second, time.Hour), at, "It is down. Trying again in 10s, at 22:00:10 TEST; giving up at 23:00:00 TEST."},
		{parked(10*time.Second, time.Hour), at.Add(4 * time.Second), "It is down. Trying again in 6s, at 22:00:10 TEST; giving up at 23:00:00 TEST."},
		{parked(10*time.Second, 3*time.Hour), at, "giving up at 2030-05-07 01:00:00 TEST."},
		{parked(10*time.Second, time.Hour), at.Add(-24 * time.Hour), "Trying again in 10s, at 22:00:10 TEST; giving up at 23:00:00 TEST."},
		{parked(100*time.Millisecond, time.Hour), at, "Trying again in 100ms; giving up at"},
		{parked(time.Second, time.Second), at, "giving up at 22:00:01 TEST."},
		{told(parked(48*time.Hour, 48*time.Hour)), at, "It is down. Trying again in 48h0m0s, at 2030-05-08 22:00:00 TEST, for the last time."},
	} {
		if got := describeParked(c.parked, c.now); !strings.Contains(got, c.want) {
			t.Errorf("at %s people are told %q, want %q", c.now, got, c.want)
		}
	}
}

// What the index says may be older than the wait in memory, which is kept.
func TestAnOlderWaitDoesNotReplaceANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(eventlog.NewMemory(), Options{})
		h.outages.park(parkedTurn{id: "a", at: 2000}, "there", time.Hour, time.Hour, 0)
		h.outages.restore("a", eventlog.Parked{At: 1000, WaitMs: 1, LeftMs: 1000, Endpoint: "there"})
		if got := h.outages.turns["a"]; got == nil || got.at != 2000 || time.Until(got.until) != time.Hour {
			t.Errorf("the turn waits as %+v", got)
		}
		h.outages.drop("a")
		if len(h.outages.ways) != 0 || h.outages.count.Load() != 0 {
			t.Errorf("%d ways are left", len(h.outages.ways))
		}
		h.Close()
	})
}

// A turn that gives its model up leaves nothing behind.
func TestAWayEndsWithItsLastTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(eventlog.NewMemory(), Options{})
		h.outages.park(parkedTurn{id: "a", at: 1}, "there", time.Hour, time.Minute, 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.outages.mu.Lock()
		if len(h.outages.ways) != 0 {
			t.Errorf("%d ways are left", len(h.outages.ways))
		}
		h.outages.mu.Unlock()
		h.Close()
	})
}
