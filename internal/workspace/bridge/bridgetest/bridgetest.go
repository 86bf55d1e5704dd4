// Package bridgetest connects a test to its workspace over a bridge.
package bridgetest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// Over serves a workspace and returns a client's view of it, over the network "memory"
// or "unix". Both ends are closed at the end of the test.
func Over(t *testing.T, network string, ws workspace.Workspace) workspace.Workspace {
	t.Helper()
	l, o := connection(t, network)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: ws}).Serve(ctx, l) }()
	c, err := bridge.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c.Workspace()
}

func connection(t *testing.T, network string) (net.Listener, bridge.ClientOptions) {
	t.Helper()
	if network == "memory" {
		m := new(Memory)
		return m.Listen(), bridge.ClientOptions{Dial: m.Dial}
	}
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen(network, path)
	if err != nil {
		t.Fatal(err)
	}
	return l, bridge.ClientOptions{Address: network + ":" + path}
}

// Memory is a network in memory, with one listener at a time.
type Memory struct {
	mu  sync.Mutex
	now *listener
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a new listener, to which Dial connects from now on.
func (m *Memory) Listen() net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return m.now
}

// Dial connects to the listener.
func (m *Memory) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.Lock()
	l := m.now
	m.mu.Unlock()
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
