package eventlog_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryKeepsThePromises(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store {
		m := eventlog.NewMemory()
		t.Cleanup(func() { m.Close() })
		return m
	})
}

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

func TestMemoryNoticesChangedBytes(t *testing.T) {
	log := eventlog.NewMemory()
	end := say(t, log, eventlog.End{}, "1")
	say(t, log, end, "2")
	for e, err := range log.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 2 {
			e.Bytes[len(e.Bytes)/2] ^= 1 // nobody may do this
		}
	}
	var last error
	for _, err := range log.Read(t.Context(), "s", 0) {
		last = err
	}
	if d, ok := errors.AsType[*eventlog.Damage](last); !ok || d.Seq != 2 {
		t.Errorf("err = %v, want damage at 2", last)
	}
}
