package eventlogtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func waitOver(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a", "b")
	for _, after := range []event.Seq{0, 1} {
		f.fails("wait", f.Wait(t.Context(), "s", after), nil)
	}
}

func waitWakes(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a")
	f.add("other", eventlog.End{}, "a")
	woken := make(chan error)
	for range 3 {
		go func() { woken <- f.Wait(t.Context(), "s", 2) }()
	}
	f.add("other", f.end("other"), "not for them")
	end = f.add("s", end, "too early")
	f.add("s", end, "now")
	for range 3 {
		f.fails("wait", <-woken, nil)
	}
	if got := f.end("s").Seq; got <= 2 {
		t.Errorf("woken at %d", got)
	}
}

func waitCancelled(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a")
	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan error)
	go func() { woken <- f.Wait(ctx, "s", 1) }()
	cancel()
	f.fails("wait", <-woken, context.Canceled)
}

func waitDeleted(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a")
	woken := make(chan error)
	go func() { woken <- f.Wait(t.Context(), "s", 1) }()
	f.fails("delete", f.Delete(t.Context(), "s"), nil)
	f.fails("wait", <-woken, eventlog.ErrNotFound)
}

// following has readers that begin at any time while a writer is busy.
func following(t *testing.T, f *fixture) {
	const events, followers = 60, 4
	end := f.add("s", eventlog.End{}, "0")
	var wg sync.WaitGroup
	defer wg.Wait()
	for range followers {
		wg.Go(func() {
			next := 0
			for e, err := range eventlog.Follow(t.Context(), f, "s", eventlog.End{}) {
				if err != nil {
					t.Errorf("follow at %d: %v", next, err)
					return
				}
				if got := message(t, e); got != fmt.Sprint(next) {
					t.Errorf("followed to %q where %d was expected", got, next)
					return
				}
				if next++; next == events {
					return
				}
			}
		})
	}
	for i := 1; i < events; i++ {
		end = f.add("s", end, fmt.Sprint(i))
	}
}
