package daemon

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/rest"
)

// A process that serves HTTP and is not the engine passes requests on through the private
// socket of the engine. A connection for that begins with a line: this word, and the token of
// the data folder. Connections of the protocol begin with another letter.
const httpWord = "ABIDE-HTTP "

// passOn passes a request on to the engine in another process. Whoever makes it was let in.
func (n *Node) passOn(w http.ResponseWriter, r *http.Request) {
	n.proxyOnce.Do(func() {
		n.proxy = &httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.Out.URL.Scheme, p.Out.URL.Host = "http", "engine"
				p.Out.Header.Del("Authorization")
				p.Out.Header.Del("Cookie")
			},
			Transport:     &http.Transport{DialContext: n.dialHTTP, IdleConnTimeout: time.Second, MaxIdleConnsPerHost: 16},
			FlushInterval: -1, // at once: it may be a stream
			ErrorLog:      nil,
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				if r.Context().Err() == nil {
					n.log.Debug("a request could not be passed on", "err", err)
				}
				w.Header().Set("Retry-After", "1")
				refuse(w, http.StatusServiceUnavailable, "unavailable", n.whyNotEngine())
			},
		}
	})
	n.proxy.ServeHTTP(rest.Patient(w), r)
}

// dialHTTP connects to the engine for requests over HTTP.
func (n *Node) dialHTTP(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := n.folder.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "%s%s\n", httpWord, n.folder.Token()); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// maxWord is the maximum length of the line before requests over HTTP.
const maxWord = 256

// serveOther serves another process of ours, which speaks the protocol or HTTP.
func (e *engine) serveOther(n *Node, conn net.Conn) {
	stop := context.AfterFunc(e.ctx, func() { conn.Close() })
	first := make([]byte, 1)
	_, err := io.ReadFull(conn, first)
	if !stop() || err != nil {
		conn.Close()
		return
	}
	if first[0] != httpWord[0] {
		e.serveRelay(e.ctx, n, &begun{Conn: conn, first: first})
		return
	}
	line, err := readLine(conn)
	token, ok := strings.CutPrefix(string(first)+line, httpWord)
	if err != nil || !ok || subtle.ConstantTimeCompare([]byte(token), []byte(e.token)) != 1 {
		conn.Close()
		return
	}
	gate.Admit(conn)
	e.relays.Add(1)
	defer e.relays.Add(-1)
	e.serveHTTPConn(n, conn, func(w http.ResponseWriter, r *http.Request) { e.answer(n, w, r) })
}

// readLine reads a line byte by byte, so that nothing after it is read.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxWord; {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
	return "", errors.New("the line is too long")
}

// begun is a connection of which something was read already.
type begun struct {
	net.Conn
	first []byte
}

func (c *begun) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		k := copy(p, c.first)
		c.first = c.first[k:]
		return k, nil
	}
	return c.Conn.Read(p)
}

// single is a listener with one connection. It is closed with the connection.
type single struct {
	conn   net.Conn
	once   sync.Once
	end    sync.Once
	closed chan struct{}
}

func (l *single) Accept() (net.Conn, error) {
	var first net.Conn
	l.once.Do(func() { first = &closing{l.conn, l} })
	if first != nil {
		return first, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *single) Close() error {
	l.end.Do(func() { close(l.closed) })
	return nil
}

func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

// closing is the connection of a single listener.
type closing struct {
	net.Conn
	listener *single
}

func (c *closing) Close() error {
	c.listener.Close()
	return c.Conn.Close()
}
