package upgradetest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A log is a session of a kept folder.
type log struct {
	index  eventlog.Session
	events []event.Event
}

// eachFolder runs a test for each kept folder, by its name and the archive's path.
func eachFolder(t *testing.T, test func(t *testing.T, name, archive string)) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join("testdata", "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range scenarios {
		if !slices.Contains(archives, filepath.Join("testdata", name+".tar.gz")) {
			t.Errorf("the scenario %s has no folder in testdata: write it with -run TestWriteFolders -write BINARY -scenario %s", name, name)
		}
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		if scenarios[name] == nil {
			t.Errorf("%s has no scenario in write_test.go: add the one that has written it", archive)
		}
		t.Run(name, func(t *testing.T) { test(t, name, archive) })
	}
}

// openStore opens the store of a folder.
func openStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "home", "abide.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// readLogs reads all sessions of a kept folder, sorted by their ids. To read is to
// verify.
func readLogs(t *testing.T, archive string) []log {
	t.Helper()
	return readStore(t, openStore(t, unpack(t, archive)))
}

func readStore(t *testing.T, store eventlog.Store) []log {
	t.Helper()
	var logs []log
	for index, err := range store.Sessions(t.Context(), eventlog.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		l := log{index: index}
		for e, err := range store.Read(t.Context(), index.ID, 0) {
			if err != nil {
				t.Fatalf("session %s: %v", index.ID, err)
			}
			l.events = append(l.events, e)
		}
		logs = append(logs, l)
	}
	if len(logs) == 0 {
		t.Fatal("the folder has no sessions")
	}
	slices.SortFunc(logs, func(a, b log) int { return strings.Compare(string(a.index.ID), string(b.index.ID)) })
	return logs
}

func TestEverySessionOfAnOldFolderVerifiesAndLoads(t *testing.T) {
	eachFolder(t, func(t *testing.T, _, archive string) {
		for _, l := range readLogs(t, archive) {
			if l.index.Damage != nil {
				t.Errorf("session %s is quarantined: %v", l.index.ID, l.index.Damage)
			}
			if last := event.Seq(len(l.events)); last != l.index.End.Seq {
				t.Errorf("session %s has %d events, its index says %d", l.index.ID, last, l.index.End.Seq)
			}
			s := loadState(t, l.index.ID, l.events)
			if s.Seq != l.index.End.Seq || (s.Active() && !l.index.Info.Active) {
				t.Errorf("session %s was loaded to %d (active: %v), its index says %d (active: %v)",
					l.index.ID, s.Seq, s.Active(), l.index.End.Seq, l.index.Info.Active)
			}
		}
	})
}

func loadState(t *testing.T, id event.SessionID, events []event.Event) *turn.State {
	t.Helper()
	s := turn.New(id)
	if err := s.Load(events); err != nil {
		t.Fatalf("session %s up to %d: %v", id, len(events), err)
	}
	return s
}
