package eventlogtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func reading(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a", "b", "c")
	f.add("s", end, "d", "e")
	all := []string{"a", "b", "c", "d", "e"}
	for after := range event.Seq(7) {
		got, err := f.said("s", after)
		if want := all[min(int(after), 5):]; err != nil || !slices.Equal(got, want) {
			t.Errorf("after %d: %q, %v; want %q", after, got, err, want)
		}
	}
}

func readingFrom(t *testing.T, f *fixture) {
	first := f.add("s", eventlog.End{}, "a", "b", "c")
	f.add("s", first, "d", "e")
	all := []string{"a", "b", "c", "d", "e"}
	var at eventlog.End
	for i := range len(all) + 1 {
		var got []string
		next := at
		for e, err := range f.ReadFrom(t.Context(), "s", at) {
			if err != nil {
				t.Fatalf("after %d: %v", at.Seq, err)
			}
			if len(got) == 0 {
				next = at.Next(e.Bytes)
			}
			got = append(got, message(t, e))
		}
		if !slices.Equal(got, all[i:]) {
			t.Errorf("after %d: %q, want %q", at.Seq, got, all[i:])
		}
		at = next
	}
}

func readingFromNowhere(t *testing.T, f *fixture) {
	first := f.add("s", eventlog.End{}, "a", "b", "c")
	end := f.add("s", first, "d", "e")
	for name, after := range map[string]eventlog.End{
		"beyond the end":             {Seq: 6, Hash: end.Hash},
		"the end with another hash":  {Seq: 5, Hash: first.Hash},
		"a join with another hash":   {Seq: 3, Hash: end.Hash},
		"a middle with another hash": {Seq: 2, Hash: end.Hash},
		"negative":                   {Seq: -1},
	} {
		for e, err := range f.ReadFrom(t.Context(), "s", after) {
			if err == nil {
				t.Errorf("%s: yields event %d", name, e.Seq)
			} else {
				f.fails(name, err, eventlog.ErrConflict)
			}
		}
	}
}

// endAt looks at every position: within appends, between them, and in what forks
// share.
func endAt(t *testing.T, f *fixture) {
	f.add("s", f.add("s", eventlog.End{}, "a", "b", "c"), "d", "e")
	f.branch("fork", "s", f.ends("s")[2], "x", "y")
	f.branch("child", "fork", f.ends("fork")[3], "z")
	for _, id := range []event.SessionID{"s", "fork", "child"} {
		all, err := f.said(id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range f.ends(id) {
			end, err := f.EndAt(t.Context(), id, event.Seq(n))
			if err != nil || end != want {
				t.Errorf("%s ends at %v after %d events, %v; want %v", id, end, n, err, want)
			}
			if got, err := f.said(id, event.Seq(n)); err != nil || !slices.Equal(got, all[n:]) {
				t.Errorf("%s after %d: %q, %v; want %q", id, n, got, err, all[n:])
			}
		}
		for _, n := range []event.Seq{-1, event.Seq(len(all)) + 1} {
			_, err := f.EndAt(t.Context(), id, n)
			f.fails(fmt.Sprint("the end after ", n), err, eventlog.ErrConflict)
		}
	}
	_, err := f.EndAt(t.Context(), "none", 0)
	f.fails("the end of an unknown session", err, eventlog.ErrNotFound)
}

// stopping has more readers at once than a store may have connections.
func stopping(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a", "b")
	var nest func(depth int)
	nest = func(depth int) {
		for e, err := range f.Read(t.Context(), "s", 0) {
			if err != nil || e.Seq != 1 {
				t.Fatalf("depth %d: event %d, %v", depth, e.Seq, err)
			}
			for _, err := range f.Sessions(t.Context(), eventlog.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				if depth < 40 {
					nest(depth + 1)
				}
				break
			}
			break
		}
	}
	nest(0)
	f.add("s", f.end("s"), "c")
}

func unknown(t *testing.T, f *fixture) {
	_, err := f.Session(t.Context(), "none")
	f.fails("session", err, eventlog.ErrNotFound)
	_, err = f.said("none", 0)
	f.fails("read", err, eventlog.ErrNotFound)
	f.fails("delete", f.Delete(t.Context(), "none"), eventlog.ErrNotFound)
	f.fails("quarantine", f.Quarantine(t.Context(), "none", &eventlog.Damage{Seq: 1}), eventlog.ErrNotFound)
	f.fails("put secret", f.PutSecrets(t.Context(), "none", eventlog.Secret{Name: "k", Value: []byte("v")}), eventlog.ErrNotFound)
	_, err = f.Secret(t.Context(), "none", "k")
	f.fails("secret", err, eventlog.ErrNotFound)
	_, err = f.Fork(t.Context(), "child", "none", batch(eventlog.End{}, "x"))
	f.fails("fork", err, eventlog.ErrNotFound)
}

// long has more in a session than a store may read at once.
func long(t *testing.T, f *fixture) {
	const appends = 300
	filler := strings.Repeat("x", 1<<11)
	var end eventlog.End
	for range appends {
		end = f.add("s", end, filler, filler)
	}
	n := 0
	for e, err := range f.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatalf("after %d events: %v", n, err)
		}
		if n++; int(e.Seq) != n || len(message(t, e)) != len(filler) {
			t.Fatalf("event %d is number %d", n, e.Seq)
		}
		if n%100 == 0 {
			end = f.add("s", end, filler)
		}
	}
	if n < 2*appends {
		t.Errorf("%d events of %d", n, 2*appends)
	}
}

// growing reads a session after each append: wherever a store cuts what it reads into pages, one
// of them ends with the session.
func growing(t *testing.T, f *fixture) {
	const appends = 260
	var end eventlog.End
	for i := range appends {
		end = f.add("s", end, "x")
		n := 0
		for _, err := range f.Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatalf("of %d events, after %d: %v", i+1, n, err)
			}
			n++
		}
		if n != i+1 {
			t.Fatalf("%d events of %d", n, i+1)
		}
	}
}

func deletedWhileRead(t *testing.T, f *fixture) {
	const appends = 400
	filler := strings.Repeat("x", 1<<11)
	var end eventlog.End
	for range appends {
		end = f.add("s", end, filler)
	}
	n := 0
	for _, err := range f.Read(t.Context(), "s", 0) {
		if err != nil {
			f.fails("read", err, eventlog.ErrNotFound)
			return
		}
		if n++; n == 1 {
			f.fails("delete", f.Delete(t.Context(), "s"), nil)
			f.add("s", eventlog.End{}, "another one of that name")
		}
	}
	if n != appends {
		t.Errorf("ended after %d of %d events", n, appends)
	}
}

func anyName(t *testing.T, f *fixture) {
	names := []event.SessionID{"a", "A", "a ", " a", "ä", "a\u0308", "'; --", "a/b", "%", "\"", "\n", "0", "00"}
	for _, id := range names {
		f.add(id, eventlog.End{}, string(id))
	}
	for _, id := range names {
		f.says(id, string(id))
	}
	if got := f.names(); len(got) != len(names) {
		t.Errorf("sessions = %q, want %q", got, names)
	}
}
