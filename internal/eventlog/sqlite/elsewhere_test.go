package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// storedVersion returns the schema version that another program finds in a file.
func storedVersion(t *testing.T, path string) int {
	t.Helper()
	src, err := openSource(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	version, err := schemaVersion(t.Context(), src.conn, path)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// batchElsewhere is a batch of a session whose files and commands are on another machine.
func batchElsewhere(after eventlog.End, text string) eventlog.Batch {
	b := batch(after, text)
	b.Info = &eventlog.Info{Listed: true, Workspace: &event.Workspace{Address: "unix:/s", Identity: "one"}}
	return b
}

// A program that knows no workspaces would run the commands of such a session on its own
// machine. It knows versions up to 3.
func TestASessionElsewhereKeepsOlderProgramsOut(t *testing.T) {
	const known = 3
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	begun := add(t, s, "here", eventlog.End{}, "a")
	if version := storedVersion(t, path); version != known {
		t.Errorf("a store without such a session has version %d: older programs are kept out for nothing", version)
	}
	if _, err := s.Append(t.Context(), "here", batchElsewhere(eventlog.End{}, "b")); !errors.Is(err, eventlog.ErrConflict) {
		t.Fatalf("a session began twice: %v", err)
	}
	if version := storedVersion(t, path); version != known {
		t.Errorf("an append that was refused leaves version %d", version)
	}
	if _, err := s.Append(t.Context(), "there", batchElsewhere(eventlog.End{}, "a")); err != nil {
		t.Fatal(err)
	}
	if version := storedVersion(t, path); version <= known {
		t.Errorf("the store has version %d: an older program opens it", version)
	}
	add(t, s, "here", begun, "b")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if got, err := read(t, s, "there"); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	if version := storedVersion(t, path); version <= known {
		t.Errorf("after it was opened again the store has version %d", version)
	}
}

// Sessions that were stored before the version was raised for them are kept from older
// programs as soon as they go on, or are forked.
func TestASessionElsewhereThatGoesOnKeepsOlderProgramsOut(t *testing.T) {
	for name, goOn := range map[string]func(s *Store, end eventlog.End) error{
		"append": func(s *Store, end eventlog.End) error {
			_, err := s.Append(t.Context(), "there", batchElsewhere(end, "b"))
			return err
		},
		"fork": func(s *Store, end eventlog.End) error {
			_, err := s.Fork(t.Context(), "fork", "there", batchElsewhere(end, "b"))
			return err
		},
		"index": func(s *Store, end eventlog.End) error {
			return s.Reindex(t.Context(), "there", end, *batchElsewhere(end, "").Info)
		},
	} {
		path := filepath.Join(t.TempDir(), "abide.db")
		s := open(t, path)
		end, err := s.Append(t.Context(), "there", batchElsewhere(eventlog.End{}, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		tamper(t, path, "PRAGMA user_version = 3")
		s = open(t, path)
		if version := storedVersion(t, path); version != 3 {
			t.Errorf("%s: opened, the store has version %d", name, version)
		}
		if err := goOn(s, end); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if version := storedVersion(t, path); version != 4 {
			t.Errorf("%s: the store has version %d", name, version)
		}
	}
}

// A migration has the number of its place in the list, also one that a store gets later.
func TestEachVersionHasAMigration(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) != max(usualVersion, elsewhereVersion) {
		t.Fatalf("%q, %v", files, err)
	}
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	for i, name := range files {
		if want := fmt.Sprintf("migrations/%03d_", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s does not begin with %s", name, want)
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i >= usualVersion { // the others were run when the store was opened
			if err := s.write.exec(string(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
