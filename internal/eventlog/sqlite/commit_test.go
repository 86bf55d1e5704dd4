package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// say makes an event.
func say(what string) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: what})
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return e
}

// add appends an event for each text.
func add(t *testing.T, s *Store, id event.SessionID, after eventlog.End, texts ...string) eventlog.End {
	t.Helper()
	end, err := s.Append(t.Context(), id, batch(after, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func batch(after eventlog.End, texts ...string) eventlog.Batch {
	b := eventlog.Batch{After: after}
	for _, text := range texts {
		b.Events = append(b.Events, say(text))
	}
	return b
}

// read returns what a session says, and the error that ended it.
func read(t *testing.T, s *Store, id event.SessionID) (texts []string, err error) {
	t.Helper()
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			return texts, err
		}
		info, err := event.As[event.SessionInfoData](e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, info.Message)
	}
	return texts, nil
}

// together has appends committed in one transaction, in their order, and returns
// how each went.
func together(t *testing.T, s *Store, additions ...*addition) []error {
	t.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	go s.queue.Do(context.Background(), &op{apply: func(*writing) error {
		close(entered)
		<-leave
		return refusal{eventlog.ErrConflict}
	}})
	<-entered
	errs := make([]error, len(additions))
	var wg sync.WaitGroup
	for i, a := range additions {
		o := s.adding(a, func(w *writing) (record.Head, error) { return s.append(w, a) })
		wg.Go(func() { errs[i] = s.queue.Do(context.Background(), o) })
		for s.waitingOps() <= i {
			runtime.Gosched()
		}
	}
	close(leave)
	wg.Wait()
	return errs
}

func addTo(t *testing.T, id event.SessionID, after eventlog.End, texts ...string) *addition {
	t.Helper()
	a, err := newAddition(id, batch(after, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAppendsThatWaitShareACommit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	var all []*addition
	for i := range 20 {
		all = append(all, addTo(t, event.SessionID(fmt.Sprint(i)), eventlog.End{}, "a", "b"))
	}
	for i, err := range together(t, s, all...) {
		if err != nil {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if got, want := s.Stats(), (Stats{Commits: 1, Appends: 20, Events: 40}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

func TestATransactionIsBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	texts := strings.Split(strings.Repeat("x", group.MaxEvents/2), "")
	var all []*addition
	for i := range 6 {
		all = append(all, addTo(t, event.SessionID(fmt.Sprint(i)), eventlog.End{}, texts...))
	}
	together(t, s, all...)
	if got := s.Stats(); got.Commits != 3 || got.Appends != 6 {
		t.Errorf("stats = %+v, want 6 appends in 3 commits", got)
	}
}

func TestAConflictFailsAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	end := add(t, s, "old", eventlog.End{}, "x")
	errs := together(t, s,
		addTo(t, "a", eventlog.End{}, "first"),
		addTo(t, "a", eventlog.End{}, "too late"),
		addTo(t, "old", eventlog.End{}, "there is one"),
		addTo(t, "old", end, "y"),
		addTo(t, "none", end, "there is none"),
		addTo(t, "b", eventlog.End{}, "last"),
	)
	for i, want := range []error{nil, eventlog.ErrConflict, eventlog.ErrConflict, nil, eventlog.ErrConflict, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("append %d: err = %v, want %v", i, errs[i], want)
		}
	}
	for id, want := range map[event.SessionID]string{"a": "[first]", "old": "[x y]", "b": "[last]"} {
		if got, err := read(t, s, id); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s says %v, %v; want %s", id, got, err, want)
		}
	}
	if got := s.Stats().Commits; got != 2 {
		t.Errorf("%d commits, want 2", got)
	}
}

// An append that fails after it has written something takes its transaction
// with it; the others are carried out all the same.
func TestAnAppendThatCannotBeCarriedOutFailsAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	end := add(t, s, "bad", eventlog.End{}, "x")
	h, err := s.storedHead("bad")
	if err != nil {
		t.Fatal(err)
	}
	tamper(t, s.path, fmt.Sprintf("INSERT INTO records (key, head, body) VALUES (%d, x'00', x'00')", key(h.Session, 2)))
	errs := together(t, s,
		addTo(t, "a", eventlog.End{}, "first"),
		addTo(t, "bad", end, "y"),
		addTo(t, "b", eventlog.End{}, "last"),
	)
	if d, ok := errors.AsType[*eventlog.Damage](errs[1]); !ok || d.Session != "bad" || d.Seq != 2 {
		t.Errorf("append to bad: err = %v, want damage at 2", errs[1])
	}
	for i, id := range map[int]event.SessionID{0: "a", 2: "b"} {
		if errs[i] != nil {
			t.Errorf("append to %s: %v", id, errs[i])
		}
		if got, err := read(t, s, id); err != nil || len(got) != 1 {
			t.Errorf("%s says %q, %v", id, got, err)
		}
	}
	if got := s.Stats(); got.Appends != 3 || got.Events != 3 {
		t.Errorf("stats = %+v, want 3 appends of an event each", got)
	}
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "abide.db"))
		a := addTo(t, "s", eventlog.End{}, "a")
		leave := make(chan struct{})
		var appended error
		closed := false
		go func() {
			appended = s.queue.Do(context.Background(), s.adding(a, func(w *writing) (record.Head, error) {
				<-leave
				return s.append(w, a)
			}))
		}()
		synctest.Wait()
		go func() {
			s.Close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("the store is closed during an append")
		}
		if err := second(s.Append(t.Context(), "t", batch(eventlog.End{}, "x"))); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("an append after Close began: err = %v, want ErrClosed", err)
		}
		close(leave)
		synctest.Wait()
		if !closed || appended != nil {
			t.Errorf("closed = %v, the append says %v", closed, appended)
		}
		if got, err := read(t, open(t, s.path), "s"); err != nil || len(got) != 1 {
			t.Errorf("s says %q, %v", got, err)
		}
	})
}

func TestSixtyFourBusySessionsShareSyncs(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			var end eventlog.End
			var err error
			for range 20 {
				if end, err = turn(t.Context(), s, event.SessionID(fmt.Sprint(i)), end); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	got := s.Stats()
	if got.Events != 64*20*7 || got.Commits*8 > got.Events {
		t.Errorf("%d commits for %d events, want at most one for 8", got.Commits, got.Events)
	}
}

func TestOpeningAStoreFencesTheOldProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	old := open(t, path)
	end := add(t, old, "s", eventlog.End{}, "a")
	young := open(t, path)
	_, err := old.Append(t.Context(), "s", batch(end, "from the old"))
	if !errors.Is(err, eventlog.ErrFenced) {
		t.Fatalf("append by the old: err = %v, want ErrFenced", err)
	}
	<-old.Closed()
	if err := old.Err(); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("the old is closed because of %v, want ErrFenced", err)
	}
	if _, err := old.Session(t.Context(), "s"); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("session by the old: err = %v, want ErrFenced", err)
	}
	add(t, young, "s", end, "from the young")
	if got, err := read(t, young, "s"); err != nil || fmt.Sprint(got) != "[a from the young]" {
		t.Errorf("s says %v, %v", got, err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	add(t, young, "t", eventlog.End{}, "closing the old harms nobody")
}

func TestAFencedProcessCanChangeNothing(t *testing.T) {
	for name, change := range map[string]func(s *Store, end eventlog.End) error{
		"append": func(s *Store, end eventlog.End) error {
			return second(s.Append(context.Background(), "s", batch(end, "x")))
		},
		"append too late": func(s *Store, _ eventlog.End) error {
			return second(s.Append(context.Background(), "s", batch(eventlog.End{}, "x")))
		},
		"append anew": func(s *Store, _ eventlog.End) error {
			return second(s.Append(context.Background(), "t", batch(eventlog.End{}, "x")))
		},
		"append to none": func(s *Store, end eventlog.End) error {
			return second(s.Append(context.Background(), "t", batch(end, "x")))
		},
		"fork": func(s *Store, end eventlog.End) error {
			return second(s.Fork(context.Background(), "t", "s", batch(end, "x")))
		},
		"delete": func(s *Store, _ eventlog.End) error { return s.Delete(context.Background(), "s") },
		"quarantine": func(s *Store, _ eventlog.End) error {
			return s.Quarantine(context.Background(), "s", &eventlog.Damage{Seq: 1})
		},
		"put a secret": func(s *Store, _ eventlog.End) error {
			return s.PutSecrets(context.Background(), "s", eventlog.Secret{Name: "k", Value: []byte("v")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "abide.db")
			old := open(t, path)
			end := add(t, old, "s", eventlog.End{}, "a")
			young := open(t, path)
			if err := change(old, end); !errors.Is(err, eventlog.ErrFenced) {
				t.Errorf("err = %v, want ErrFenced", err)
			}
			for session, err := range young.Sessions(t.Context(), eventlog.Query{}) {
				if err != nil || session.ID != "s" || session.End != end || session.Damage != nil {
					t.Errorf("the young one finds %+v, %v", session, err)
				}
			}
			if secret, err := young.Secret(t.Context(), "s", "k"); err != nil || secret != nil {
				t.Errorf("the young one finds the secret %q, %v", secret, err)
			}
		})
	}
}

// fill appends until the store gives up.
func fill(t *testing.T, s *Store) (end eventlog.End, err error) {
	t.Helper()
	filler := strings.Repeat("x", 10_000)
	for range 10_000 {
		next, err := s.Append(context.Background(), "s", batch(end, filler))
		if err != nil {
			return end, err
		}
		end = next
	}
	t.Fatal("the disk is never full")
	return end, nil
}

func TestAFullDatabaseClosesTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	if err := s.write.exec("PRAGMA max_page_count = 100"); err != nil { // nobody commits now
		t.Fatal(err)
	}
	checkFull(t, s)
}

// checkFull fills a store and checks that it fails as it should, and that what
// was acknowledged is there when it is opened again.
func checkFull(t *testing.T, s *Store) {
	t.Helper()
	acknowledged, err := fill(t, s)
	if !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), "the disk is full: free some space") {
		t.Errorf("err = %v, want ErrClosed and the reason", err)
	}
	for what, err := range map[string]error{
		"a later append": second(s.Append(context.Background(), "t", batch(eventlog.End{}, "small"))),
		"a read":         second(read(t, s, "s")),
		"why it is shut": s.Err(),
	} {
		if !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), "full") {
			t.Errorf("%s: err = %v, want ErrClosed and the reason", what, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again := open(t, s.path)
	got, err := read(t, again, "s")
	if err != nil || event.Seq(len(got)) < acknowledged.Seq {
		t.Errorf("%d events, %v; %d were acknowledged", len(got), err, acknowledged.Seq)
	}
	if session, err := again.Session(context.Background(), "s"); err != nil || session.End.Seq != event.Seq(len(got)) {
		t.Errorf("the index has %d events, %v; there are %d", session.End.Seq, err, len(got))
	}
}

func second[T any](_ T, err error) error { return err }

// TestAfterWhichErrorsAStoreCloses: it goes on after an error that left nothing in doubt.
func TestAfterWhichErrorsAStoreCloses(t *testing.T) {
	some := errors.New("some error")
	for _, test := range []struct {
		name string
		err  error
		want error // nil if the store goes on
	}{
		{"none", nil, nil},
		{"an error of one op", opError{some}, nil},
		{"an error of COMMIT", commitError{some}, eventlog.ErrClosed},
		{"another process has taken over", eventlog.ErrFenced, eventlog.ErrFenced},
		{"the files are gone", eventlog.ErrGone, eventlog.ErrClosed},
	} {
		if got := closingError("p", test.err); (got == nil) != (test.want == nil) || !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
