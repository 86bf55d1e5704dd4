package notify

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A roundTripper is an http.RoundTripper that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A webhook that does not answer holds up only what is for itself: commands come first, and before the
// next attempt it is looked again whether there is something for them.
func TestASlowWebhookHoldsUpNobodyElse(t *testing.T) {
	before := client.Transport
	t.Cleanup(func() { client.Transport = before })
	synctest.Test(t, func(t *testing.T) {
		var order []string
		client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			order = append(order, toWebhook)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		n, err := New(Options{File: filepath.Join(t.TempDir(), "notify.json"), Command: "true", Webhook: "http://127.0.0.1:1", Start: func(c *exec.Cmd) error {
			order = append(order, toCommand)
			return c.Start()
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"1", "2"} {
			for _, to := range []string{toWebhook, toCommand} {
				n.rows.Rows = append(n.rows.Rows, row{Notification: Notification{ID: id, Kind: Ends, SessionID: "s"}, To: to, Due: time.Now()})
			}
		}
		next := n.deliverDue(t.Context())
		if want := []string{toCommand, toCommand, toWebhook}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
		if next.After(time.Now()) || len(n.rows.Rows) != 2 {
			t.Errorf("the next attempt is at %v, and %d rows are left", next, len(n.rows.Rows))
		}
	})
}
