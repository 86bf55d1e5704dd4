package process

import (
	"os"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// A keeper writes how a command ended, and then syncs the journal. A manager that
// reads the journal between the two must not report the end.
func TestAnEndIsNotReportedBeforeItIsSynced(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	p := m.newProc(idOf(me, "k"), startInfo{time: time.Now(), boot: m.boot})
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	line := func(kind string) []byte { return record.New(kind).WithInt("time", 1).Line() }
	synced := line(keeper.Started)
	text := append(append([]byte{}, synced...), line(keeper.Exited)...)
	if err := os.WriteFile(p.path(keeper.StateFile), append(text, line(keeper.Ended)...), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func(what string, want State, gone bool, err error) {
		t.Helper()
		if s, _ := p.now(); s.state != want || s.gone != gone || err != nil {
			t.Errorf("%s: %s, gone %v, err = %v", what, s.state, s.gone, err)
		}
	}
	look("told of the start", Running, false, p.reload(int64(len(synced))))
	look("told of the start again", Running, false, p.reload(int64(len(synced))))
	look("told of the exit", Exited, false, p.reload(int64(len(text))))
	look("having noted something", Exited, false, p.noteUnsynced(record.New(keeper.Seen)))
	if s, _ := p.now(); !s.seen {
		t.Error("it is not noted")
	}
	look("having synced", Exited, true, p.reread())
}
