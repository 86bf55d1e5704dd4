package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func numbering(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a")
	end = f.add("s", end, "b", "c", "d")
	if end = f.add("s", end, "e"); end.Seq != 5 {
		t.Errorf("five events end at %d", end.Seq)
	}
	f.says("s", "a", "b", "c", "d", "e")
}

func chaining(t *testing.T, f *fixture) {
	b := batch(eventlog.End{}, "a", "b")
	want := b.After.Next(b.Events[0].Bytes).Next(b.Events[1].Bytes)
	got, err := f.Append(t.Context(), "s", b)
	if err != nil || got != want {
		t.Errorf("end = %v, %v; want %v", got, err, want)
	}
	if indexed := f.end("s"); indexed != want {
		t.Errorf("the index has end %v, want %v", indexed, want)
	}
}

func refused(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a", "b")
	other := end
	other.Hash[0]++
	for name, after := range map[string]eventlog.End{
		"from the start":   {},
		"too early":        {Seq: 1, Hash: end.Hash},
		"too late":         {Seq: 3, Hash: end.Hash},
		"another hash":     other,
		"negative":         {Seq: -1},
		"the start's hash": {Hash: end.Hash},
	} {
		_, err := f.Append(t.Context(), "s", batch(after, "x", "y"))
		f.fails(name, err, eventlog.ErrConflict)
	}
	_, err := f.Append(t.Context(), "none", batch(end, "x"))
	f.fails("append to no session", err, eventlog.ErrConflict)
	f.says("s", "a", "b")
	if got := f.names(); len(got) != 1 {
		t.Errorf("sessions = %v, want one", got)
	}
	f.add("s", end, "c")
}

func empty(t *testing.T, f *fixture) {
	_, err := f.Append(t.Context(), "s", eventlog.Batch{})
	f.fails("append nothing", err, eventlog.ErrEmpty)
	end := f.add("s", eventlog.End{}, "a")
	_, err = f.Fork(t.Context(), "child", "s", eventlog.Batch{After: end})
	f.fails("fork with nothing", err, eventlog.ErrEmpty)
	if got := f.names(); len(got) != 1 {
		t.Errorf("sessions = %v, want one", got)
	}
}

func malformed(t *testing.T, f *fixture) {
	for name, e := range map[string]event.Event{
		"no bytes":      {Type: "session.info"},
		"no envelope":   {Type: "session.info", Bytes: []byte(`{"data":1}`)},
		"two lines":     {Type: "session.info", Bytes: []byte("{\"type\":\"session.info\",\n\"data\":{}}")},
		"another type":  {Type: "session.info", Bytes: []byte(`{"type":"abort","data":{}}`)},
		"cut in half":   {Type: "session.info", Bytes: []byte(`{"type":"session.info","da`)},
		"newline after": {Type: "session.info", Bytes: []byte("{\"type\":\"session.info\",\"data\":{}}\n")},
	} {
		if _, err := f.Append(t.Context(), "s", eventlog.Batch{Events: []event.Event{text("ok"), e}}); err == nil {
			t.Errorf("%s: stored", name)
		}
	}
	_, err := f.Session(t.Context(), "s")
	f.fails("session", err, eventlog.ErrNotFound)
}

func secondWriter(t *testing.T, f *fixture) {
	for i, want := range []error{nil, eventlog.ErrConflict} {
		_, err := f.Append(t.Context(), "s", batch(eventlog.End{}, "hello"))
		f.fails(fmt.Sprintf("append %d at the start", i+1), err, want)
	}
	end := f.end("s")
	for i, want := range []error{nil, eventlog.ErrConflict} {
		_, err := f.Append(t.Context(), "s", batch(end, "again"))
		f.fails(fmt.Sprintf("append %d after the first event", i+1), err, want)
	}
	f.says("s", "hello", "again")
}

func manySessions(t *testing.T, f *fixture) {
	const sessions, appends = 24, 12
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			var end eventlog.End
			for j := range appends {
				next, err := f.Append(t.Context(), event.SessionID(fmt.Sprint(i)), batch(end, fmt.Sprint(i, j, "a"), fmt.Sprint(i, j, "b")))
				if err != nil {
					t.Errorf("session %d, append %d: %v", i, j, err)
					return
				}
				end = next
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		var want []string
		for j := range appends {
			want = append(want, fmt.Sprint(i, j, "a"), fmt.Sprint(i, j, "b"))
		}
		f.says(event.SessionID(fmt.Sprint(i)), want...)
	}
}

func oneSession(t *testing.T, f *fixture) {
	const writers, appends = 8, 5
	f.add("s", eventlog.End{}, "start")
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range appends {
				f.addAnywhere("s", fmt.Sprintf("%d/%d", i, j))
			}
		})
	}
	wg.Wait()
	got, err := f.said("s", 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range writers {
		mine := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, fmt.Sprintf("%d/", i)) })
		if len(mine) != appends || !slices.IsSorted(mine) {
			t.Errorf("writer %d finds %q", i, mine)
		}
	}
	if len(got) != writers*appends {
		t.Errorf("%d events for %d appends", len(got), writers*appends)
	}
}

// addAnywhere appends at the current end of the session, and tries again after a
// conflict.
func (f *fixture) addAnywhere(id event.SessionID, s string) {
	for {
		session, err := f.Session(f.Context(), id)
		if err == nil {
			_, err = f.Append(f.Context(), id, batch(session.End, s))
		}
		if err == nil {
			return
		}
		if !errors.Is(err, eventlog.ErrConflict) {
			f.Errorf("append %q: %v", s, err)
			return
		}
	}
}

func big(t *testing.T, f *fixture) {
	huge := strings.Repeat("0123456789", 1<<20)
	end := f.add("s", eventlog.End{}, "before")
	end = f.add("s", end, huge, "beside")
	f.add("s", end, "after")
	f.says("s", "before", huge, "beside", "after")
}

func cancelled(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Append(ctx, "s", batch(eventlog.End{}, "a"))
	f.fails("append", err, context.Canceled)
	_, err = f.Session(t.Context(), "s")
	f.fails("session", err, eventlog.ErrNotFound)
	f.add("s", eventlog.End{}, "a")
	for _, err := range f.Read(ctx, "s", 0) {
		f.fails("read", err, context.Canceled)
	}
}
