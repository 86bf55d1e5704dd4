package daemon_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// An engine was killed when the store had deleted a session, and its commands and its
// folder were still there. The next engine ends and removes them.
func TestTheRestOfADeletedSessionIsRemovedByTheNextEngine(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	n := open(t, dir)
	for _, id := range []string{"s", "other"} {
		connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": id}, nil)
		if err := os.MkdirAll(filepath.Join(dir, "sessions", id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	url := serveHTTP(t, n)
	if status, body := ask(t, http.MethodPost, url+"/start", "Bearer secret", "s", `{"command":"exec 3>`+fifo+`; exec sleep 1000"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	held, err := os.Open(fifo) // the command has it open, until it ends
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	n.Close()

	deleteFromStore(t, dir, "s")
	mark := filepath.Join(dir, "deletions")
	if err := os.MkdirAll(mark, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"s.json": `{"session":"s"}`, "other.json": `{"session":"other"}`, ".half": "{", "bad.json": "{"} {
		if err := os.WriteFile(filepath.Join(mark, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n = open(t, dir)
	connect(t, n) // a client starts the engine
	if _, err := io.ReadAll(held); err != nil {
		t.Fatal(err)
	}
	n.Close()
	for path, there := range map[string]bool{"sessions/s": false, "sessions/other": true, "deletions/s.json": false, "deletions/other.json": false, "deletions/.half": false} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != there {
			t.Errorf("%s: %v, want it to be there: %v", path, err, there)
		}
	}
}

// deleteFromStore deletes a session from the database alone.
func deleteFromStore(t *testing.T, dir string, id event.SessionID) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "abide.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// A deletion that goes well leaves nothing to be finished.
func TestADeletionLeavesNothingToBeFinished(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	p := connect(t, n)
	p.must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	p.must(api.SessionDelete, map[string]any{"sessionId": "s"}, nil)
	if left, err := os.ReadDir(filepath.Join(dir, "deletions")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, err = %v", left, err)
	}
}

// An older copy of the log was put back: records of commands are left whose sessions it does
// not have. They do not keep anybody from seeing the commands of all others.
func TestCommandsOfASessionThatIsNotStoredDoNotHideOthers(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	url := serveHTTP(t, n)
	for _, id := range []string{"kept", "lost"} {
		connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": id}, nil)
		if status, body := ask(t, http.MethodPost, url+"/start", "Bearer secret", id, `{"command":"true"}`); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	n.Close()
	deleteFromStore(t, dir, "lost")
	var r api.TasksResult
	connect(t, open(t, dir)).must(api.Tasks, api.TasksParams{All: true}, &r)
	if len(r.Tasks) != 1 || r.Tasks[0].SessionID != "kept" {
		t.Errorf("the commands are %+v", r.Tasks)
	}
}
