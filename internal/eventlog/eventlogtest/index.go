package eventlogtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func index(t *testing.T, f *fixture) {
	info := eventlog.Info{
		Name: "n", Summary: "s", Dir: "/here", Client: "c",
		Listed: true, Active: true, Questions: 2, Waiting: true,
		Tasks: 1, Watch: []eventlog.Task{{Key: "k", Last: "running"}},
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
	if got.ID != "s" || got.End != end || !got.Info.Equal(&info) {
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
	if got, _ := f.Session(t.Context(), "s"); !got.Info.Equal(b.Info) {
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
	tell := func(id event.SessionID, info eventlog.Info) {
		b := batch(ends[id], "x")
		b.Info = &info
		end, err := f.Append(t.Context(), id, b)
		if err != nil {
			t.Fatal(err)
		}
		ends[id] = end
	}
	set := func(id event.SessionID, active bool) { tell(id, eventlog.Info{Active: active}) }
	set("a", true)
	set("b", true)
	set("c", false)
	set("a", false)
	set("d", true)
	tell("c", eventlog.Info{Tasks: 1})
	tell("waits", eventlog.Info{Active: true, Waiting: true, Questions: 1})
	tell("watched", eventlog.Info{Tasks: 1, Watch: []eventlog.Task{{Key: "k", Last: "running"}}})
	tell("both", eventlog.Info{Active: true, Waiting: true, Questions: 1, Tasks: 1, Watch: []eventlog.Task{{Key: "k"}}})
	var got, due []event.SessionID
	for s, err := range f.Active(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.ID)
		if s.Info.Due() {
			due = append(due, s.ID)
		}
	}
	if want := []event.SessionID{"both", "watched", "c", "d", "b"}; !slices.Equal(got, want) {
		t.Errorf("active = %v, want %v", got, want)
	}
	if want := []event.SessionID{"c", "d", "b"}; !slices.Equal(due, want) {
		t.Errorf("due = %v, want %v", due, want)
	}
}

func reindex(t *testing.T, f *fixture) {
	first := f.add("s", eventlog.End{}, "a")
	f.add("other", eventlog.End{}, "x")
	end := f.add("s", first, "b")
	before, err := f.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	check := func(want eventlog.Info, due bool) {
		t.Helper()
		after, err := f.Session(t.Context(), "s")
		if err != nil || !after.Info.Equal(&want) || after.End != end || !after.Modified.Equal(before.Modified) {
			t.Errorf("session = %+v, %v; want info %+v, and the rest of %+v", after, err, want, before)
		}
		listed := false
		for is, err := range f.Active(t.Context()) {
			listed = listed || err != nil || is.ID == "s"
		}
		if listed != due {
			t.Errorf("it is active: %v, want %v", listed, due)
		}
	}
	is := eventlog.Info{Name: "n", Active: true}
	f.fails("reindex", f.Reindex(t.Context(), "s", end, is), nil)
	check(is, true)
	f.fails("reindex", f.Reindex(t.Context(), "s", first, eventlog.Info{Name: "late"}), nil)
	check(is, true)
	is.Waiting = true
	f.fails("reindex", f.Reindex(t.Context(), "s", end, is), nil)
	check(is, false)
	f.fails("reindex", f.Reindex(t.Context(), "none", end, is), eventlog.ErrNotFound)
	f.add("s", end, "c")
}

func quarantine(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "a", "b", "c")
	f.branch("before", "s", f.ends("s")[3], "x")
	ends := f.ends("s")
	f.fails("quarantine", f.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 3, Reason: "a test"}), nil)

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
	for after := range event.Seq(5) {
		got, err := f.said("s", after)
		isDamage("read from a position", err)
		if want := []string{"a", "b"}[min(after, 2):]; !slices.Equal(got, want) {
			t.Errorf("s says %q after %d, want %q", got, after, want)
		}
	}
	_, err = f.EndAt(t.Context(), "s", 3)
	isDamage("the end behind the damage", err)
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

// quarantineLifted marks a session that is whole, as a version would that cannot
// read it yet.
func quarantineLifted(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "a", "b")
	f.fails("quarantine", f.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 1, Reason: "a test"}), nil)
	f.fails("lift", f.Quarantine(t.Context(), "s", nil), nil)
	f.fails("lift what is not marked", f.Quarantine(t.Context(), "s", nil), nil)
	if s, err := f.Session(t.Context(), "s"); err != nil || s.Damage != nil || s.End != end {
		t.Errorf("session = %+v, %v; want it whole, with its end", s, err)
	}
	f.add("s", end, "c")
	f.says("s", "a", "b", "c")
	f.fails("lift at no session", f.Quarantine(t.Context(), "none", nil), eventlog.ErrNotFound)
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
		f.fails("put", f.PutSecrets(t.Context(), id, eventlog.Secret{Name: "k", Value: value}), nil)
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

// secretsWithAppends checks that secrets change with the events they belong to, or
// not at all.
func secretsWithAppends(t *testing.T, f *fixture) {
	secret := func(id event.SessionID, name, want string) {
		t.Helper()
		got, err := f.Secret(t.Context(), id, name)
		if err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("secret %s of %s = %q, %v; want %q", name, id, got, err, want)
		}
	}
	with := func(after eventlog.End, secrets ...eventlog.Secret) eventlog.Batch {
		b := batch(after, "x")
		b.Secrets = secrets
		return b
	}
	value := []byte("one")
	start, err := f.Append(t.Context(), "s", with(eventlog.End{}, eventlog.Secret{Name: "k", Value: value}, eventlog.Secret{Name: "gone", Value: value}))
	f.fails("append", err, nil)
	value[0] = 'X' // ours again
	secret("s", "k", "one")
	end, err := f.Append(t.Context(), "s", with(start, eventlog.Secret{Name: "gone"}, eventlog.Secret{Name: "l", Value: []byte("two")}))
	f.fails("append", err, nil)
	secret("s", "k", "one")
	secret("s", "l", "two")
	secret("s", "gone", "")

	lost := []eventlog.Secret{{Name: "k", Value: []byte("lost")}, {Name: "l"}}
	_, err = f.Append(t.Context(), "s", with(start, lost...))
	f.fails("append of a writer that lost", err, eventlog.ErrConflict)
	_, err = f.Append(t.Context(), "s", eventlog.Batch{After: end, Secrets: lost})
	f.fails("append of secrets alone", err, eventlog.ErrEmpty)
	malformed := with(end, lost...)
	malformed.Events = append(malformed.Events, event.Event{Type: "session.info", Bytes: []byte("[]")})
	if _, err = f.Append(t.Context(), "s", malformed); err == nil {
		t.Error("bytes that are no event were stored")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Append(cancelled, "s", with(end, lost...))
	f.fails("append of a caller that left", err, context.Canceled)
	_, err = f.Fork(t.Context(), "s", "s", with(end, lost...))
	f.fails("fork into a session that exists", err, eventlog.ErrConflict)
	_, err = f.Append(t.Context(), "none", with(end, lost...))
	f.fails("append to no session", err, eventlog.ErrConflict)
	f.fails("quarantine", f.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 2}), nil)
	if _, err = f.Append(t.Context(), "s", with(end, lost...)); err == nil {
		t.Error("a damaged session was appended to")
	}
	secret("s", "k", "one")
	secret("s", "l", "two")

	_, err = f.Fork(t.Context(), "child", "s", with(start, eventlog.Secret{Name: "l", Value: []byte("its own")}))
	f.fails("fork", err, nil)
	secret("child", "k", "")
	secret("child", "l", "its own")
	secret("s", "l", "two")
}
