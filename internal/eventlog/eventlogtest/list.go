package eventlogtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// describe appends an event to a session, with a new entry of the index.
func (f *fixture) describe(id event.SessionID, info eventlog.Info) {
	f.Helper()
	var end eventlog.End
	if s, err := f.Session(f.Context(), id); err == nil {
		end = s.End
	}
	b := batch(end, "x")
	b.Info = &info
	if _, err := f.Append(f.Context(), id, b); err != nil {
		f.Fatal(err)
	}
}

// list lists the sessions of a query. Before it goes on after one, it calls after.
func (f *fixture) list(q eventlog.Query, after func(event.SessionID)) (ids []event.SessionID) {
	f.Helper()
	for s, err := range f.Sessions(f.Context(), q) {
		if err != nil {
			f.Fatal(err)
		}
		ids = append(ids, s.ID)
		if after != nil {
			after(s.ID)
		}
	}
	return ids
}

func (f *fixture) lists(what string, q eventlog.Query, want ...event.SessionID) {
	f.Helper()
	if got := f.list(q, nil); !slices.Equal(got, want) {
		f.Errorf("%s: sessions = %q, want %q", what, got, want)
	}
}

func filters(t *testing.T, f *fixture) {
	f.describe("aa", eventlog.Info{Listed: true, Dir: "/one", Name: "Grüße an alle", Summary: "hidden by the name"})
	f.describe("ab", eventlog.Info{Listed: true, Dir: "/two", Summary: "fix the 100% bug_report"})
	f.describe("b'", eventlog.Info{Dir: "/one/below", Active: true, Name: "not listed"})
	f.describe("ÿx", eventlog.Info{Listed: true, Dir: "/one", Questions: 1, Waiting: true, Active: true})
	f.describe("t", eventlog.Info{Listed: true, Tasks: 1})
	f.describe("bad", eventlog.Info{Listed: true})
	f.fails("quarantine", f.Quarantine(t.Context(), "bad", &eventlog.Damage{Seq: 1, Reason: "a test"}), nil)
	f.describe("gone", eventlog.Info{Listed: true, Dir: "/one", Active: true})
	f.fails("delete", f.Delete(t.Context(), "gone"), nil)
	modified := func(id event.SessionID) time.Time {
		s, err := f.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Modified
	}
	f.lists("all", eventlog.Query{}, "bad", "t", "ÿx", "b'", "ab", "aa")
	f.lists("listed", eventlog.Query{Listed: true}, "bad", "t", "ÿx", "ab", "aa")
	f.lists("folder", eventlog.Query{Dir: "/one"}, "ÿx", "aa")
	f.lists("no such folder", eventlog.Query{Dir: "/on"})
	f.lists("hostile folder", eventlog.Query{Dir: "' OR 1 --"})
	f.lists("busy", eventlog.Query{Busy: true}, "bad", "t", "ÿx", "b'")
	f.lists("prefix", eventlog.Query{IDPrefix: "a"}, "ab", "aa")
	f.lists("whole id", eventlog.Query{IDPrefix: "ab"}, "ab")
	f.lists("prefix beyond ASCII", eventlog.Query{IDPrefix: "ÿ"}, "ÿx")
	f.lists("prefix that is no pattern", eventlog.Query{IDPrefix: "%"})
	f.lists("quote", eventlog.Query{IDPrefix: "b'"}, "b'")
	f.lists("text in a name", eventlog.Query{Text: "GRÜSSE"})
	f.lists("text in a name, ignoring case", eventlog.Query{Text: "GRÜß"}, "aa")
	f.lists("text in a summary", eventlog.Query{Text: "100% BUG_"}, "ab")
	f.lists("text in a summary that a name hides", eventlog.Query{Text: "hidden"})
	f.lists("since", eventlog.Query{ModifiedSince: modified("t")}, "bad", "t")
	f.lists("before", eventlog.Query{ModifiedBefore: modified("b'")}, "ab", "aa")
	f.lists("between", eventlog.Query{ModifiedSince: modified("ab"), ModifiedBefore: modified("t")}, "ÿx", "b'", "ab")
	f.lists("all filters", eventlog.Query{Listed: true, Busy: true, Dir: "/one", IDPrefix: "ÿ", ModifiedSince: modified("aa")}, "ÿx")
}

// some makes n sessions and returns their ids, the last modified first.
func (f *fixture) some(n int) (ids []event.SessionID) {
	for i := range n {
		id := event.SessionID(fmt.Sprintf("s%04d", i))
		f.describe(id, eventlog.Info{Listed: i%2 == 0, Dir: fmt.Sprint("/", i%3)})
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids
}

// pages lists all sessions page by page, each from the place of the last session.
func (f *fixture) pages(q eventlog.Query, size int, between func()) (ids []event.SessionID) {
	f.Helper()
	var began time.Time
	var last eventlog.Session
	for {
		n := 0
		for s, err := range f.Sessions(f.Context(), q) {
			if err != nil {
				f.Fatal(err)
			}
			if began.IsZero() {
				began = s.Modified
			}
			ids, last = append(ids, s.ID), s
			if n++; n >= size && !s.Place(began).Moved() {
				break
			}
		}
		if n < size || last.Place(began).Moved() {
			return ids
		}
		q.After = last.Place(began)
		if between != nil {
			between()
		}
	}
}

func listingPages(t *testing.T, f *fixture) {
	want := f.some(150) // more than a store reads at once
	for _, size := range []int{1, 7, 149, 150, 151} {
		if got := f.pages(eventlog.Query{}, size, nil); !slices.Equal(got, want) {
			t.Errorf("pages of %d: sessions = %q, want %q", size, got, want)
		}
	}
	listed := slices.DeleteFunc(slices.Clone(want), func(id event.SessionID) bool { return (id[4]-'0')%2 == 1 })
	if got := f.pages(eventlog.Query{Listed: true}, 10, nil); !slices.Equal(got, listed) {
		t.Errorf("pages of listed sessions = %q, want %q", got, listed)
	}
}

// listingWhileSessionsChange changes the session that would come last, one that was
// yielded already, and makes a new one, while the sessions are listed.
func listingWhileSessionsChange(t *testing.T, f *fixture) {
	const n = 150
	was := f.some(n)
	oldest := was[n-1]
	steps := 0
	got := f.list(eventlog.Query{}, func(id event.SessionID) {
		if steps++; steps == 10 {
			f.describe(oldest, eventlog.Info{Name: "moved"})
			f.describe(id, eventlog.Info{Name: "yielded already"})
			f.describe("new", eventlog.Info{})
		}
	})
	if !slices.Equal(got, was) { // the moved one comes at the end, where it was before
		t.Errorf("sessions = %q, want %q", got, was)
	}
}

// pagesWhileSessionsChange changes an old session between any two pages: none that is
// there all the time may be missing.
func pagesWhileSessionsChange(t *testing.T, f *fixture) {
	was := f.some(30)
	next := 29
	got := f.pages(eventlog.Query{}, 4, func() {
		if next > 5 {
			f.describe(was[next], eventlog.Info{Name: "moved"})
			next -= 4
		}
		f.describe(event.SessionID(fmt.Sprint("new ", next)), eventlog.Info{})
	})
	seen := make(map[event.SessionID]bool)
	for _, id := range got {
		seen[id] = true
	}
	for _, id := range was {
		if !seen[id] {
			t.Errorf("session %s is missing in %q", id, got)
		}
	}
	if len(seen) != len(was) {
		t.Errorf("%d sessions were listed, want the %d of the beginning: %q", len(seen), len(was), got)
	}
}
