package remote

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

// A countedConn counts the writes to a connection.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestASmallRequestIsOneWrite: a write is the larger part of what a small request costs.
func TestASmallRequestIsOneWrite(t *testing.T) {
	received := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		received <- string(b)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	var writes atomic.Int64
	transport := sharedTransport().(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, &writes}, err
	}
	body := func(q *Query) [][]byte { return [][]byte{[]byte("<"), []byte(q.System), []byte(">")} }
	c := New(Config{BaseURL: server.URL, Transport: transport}, Wire{Name: "test", Body: body})
	for _, size := range []int{1, smallBody - 2, smallBody, 10 * smallBody} {
		writes.Store(0)
		text := strings.Repeat("x", size)
		_, _ = c.Ask(t.Context(), &model.Request{Model: "m", System: text}, nil) // the server refuses every request
		if got := <-received; got != "<"+text+">" {
			t.Errorf("a body of %d bytes arrived as one of %d", size+2, len(got))
		}
		if small := size+2 <= smallBody; (writes.Load() == 1) != small {
			t.Errorf("a request with a body of %d bytes took %d writes", size+2, writes.Load())
		}
	}
}
