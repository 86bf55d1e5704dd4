package bridge_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
)

// A wire makes listeners at one address, one after the other, and connections to the
// present one.
type wire interface {
	listen(t *testing.T) net.Listener
	dial(ctx context.Context) (net.Conn, error)
}

// sockets is a wire of real sockets: a Unix socket, or TCP on this machine.
type sockets struct {
	network, address string
	at               atomic.Value // string: where the last listener listens
}

func unixSocket(t *testing.T) *sockets {
	return &sockets{network: "unix", address: filepath.Join(t.TempDir(), "sock")}
}

// loopback returns a wire of TCP. Each listener gets a new port: between two listeners
// another program could take the port of the first.
func loopback() *sockets { return &sockets{network: "tcp", address: "127.0.0.1:0"} }

func (s *sockets) listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen(s.network, s.address)
	must(t, err)
	s.at.Store(l.Addr().String())
	return l
}

func (s *sockets) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, s.network, s.at.Load().(string))
}

// memory is a wire in memory.
type memory struct{ bridgetest.Memory }

func (m *memory) listen(*testing.T) net.Listener { return m.Listen() }

func (m *memory) dial(ctx context.Context) (net.Conn, error) { return m.Dial(ctx) }

// A breaker is a wire whose connections a test can delay and break.
type breaker struct {
	wire
	mu    sync.Mutex
	held  bool
	conns map[*breakableConn]bool
}

// breakableConn is a connection of a breaker.
type breakableConn struct {
	net.Conn
	b    *breaker
	dead chan struct{}
	once sync.Once
}

func newBreaker(w wire) *breaker { return &breaker{wire: w, conns: make(map[*breakableConn]bool)} }

func (b *breaker) dial(ctx context.Context) (net.Conn, error) {
	c, err := b.wire.dial(ctx)
	if err != nil {
		return nil, err
	}
	conn := &breakableConn{Conn: c, b: b, dead: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[conn] = true
	return conn, nil
}

// hold delays everything that is sent to clients.
func (b *breaker) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = true
}

// cut breaks all connections. New connections work.
func (b *breaker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = false
	for c := range b.conns {
		c.once.Do(func() { close(c.dead) })
		_ = c.Conn.Close()
	}
	clear(b.conns)
}

func (c *breakableConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.b.mu.Lock()
	lost := c.b.held || !c.b.conns[c] // what arrives while the connection is cut is lost, too
	c.b.mu.Unlock()
	if lost {
		<-c.dead
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *breakableConn) Close() error {
	c.once.Do(func() { close(c.dead) })
	return c.Conn.Close()
}
