package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/relay"
	"github.com/abide-run/abide/internal/relay/peer"
	"github.com/abide-run/abide/internal/seal"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/rest"
	"github.com/abide-run/abide/internal/server/rpc"
)

// peers are the connections with the other servers of a log.
type peers struct {
	key  []byte // what servers prove that they know
	door *peer.Door

	mu    sync.Mutex
	conns map[string]map[net.Conn]bool // connections to other servers, by their ids
}

// openPeers derives the key of the connections between servers from the key that they share.
func openPeers(n *Node) (*peers, error) {
	file, err := seal.OpenFile(KeyFile(n.config.KeyFile, n.folder.Dir()))
	if err != nil {
		return nil, err
	}
	p := &peers{conns: make(map[string]map[net.Conn]bool)}
	if p.key, err = file.Derive("abide: connections between servers"); err != nil {
		return nil, err
	}
	p.door, err = peer.NewDoor(func(purpose peer.Purpose) []byte {
		switch {
		case purpose == peer.Server || purpose == peer.HTTP:
			return p.key
		case purpose == peer.Client && n.config.Cluster.Token != "":
			return []byte(n.config.Cluster.Token)
		}
		return nil
	})
	return p, err
}

// dial connects to another server.
func (p *peers) dial(ctx context.Context, server, address string, purpose peer.Purpose) (net.Conn, error) {
	conn, err := peer.Dial(ctx, address, purpose, p.key)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[server] == nil {
		p.conns[server] = make(map[net.Conn]bool)
	}
	held := &heldConn{Conn: conn, peers: p, server: server}
	p.conns[server][held] = true
	return held, nil
}

// A heldConn is a connection to another server.
type heldConn struct {
	net.Conn
	peers  *peers
	server string
}

func (c *heldConn) Close() error {
	c.peers.mu.Lock()
	delete(c.peers.conns[c.server], c)
	c.peers.mu.Unlock()
	return c.Conn.Close()
}

// connected lists the servers that this one is connected to.
func (p *peers) connected() (servers []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, conns := range p.conns {
		if len(conns) > 0 {
			servers = append(servers, id)
		} else {
			delete(p.conns, id)
		}
	}
	return servers
}

// drop ends the connections to a server.
func (p *peers) drop(server string) {
	p.mu.Lock()
	conns := p.conns[server]
	delete(p.conns, server)
	p.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

// dropDead ends the connections to servers that are dead. A machine that is gone, or a process that
// is stopped, ends none itself.
func (e *engine) dropDead() {
	servers := e.peers.connected()
	if len(servers) == 0 {
		return
	}
	list, err := e.shared.Servers(e.ctx)
	if err != nil {
		return // nobody is dead because the database is away
	}
	live := make(map[string]bool)
	for _, s := range list {
		live[s.ID] = !s.Dead
	}
	for _, id := range servers {
		if !live[id] {
			e.peers.drop(id)
		}
	}
}

// serveRouted serves a connection of a relay. What it wants of sessions that other servers work on is
// passed on to them.
func (e *engine) serveRouted(n *Node, ctx context.Context, conn io.ReadWriteCloser, door rpc.Door) error {
	if e.shared == nil {
		return e.server.Serve(ctx, conn, door)
	}
	var served sync.WaitGroup
	defer served.Wait()
	router := relay.Router{
		Home: func() net.Conn {
			ours, theirs := net.Pipe()
			served.Go(func() { _ = e.server.Serve(ctx, theirs, door) }) // the router ends with it
			return ours
		},
		Dial: func(ctx context.Context, server, address string) (net.Conn, error) {
			return e.peers.dial(ctx, server, address, peer.Server)
		},
		Log: n.log,
	}
	return router.Run(ctx, conn)
}

// servePeers serves other servers, and the relays of clients, until the engine ends.
func (n *Node) servePeers(e *engine) {
	setDeadline(n.config.Cluster.Listener, time.Time{}) // the engine before this one may have set one
	gates := gate.New(gate.Limits{})
	l := gates.Listen(unclosed{n.config.Cluster.Listener})
	stop := context.AfterFunc(e.ctx, func() { setDeadline(n.config.Cluster.Listener, time.Now()) })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := accept(e.ctx, l, n.log)
		if e.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			n.log.Error("other servers cannot reach this one", "err", err)
			return
		}
		conns.Go(func() { n.servePeer(e, conn) })
	}
}

// unclosed is a listener that outlives an engine: the next one of this process uses it.
type unclosed struct{ net.Listener }

func (unclosed) Close() error { return nil }

// setDeadline ends an Accept that is under way at a time, without closing the listener.
func setDeadline(l net.Listener, at time.Time) {
	if d, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
		_ = d.SetDeadline(at) // a listener that is closed ends Accept, too
	}
}

// servePeer serves one connection.
func (n *Node) servePeer(e *engine, conn net.Conn) {
	defer conn.Close()
	secure, purpose, err := e.peers.door.Admit(e.ctx, conn)
	if err != nil {
		n.log.Warn("a server or a client was not let in", "from", conn.RemoteAddr(), "err", err)
		return
	}
	gate.Admit(conn)
	defer context.AfterFunc(e.ctx, func() { conn.Close() })()
	switch purpose {
	case peer.Server:
		_ = e.server.Serve(e.ctx, secure, rpc.Door{Private: true, Elsewhere: true, Defaults: n.config.Defaults}) // the other server logs why it ended
	case peer.Client:
		_ = e.serveRouted(n, e.ctx, secure, rpc.Door{Private: true, Elsewhere: true, Defaults: n.config.Defaults}) // the relay logs why it ended
	case peer.HTTP:
		e.serveHTTPConn(n, secure, func(w http.ResponseWriter, r *http.Request) { e.answerHere(n, w, r) })
	}
}

// serveHTTPConn serves requests over one connection.
func (e *engine) serveHTTPConn(n *Node, conn net.Conn, answer http.HandlerFunc) {
	s := newHTTPServer(answer)
	s.BaseContext = func(net.Listener) context.Context { return rest.WithLeaving(e.ctx, e.ctx) }
	defer context.AfterFunc(e.ctx, func() { s.Close() })()
	_ = s.Serve(&single{conn: conn, closed: make(chan struct{})}) // it ends with the connection
}

// ownedElsewhere passes a request over HTTP on to the server that works on its session, and reports
// whether there is such a server.
func (e *engine) ownedElsewhere(n *Node, w http.ResponseWriter, r *http.Request) bool {
	id, ok := sessionIn(r.URL.Path)
	if !ok || e.shared == nil {
		return false
	}
	owner, err := e.shared.Owner(r.Context(), id)
	if err != nil || owner == nil {
		return false // the error is found again, and told, when the request is answered
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "server"
			p.Out.Header.Del("Authorization")
			p.Out.Header.Del("Cookie")
		},
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return e.peers.dial(ctx, owner.Server, owner.Address, peer.HTTP)
		}},
		FlushInterval: -1, // at once: it may be a stream
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			n.log.Debug("a request could not be passed on", "to", owner.Address, "err", err)
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "unavailable", "the session is worked on by the server at "+owner.Address+", which cannot be reached; try again")
		},
	}
	proxy.ServeHTTP(rest.Patient(w), r)
	return true
}

// sessionIn returns the session that a path of the API is about.
func sessionIn(path string) (event.SessionID, bool) {
	rest, ok := strings.CutPrefix(path, rest.Prefix+"/sessions/")
	id, _, _ := strings.Cut(rest, "/")
	return event.SessionID(id), ok && id != ""
}
