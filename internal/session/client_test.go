package session_test

import (
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// Clients come and go at the same time. The race detector says whether the session
// looks at its clients while another one leaves.
func TestClientsComeAndGoAtTheSameTime(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 300 {
				c := &session.Client{Viewer: sessiontest.NewViewer()}
				if _, err := b.Host.Attach(t.Context(), "s", c, 0); err != nil {
					t.Error(err)
				}
				b.Host.Detach("s", c, false)
			}
		})
	}
	clients.Wait()
}
