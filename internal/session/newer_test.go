package session_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A newerStart is a session.start of a later version of the event format, in which a field
// has another type.
type newerStart struct {
	Version   int   `json:"version"`
	StartTime int64 `json:"startTime"`
}

func (newerStart) Type() event.Type { return event.SessionStart }

// TestALogOfANewerFormatIsNotChanged: whatever a client wants of a session whose log is in
// a newer version of the event format is refused, and names the session and the way out.
// Nothing is appended, and the session is not taken for damaged. What only reads the log
// works.
func TestALogOfANewerFormatIsNotChanged(t *testing.T) {
	for name, open := range map[string]func() eventlog.Store{
		"memory": func() eventlog.Store { return eventlog.NewMemory() },
		"sqlite": func() eventlog.Store {
			dir := t.TempDir()
			s, err := sqlite.Open(t.Context(), filepath.Join(dir, "abide.db"), sqlite.Options{KeyFile: filepath.Join(dir, "key")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := sessiontest.On(t, open(), session.Options{})
			for id, more := range map[event.SessionID][]event.Payload{
				"waits": {event.UserMessageData{Content: "ONE"}},
				"idle":  {event.UserMessageData{Content: "ONE"}, event.SessionIdleData{}},
			} {
				appendNewer(t, b.Unchecked, id, more)
			}
			b.Start()
			for _, id := range []event.SessionID{"waits", "idle"} {
				was := stored(t, b.Unchecked, id)
				for what, change := range map[string]func() error{
					"create": func() error {
						_, err := b.Host.Create(t.Context(), id, session.Spec{Name: "other"}, &session.Client{Viewer: sessiontest.NewViewer()})
						return err
					},
					"resume": func() error {
						_, err := b.Host.Resume(t.Context(), id, session.Resume{}, &session.Client{Viewer: sessiontest.NewViewer()})
						return err
					},
					"send": func() error {
						_, err := b.Host.Send(t.Context(), id, event.InputAcceptedData{Prompt: "TWO", Mode: event.ModeQueue})
						return err
					},
					"fork":   func() error { _, err := b.Host.Fork(t.Context(), "child-"+id, id, 0, ""); return err },
					"rewind": func() error { _, err := b.Host.Rewind(t.Context(), id, session.Rewind{}); return err },
				} {
					err := change()
					var newer *event.NewerError
					if !errors.As(err, &newer) || newer.Version != event.FormatVersion+1 || !strings.Contains(err.Error(), "session "+string(id)+":") || !strings.Contains(err.Error(), "use a newer abide") {
						t.Errorf("%s %s: err = %v, want one that names the session and the way out", what, id, err)
					}
				}
				if is := stored(t, b.Unchecked, id); is.End != was.End || is.Damage != nil {
					t.Errorf("%s was changed: its end is %v, was %v; its damage %v", id, is.End, was.End, is.Damage)
				}
				if _, err := b.Host.Log.Messages(t.Context(), id); err != nil {
					t.Errorf("%s cannot be shown: %v", id, err)
				}
				if end, err := b.Host.Log.Verify(t.Context(), id); err != nil || end != was.End {
					t.Errorf("%s: the chain ends at %v, %v, want %v", id, end, err, was.End)
				}
			}
			if _, err := b.Unchecked.Session(t.Context(), "child-idle"); !errors.Is(err, eventlog.ErrNotFound) {
				t.Errorf("there is a fork: %v", err)
			}
		})
	}
}

// appendNewer writes a log of a newer format with the given events after its first one.
func appendNewer(t *testing.T, store eventlog.Store, id event.SessionID, more []event.Payload) {
	t.Helper()
	var events []event.Event
	for _, p := range append([]event.Payload{newerStart{Version: event.FormatVersion + 1, StartTime: 7}}, more...) {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, p)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if _, err := store.Append(t.Context(), id, eventlog.Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
}

// stored returns a session's entry in the index.
func stored(t *testing.T, store eventlog.Store, id event.SessionID) eventlog.Session {
	t.Helper()
	s, err := store.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
