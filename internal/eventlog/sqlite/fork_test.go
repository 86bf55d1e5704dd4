package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// holds lists which texts are still in the rows of the store.
func holds(t *testing.T, s *Store, texts ...string) (held []string) {
	t.Helper()
	for _, text := range texts {
		var n int
		if err := s.reading.QueryRow("SELECT count(*) FROM records WHERE instr(body, ?)", []byte(`"`+text+`"`)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			held = append(held, text)
		}
	}
	return held
}

func remove(t *testing.T, s *Store, id event.SessionID) {
	t.Helper()
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestDeletingKeepsOnlyWhatIsShared(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	texts := []string{"p1", "p2", "p3", "p4", "p5", "p6", "a3", "b5", "c2"}
	end := add(t, s, "p", eventlog.End{}, "p1", "p2", "p3")
	add(t, s, "p", end, "p4", "p5", "p6")
	var ends []eventlog.End
	at := eventlog.End{}
	for e, err := range s.Read(t.Context(), "p", 0) {
		if err != nil {
			t.Fatal(err)
		}
		at = at.Next(e.Bytes)
		ends = append(ends, at)
	}
	for child, c := range map[event.SessionID]struct {
		parent event.SessionID
		at     int
		text   string
	}{"a": {"p", 2, "a3"}, "b": {"p", 4, "b5"}} {
		if _, err := s.Fork(t.Context(), child, c.parent, batch(ends[c.at-1], c.text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Fork(t.Context(), "c", "a", batch(ends[0], "c2")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		delete event.SessionID
		left   string
		read   map[event.SessionID]string
	}{
		{"p", "[p1 p2 p3 p4 a3 b5 c2]", map[event.SessionID]string{"a": "[p1 p2 a3]", "b": "[p1 p2 p3 p4 b5]", "c": "[p1 c2]"}},
		{"b", "[p1 p2 a3 c2]", map[event.SessionID]string{"a": "[p1 p2 a3]", "c": "[p1 c2]"}},
		{"a", "[p1 c2]", map[event.SessionID]string{"c": "[p1 c2]"}},
		{"c", "[]", nil},
	} {
		remove(t, s, c.delete)
		if got := fmt.Sprint(holds(t, s, texts...)); got != c.left {
			t.Errorf("without %s the store holds %s, want %s", c.delete, got, c.left)
		}
		for id, want := range c.read {
			if got, err := read(t, s, id); err != nil || fmt.Sprint(got) != want {
				t.Errorf("without %s, %s says %v, %v; want %s", c.delete, id, got, err, want)
			}
		}
	}
	for _, table := range []string{"sessions", "records"} {
		var n int
		if err := s.reading.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d %s are left, %v", n, table, err)
		}
	}
}

func TestWhatIsDeletedIsNotInTheFile(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	var end eventlog.End
	for i := range 50 {
		end = add(t, s, "s", end, fmt.Sprint("classified ", i, string(bytes.Repeat([]byte("x"), 1000))))
	}
	add(t, s, "other", eventlog.End{}, "public")
	if err := s.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "key", Value: []byte("classified too")}); err != nil {
		t.Fatal(err)
	}
	remove(t, s, "s")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(file, []byte("classified")) || !bytes.Contains(file, []byte("public")) {
		t.Error("what was deleted is still in the file, or what was not is gone")
	}
}
