package daemon

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/server/gate"
)

// A listenerOf has one connection.
type listenerOf chan net.Conn

func (l listenerOf) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l listenerOf) Close() error   { return nil }
func (l listenerOf) Addr() net.Addr { return &net.TCPAddr{} }

// A request with the token has more time, but not for ever. One whose body has arrived can
// take as long as it needs.
func TestABodyHasToArrive(t *testing.T) {
	for name, test := range map[string]struct {
		sent   string
		status int
		took   time.Duration
	}{
		"half a body":    {"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 10\r\n\r\nabc", http.StatusRequestTimeout, bodyTime},
		"half a chunk":   {"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", http.StatusRequestTimeout, bodyTime},
		"all of it":      {"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 3\r\n\r\nabc", http.StatusOK, 50 * time.Second},
		"no body":        {"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n", http.StatusOK, 50 * time.Second},
		"no token":       {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc", http.StatusUnauthorized, 0},
		"a foreign host": {"POST / HTTP/1.1\r\nHost: evil\r\nContent-Length: 10\r\n\r\nabc", http.StatusMisdirectedRequest, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make(listenerOf, 1)
				server := newHTTPServer(refuseForeign(nil, newHTTPDoor(nil, "secret", nil).admitted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						w.WriteHeader(http.StatusRequestTimeout)
						return
					}
					select {
					case <-time.After(50 * time.Second):
					case <-r.Context().Done():
						t.Error("the request was cancelled")
					}
				}))))
				served := make(chan error, 1)
				go func() { served <- server.Serve(gate.New(gate.Limits{}).Listen(l)) }()
				near, far := net.Pipe()
				l <- far
				begun := time.Now()
				go io.WriteString(near, test.sent)
				in := bufio.NewReader(near)
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != test.status || time.Since(begun) != test.took {
					t.Fatalf("%v, %v, after %v", resp, err, time.Since(begun))
				}
				if test.status != http.StatusOK { // the connection is of no use any more
					if b, err := io.ReadAll(in); err != nil || strings.Contains(string(b), "HTTP/1.1") {
						t.Errorf("then came %q, %v", b, err)
					}
					if took := time.Since(begun) - test.took; took > time.Second {
						t.Errorf("the connection ended %v after the answer", took)
					}
				}
				near.Close()
				close(l)
				server.Close()
				<-served
			})
		})
	}
}
