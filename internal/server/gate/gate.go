// Package gate holds network connections until their clients have shown a token.
//
// A connection that was not admitted yet
//
//   - is closed after a time,
//   - is read only up to a number of bytes; the rest is read when it was admitted,
//   - is one of a limited number. Beyond it a listener accepts no connection until one of
//     them was admitted, has ended, or is old enough to be closed for the new one.
//
// So clients without a token hold little memory and few descriptors, and a client with one
// gets in while others try. A connection that was admitted is as fast as without a gate.
package gate

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the limits of connections that were not admitted. A zero is the default.
type Limits struct {
	Bytes  int           // bytes that are read of each; 96 KiB
	Time   time.Duration // time after which each is closed; 10s
	Number int           // maximum number of them; 256
	Grace  time.Duration // time that each has before it can be closed for a new one; 1s
}

// MaxFrame is the maximum size of a message of a client that was not admitted. A message of
// this size and what belongs to it are within the default of Limits.Bytes.
const MaxFrame = 64 << 10

func (l Limits) filled() Limits {
	if l.Bytes == 0 {
		l.Bytes = MaxFrame + 32<<10
	}
	if l.Time == 0 {
		l.Time = 10 * time.Second
	}
	if l.Number == 0 {
		l.Number = 256
	}
	if l.Grace == 0 {
		l.Grace = time.Second
	}
	return l
}

// A Gate counts the connections of one door that were not admitted. It is safe for
// concurrent use.
type Gate struct {
	limits Limits

	mu      sync.Mutex
	waiting *list.List    // *Conn that were not admitted, the oldest first
	freed   chan struct{} // closed when one of them leaves; nil if nobody waits for that
}

// New returns a gate.
func New(l Limits) *Gate {
	return &Gate{limits: l.filled(), waiting: list.New()}
}

// Listen returns a listener whose connections are of the type *Conn. Closing it ends a
// pending Accept.
func (g *Gate) Listen(l net.Listener) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	return &listener{l, g, ctx, cancel}
}

type listener struct {
	net.Listener
	gate   *Gate
	open   context.Context // done when the listener is closed
	closed context.CancelFunc
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := l.gate.enter(l.open, conn)
	if c == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *listener) Close() error {
	l.closed()
	return l.Listener.Close()
}

// enter waits until there is room for a connection. It returns nil if ctx is done first.
func (g *Gate) enter(ctx context.Context, conn net.Conn) *Conn {
	c := &Conn{Conn: conn, gate: g, left: g.limits.Bytes, changed: make(chan struct{}), since: time.Now()}
	for {
		full, age := g.add(c)
		if full == nil {
			return c
		}
		timer := time.NewTimer(g.limits.Grace - age)
		select {
		case <-full:
		case <-timer.C:
			g.closeOldest()
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// add adds a connection, and returns nil. If there is no room, it returns a channel that is
// closed when there is, and how old the oldest connection is.
func (g *Gate) add(c *Conn) (full <-chan struct{}, age time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.Len() < g.limits.Number {
		c.place = g.waiting.PushBack(c)
		c.expiry = time.AfterFunc(g.limits.Time, func() { c.Close() })
		return nil, 0
	}
	if g.freed == nil {
		g.freed = make(chan struct{})
	}
	return g.freed, time.Since(g.waiting.Front().Value.(*Conn).since)
}

// closeOldest closes the oldest connection if it is old enough.
func (g *Gate) closeOldest() {
	g.mu.Lock()
	var oldest *Conn
	if first := g.waiting.Front(); first != nil && g.waiting.Len() >= g.limits.Number {
		oldest = first.Value.(*Conn)
	}
	g.mu.Unlock()
	if oldest != nil && time.Since(oldest.since) >= g.limits.Grace {
		oldest.Close()
	}
}

// remove removes a connection from those that were not admitted.
func (g *Gate) remove(c *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.place == nil {
		return
	}
	g.waiting.Remove(c.place)
	c.place = nil
	c.expiry.Stop()
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}

// A Conn is a connection behind a gate.
type Conn struct {
	net.Conn
	gate  *Gate
	since time.Time

	place  *list.Element // place among the connections that were not admitted; guarded by gate.mu
	expiry *time.Timer

	admitted atomic.Bool
	mu       sync.Mutex
	left     int           // bytes that may be read before the connection is admitted
	closed   bool          // true after Close
	deadline time.Time     // deadline of reads
	changed  chan struct{} // closed and replaced when one of the above changes
}

// Admit ends all limits of the connection. Its client has shown the token.
func (c *Conn) Admit() {
	if c.admitted.Swap(true) {
		return
	}
	c.gate.remove(c)
	c.update(func() {})
}

// Admit admits a connection if it is behind a gate, also through TLS.
func Admit(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if c, ok := conn.(*Conn); ok {
		c.Admit()
	}
}

// update changes the state of the connection and wakes a read that waits for that.
func (c *Conn) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// Read reads what the gate lets through, and otherwise waits until the connection was
// admitted.
func (c *Conn) Read(b []byte) (int, error) {
	if c.admitted.Load() || len(b) == 0 {
		return c.Conn.Read(b)
	}
	room, err := c.awaitRoom()
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b[:min(len(b), room)])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= n
	return n, err
}

// unlimited is the room of a connection that was admitted.
const unlimited = int(^uint(0) >> 1)

// awaitRoom waits until something may be read, and returns how many bytes.
func (c *Conn) awaitRoom() (int, error) {
	for {
		c.mu.Lock()
		left, closed, deadline, changed := c.left, c.closed, c.deadline, c.changed
		c.mu.Unlock()
		switch {
		case c.admitted.Load():
			return unlimited, nil
		case closed:
			return 0, net.ErrClosed
		case left > 0:
			return left, nil
		}
		if err := awaitChange(changed, deadline); err != nil {
			return 0, err
		}
	}
}

// awaitChange waits until a channel is closed, or for a deadline if there is one.
func awaitChange(changed <-chan struct{}, deadline time.Time) error {
	var late <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-late:
		return os.ErrDeadlineExceeded
	}
}

// SetDeadline sets the deadline of reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	c.update(func() { c.deadline = t })
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline sets the deadline of reads.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.update(func() { c.deadline = t })
	return c.Conn.SetReadDeadline(t)
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.gate.remove(c)
	c.update(func() { c.closed = true })
	return c.Conn.Close()
}

// ReadFrom lets the system copy a file to the connection if it can.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite closes the sending side, if the connection has one of its own.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connKey struct{}

// ConnContext is the function of that name of an http.Server whose listener has a gate.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// AdmitRequest admits the connection of an HTTP request, by the context of the request.
func AdmitRequest(ctx context.Context) {
	if conn, ok := ctx.Value(connKey{}).(net.Conn); ok {
		Admit(conn)
	}
}
