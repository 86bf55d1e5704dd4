package bridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// deadTime is how long it may take until a connection counts as dead.
const deadTime = 20 * time.Second

// A request on a wire that becomes silent ends when the connection counts as dead and the
// patience is at its end, whatever it asks for.
func TestARequestOnASilentWireEndsInTime(t *testing.T) {
	for what, ask := range requests {
		for _, patience := range []time.Duration{10 * time.Second, time.Minute} {
			t.Run(what+", "+patience.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := bridgetest.NewSilentWire()
					ctx, stop := context.WithCancel(t.Context())
					served, l := make(chan error), w.Listen()
					server := &bridge.Server{Workspace: local.New(t.TempDir(), nil)}
					go func() { served <- server.Serve(ctx, l) }()
					c := client(t, bridge.ClientOptions{Dial: w.Dial, Patience: patience})
					_, err := c.Describe(t.Context())
					must(t, err)
					w.Silence()
					began := time.Now()
					err = ask(t.Context(), c)
					took := time.Since(began)
					if !workspace.Unusable(err) || took > deadTime+patience+5*time.Second {
						t.Errorf("after %s: %v", took, err)
					}
					must(t, c.Close())
					stop()
					must(t, <-served)
				})
			})
		}
	}
}

// A wire that becomes silent again and again, as soon as a workspace was greeted on it, is not
// tried as often as one that is cut.
func TestARequestOnAWireThatIsSilentAgainAndAgainEndsInTime(t *testing.T) {
	for what, ask := range requests {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := bridgetest.NewSilentWire()
				w.Greets = true
				ctx, stop := context.WithCancel(t.Context())
				served, l := make(chan error), w.Listen()
				server := &bridge.Server{Workspace: local.New(t.TempDir(), nil)}
				go func() { served <- server.Serve(ctx, l) }()
				c := client(t, bridge.ClientOptions{Dial: w.Dial, Patience: 30 * time.Second})
				began := time.Now()
				err := ask(t.Context(), c)
				if took := time.Since(began); !errors.Is(err, workspace.ErrLost) || took > 2*deadTime+5*time.Second {
					t.Errorf("after %s: %v", took, err)
				}
				must(t, c.Close())
				stop()
				must(t, <-served)
			})
		})
	}
}
