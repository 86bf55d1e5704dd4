// Package rpc speaks the protocol to clients. It checks what they ask, hands
// it to the sessions, and shows them what happens there.
//
// Requests of a connection are handled beside each other; events are shown in
// order. A client that reads slowly loses nothing that is stored: it is shown
// from the log what it missed. One that reads nothing is disconnected in the
// end, and nobody else notices.
//
// Each family of methods is a file, which registers its methods.
package rpc

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/project/instructions"
	"github.com/abide-run/abide/internal/project/trust"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/session"
)

// Options are what a server can be told.
type Options struct {
	Version   string
	Log       *slog.Logger                    // discarded if nil
	Models    Models                          // lister of models for models.list; nothing is listed if nil
	Tasks     Tasks                           // nil if there are no commands
	Shell     Shell                           // nil if there are no commands
	Memory    Memory                          // nil if nothing is remembered
	Workspace func(id event.SessionID) string // the folder of a session's files
	Start     func(*exec.Cmd) error           // starts a program that only has to read, confined; not confined if nil

	Workspaces Workspaces                  // where sessions can work; nil if that is only the machine of the engine
	Agents     map[string]string           // the agents that every session can start, and what each is told
	Shutdown   func(context.Context) error // flushes everything, when a client asks for it
	Store      string                      // name of the store; a relay with another one is refused
	// Instructions finds what projects tell agents.
	Instructions instructions.Rules
	// Places is what people allow for longer than a session. It is forgotten with
	// the server if nil.
	Places *places.Places
	// Servers are those that share the store; nil if there is only this one.
	Servers Servers
	// MCP is the MCP servers that the user has added; nil if they are not kept.
	MCP *mcp.Store
	// Trust is the folders whose configuration the user trusts; nil if it is not kept.
	Trust *trust.Store
}

// Models lists the models that can be named, with those of a provider if there is
// one. The transport makes the requests to it, unless it is nil.
type Models func(ctx context.Context, p *api.Provider, transport http.RoundTripper) ([]api.Model, error)

// maxBehind is how many bytes a client may be behind before it misses what is not
// stored: tens of thousands of pieces of a streamed answer.
const maxBehind = 8 << 20

// A Server serves connections.
type Server struct {
	host   *session.Host
	opts   Options
	log    *slog.Logger
	places *places.Places

	planning sync.Mutex // plans are written one after the other
	notices  notices
}

// New returns a server for the sessions of a host.
func New(host *session.Host, opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Places == nil {
		opts.Places = places.Open("")
	}
	if opts.Start == nil {
		opts.Start = (*exec.Cmd).Start
	}
	return &Server{host: host, opts: opts, log: opts.Log, places: opts.Places}
}

// A Door is how a connection came in.
type Door struct {
	Token    string // token that connect must present; none is needed if empty
	Private  bool   // a process of ours: it may speak for others
	Defaults api.Defaults
	// Elsewhere is true if a process on another machine speaks, which is not configured like this one:
	// the Defaults hold for its clients, and it may know the store by another name.
	Elsewhere bool
	// Positions is true if stored events are sent with their positions, as they are to a
	// Private client.
	Positions bool
	Retries   bool   // the client tries again what this engine cannot write any more, as a Private one does
	Faults    bool   // errors say of which kind they are, as an api.Fault
	Admitted  func() // called when a connect has succeeded; may be nil
}

// A conn is one client connection.
type conn struct {
	server  *Server
	rpc     *jsonrpc.Conn
	door    Door
	hangUp  context.CancelFunc // ends the connection
	serving context.Context    // done when the server is about to leave

	mu       sync.Mutex
	admitted bool // connect succeeded
	defaults api.Defaults
	sessions map[event.SessionID]*attached
	left     map[event.SessionID]bool // sessions that the client has left

	inference inference

	holding sync.Mutex
	held    map[event.SessionID][]event.Event // kept back until an answer is out
	scratch []byte

	stalled chan struct{} // holds a token if the client had no room for an event
	bulk    chan struct{} // holds a token for each large answer that is in memory and not queued yet
}

// attached is a session that this connection is attached to.
type attached struct {
	client *session.Client
	view   *session.View
	from   event.Seq // events after it are shown as they happen
	since  time.Time
}

// live reports whether the client was shown a question when it was asked.
func (a *attached) live(r session.Reminder) bool {
	if r.Own {
		return r.Asked.Seq > a.from
	}
	head, err := r.Asked.Head()
	return err == nil && head.Time.After(a.since)
}

// relayStall is how long a process of ours may take nothing: longer than it waits
// for its own client, so that a stuck client is not taken for a lost engine.
const relayStall = 5 * time.Minute

// Serve runs a connection until it ends. Sessions are detached, not stopped.
func (s *Server) Serve(ctx context.Context, rwc io.ReadWriteCloser, door Door) error {
	c := &conn{
		server:   s,
		door:     door,
		defaults: door.Defaults,
		serving:  ctx,
		sessions: make(map[event.SessionID]*attached),
		left:     make(map[event.SessionID]bool),
		stalled:  make(chan struct{}, 1),
		bulk:     make(chan struct{}, maxBulk),
		held:     make(map[event.SessionID][]event.Event),
	}
	options := jsonrpc.Options{Outbox: maxBehind, Handler: jsonrpc.HandlerFunc(c.handle)}
	if door.Token != "" {
		options.FirstFrame = gate.MaxFrame
	}
	if door.Private {
		options.Stall = relayStall
	}
	c.rpc = jsonrpc.New(rwc, options)
	unwatch := s.host.Clients.WatchList(&session.Watcher{Tell: c.lifecycle})
	defer unwatch()
	ctx, cancel := context.WithCancel(ctx)
	c.hangUp = cancel
	var refills sync.WaitGroup
	refills.Go(func() { c.refill(ctx) })
	err := c.rpc.Run(ctx)
	cancel()
	refills.Wait()
	c.lostInference()
	c.detachAll()
	return err
}

// A method handles one kind of request.
type method func(c *conn, ctx context.Context, req *jsonrpc.Request) (any, error)

// methods is every method there is, by name. It is complete when the variables of the
// package are initialised, and never changes afterwards.
var methods = make(map[string]method)

// register adds the methods of a file to the table of methods.
func register(family map[string]method) struct{} {
	for name, m := range family {
		if methods[name] != nil {
			panic(fmt.Sprintf("the table of methods has %s twice", name))
		}
		methods[name] = m
	}
	return struct{}{}
}

// handle is where every request arrives.
func (c *conn) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
	if req.Method == api.Connect {
		return c.connect(req)
	}
	if !c.ready() {
		return nil, jsonrpc.Errorf(api.CodeAuthenticationRequired, "AUTHENTICATION_REQUIRED")
	}
	m := methods[req.Method]
	if m == nil {
		return nil, unsupported(req.Method)
	}
	err := c.gone(req)
	var result any
	switch {
	case err != nil:
	case bulk[req.Method]:
		result, err = c.answerBulk(ctx, m, req)
	default:
		result, err = m(c, ctx, req)
	}
	if err != nil {
		return nil, c.wireError(req.Method, err)
	}
	return result, nil
}

func (c *conn) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admitted
}

// Admit returns the judge of what comes before a connection was let in: only a
// connect with the token passes. An empty token lets every connect pass.
func Admit(token string) func(jsonrpc.Message) *jsonrpc.Error {
	return func(m jsonrpc.Message) *jsonrpc.Error {
		if m.Method != api.Connect {
			return jsonrpc.Errorf(api.CodeAuthenticationRequired, "AUTHENTICATION_REQUIRED")
		}
		var p api.ConnectParams
		_ = json.Unmarshal(m.Params, &p) // parameters that cannot be read have no token
		if token != "" && subtle.ConstantTimeCompare([]byte(p.Token), []byte(token)) != 1 {
			return jsonrpc.Errorf(api.CodeAuthenticationFailed, "AUTHENTICATION_FAILED")
		}
		return nil
	}
}

// connect lets a client in.
func (c *conn) connect(req *jsonrpc.Request) (any, error) {
	p, err := params[api.ConnectParams](req)
	if err != nil {
		return nil, c.wireError(req.Method, err)
	}
	if err := c.checkToken(req); err != nil {
		return nil, err
	}
	if p.Abide != nil && c.door.Private && !c.door.Elsewhere {
		if err := c.server.checkStore(p.Abide.Store); err != nil {
			return nil, err
		}
	}
	c.admit(p)
	return api.ConnectResult{OK: true, ProtocolVersion: api.ProtocolVersion, Version: c.server.opts.Version}, nil
}

// checkToken returns the error of a connect without the token. A process of ours shows it
// once: what follows may be a connect of its client, which has another token or none.
func (c *conn) checkToken(req *jsonrpc.Request) error {
	if c.door.Private && c.ready() {
		return nil
	}
	fault := Admit(c.door.Token)(jsonrpc.Message{Method: req.Method, Params: req.Params})
	switch {
	case fault == nil:
		return nil
	case c.door.Private:
		return jsonrpc.Errorf(fault.Code, "%s: this process did not show the token of the data folder; it may be an older version of abide than the engine (%s): end it and start the new one", fault.Message, c.server.opts.Version)
	}
	return fault
}

// admit lets a client in, which ends the limits of its connection.
func (c *conn) admit(p api.ConnectParams) {
	c.mu.Lock()
	c.admitted = true
	if p.Abide != nil && c.door.Private && !c.door.Elsewhere {
		c.defaults = p.Abide.Defaults
	}
	c.mu.Unlock()
	c.rpc.Admit()
	if c.door.Admitted != nil {
		c.door.Admitted()
	}
}

// checkStore refuses a process of ours that is configured for another store than the
// engine of its data folder: its clients would use sessions that they do not mean. A
// process of an older version does not say which store it has.
func (s *Server) checkStore(theirs *string) error {
	if theirs == nil || *theirs == s.opts.Store {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the engine of this data folder has another store than this process: give both the same store.url, or use another data folder")
}

// errBadParams is an error of the client's, shown as it is.
type errBadParams struct{ error }

// params reads a request's parameters. The error names the field that is wrong.
func params[P any](req *jsonrpc.Request) (P, error) {
	var p P
	if len(req.Params) == 0 {
		return p, nil
	}
	if err := event.CheckDepth(req.Params); err != nil {
		return p, errBadParams{err}
	}
	return p, decode(req.Params, "", &p)
}

// decode decodes a parameter. The error names the field that is wrong.
func decode(raw json.RawMessage, name string, into any) error {
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := strings.Trim(name+"."+wrong.Field, ".")
		return errBadParams{fmt.Errorf("%s: want %s, have %s", field, typeName(wrong.Type), wrong.Value)}
	}
	if err != nil {
		return errBadParams{err}
	}
	return nil
}

// typeName says a type in the words of JSON.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "object"
	}
	return "number"
}

// on makes a method of a function that takes decoded parameters.
func on[P, R any](f func(*conn, context.Context, P) (R, error)) method {
	about, named := reflect.TypeFor[P]().FieldByName("SessionID")
	return func(c *conn, ctx context.Context, req *jsonrpc.Request) (any, error) {
		p, err := params[P](req)
		if err != nil {
			return nil, err
		}
		if named && scoped(req.Method) && reflect.ValueOf(&p).Elem().FieldByIndex(about.Index).IsZero() {
			return nil, missing("sessionId")
		}
		return f(c, ctx, p)
	}
}

// wireError turns any error into what a client may see. It is the only place
// that does. If the server is stopping, the client gets that as the reason: other errors
// of the request only follow from it.
func (c *conn) wireError(method string, err error) error {
	if cause := context.Cause(c.serving); lost(cause) {
		err = cause
	} else if cause != nil {
		err = session.ErrClosed
	}
	var ready *jsonrpc.Error
	var bad errBadParams
	var damage *eventlog.Damage
	var away *eventlog.Away
	kind := faultOf(err)
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &bad):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", method, bad.error)
	case errors.Is(err, session.ErrClosed), (c.door.Private || c.door.Retries) && lost(err):
		return jsonrpc.Errorf(api.CodeShuttingDown, "SERVER_SHUTTING_DOWN")
	case c.door.Private && errors.Is(err, eventlog.ErrNotOwner) && !errors.As(err, &away):
		return elsewhere(err)
	case errors.Is(err, session.ErrClash):
		err = said("External tool name clash: %v", err)
	case errors.Is(err, session.ErrPosition):
		err = said("Event not found: %v", err)
	case errors.As(err, &damage):
		err = fmt.Errorf("%w; what was said before can be used by forking the session at event %d", damage, damage.Seq-1)
	case lost(err):
		c.server.log.Error("the log cannot be written", "err", err)
	}
	fault := jsonrpc.Errorf(jsonrpc.CodeInternal, "Request %s failed with message: %v", method, err)
	if c.door.Faults && kind != "" {
		fault.Data, _ = json.Marshal(api.Fault{Kind: kind}) // a string cannot fail
	}
	return fault
}

// lost reports whether this engine cannot write any more. Another one may: the client of a
// relay need not know, and one over HTTP is to try again.
func lost(err error) bool {
	return errors.Is(err, eventlog.ErrClosed) || errors.Is(err, eventlog.ErrFenced)
}

// notFound is how the protocol says that there is no such session.
func notFound(id event.SessionID, err error) error {
	if id == "" && errors.Is(err, session.ErrNotFound) {
		return missing("sessionId")
	}
	if errors.Is(err, session.ErrNotFound) {
		return said("Session not found: %s", id)
	}
	return err
}

// A sentence is an error in the protocol's own words, which clients look for.
type sentence string

func (s sentence) Error() string { return string(s) }

func said(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }
