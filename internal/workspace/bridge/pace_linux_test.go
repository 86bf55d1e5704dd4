package bridge_test

import (
	"context"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A keptListener keeps the last connection that it has accepted.
type keptListener struct {
	net.Listener
	last chan *net.TCPConn
}

func (l keptListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		l.last <- tcp
	}
	return c, err
}

// Neither end of a connection of this machine with itself paces what it sends.
func TestALoopbackConnectionIsNotPaced(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	kept := keptListener{listener, make(chan *net.TCPConn, 16)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: local.New(t.TempDir(), nil)}).Serve(ctx, kept) }()
	defer func() {
		cancel()
		must(t, <-served)
	}()
	c, err := bridge.NewClient(bridge.ClientOptions{Address: "tcp:" + listener.Addr().String()})
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Workspace().Files.Stat(t.Context(), workspace.At("."))
	must(t, err)
	near := <-kept.last
	if got := congestionControl(t, near); got != "reno" {
		t.Errorf("the server sends by %s", got)
	}
	dial, err := bridge.Dialer(bridge.ClientOptions{Address: "tcp:" + listener.Addr().String()})
	must(t, err)
	far, err := dial(t.Context())
	must(t, err)
	defer func() { _ = far.Close() }()
	if got := congestionControl(t, far.(*net.TCPConn)); got != "reno" {
		t.Errorf("the client sends by %s", got)
	}
}

// congestionControl returns what decides when a connection sends.
func congestionControl(t *testing.T, c *net.TCPConn) (name string) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) }))
	must(t, err)
	return name
}
