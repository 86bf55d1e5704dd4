package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// speak appends messages to a session.
func speak(t testing.TB, s *Store, id event.SessionID, texts ...string) {
	t.Helper()
	b := eventlog.Batch{Info: &eventlog.Info{Listed: true, Summary: "a session", Dir: "/src/project"}}
	if was, err := s.Session(t.Context(), id); err == nil {
		b.After = was.End
	}
	for _, text := range texts {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.UserMessageData{Content: text})
		if err != nil {
			t.Fatal(err)
		}
		b.Events = append(b.Events, e)
	}
	if _, err := s.Append(t.Context(), id, b); err != nil {
		t.Fatal(err)
	}
}

// found returns the sessions in which a text is found.
func found(t testing.TB, s *Store, text string) (ids []event.SessionID) {
	t.Helper()
	f, err := s.Search(t.Context(), eventlog.Search{Text: text})
	if err != nil || f.Behind != 0 {
		t.Fatalf("search for %q: %+v, %v", text, f, err)
	}
	for _, m := range f.Matches {
		ids = append(ids, m.Session.ID)
	}
	return ids
}

func finds(t *testing.T, s *Store, text string, want ...event.SessionID) {
	t.Helper()
	if got := found(t, s, text); !slices.Equal(got, want) {
		t.Errorf("%q is found in %q, want %q", text, got, want)
	}
}

// indexed returns the number of messages that match in the index alone.
func indexed(t *testing.T, path, text string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"-search")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM messages WHERE words MATCH ?", text).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTheIndexIsComparedWithTheLogWhenItIsOpened changes the log while no index is open:
// a search must find what was added, and not what was deleted, forked or replaced.
func TestTheIndexIsComparedWithTheLogWhenItIsOpened(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	speak(t, s, "kept", "apple")
	speak(t, s, "grown", "apple")
	speak(t, s, "gone", "apple pear")
	finds(t, s, "apple", "gone", "grown", "kept")
	s = openAgain(t, s)
	speak(t, s, "grown", "apple")
	speak(t, s, "new", "apple")
	s = openAgain(t, s) // the index was not filled meanwhile
	finds(t, s, "apple", "new", "grown", "grown", "gone", "kept")

	index, err := os.ReadFile(s.path + "-search")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path+"-search", index, 0o600); err != nil { // an engine that was killed has left it as it was
		t.Fatal(err)
	}
	s = open(t, s.path)
	finds(t, s, "pear")
	if n := indexed(t, s.path, "pear"); n != 0 {
		t.Errorf("the index has %d messages of a deleted session", n)
	}
}

// TestTheIndexOfAnotherLogIsNotTrusted puts the index of one store beside another.
func TestTheIndexOfAnotherLogIsNotTrusted(t *testing.T) {
	one, two := open(t, filepath.Join(t.TempDir(), "abide.db")), open(t, filepath.Join(t.TempDir(), "abide.db"))
	speak(t, one, "s", "apple")
	speak(t, one, "t", "plum")
	finds(t, one, "apple", "s")
	speak(t, two, "s", "pear", "melon")
	for _, s := range []*Store{one, two} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(one.path+"-search", two.path+"-search"); err != nil {
		t.Fatal(err)
	}
	two = open(t, two.path)
	finds(t, two, "apple")
	finds(t, two, "pear", "s")
	finds(t, two, "plum")
	if got := fmt.Sprint(indexed(t, two.path, "apple"), indexed(t, two.path, "plum"), indexed(t, two.path, "pear")); got != "0 0 1" {
		t.Errorf("the index has %s messages with apple, plum and pear; want those of its own log", got)
	}
}

// TestAFileThatIsNoIndexIsNotReplaced: a store or another file under the name of the index
// stays as it is, whatever the search wants.
func TestAFileThatIsNoIndexIsNotReplaced(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a store": func(path string) error {
			other := open(t, path)
			speak(t, other, "other", "pear")
			return other.Close()
		},
		"a database of another program": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			_, err = db.Exec("CREATE TABLE theirs (x)")
			return errors.Join(err, db.Close())
		},
		"no database": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 10000), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "abide.db")
			s := open(t, path)
			speak(t, s, "s", "apple")
			if err := put(path + "-search"); err != nil {
				t.Fatal(err)
			}
			was, err := os.ReadFile(path + "-search")
			if err != nil {
				t.Fatal(err)
			}
			finds(t, s, "apple", "s")
			if _, err := s.Search(t.Context(), eventlog.Search{Text: "apple", Rebuild: true}); err != nil {
				t.Error(err)
			}
			if is, err := os.ReadFile(path + "-search"); err != nil || !bytes.Equal(is, was) {
				t.Errorf("the file was changed: %d bytes, were %d; %v", len(is), len(was), err)
			}
		})
	}
}

// TestAnIndexWithoutAMarkIsKept: earlier versions did not mark the file as an index.
func TestAnIndexWithoutAMarkIsKept(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	speak(t, s, "s", "apple")
	finds(t, s, "apple", "s")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, s.path+"-search", "PRAGMA application_id = 0")
	s = open(t, s.path)
	speak(t, s, "s", "pear")
	finds(t, s, "pear", "s")
	if n := indexed(t, s.path, "pear"); n != 1 {
		t.Errorf("the index has %d messages with pear, want 1", n)
	}
}

func TestABrokenIndexIsMadeAnew(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 5000) },
		"a newer one": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec("PRAGMA user_version = 99")
			return err
		},
		"zeros": func(path string) error {
			b, err := os.ReadFile(path)
			clear(b[4096:])
			if err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "abide.db"))
			for i := range 20 {
				speak(t, s, event.SessionID(fmt.Sprint("s", i)), strings.Repeat("apple banana ", 50), fmt.Sprint("number", i))
			}
			finds(t, s, "number7", "s7")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := harm(s.path + "-search"); err != nil {
				t.Fatal(err)
			}
			s = open(t, s.path)
			finds(t, s, "number7", "s7")
			finds(t, s, "number8", "s8")
			speak(t, s, "s7", "more number8")
			finds(t, s, "number8", "s7", "s8")
		})
	}
}

// TestASearchNeedsNoIndex searches where no index can be written.
func TestASearchNeedsNoIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	speak(t, s, "s", "apple")
	if err := os.MkdirAll(filepath.Join(s.path+"-search", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	finds(t, s, "apple", "s")
	if err := s.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	finds(t, s, "apple")
}

func TestADeletedTextIsNotInTheIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "abide.db"))
	for i := range 20 {
		speak(t, s, event.SessionID(fmt.Sprint("s", i)), "apple banana cherry "+strconv.Itoa(i))
	}
	speak(t, s, "gone", "xylophone99")
	finds(t, s, "xylophone99", "gone")
	s = openAgain(t, s)
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || bytes.Contains(b, []byte("xylophone99")) || bytes.Contains(b, []byte("ylophone9")) {
			t.Errorf("%s has the deleted text, %v", f.Name(), err)
		}
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

// TestAnImpatientSearchSaysWhatItLacks has no time to fill the index.
func TestAnImpatientSearchSaysWhatItLacks(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	s.search.touched.closed = true // nothing fills the index beside the searches
	const sessions = 3*partSessions + 1
	for i := range sessions {
		speak(t, s, event.SessionID(fmt.Sprint("s", i)), "apple")
	}
	for want := sessions - partSessions; want > 0; want -= partSessions {
		f, err := s.Search(t.Context(), eventlog.Search{Text: "apple", Patience: time.Nanosecond, Max: 1000})
		if err != nil || f.Behind != want || len(f.Matches) != sessions-want {
			t.Errorf("found %d, behind %d, %v; want %d behind", len(f.Matches), f.Behind, err, want)
		}
	}
	f, err := s.Search(t.Context(), eventlog.Search{Text: "apple", Patience: time.Nanosecond, Max: 1000})
	if err != nil || f.Behind != 0 || len(f.Matches) != sessions {
		t.Errorf("found %d, behind %d, %v; want all", len(f.Matches), f.Behind, err)
	}
}

// TestTheIndexIsFilledBesideAppends checks that appends leave the index alone, and that
// it is filled nevertheless: when the store is quiet, or was not for a long time.
func TestTheIndexIsFilledBesideAppends(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	s.search.delay = time.Hour // the timer does not fire while the test runs
	speak(t, s, "s", "apple")
	if _, err := os.Stat(s.path + "-search"); err == nil {
		t.Error("an append has made the index")
	}
	touched := &s.search.touched
	fill := func() { // does what the timer does
		if !touched.timer.Stop() {
			t.Fatal("nothing would fill the index")
		}
		s.search.fillInBackground()
	}
	fill()
	if _, err := os.Stat(s.path + "-search"); err == nil {
		t.Error("the index is made while the store is busy")
	}
	touched.last = touched.last.Add(-time.Hour)
	speak(t, s, "s", "pear")
	fill()
	if _, err := os.Stat(s.path + "-search"); err == nil {
		t.Error("the index is made although the store is busy again")
	}
	touched.last = touched.last.Add(-time.Hour)
	fill()
	if n := indexed(t, s.path, "apple"); n != 1 {
		t.Errorf("the index has %d messages, want 1", n)
	}
	speak(t, s, "t", "apple")
	touched.first = touched.first.Add(-fillLatest)
	fill()
	if n := indexed(t, s.path, "apple"); n != 2 {
		t.Errorf("the index has %d messages, want 2", n)
	}
}

// TestWhatCouldNotBeTakenInIsNotForgotten makes the index unable to take in a change once, as
// a disk that fails for a moment does.
func TestWhatCouldNotBeTakenInIsNotForgotten(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	s.search.delay = time.Hour // the timer does not fire while the test runs
	finds(t, s, "apple")
	speak(t, s, "s", "apple")
	if err := s.search.exec("ALTER TABLE indexed RENAME TO away"); err != nil {
		t.Fatal(err)
	}
	s.search.touched.timer.Stop()
	s.search.touched.last = time.Time{}
	s.search.fillInBackground()
	tamper(t, s.path+"-search", "ALTER TABLE away RENAME TO indexed")
	finds(t, s, "apple", "s")
}

// TestACommonWordIsFoundInTheNewestSessions searches for words with more matches than are
// sorted, in new sessions and in old ones alone. Reading every session finds the same.
func TestACommonWordIsFoundInTheNewestSessions(t *testing.T) {
	s := openUnsynced(t, filepath.Join(t.TempDir(), "abide.db"))
	const old, recentSessions = maxSorted/3 + 1, maxProbed + 50
	for i := range old + recentSessions {
		word := "old"
		if i >= old {
			word = "new new"
		}
		speak(t, s, event.SessionID(fmt.Sprint("s", i)), "common "+word, "common", word+" common", "common last")
	}
	unlisted(t, s, "unlisted", "common old new")
	speak(t, s, "gone", "common old new")
	must(t, s.Delete(t.Context(), "gone"))
	speak(t, s, "s7", "common again") // an old session that is the newest now
	for _, q := range []eventlog.Search{
		{Text: "common"}, {Text: "common", Max: 1}, {Text: "common", Max: 3 * recentSessions}, {Text: "common", Max: 1 << 20},
		{Text: "comm*"}, {Text: `"old common" last`}, {Text: "old"}, {Text: "old", Max: 5}, {Text: "new common"}, {Text: "again"}, {Text: "none"},
	} {
		want, err := eventlog.Scan(t.Context(), s, q)
		must(t, err)
		got, err := s.Search(t.Context(), q)
		must(t, err)
		if show(got) != show(want) {
			t.Errorf("%+v: found %s, want %s", q, show(got), show(want))
		}
	}
}

// show returns the places of what was found.
func show(f eventlog.Found) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d matches, more: %v", len(f.Matches), f.More)
	for _, m := range f.Matches {
		fmt.Fprintf(&b, " %s/%d", m.Session.ID, m.Event.Seq)
	}
	return b.String()
}

// unlisted appends a message to a session that is not listed, such as that of an agent.
func unlisted(t *testing.T, s *Store, id event.SessionID, text string) {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.UserMessageData{Content: text})
	must(t, err)
	_, err = s.Append(t.Context(), id, eventlog.Batch{Events: []event.Event{e}, Info: &eventlog.Info{}})
	must(t, err)
}

// TestALongSessionIsTakenInByParts: whoever closes the store waits for the part that is under
// way, and what was taken in before is not taken in again.
func TestALongSessionIsTakenInByParts(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	s.search.delay = time.Hour // the timer does not fire while the test runs
	finds(t, s, "apple")
	long := strings.Repeat("word ", partBytes/5/4)
	speak(t, s, "long", "apple "+long, "apple "+long, "apple "+long)
	speak(t, s, "long", "apple "+long, "apple "+long, "apple "+long, "apple "+long, "pear")
	speak(t, s, "short", "apple")
	parts := 0
	for ; parts == 0 || len(s.search.stale) > 0; parts++ {
		must(t, s.search.fillPart())
		if n := indexed(t, s.path, "apple"); n > 5*(parts+1) {
			t.Fatalf("%d messages were taken in by %d parts", n, parts+1)
		}
	}
	if parts < 2 {
		t.Errorf("everything was taken in by %d parts", parts)
	}
	if got := fmt.Sprint(indexed(t, s.path, "apple"), indexed(t, s.path, "pear")); got != "8 1" {
		t.Errorf("the index has %s messages with apple and pear, want 8 and 1", got)
	}
	speak(t, s, "long", "plum")
	finds(t, s, "plum", "long")
}

// TestClosingDoesNotTakeInWhatTheIndexLacks: a store with many changed sessions is closed
// without them, and the next process takes them in.
func TestClosingDoesNotTakeInWhatTheIndexLacks(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	s.search.delay = time.Hour // the timer does not fire while the test runs
	speak(t, s, "first", "apple")
	finds(t, s, "apple", "first")
	for i := range 2 * maxCompared {
		s.search.touch(event.SessionID(fmt.Sprint("none", i))) // more changes than are looked at one by one
	}
	speak(t, s, "second", "apple")
	s.queue.Shut(eventlog.ErrClosed) // as Close does, while the index is being filled
	if err := s.search.fillPart(); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("a store that is being closed fills its index: %v", err)
	}
	must(t, s.Close())
	if n := indexed(t, s.path, "apple"); n != 1 {
		t.Errorf("the index has %d messages, want 1", n)
	}
	finds(t, open(t, s.path), "apple", "second", "first")
}
