package bridgetest

import (
	"context"
	"net"
	"sync"
)

// A SilentWire is a network in memory on which nothing arrives any more once it is silent, in
// both directions, while connections can still be made.
type SilentWire struct {
	Memory
	silent chan struct{} // closed when the wire is silent
}

// NewSilentWire returns a wire that is not silent yet.
func NewSilentWire() *SilentWire { return &SilentWire{silent: make(chan struct{})} }

// Silence makes the wire silent, for good.
func (w *SilentWire) Silence() { close(w.silent) }

// Dial connects to the listener.
func (w *SilentWire) Dial(ctx context.Context) (net.Conn, error) {
	select {
	case <-w.silent:
		near, far := net.Pipe()
		return &silentConn{Conn: near, wire: w, far: far, dead: make(chan struct{})}, nil
	default:
	}
	conn, err := w.Memory.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &silentConn{Conn: conn, wire: w, dead: make(chan struct{})}, nil
}

// A silentConn is a connection of a SilentWire. What is written to it vanishes, as in the
// buffers of a machine.
type silentConn struct {
	net.Conn
	wire *SilentWire
	far  net.Conn // end that nobody uses; may be nil
	once sync.Once
	dead chan struct{}
}

func (c *silentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.wire.silent:
		if err == nil {
			<-c.dead
			return 0, net.ErrClosed
		}
	default:
	}
	return n, err
}

func (c *silentConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return 0, net.ErrClosed
	case <-c.wire.silent:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.dead) })
	if c.far != nil {
		_ = c.far.Close()
	}
	return c.Conn.Close()
}
