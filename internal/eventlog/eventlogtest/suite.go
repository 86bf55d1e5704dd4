// Package eventlogtest holds what every [eventlog.Store] must do, as tests. A
// store that passes keeps the promises of package eventlog.
package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Run tests a store. The function opens an empty one that is closed at the end
// of the test.
func Run(t *testing.T, open func(t *testing.T) eventlog.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"EventsAreNumberedWithoutGaps", numbering},
		{"AnAppendReturnsTheChainedEnd", chaining},
		{"AnAppendThatIsRefusedStoresNothing", refused},
		{"AnEmptyBatchIsAnError", empty},
		{"BytesThatAreNoEventAreRefused", malformed},
		{"TheSecondWriterLoses", secondWriter},
		{"WritersOfManySessionsDoNotDisturbEachOther", manySessions},
		{"OfManyWritersToOneSessionEachAppendFollowsAnother", oneSession},
		{"ReadYieldsWhatIsAfter", reading},
		{"ReadFromContinuesFromATrustedEnd", readingFrom},
		{"ReadFromAnEndThatNeverWasIsAConflict", readingFromNowhere},
		{"ReadingCanStopAndNest", stopping},
		{"AnUnknownSessionIsNotFound", unknown},
		{"WaitReturnsAtOnceIfThereIsMore", waitOver},
		{"WaitWakesForANewEvent", waitWakes},
		{"WaitEndsWithItsContext", waitCancelled},
		{"WaitEndsWhenTheSessionIsDeleted", waitDeleted},
		{"FollowYieldsOldAndNewOnce", following},
		{"TheIndexSaysWhatTheLastBatchSaid", index},
		{"SessionsAreListedLastModifiedFirst", listing},
		{"ActiveListsUnfinishedTurns", active},
		{"AForkSharesItsParentsEvents", fork},
		{"AForkOfAForkSharesBoth", forkOfFork},
		{"AForkAtAnotherHashIsAConflict", forkConflict},
		{"ADeletedSessionIsGone", deletion},
		{"SharedEventsStayUntilTheLastForkIsDeleted", deletionShared},
		{"AQuarantinedSessionIsReadUpToTheDamage", quarantine},
		{"SecretsBelongToTheirSession", secrets},
		{"AClosedStoreSaysSo", closed},
		{"CloseEndsWaiting", closeWaiting},
		{"ABigEventIsStoredWhole", big},
		{"ACancelledContextStoresNothing", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, &fixture{t, open(t)}) })
	}
	t.Run("AnyHistoryMatchesTheModel", func(t *testing.T) { model(t, open) })
}

// A fixture is a store under test, with verbs that end the test on error.
type fixture struct {
	*testing.T
	eventlog.Store
}

// text makes an event that says something.
func text(s string) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: s})
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return e
}

// batch makes events that follow an end.
func batch(after eventlog.End, texts ...string) eventlog.Batch {
	b := eventlog.Batch{After: after}
	for _, s := range texts {
		b.Events = append(b.Events, text(s))
	}
	return b
}

// add appends events that say something.
func (f *fixture) add(id event.SessionID, after eventlog.End, texts ...string) eventlog.End {
	f.Helper()
	end, err := f.Append(f.Context(), id, batch(after, texts...))
	if err != nil {
		f.Fatalf("append to %s after %d: %v", id, after.Seq, err)
	}
	return end
}

// branch forks a session.
func (f *fixture) branch(child, parent event.SessionID, at eventlog.End, texts ...string) eventlog.End {
	f.Helper()
	end, err := f.Fork(f.Context(), child, parent, batch(at, texts...))
	if err != nil {
		f.Fatalf("fork %s from %s at %d: %v", child, parent, at.Seq, err)
	}
	return end
}

// said returns what the events after a position say, and the error that ended
// the reading.
func (f *fixture) said(id event.SessionID, after event.Seq) (texts []string, err error) {
	f.Helper()
	next := after + 1
	for e, err := range f.Read(f.Context(), id, after) {
		if err != nil {
			return texts, err
		}
		if e.Seq != next {
			f.Errorf("read %s: event %d where %d was expected", id, e.Seq, next)
		}
		next++
		texts = append(texts, message(f, e))
	}
	return texts, nil
}

func message(t interface{ Fatal(...any) }, e event.Event) string {
	info, err := event.As[event.SessionInfoData](e)
	if err != nil {
		t.Fatal(err)
	}
	return info.Message
}

// says checks all that a session says.
func (f *fixture) says(id event.SessionID, want ...string) {
	f.Helper()
	got, err := f.said(id, 0)
	if err != nil {
		f.Fatalf("read %s: %v", id, err)
	}
	if !slices.Equal(got, want) {
		f.Errorf("%s says %q, want %q", id, got, want)
	}
}

// fails checks for an error.
func (f *fixture) fails(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Errorf("%s: err = %v, want %v", what, err, want)
	}
}

// end asks the index for the end of a session.
func (f *fixture) end(id event.SessionID) eventlog.End {
	f.Helper()
	s, err := f.Session(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return s.End
}

// names lists sessions.
func (f *fixture) names() []event.SessionID {
	f.Helper()
	var ids []event.SessionID
	for s, err := range f.Sessions(f.Context()) {
		if err != nil {
			f.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	return ids
}

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
				f.insist("s", fmt.Sprintf("%d/%d", i, j))
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

// insist appends at whatever end the session has.
func (f *fixture) insist(id event.SessionID, s string) {
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

// stopping has more readers at once than a store may have connections.
func stopping(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a", "b")
	var nest func(depth int)
	nest = func(depth int) {
		for e, err := range f.Read(t.Context(), "s", 0) {
			if err != nil || e.Seq != 1 {
				t.Fatalf("depth %d: event %d, %v", depth, e.Seq, err)
			}
			for _, err := range f.Sessions(t.Context()) {
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
	f.fails("wait", f.Wait(t.Context(), "none", 0), eventlog.ErrNotFound)
	f.fails("delete", f.Delete(t.Context(), "none"), eventlog.ErrNotFound)
	f.fails("quarantine", f.Quarantine(t.Context(), "none", eventlog.Damage{Seq: 1}), eventlog.ErrNotFound)
	f.fails("put secret", f.PutSecret(t.Context(), "none", "k", []byte("v")), eventlog.ErrNotFound)
	_, err = f.Secret(t.Context(), "none", "k")
	f.fails("secret", err, eventlog.ErrNotFound)
	_, err = f.Fork(t.Context(), "child", "none", batch(eventlog.End{}, "x"))
	f.fails("fork", err, eventlog.ErrNotFound)
}

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

func index(t *testing.T, f *fixture) {
	info := eventlog.Info{
		Name: "n", Summary: "s", Dir: "/here", Client: "c",
		Listed: true, Active: true, Questions: 2,
	}
	b := batch(eventlog.End{}, "a")
	b.Info = &info
	end, err := f.Append(t.Context(), "s", b)
	if err != nil {
		t.Fatal(err)
	}
	end = f.add("s", end, "leaves it")
	got, err := f.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "s" || got.End != end || got.Info != info {
		t.Errorf("session = %+v, want info %+v and end %v", got, info, end)
	}
	if got.Created.IsZero() || !got.Modified.After(got.Created) {
		t.Errorf("created %v, modified %v", got.Created, got.Modified)
	}
	if got.Parent != "" || got.Shared != 0 || got.Damage != nil {
		t.Errorf("session = %+v, want no fork and no damage", got)
	}
	b = batch(end, "changes it")
	b.Info = &eventlog.Info{Name: "other"}
	if _, err := f.Append(t.Context(), "s", b); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Session(t.Context(), "s"); got.Info != *b.Info {
		t.Errorf("info = %+v, want %+v", got.Info, *b.Info)
	}
}

func listing(t *testing.T, f *fixture) {
	a := f.add("a", eventlog.End{}, "x")
	f.add("b", eventlog.End{}, "x")
	f.add("c", eventlog.End{}, "x")
	f.add("a", a, "y")
	if got, want := f.names(), []event.SessionID{"a", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("sessions = %v, want %v", got, want)
	}
}

func active(t *testing.T, f *fixture) {
	ends := make(map[event.SessionID]eventlog.End)
	set := func(id event.SessionID, active bool) {
		b := batch(ends[id], "x")
		b.Info = &eventlog.Info{Active: active}
		end, err := f.Append(t.Context(), id, b)
		if err != nil {
			t.Fatal(err)
		}
		ends[id] = end
	}
	set("a", true)
	set("b", true)
	set("c", false)
	set("a", false)
	set("d", true)
	var got []event.SessionID
	for s, err := range f.Active(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.ID)
	}
	if want := []event.SessionID{"d", "b"}; !slices.Equal(got, want) {
		t.Errorf("active = %v, want %v", got, want)
	}
}

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

func quarantine(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a", "b", "c")
	f.branch("before", "s", f.ends("s")[3], "x")
	ends := f.ends("s")
	f.fails("quarantine", f.Quarantine(t.Context(), "s", eventlog.Damage{Seq: 3, Reason: "a test"}), nil)

	isDamage := func(what string, err error) {
		t.Helper()
		if d, ok := errors.AsType[*eventlog.Damage](err); !ok || *d != (eventlog.Damage{Session: "s", Seq: 3, Reason: "a test"}) {
			t.Errorf("%s: err = %v, want the damage at 3", what, err)
		}
	}
	got, err := f.said("s", 0)
	isDamage("read", err)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("s says %q, want a and b", got)
	}
	_, err = f.Append(t.Context(), "s", batch(ends[3], "d"))
	isDamage("append", err)
	_, err = f.Fork(t.Context(), "late", "s", batch(ends[3], "x"))
	isDamage("fork at the damage", err)
	s, err := f.Session(t.Context(), "s")
	if err != nil || s.Damage == nil {
		t.Fatalf("session = %+v, %v; want it damaged", s, err)
	}
	isDamage("session", s.Damage)
	f.branch("early", "s", ends[2], "x")
	f.says("early", "a", "b", "x")
	f.says("before", "a", "b", "c", "x")
	f.fails("delete", f.Delete(t.Context(), "s"), nil)
}

func secrets(t *testing.T, f *fixture) {
	secret := func(id event.SessionID, want string) {
		t.Helper()
		got, err := f.Secret(t.Context(), id, "k")
		if err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("secret of %s = %q, %v; want %q", id, got, err, want)
		}
	}
	put := func(id event.SessionID, value []byte) {
		t.Helper()
		f.fails("put", f.PutSecret(t.Context(), id, "k", value), nil)
	}
	end := f.add("s", eventlog.End{}, "a")
	f.add("other", eventlog.End{}, "a")
	secret("s", "")
	value := []byte("one")
	put("s", value)
	value[0] = 'X' // ours again
	secret("s", "one")
	put("s", []byte("two"))
	secret("s", "two")
	secret("other", "")
	f.branch("child", "s", end, "x")
	secret("child", "")
	put("s", nil)
	secret("s", "")
	put("s", []byte{})
	if got, err := f.Secret(t.Context(), "s", "k"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("empty secret = %v, %v", got, err)
	}
	put("s", []byte("three"))
	put("other", []byte("four"))
	f.fails("delete", f.Delete(t.Context(), "s"), nil)
	f.fails("delete", f.Delete(t.Context(), "child"), nil)
	f.add("s", eventlog.End{}, "again")
	secret("s", "")
	secret("other", "four")
}

func closed(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a")
	f.fails("close", f.Close(), nil)
	f.fails("close again", f.Close(), nil)
	_, err := f.Append(t.Context(), "s", batch(end, "b"))
	f.fails("append", err, eventlog.ErrClosed)
	_, err = f.said("s", 0)
	f.fails("read", err, eventlog.ErrClosed)
	_, err = f.Session(t.Context(), "s")
	f.fails("session", err, eventlog.ErrClosed)
	for _, err := range f.Sessions(t.Context()) {
		f.fails("sessions", err, eventlog.ErrClosed)
	}
	f.fails("wait", f.Wait(t.Context(), "s", 0), eventlog.ErrClosed)
	f.fails("delete", f.Delete(t.Context(), "s"), eventlog.ErrClosed)
	f.fails("quarantine", f.Quarantine(t.Context(), "s", eventlog.Damage{}), eventlog.ErrClosed)
	_, err = f.Fork(t.Context(), "c", "s", batch(end, "b"))
	f.fails("fork", err, eventlog.ErrClosed)
	f.fails("put secret", f.PutSecret(t.Context(), "s", "k", nil), eventlog.ErrClosed)
	_, err = f.Secret(t.Context(), "s", "k")
	f.fails("secret", err, eventlog.ErrClosed)
}

// closeWaiting closes a store that is in use. Each append is stored or refused.
func closeWaiting(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { f.fails("wait", f.Wait(t.Context(), "s", 1), eventlog.ErrClosed) })
		wg.Go(func() {
			id := event.SessionID(fmt.Sprint(i))
			for end := (eventlog.End{}); ; {
				next, err := f.Append(t.Context(), id, batch(end, "x"))
				if err != nil {
					f.fails("append", err, eventlog.ErrClosed)
					return
				}
				end = next
			}
		})
	}
	f.fails("close", f.Close(), nil)
	wg.Wait()
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
