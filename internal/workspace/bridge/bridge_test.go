package bridge_test

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A remoteWorkspace is a workspace that is served to clients over a wire.
type remoteWorkspace struct {
	wire    *breaker
	dir     string
	records string // folder of the process manager; empty if there are no processes
	token   string
	server  *tls.Config
	client  *tls.Config
	stop    func()
}

// serve serves the workspace until stop is called.
func (r *remoteWorkspace) serve(t *testing.T) {
	t.Helper()
	var m *process.Manager
	if r.records != "" {
		m = workspacetest.Manager(t, r.records)
	}
	l := r.wire.listen(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	server := &bridge.Server{Workspace: local.New(r.dir, m), Token: r.token, TLS: r.server}
	go func() { served <- server.Serve(ctx, l) }()
	r.stop = sync.OnceFunc(func() { // once: a test that fails between stop and serve stops again when it ends
		t.Helper()
		cancel()
		err := <-served
		if m != nil {
			err = errors.Join(err, m.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// connect returns a client. It has many retries with short pauses, so that tests neither
// wait long nor fail on a slow machine.
func (r *remoteWorkspace) connect(t *testing.T) *bridge.Client {
	t.Helper()
	retries := make([]time.Duration, 2000)
	for i := range retries {
		retries[i] = time.Millisecond
	}
	c, err := bridge.NewClient(bridge.ClientOptions{Dial: r.wire.dial, Token: r.token, TLS: r.client, Retries: retries})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// fixture returns the remote workspace as a fixture for workspacetest.
func (r *remoteWorkspace) fixture(t *testing.T) *workspacetest.Fixture {
	t.Helper()
	r.dir = t.TempDir()
	r.serve(t)
	t.Cleanup(func() { r.stop() })
	p := &workspacetest.Fixture{Dir: r.dir, Hold: r.wire.hold, Cut: r.wire.cut, Restart: func(t *testing.T) {
		r.stop()
		r.serve(t)
	}}
	p.Use(r.connect(t).Workspace())
	return p
}

// wires are the networks over which the tests reach a workspace.
var wires = map[string]func(t *testing.T) *remoteWorkspace{
	"Memory": func(*testing.T) *remoteWorkspace { return &remoteWorkspace{wire: newBreaker(&memory{})} },
	"Unix":   func(t *testing.T) *remoteWorkspace { return &remoteWorkspace{wire: newBreaker(unixSocket(t))} },
	"TCPWithTLSAndToken": func(t *testing.T) *remoteWorkspace {
		r := &remoteWorkspace{wire: newBreaker(loopback()), token: "a secret"}
		r.server, r.client = bridgetest.Certificates(t)
		return r
	},
}

func TestFiles(t *testing.T) {
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			workspacetest.Files(t, func(t *testing.T) *workspacetest.Fixture { return wire(t).fixture(t) })
		})
	}
}

func TestProcesses(t *testing.T) {
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			workspacetest.Processes(t, func(t *testing.T) *workspacetest.Fixture {
				r := wire(t)
				r.records = t.TempDir()
				return r.fixture(t)
			})
		})
	}
}

func TestBridgetestOver(t *testing.T) {
	for _, network := range []string{"memory", "unix", "tcp"} {
		ws := bridgetest.Over(t, network, local.New(t.TempDir(), nil))
		must(t, ws.Files.WriteFile(t.Context(), workspace.At("f"), []byte("x"), workspace.WriteOptions{}))
		if got, err := ws.Files.ReadFile(t.Context(), workspace.At("f")); string(got) != "x" || err != nil {
			t.Errorf("%s: %q, %v", network, got, err)
		}
	}
}
