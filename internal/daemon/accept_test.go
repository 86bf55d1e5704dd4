package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// A failingListener listener fails a few times. Then it goes on as the one that it is
// made of, or has one client if there is none.
type failingListener struct {
	net.Listener
	errs []error
}

func (l *failingListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	if l.Listener != nil {
		return l.Listener.Accept()
	}
	here, there := net.Pipe()
	return here, there.Close()
}

func (l *failingListener) Addr() net.Addr { return &net.TCPAddr{} }

// failing is an error as a listener has it.
func failing(e error) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", e)}
}

func TestAcceptingOutlivesWhatPasses(t *testing.T) {
	many := make([]error, 20)
	for i := range many {
		many[i] = failing(syscall.EMFILE)
	}
	for name, test := range map[string]struct {
		errs []error
		want error
		wait time.Duration
	}{
		"nothing wrong":           {},
		"too many files":          {errs: []error{failing(syscall.EMFILE), failing(syscall.ENFILE)}, wait: 3 * acceptPause},
		"a client that went away": {errs: []error{failing(syscall.ECONNABORTED)}, wait: acceptPause},
		"for long":                {errs: many, wait: 255*acceptPause + 12*maxAcceptPause},
		"closed":                  {errs: []error{net.ErrClosed}, want: net.ErrClosed},
		"broken":                  {errs: []error{failing(syscall.EBADF)}, want: syscall.EBADF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				conn, err := accept(t.Context(), &failingListener{errs: test.errs}, slog.New(slog.DiscardHandler))
				if !errors.Is(err, test.want) || (conn == nil) != (test.want != nil) {
					t.Fatalf("accept gave %v, %v; want the error %v", conn, err, test.want)
				}
				if conn != nil {
					conn.Close()
				}
				if waited := time.Since(begun); waited != test.wait {
					t.Errorf("it waited %v, want %v", waited, test.wait)
				}
			})
		})
	}
}

func TestAcceptingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := accept(ctx, &failingListener{errs: []error{failing(syscall.EMFILE)}}, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
	})
}

func TestAServerGoesOnAfterItHadTooManyOpenFiles(t *testing.T) {
	n, err := Open(t.Context(), Config{Dir: t.TempDir(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- n.ServeTCP(ctx, &failingListener{l, []error{failing(syscall.EMFILE), failing(syscall.EMFILE)}}, "")
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := jsonrpc.New(conn, jsonrpc.Options{})
	ran := make(chan error, 1)
	go func() { ran <- client.Run(ctx) }()
	if err := client.Call(ctx, api.Connect, api.ConnectParams{}, nil); err != nil {
		t.Errorf("connect: %v", err)
	}
	cancel()
	<-ran
	if err := <-served; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
