package bridgetest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
)

// A SilentWire is a network in memory on which nothing arrives any more once it is silent, in
// both directions, while connections can still be made.
type SilentWire struct {
	Memory
	Greets bool          // whether the beginning of a connection still arrives when the wire is silent
	silent chan struct{} // closed when the wire is silent
}

// NewSilentWire returns a wire that is not silent yet.
func NewSilentWire() *SilentWire { return &SilentWire{silent: make(chan struct{})} }

// Silence makes the wire silent, for good.
func (w *SilentWire) Silence() { close(w.silent) }

// Dial connects to the listener.
func (w *SilentWire) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := w.Memory.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &silentConn{Conn: conn, silent: w.silent, dead: make(chan struct{})}
	if w.Greets {
		c.greeted = make(chan struct{})
		c.silent = c.greeted
	}
	return c, nil
}

// A silentConn is a connection of a SilentWire. What is written to it when it is silent
// vanishes, as in the buffers of a machine.
type silentConn struct {
	net.Conn
	silent  <-chan struct{}
	greeted chan struct{} // closed by the first thing that is read; nil if that does not matter
	once    sync.Once
	dead    chan struct{}
}

func (c *silentConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		select {
		case <-c.silent:
			switch {
			case err == nil:
				continue
			case errors.Is(err, os.ErrDeadlineExceeded):
				return 0, err
			}
			<-c.dead // the end of the connection does not arrive either
			return 0, net.ErrClosed
		default:
			if c.greeted != nil {
				close(c.greeted)
			}
			return n, err
		}
	}
}

func (c *silentConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return 0, net.ErrClosed
	case <-c.silent:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.dead) })
	return c.Conn.Close()
}
