package bridge_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A pipes listener has the connections that a test makes within the process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	defer func() { _ = recover() }() // a server closes its listener twice
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// Whatever a client sends that does not show the token, and however slowly, its connection
// is closed.
func TestAConnectionWithoutTheTokenIsClosed(t *testing.T) {
	for name, sent := range map[string]string{
		"nothing":            "",
		"half a header":      "POST /x HTTP/1.1\r\nHost: a\r\n",
		"half a body":        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc",
		"HTTP/2":             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"much in a header":   "POST /x HTTP/1.1\r\nX: " + strings.Repeat("x", 90<<10),
		"much in a body":     "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n" + strings.Repeat("x", 200<<10),
		"a foreign web site": "POST /x HTTP/1.1\r\nHost: a\r\nOrigin: http://evil.example\r\nContent-Length: 10\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make(pipes, 1)
				ctx, cancel := context.WithCancel(context.Background())
				served := make(chan error, 1)
				server := &bridge.Server{Workspace: local.New(t.TempDir(), nil), Token: "a secret"}
				go func() { served <- server.Serve(ctx, l) }()
				near, far := net.Pipe()
				l <- far
				begun := time.Now()
				go io.WriteString(near, sent)
				io.Copy(io.Discard, near)
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("the connection was closed after %v", took)
				}
				near.Close()
				cancel()
				<-served
			})
		})
	}
}

func TestWebPagesMayNotUseAWorkspace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	server := &bridge.Server{Workspace: local.New(t.TempDir(), nil), Token: "a secret"}
	go func() { served <- server.Serve(ctx, l) }()
	defer func() {
		cancel()
		must(t, <-served)
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a secret\r\nOrigin: http://"+l.Addr().String()+"\r\nContent-Length: 0\r\n\r\n")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "web pages may not use a workspace") {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
}
