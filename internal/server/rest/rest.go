// Package rest serves sessions over HTTP: for browsers, scripts and dashboards.
//
//   - It is a door like the protocol's: what changes a session is a request of the
//     protocol, made by a client of the protocol in this process. Streams of events are
//     views of the sessions, and do not make the reader a client.
//   - An answer to a write comes when the write is stored.
//   - A write with an idempotency key is done once, however often it is sent.
//   - Events come in order, each once, with their positions; a reader that comes back
//     names the last position that it has seen. What is not stored has no position, and a
//     slow reader may miss it. A reader that does not read costs nobody else anything.
//   - Errors are problem details of RFC 9457.
//
// The routes are one table, from which the OpenAPI document is made as well. Who may call
// is decided by whoever mounts the handler. docs/HTTP.md has stories.
package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
)

// Prefix is where the handler is mounted.
const Prefix = "/api/v0"

// Options are the parts that a server needs. Host and Connect are required.
type Options struct {
	Version string
	Log     *slog.Logger // discarded if nil
	Host    *session.Host
	// Connect returns a connection to the protocol's server of the same host.
	Connect func(context.Context) (io.ReadWriteCloser, error)
	Tasks   rpc.Tasks  // nil if there are no commands
	Memory  rpc.Memory // nil if nothing is remembered
	// Input writes to the standard input of a command. It is nil if there are no commands.
	Input func(ctx context.Context, id event.SessionID, task string, in Input) error
	// Checkout returns what git says of a folder: "owner/name", and the branch. It may be nil.
	Checkout func(ctx context.Context, dir string) (repository, branch string)
}

// Input is what a command is given on its standard input.
type Input struct {
	Key   string // the same for an input that is given again
	Data  []byte
	Close bool // true if the input ends after Data
}

// A Server answers requests about the sessions of one host.
type Server struct {
	opts    Options
	host    *session.Host
	log     *slog.Logger
	started time.Time
	mux     *http.ServeMux
	routes  []route
	unwatch func()

	hub    hub
	replay replays

	mu     sync.Mutex
	client *client.Client // nil before the first call
	closed bool
}

// New returns a server. It must be closed.
func New(opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: opts, host: opts.Host, log: opts.Log, started: time.Now(), mux: http.NewServeMux()}
	s.hub.open()
	s.unwatch = s.host.Clients.WatchList(&session.Watcher{Tell: s.hub.tell})
	s.routes = s.table()
	s.mount()
	return s
}

// Close ends the connection to the protocol's server. Requests under way fail.
func (s *Server) Close() {
	s.unwatch()
	s.mu.Lock()
	c := s.client
	s.closed, s.client = true, nil
	s.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

// A handler answers one request. An error is answered as problem details, unless the
// answer has begun.
type handler func(w http.ResponseWriter, r *http.Request) error

// A route is a method on a path, with what the OpenAPI document says of it.
type route struct {
	method, path string // path below Prefix
	summary      string
	query        []param
	body         any    // value of the type of the request's body; nil if it has none
	answer       any    // value of the type of the answer; nil if it has none
	status       int    // status of a success; 200 if zero
	text         string // media type of an answer that is not JSON
	stream       bool   // true if the answer can be a stream of events
	handle       handler
}

// writes reports whether the route changes something.
func (r route) writes() bool { return r.method != http.MethodGet }

// mount registers all routes, and refuses other methods on their paths.
func (s *Server) mount() {
	allowed := make(map[string][]string)
	for _, r := range s.routes {
		allowed[r.path] = append(allowed[r.path], r.method)
		h := r.handle
		if r.writes() {
			h = s.once(h)
		}
		s.mux.Handle(r.method+" "+Prefix+r.path, answered(h))
	}
	for p, methods := range allowed {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		s.mux.Handle(Prefix+p, answered(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", allow)
			return &Problem{Status: http.StatusMethodNotAllowed, Code: "method", Detail: "use " + allow}
		}))
	}
	s.mux.Handle("/", answered(func(http.ResponseWriter, *http.Request) error {
		return notFound("there is no such path; " + Prefix + "/openapi.json lists all")
	}))
}

// answered makes an http.Handler of a handler.
func answered(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			Refuse(w, err)
		}
	})
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.mux.ServeHTTP(w, r)
}

// connected returns the client of the protocol, and connects it if needed.
func (s *Server) connected(ctx context.Context) (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, session.ErrClosed
	}
	if s.client != nil && s.client.Err() == nil {
		return s.client, nil
	}
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	s.client = c
	return c, nil
}

// dial makes a new connection to the protocol's server.
func (s *Server) dial(ctx context.Context) (*client.Client, error) {
	rwc, err := s.opts.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := client.New(rwc, client.Options{})
	if _, err := c.Connect(ctx, ""); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// leavingKey is the key of the context that is done when the door is about to close.
type leavingKey struct{}

// WithLeaving returns a context for requests whose streams end when leaving is done, so
// that the server need not wait for them.
func WithLeaving(ctx, leaving context.Context) context.Context {
	return context.WithValue(ctx, leavingKey{}, leaving)
}

// leaving returns a channel that is closed when streams have to end.
func leaving(ctx context.Context) <-chan struct{} {
	if l, ok := ctx.Value(leavingKey{}).(context.Context); ok {
		return l.Done()
	}
	return nil
}

// sessionID returns the session that a path names.
func sessionID(r *http.Request) event.SessionID { return event.SessionID(r.PathValue("id")) }

// known returns a handler that refuses unknown sessions.
func (s *Server) known(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := s.host.Info(r.Context(), sessionID(r)); err != nil {
			return err
		}
		return h(w, r)
	}
}
