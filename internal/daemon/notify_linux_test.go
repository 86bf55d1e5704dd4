package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/server/notify"
	"github.com/abide-run/abide/internal/server/rest"
)

// A hook is a webhook that fails a few times.
type hook struct {
	*httptest.Server
	got  chan notify.Notification // what was delivered
	fail chan struct{}            // holds a token for each request that is to fail
}

func newHook(t *testing.T) *hook {
	h := &hook{got: make(chan notify.Notification, 100), fail: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if want := "v1," + notify.Sign("key", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body); err != nil || r.Header.Get("webhook-signature") != want {
			t.Errorf("the signature is %q, want %q (%v)", r.Header.Get("webhook-signature"), want, err)
		}
		select {
		case <-h.fail:
			w.WriteHeader(http.StatusBadGateway)
			return
		default:
		}
		var n notify.Notification
		if err := json.Unmarshal(body, &n); err != nil || n.ID != r.Header.Get("webhook-id") {
			t.Errorf("%s: %v", body, err)
		}
		h.got <- n
	}))
	t.Cleanup(h.Close)
	return h
}

// A person is told of every question that waits and of every turn that ends: once, although
// deliveries fail and the daemon is restarted.
func TestPeopleAreToldOnce(t *testing.T) {
	h := newHook(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, func(c *daemon.Config) {
		c.Notify = daemon.Notify{
			Webhook: h.URL, SecretFile: filepath.Join(dir, "key"), Again: []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond},
			Command: `cat >> ` + filepath.Join(dir, "told") + `; echo " $ABIDE_NOTIFY_KIND $ABIDE_NOTIFY_SESSION" >> ` + filepath.Join(dir, "told"),
		}
	})
	h.fail <- struct{}{}
	h.fail <- struct{}{}
	id := s.create("Ask me: why?").ID
	n := <-h.got
	if q := s.question(); n.Kind != notify.Waits || n.SessionID != id || n.Title != "Ask me: why?" || q.SessionID != id {
		t.Errorf("%+v", n)
	}
	s.stop()
	s.open("127.0.0.1:0")
	q := s.question()
	must[rest.Accepted](s, "POST", "/questions/"+q.ID+"/answer", `{"digest":"`+q.Digest+`","answer":{"text":"because"}}`)
	n = <-h.got
	if n.Kind != notify.Ends || n.SessionID != id {
		t.Errorf("%+v", n)
	}
	s.awaitIdle(string(id))
	other := s.create("Reply with exactly: HELLO").ID
	if n = <-h.got; n.Kind != notify.Ends || n.SessionID != other {
		t.Errorf("%+v", n)
	}
	s.stop()
	s.open("127.0.0.1:0")
	last := s.create("Reply with exactly: BYE").ID // whatever was told twice comes before it
	if n = <-h.got; n.SessionID != last {
		t.Errorf("%+v", n)
	}
	text, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil || !strings.Contains(string(text), " ends "+string(last)) || strings.Count(string(text), " ends "+string(other)) != 1 || strings.Count(string(text), " waits "+string(id)) != 1 {
		t.Errorf("%s: %v", text, err)
	}
}

// The command is held as the commands of sessions are.
func TestTheCommandThatTellsIsConfined(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	told := filepath.Join(t.TempDir(), "told")
	h := newHook(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, func(c *daemon.Config) { // the webhook comes after the command
		c.Notify = daemon.Notify{Webhook: h.URL, SecretFile: key, Command: "grep NoNewPrivs /proc/self/status > " + told}
	})
	s.create("Reply with exactly: HELLO")
	<-h.got
	if text, err := os.ReadFile(told); err != nil || strings.Join(strings.Fields(string(text)), " ") != "NoNewPrivs: 1" {
		t.Errorf("%s: %v", text, err)
	}
}

// A fork is told of what happens in it, and not again of what has happened before.
func TestAForkRepeatsNoNotification(t *testing.T) {
	h := newHook(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, func(c *daemon.Config) { c.Notify = daemon.Notify{Webhook: h.URL, SecretFile: key} })
	id := s.create("Reply with exactly: HELLO").ID
	first := <-h.got
	s.awaitIdle(string(id))
	fork := must[rest.Session](s, "POST", "/sessions/"+string(id)+"/fork", `{}`).ID
	must[rest.Sent](s, "POST", "/sessions/"+string(fork)+"/messages", `{"text":"Reply with exactly: BYE"}`)
	if n := <-h.got; n.SessionID != fork || n.ID == first.ID {
		t.Errorf("%+v after %+v", n, first)
	}
}
