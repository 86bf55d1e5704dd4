package bridge

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/workspacepb"
)

// A Server serves a workspace.
type Server struct {
	Workspace workspace.Workspace
	About     workspace.Description // what it says of itself; time and disk are looked up when it is asked
	Token     string                // token that clients must send; none if empty
	TLS       *tls.Config           // configuration with a certificate; no TLS if nil
	// Fences is the folder for what is known of the servers that change something here; if
	// empty, that is forgotten with the process.
	Fences string

	fences     *fences
	openFences sync.Once
}

// shutdownGrace is the time that running requests get when a server stops.
const shutdownGrace = 5 * time.Second

// Serve serves clients until ctx is done, and returns when the last request has ended.
// It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, stop := withStopCause(ctx)
	g := new(inFlight)
	server := s.http(requests, g)
	served := make(chan error, 1)
	go func() { served <- s.listen(server, l) }()
	var err error
	select {
	case err = <-served: // the listener failed
		stop()
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close()
	}
	stop()
	g.closeAndWait()
	if err == nil {
		<-served
	}
	return err
}

// http returns the HTTP server, which counts the requests that are running.
func (s *Server) http(requests context.Context, g *inFlight) *http.Server {
	h := s.handler(g)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if g.begin() {
				defer g.end()
				h.ServeHTTP(w, r)
			}
		}),
		BaseContext:       func(net.Listener) context.Context { return requests },
		Protocols:         protocols(),
		HTTP2:             keepalive(),
		TLSConfig:         s.TLS,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return withAnswers(gate.ConnContext(ctx, c)) },
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          discardLog,
	}
}

// listen serves connections. Those without an authorised request have little time and memory.
func (s *Server) listen(server *http.Server, l net.Listener) error {
	l = gate.New(gate.Limits{}).Listen(fileListener{l})
	if s.TLS != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}

// protocols returns the protocols of gRPC clients and of plain HTTP clients.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// discardLog is a logger that discards messages about broken connections.
var discardLog = log.New(io.Discard, "", 0)

// A connection on which nothing is heard for pingTime is asked for an answer, and is dead if
// none comes in the same time.
const (
	pingTime = 10 * time.Second
	deadTime = 2 * pingTime
)

// keepalive returns settings that detect connections whose other end is gone. Large frames
// cost less for each byte of a file.
func keepalive() *http.HTTP2Config {
	return &http.HTTP2Config{MaxReadFrameSize: 1 << 20, SendPingTimeout: pingTime, PingTimeout: pingTime}
}

// handler returns the handler of requests, which refuses those without the token.
func (s *Server) handler(g *inFlight) http.Handler {
	mux := http.NewServeMux()
	s.openFences.Do(func() { s.fences = &fences{dir: s.Fences} })
	served := &service{s.Workspace, s.About, g, s.fences}
	mux.HandleFunc("POST "+rawShowPath, served.showRaw)
	path, service := workspacepb.NewWorkspaceServiceHandler(served,
		connect.WithReadMaxBytes(maxMessage), connect.WithInterceptors(stopping{}, fencing{s.fences}),
		connect.WithCompression("gzip", nil, nil)) // no compression: networks are fast, and much data does not compress
	mux.Handle(path, limitAnswers(service))
	refuse := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err, status := error(connect.NewError(connect.CodeUnauthenticated, errToken)), http.StatusUnauthorized
		switch {
		case r.Header.Get("Origin") != "":
			err, status = connect.NewError(connect.CodePermissionDenied, errWebPage), http.StatusForbidden
		case s.authorised(r):
			gate.AdmitRequest(r.Context())
			err, status = toWire(s.checkWanted(r)), http.StatusPreconditionFailed
		}
		switch {
		case err == nil:
			mux.ServeHTTP(w, r)
		case refuse.IsSupported(r):
			_ = refuse.Write(w, r, err) // the request is refused even if the error cannot be sent
		default:
			http.Error(w, err.Error(), status)
		}
	})
}

var errToken = errors.New("the token is missing or wrong: present the workspace's as “Authorization: Bearer TOKEN”")

// errWebPage refuses requests that a browser makes for a web page.
var errWebPage = errors.New("web pages may not use a workspace: send requests from a program, without the header Origin")

// authorised reports whether a request has the token. The time of the comparison
// reveals nothing about the token, not even its length.
func (s *Server) authorised(r *http.Request) bool {
	if s.Token == "" {
		return true
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && ok
}
