package bridge_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// serveAs serves a folder as the workspace with an identity, until the returned function
// is called.
func serveAs(t *testing.T, m *bridgetest.Memory, identity, dir string) (stop func()) {
	t.Helper()
	server := &bridge.Server{Workspace: local.New(dir, nil), About: workspace.Description{
		Identity: identity, Version: "1.2.3", Dir: dir, Env: []string{"PATH=/bin", "X=\xff"},
	}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served, l := make(chan error, 1), m.Listen()
	go func() { served <- server.Serve(ctx, l) }()
	return func() {
		cancel()
		must(t, <-served)
	}
}

func client(t *testing.T, o bridge.ClientOptions) *bridge.Client {
	t.Helper()
	c, err := bridge.NewClient(o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestAWorkspaceDescribesItself(t *testing.T) {
	m, dir := new(bridgetest.Memory), t.TempDir()
	defer serveAs(t, m, "one", dir)()
	d, err := client(t, bridge.ClientOptions{Dial: m.Dial, Identity: "one"}).Describe(t.Context())
	if err != nil || d.Identity != "one" || d.Version != "1.2.3" || d.Dir != dir || time.Since(d.Time) > time.Minute || d.DiskFree <= 0 || d.DiskSize < d.DiskFree {
		t.Errorf("%+v, %v", d, err)
	}
	if len(d.Env) != 2 || d.Env[1] != "X=\xff" {
		t.Errorf("environment %q", d.Env)
	}
}

func TestAnotherWorkspaceRefusesEveryRequest(t *testing.T) {
	m, dir := new(bridgetest.Memory), t.TempDir()
	stop := serveAs(t, m, "one", dir)
	c := client(t, bridge.ClientOptions{Dial: m.Dial, Identity: "one"})
	ws := c.Workspace()
	must(t, ws.Files.WriteFile(t.Context(), workspace.At("f"), []byte("x"), workspace.WriteOptions{}))
	stop()
	defer serveAs(t, m, "two", dir)()
	_, read := ws.Files.ReadFile(t.Context(), workspace.At("f"))
	write := ws.Files.WriteFile(t.Context(), workspace.At("f"), []byte("y"), workspace.WriteOptions{})
	_, opened := ws.Files.Open(t.Context(), workspace.At("f"), 0)
	draft, created := ws.Files.Create(t.Context(), workspace.At("g"), workspace.WriteOptions{})
	if created == nil {
		created = draft.Commit()
	}
	_, described := c.Describe(t.Context())
	for i, err := range []error{read, write, opened, created, described} {
		if !errors.Is(err, workspace.ErrOther) || !workspace.Unusable(err) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "f")); string(b) != "x" || err != nil {
		t.Errorf("it was changed: %q, %v", b, err)
	}
}

func TestARequestWaitsForAWorkspaceThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, back := new(bridgetest.Memory), make(chan struct{})
		o := bridge.ClientOptions{Patience: time.Minute, Dial: func(ctx context.Context) (net.Conn, error) {
			select {
			case <-back:
				return m.Dial(ctx)
			default:
				return nil, errors.New("nobody is there")
			}
		}}
		c := client(t, o)
		stop := serveAs(t, m, "one", t.TempDir())
		defer stop()
		began := time.Now()
		err := c.Workspace().Files.WriteFile(t.Context(), workspace.At("f"), []byte("x"), workspace.WriteOptions{})
		if waited := time.Since(began); !errors.Is(err, workspace.ErrAway) || errors.Is(err, workspace.ErrLost) || waited < 58*time.Second || waited > time.Minute {
			t.Errorf("after %s: %v", waited, err)
		}
		if _, err := c.Describe(bridge.WithoutPatience(t.Context())); !errors.Is(err, workspace.ErrAway) || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		go func() {
			time.Sleep(40 * time.Second)
			close(back)
		}()
		must(t, c.Workspace().Files.WriteFile(t.Context(), workspace.At("f"), []byte("x"), workspace.WriteOptions{}))
		must(t, c.Close())
	})
}

func TestARequestThatIsCancelledDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, bridge.ClientOptions{Patience: time.Hour, Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("nobody is there") }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Describe(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		must(t, c.Close()) // ends the attempts that go on beside the request
	})
}

// A request that was sent may have had an effect, also if it is repeated in vain: it is
// not true that the workspace was not asked.
func TestARequestThatWasSentIsLostAndNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		wire := newBreaker(m)
		var gone atomic.Bool
		stop := serveAs(t, &m.Memory, "one", t.TempDir())
		defer stop()
		c := client(t, bridge.ClientOptions{Patience: time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("nobody is there")
			}
			return wire.dial(ctx)
		}})
		_, err := c.Describe(t.Context())
		must(t, err)
		wire.hold()
		made := make(chan error)
		go func() { made <- c.Workspace().Files.Mkdir(t.Context(), workspace.At("d")) }()
		synctest.Wait()
		gone.Store(true)
		wire.cut()
		if err := <-made; !errors.Is(err, workspace.ErrLost) || errors.Is(err, workspace.ErrAway) {
			t.Errorf("%v", err)
		}
		must(t, c.Close())
	})
}
