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

// TestWhichSessionsAreDue: an engine that starts reads the logs of those that have
// something to do, and of those whose tasks an older version has only counted.
func TestWhichSessionsAreDue(t *testing.T) {
	watched := []eventlog.Task{{Key: "k"}}
	for _, test := range []struct {
		name          string
		info          eventlog.Info
		due, attended bool
	}{
		{"at rest", eventlog.Info{}, false, false},
		{"in a turn", eventlog.Info{Active: true}, true, true},
		{"in a turn that waits", eventlog.Info{Active: true, Waiting: true}, false, false},
		{"with a task that is listed", eventlog.Info{Tasks: 1, Watch: watched}, false, true},
		{"with a task that is only counted", eventlog.Info{Tasks: 1}, true, true},
		{"with one of each", eventlog.Info{Tasks: 2, Watch: watched}, true, true},
		{"waiting, with a task that is only counted", eventlog.Info{Active: true, Waiting: true, Tasks: 1}, true, true},
	} {
		if due, attended := test.info.Due(), test.info.Attended(); due != test.due || attended != test.attended {
			t.Errorf("%s: due %v, attended %v; want %v, %v", test.name, due, attended, test.due, test.attended)
		}
	}
}
