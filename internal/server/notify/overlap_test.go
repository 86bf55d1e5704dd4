package notify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// Another session changed a moment later and was read before the engine was killed, or the
// clock was set back. What was not read is told once by the next engine, and not by the one after it.
func TestWhatWasNotReadInOrderIsTold(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: done"})
	v.Await(t, 0, event.SessionIdle)
	file := filepath.Join(t.TempDir(), "notify.json")
	before, err := json.Marshal(rows{Since: time.Now().Add(-time.Hour), Read: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n, err := New(Options{Host: b.Host, File: file, Command: "exit 1", Kinds: []string{Ends}})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.findChanged(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.readChanged(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(n.rows.Rows) != 1 || n.rows.Rows[0].SessionID != "s" {
			t.Errorf("the rows are %+v, want one", n.rows.Rows)
		}
	}
}
