package gate

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipes listener has the connections that a test dials, within the process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial returns both ends of a connection; the far end is behind the gate if it was accepted.
func (p pipes) dial() (near net.Conn) {
	near, far := net.Pipe()
	p <- far
	return near
}

// accept accepts a connection.
func accept(t *testing.T, l net.Listener) *Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Conn)
}

func TestAConnectionThatIsNotAdmittedIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := New(Limits{}), make(pipes, 1)
		near := p.dial()
		begun := time.Now()
		accept(t, g.Listen(p))
		if _, err := near.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection ended with %v", err)
		}
		if time.Since(begun) != 10*time.Second || g.Waiting() != 0 {
			t.Errorf("it ended after %v; %d wait", time.Since(begun), g.Waiting())
		}
	})
}

func TestAConnectionThatIsAdmittedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := New(Limits{}), make(pipes, 1)
		near := p.dial()
		far := accept(t, g.Listen(p))
		Admit(far)
		Admit(far) // a client may connect twice
		time.Sleep(time.Hour)
		go io.WriteString(near, "hello")
		b := make([]byte, 5)
		if _, err := io.ReadFull(far, b); err != nil || string(b) != "hello" || g.Waiting() != 0 {
			t.Errorf("%q, %v; %d wait", b, err, g.Waiting())
		}
		near.Close()
		far.Close()
	})
}

func TestReadsWaitWhenTheyHaveHadEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := New(Limits{Bytes: 10, Time: time.Hour}), make(pipes, 1)
		near := p.dial()
		far := accept(t, g.Listen(p))
		go io.WriteString(near, strings.Repeat("x", 30))
		b := make([]byte, 30)
		if n, err := io.ReadFull(far, b[:10]); n != 10 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		begun := time.Now()
		far.SetReadDeadline(begun.Add(time.Second))
		if n, err := far.Read(b); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("%d further bytes, %v, after %v", n, err, time.Since(begun))
		}
		far.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Minute, far.Admit)
		if n, err := io.ReadFull(far, b[:20]); n != 20 || err != nil {
			t.Errorf("after it was admitted: %d bytes, %v", n, err)
		}
		near.Close()
		far.Close()
	})
}

func TestAReadThatWaitsEndsWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := New(Limits{Bytes: 1}), make(pipes, 1)
		near := p.dial()
		far := accept(t, g.Listen(p))
		go io.WriteString(near, "xx")
		b := make([]byte, 1)
		io.ReadFull(far, b)
		if _, err := far.Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the read ended with %v", err)
		}
	})
}

// The oldest connections make room, but not before they have had time to be admitted.
func TestOnlySomeConnectionsWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := New(Limits{Number: 3}), make(pipes, 10)
		l := g.Listen(p)
		var near []net.Conn
		var far []*Conn
		for range 3 {
			near = append(near, p.dial())
			far = append(far, accept(t, l))
		}
		begun := time.Now()
		near = append(near, p.dial())
		far = append(far, accept(t, l)) // the first one is closed for it
		if _, err := near[0].Read(make([]byte, 1)); err != io.EOF || time.Since(begun) != time.Second || g.Waiting() != 3 {
			t.Errorf("the first connection: %v, after %v; %d wait", err, time.Since(begun), g.Waiting())
		}
		far[1].Admit() // has room for another one at once
		begun = time.Now()
		near = append(near, p.dial())
		far = append(far, accept(t, l))
		if time.Since(begun) != 0 || g.Waiting() != 3 {
			t.Errorf("after %v; %d wait", time.Since(begun), g.Waiting())
		}
		for i := range near {
			near[i].Close()
			far[i].Close()
		}
		if g.Waiting() != 0 {
			t.Errorf("%d wait in the end", g.Waiting())
		}
	})
}

func TestAnAcceptThatWaitsForRoomEndsWithItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := make(pipes, 2)
		l := New(Limits{Number: 1, Grace: time.Hour, Time: time.Hour}).Listen(p)
		near := p.dial()
		far := accept(t, l)
		left := p.dial()
		time.AfterFunc(time.Second, func() { l.Close() })
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("err = %v", err)
		}
		if _, err := left.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection that had no room: %v", err)
		}
		near.Close()
		far.Close()
	})
}

// Files are copied by the system, and the sending side can be closed alone, as without a gate.
func TestASocketBehindAGateIsStillASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far := accept(t, New(Limits{}).Listen(l))
	defer far.Close()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := far.ReadFrom(f); n != 7 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := far.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(near); string(b) != "content" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}
