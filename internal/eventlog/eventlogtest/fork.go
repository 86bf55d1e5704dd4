package eventlogtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// ends returns the end after each event of a session, the zero End first.
func (f *fixture) ends(id event.SessionID) []eventlog.End {
	f.Helper()
	all := []eventlog.End{{}}
	for e, err := range f.Read(f.Context(), id, 0) {
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, all[len(all)-1].Next(e.Bytes))
	}
	return all
}

func fork(t *testing.T, f *fixture) {
	end := f.add("p", eventlog.End{}, "a", "b", "c")
	f.add("p", end, "d", "e")
	parent := []string{"a", "b", "c", "d", "e"}
	for at, end := range f.ends("p") {
		id := event.SessionID(fmt.Sprint("fork", at))
		f.branch(id, "p", end, "x", "y")
		f.add(id, f.end(id), "z")
		f.says(id, append(slices.Clone(parent[:at]), "x", "y", "z")...)
		if ends := f.ends(id); ends[len(ends)-1] != f.end(id) {
			t.Errorf("%s: the chain ends at %v, the index says %v", id, ends[len(ends)-1], f.end(id))
		}
		s, err := f.Session(t.Context(), id)
		if err != nil || s.Parent != "p" || s.Shared != event.Seq(at) {
			t.Errorf("%s is a fork of %q at %d, %v; want p at %d", id, s.Parent, s.Shared, err, at)
		}
	}
	f.says("p", parent...)
}

func forkOfFork(t *testing.T, f *fixture) {
	f.add("a", eventlog.End{}, "a1", "a2", "a3", "a4")
	f.branch("b", "a", f.ends("a")[3], "b1", "b2")
	f.branch("c", "b", f.ends("b")[4], "c1") // beyond what b shares
	f.branch("d", "b", f.ends("b")[2], "d1") // within it
	f.branch("e", "d", f.ends("d")[3], "e1")
	f.add("a", f.end("a"), "a5")
	f.says("a", "a1", "a2", "a3", "a4", "a5")
	f.says("b", "a1", "a2", "a3", "b1", "b2")
	f.says("c", "a1", "a2", "a3", "b1", "c1")
	f.says("d", "a1", "a2", "d1")
	f.says("e", "a1", "a2", "d1", "e1")
	got, err := f.said("c", 2)
	if want := []string{"a3", "b1", "c1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("c after 2: %q, %v; want %q", got, err, want)
	}
}

func forkConflict(t *testing.T, f *fixture) {
	f.add("p", eventlog.End{}, "a", "b", "c")
	f.branch("child", "p", f.ends("p")[2], "x")
	ends := f.ends("p")
	other := f.ends("child")[3]
	for name, c := range map[string]struct {
		child event.SessionID
		at    eventlog.End
	}{
		"another hash at the end":      {"new", other},
		"another hash in the middle":   {"new", eventlog.End{Seq: 2, Hash: ends[1].Hash}},
		"another hash at the start":    {"new", eventlog.End{Hash: ends[1].Hash}},
		"beyond the end":               {"new", eventlog.End{Seq: 4, Hash: ends[3].Hash}},
		"negative":                     {"new", eventlog.End{Seq: -1}},
		"a child that exists":          {"child", ends[2]},
		"a child that is its parent":   {"p", ends[2]},
		"a child at the parent's zero": {"child", eventlog.End{}},
	} {
		_, err := f.Fork(t.Context(), c.child, "p", batch(c.at, "x"))
		f.fails(name, err, eventlog.ErrConflict)
	}
	if got := f.names(); len(got) != 2 {
		t.Errorf("sessions = %v, want two", got)
	}
}

func deletion(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a", "b")
	f.add("other", eventlog.End{}, "x")
	f.fails("delete", f.Delete(t.Context(), "s"), nil)
	f.fails("delete again", f.Delete(t.Context(), "s"), eventlog.ErrNotFound)
	_, err := f.Session(t.Context(), "s")
	f.fails("session", err, eventlog.ErrNotFound)
	_, err = f.said("s", 0)
	f.fails("read", err, eventlog.ErrNotFound)
	_, err = f.Append(t.Context(), "s", batch(end, "c"))
	f.fails("append where it ended", err, eventlog.ErrConflict)
	if got := f.names(); !slices.Equal(got, []event.SessionID{"other"}) {
		t.Errorf("sessions = %v, want other", got)
	}
	f.add("s", eventlog.End{}, "new life")
	f.says("s", "new life")
	f.says("other", "x")
}

func deletionShared(t *testing.T, f *fixture) {
	f.add("p", eventlog.End{}, "a", "b", "c", "d")
	f.branch("c1", "p", f.ends("p")[2], "x")
	f.branch("c2", "p", f.ends("p")[3], "y")
	f.branch("g", "c1", f.ends("c1")[1], "z") // shares only what c1 shares
	f.fails("delete p", f.Delete(t.Context(), "p"), nil)

	f.says("c1", "a", "b", "x")
	f.says("c2", "a", "b", "c", "y")
	f.says("g", "a", "z")
	_, err := f.said("p", 0)
	f.fails("read p", err, eventlog.ErrNotFound)
	_, err = f.Append(t.Context(), "p", batch(eventlog.End{}, "again"))
	f.fails("append to p while its events are shared", err, eventlog.ErrConflict)
	_, err = f.Fork(t.Context(), "p", "c1", batch(f.end("c1"), "again"))
	f.fails("fork as p while its events are shared", err, eventlog.ErrConflict)
	_, err = f.Fork(t.Context(), "new", "p", batch(eventlog.End{}, "again"))
	f.fails("fork p", err, eventlog.ErrNotFound)
	if got := f.names(); len(got) != 3 || slices.Contains(got, "p") {
		t.Errorf("sessions = %v, want c1, c2, g", got)
	}
	if s, err := f.Session(t.Context(), "c1"); err != nil || s.Parent != "p" || s.Shared != 2 {
		t.Errorf("c1 is a fork of %q at %d, %v; want p at 2", s.Parent, s.Shared, err)
	}

	f.fails("delete c2", f.Delete(t.Context(), "c2"), nil)
	f.says("c1", "a", "b", "x")
	f.fails("delete c1", f.Delete(t.Context(), "c1"), nil)
	f.says("g", "a", "z")
	f.add("g", f.end("g"), "more")
	f.says("g", "a", "z", "more")
	f.fails("delete g", f.Delete(t.Context(), "g"), nil)

	if got := f.names(); len(got) != 0 {
		t.Errorf("sessions = %v, want none", got)
	}
	for _, id := range []event.SessionID{"p", "c1", "c2", "g"} {
		f.add(id, eventlog.End{}, "new life")
		f.says(id, "new life")
	}
}
