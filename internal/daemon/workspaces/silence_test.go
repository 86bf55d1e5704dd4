package workspaces

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// Whoever can do without a workspace does not wait for one that has become silent much longer
// than for one that answers, and whoever asks next does not wait at all.
func TestASilentWorkspaceIsNotWaitedForLong(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		most  time.Duration
	}{
		"it has answered before": {true, 4 * minUsual},
		"it never has":           {false, signTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := bridgetest.NewSilentWire()
				ctx, stop := context.WithCancel(t.Context())
				served, l := make(chan error), w.Listen()
				server := &bridge.Server{Workspace: local.New(t.TempDir(), nil)}
				go func() { served <- server.Serve(ctx, l) }()
				client, err := bridge.NewClient(bridge.ClientOptions{Dial: w.Dial, Patience: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				at := &Connection{client: client, workspace: event.Workspace{Name: "box"}}
				if c.known {
					if _, err := at.Env(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if err := at.AnswersSoon(t.Context()); err != nil {
						t.Error(err)
					}
				}
				w.Silence()
				for _, most := range []time.Duration{c.most, 0} {
					began := time.Now()
					if err := at.AnswersSoon(t.Context()); !errors.Is(err, workspace.ErrAway) || time.Since(began) != most {
						t.Errorf("after %s, want %s: %v", time.Since(began), most, err)
					}
				}
				time.Sleep(time.Minute) // the connection counts as dead then
				if err := client.Close(); err != nil {
					t.Error(err)
				}
				stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
