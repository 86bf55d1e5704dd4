package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// say appends an event to the session "s".
func say(t *testing.T, log eventlog.Log, after eventlog.End, what string) eventlog.End {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.SessionInfoData{Message: what})
	if err != nil {
		t.Fatal(err)
	}
	end, err := log.Append(t.Context(), "s", eventlog.Batch{After: after, Events: []event.Event{e}})
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// heard is what a follower got: an event's number, or an error.
type heard struct {
	seq event.Seq
	err error
}

// listen follows the session "s" in a goroutine of the bubble until an error.
func listen(ctx context.Context, log eventlog.Log, after eventlog.End) <-chan heard {
	all := make(chan heard, 100)
	go func() {
		defer close(all)
		for e, err := range eventlog.Follow(ctx, log, "s", after) {
			all <- heard{e.Seq, err}
		}
	}()
	return all
}

func expect(t *testing.T, from <-chan heard, want ...heard) {
	t.Helper()
	synctest.Wait()
	for _, w := range want {
		select {
		case got := <-from:
			if got.seq != w.seq || !errors.Is(got.err, w.err) {
				t.Errorf("heard %v, want %v", got, w)
			}
		default:
			t.Errorf("heard nothing, want %v", w)
		}
	}
	if len(from) > 0 {
		t.Errorf("heard %v as well", <-from)
	}
}

func TestFollowYieldsOldThenNewAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := eventlog.NewMemory()
		one := say(t, log, eventlog.End{}, "1")
		two := say(t, log, one, "2")
		ctx, cancel := context.WithCancel(t.Context())
		fromStart, fromOne := listen(ctx, log, eventlog.End{}), listen(ctx, log, one)
		expect(t, fromStart, heard{seq: 1}, heard{seq: 2})
		expect(t, fromOne, heard{seq: 2})
		say(t, log, two, "3")
		expect(t, fromStart, heard{seq: 3})
		expect(t, fromOne, heard{seq: 3})
		cancel()
		expect(t, fromStart, heard{err: context.Canceled})
		expect(t, fromOne, heard{err: context.Canceled})
	})
}

func TestFollowEndsWithTheSessionOrTheStore(t *testing.T) {
	for want, end := range map[error]func(*eventlog.Memory) error{
		eventlog.ErrNotFound: func(m *eventlog.Memory) error { return m.Delete(context.Background(), "s") },
		eventlog.ErrClosed:   (*eventlog.Memory).Close,
	} {
		synctest.Test(t, func(t *testing.T) {
			log := eventlog.NewMemory()
			say(t, log, eventlog.End{}, "1")
			all := listen(t.Context(), log, eventlog.End{})
			expect(t, all, heard{seq: 1})
			if err := end(log); err != nil {
				t.Fatal(err)
			}
			expect(t, all, heard{err: want})
		})
	}
}

func TestFollowStopsWhenItsCallerDoes(t *testing.T) {
	log := eventlog.NewMemory()
	var end eventlog.End
	for i := range 3 {
		end = say(t, log, end, fmt.Sprint(i))
	}
	n := 0
	for range eventlog.Follow(t.Context(), log, "s", eventlog.End{}) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("yielded %d events to a caller that wanted 2", n)
	}
}

func TestFollowEndsWhereTheSessionIsDamaged(t *testing.T) {
	log := eventlog.NewMemory()
	end := say(t, log, eventlog.End{}, "1")
	say(t, log, end, "2")
	if err := log.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 2}); err != nil {
		t.Fatal(err)
	}
	var got []heard
	for e, err := range eventlog.Follow(t.Context(), log, "s", eventlog.End{}) {
		got = append(got, heard{e.Seq, err})
	}
	if d, ok := errors.AsType[*eventlog.Damage](got[len(got)-1].err); len(got) != 2 || got[0].seq != 1 || !ok || d.Seq != 2 {
		t.Errorf("heard %v, want event 1 and the damage", got)
	}
}
