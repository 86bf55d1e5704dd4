package notify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A process that was killed may have left a row that was delivered. It is not delivered
// again, and is never written.
func TestRowsThatAreOverAreDropped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notify.json")
	ended := row{Notification: Notification{ID: "1", Kind: Ends, SessionID: "s"}, To: toCommand, Attempts: over}
	waiting := row{Notification: Notification{ID: "2", Kind: Ends, SessionID: "s"}, To: toCommand, Due: time.Now().Add(time.Hour)}
	b, err := json.Marshal(rows{Seen: map[event.SessionID]event.Seq{"s": 3}, Rows: []row{ended, waiting}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := New(Options{File: file, Command: "exit 1"})
	if err != nil {
		t.Fatal(err)
	}
	n.deliverDue(t.Context())
	checkRows(t, file, "2")
	n.rows.Rows = append(n.rows.Rows, ended)
	if err := n.save(); err != nil {
		t.Fatal(err)
	}
	checkRows(t, file, "2")
}

// checkRows checks the ids of the rows in the file.
func checkRows(t *testing.T, file string, want ...string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in rows
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	if len(in.Rows) != len(want) {
		t.Fatalf("the file has %s, want the rows %q", b, want)
	}
	for i, r := range in.Rows {
		if r.ID != want[i] || r.Attempts < 0 {
			t.Errorf("row %d is %+v, want %s", i, r, want[i])
		}
	}
}

// The URL of a webhook is a secret.
func TestErrorsDoNotNameTheWebhook(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, address := range []string{closed.URL + "/hidden", "http://hidden:port/hidden", "other://hidden/hidden"} {
		n := &Notifier{opts: Options{Webhook: address}}
		if err := n.post(t.Context(), Notification{ID: "1"}, nil); err == nil || strings.Contains(err.Error(), "/hidden") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
