package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/httpapi"
	"github.com/abide-run/abide/internal/server/rest"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/tool"
)

// Times of the HTTP door.
const (
	headerTime = 10 * time.Second // time that a client has for the header of a request
	bodyTime   = 30 * time.Second // time that a client has for the rest of a request
	answerTime = time.Minute      // time that a client has to read an answer that is ready
	idleTime   = 2 * time.Minute  // time that a connection stays open between two requests
)

// maxHeader is the maximum size of the header of a request.
const maxHeader = 32 << 10

// ServeHTTP serves HTTP clients that present the token, and browsers that are signed in, until
// ctx is done. Requests under way then get a second to finish; streams end at once. A client
// can call the server by an address, by localhost, and by the names in hosts; see
// refuseForeign. Browsers call it by ConsoleHost or a name in hosts. All listeners have one
// door, so that a browser can use a link of abide open at any of them.
func (n *Node) ServeHTTP(ctx context.Context, listeners []net.Listener, token string, hosts ...string) error {
	s := newHTTPServer(newHTTPDoor(n, token, hosts))
	s.BaseContext = func(net.Listener) context.Context { return rest.WithLeaving(n.ctx, ctx) }
	s.ErrorLog = slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)
	stop := func() {
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(soon) != nil {
			s.Close()
		}
	}
	defer context.AfterFunc(ctx, stop)()
	defer context.AfterFunc(n.ctx, stop)()
	defer n.announce(listeners[0].Addr())()
	g := gate.New(gate.Limits{})
	failed := make([]error, len(listeners))
	var served sync.WaitGroup
	for i, l := range listeners {
		served.Go(func() {
			if err := s.Serve(g.Listen(l)); !errors.Is(err, http.ErrServerClosed) {
				failed[i] = fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
				stop()
			}
		})
	}
	served.Wait()
	return errors.Join(failed...)
}

// newHTTPServer returns a server whose clients have limited time for everything.
func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ConnContext: gate.ConnContext,
		ReadHeaderTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
	}
}

// refuseForeign refuses requests that a web page of another site may have made. Such a page can
// have its own name lead to this machine (DNS rebinding), so that a browser takes this
// server for the site: then the request has that name as its Host. An address cannot be
// made to lead elsewhere. A page of another origin is named by the browser.
func refuseForeign(hosts []string, to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOurs(r.Host, hosts) {
			hangUp(w, http.StatusMisdirectedRequest, "foreign_host", fmt.Sprintf("this server does not go by the name %q: use its address or localhost, or start it with --http-host NAME", r.Host))
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if !isSame(origin, r.Host) {
				hangUp(w, http.StatusForbidden, "foreign_origin", fmt.Sprintf("web pages of %s may not use this server: send requests from a program, without the header Origin", origin))
				return
			}
		}
		to.ServeHTTP(w, r)
	})
}

// isOurs reports whether the Host of a request is an address, localhost or one of our names.
func isOurs(host string, ours []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || strings.EqualFold(name, "localhost") {
		return true
	}
	return slices.ContainsFunc(ours, func(own string) bool { return strings.EqualFold(own, strings.TrimSuffix(name, ".")) })
}

// isSame reports whether an Origin is that of the server that the request is for.
func isSame(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// limitBody limits the time in which the body of a request has to arrive.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // every connection of this server has deadlines
	r.Body = timedBody{r.Body, control}
}

// A timedBody is a body with a deadline. After its end the connection has none, so that the
// request can take its time.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// hangUp refuses a request and ends its connection, without waiting for the rest of the
// request.
func hangUp(w http.ResponseWriter, status int, code, message string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	w.Header().Set("Connection", "close")
	refuse(w, status, code, message)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	rest.Refuse(w, &rest.Problem{Status: status, Code: code, Detail: message})
}

// answer handles a request if the engine is in this process, and passes it on to the engine
// otherwise.
func (n *Node) answer(w http.ResponseWriter, r *http.Request) {
	e, err := n.currentEngine()
	switch {
	case err != nil:
		refuse(w, http.StatusInternalServerError, "internal", err.Error())
	case e == nil:
		n.passOn(w, r)
	default:
		e.answer(n, w, r)
	}
}

// answer handles a request of somebody who may make it. If another server works on its session, it is
// passed on.
func (e *engine) answer(n *Node, w http.ResponseWriter, r *http.Request) {
	if !e.ownedElsewhere(n, w, r) {
		e.answerHere(n, w, r)
	}
}

// answerHere handles a request without passing it on.
func (e *engine) answerHere(n *Node, w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != httpapi.Prefix && !strings.HasPrefix(r.URL.Path, httpapi.Prefix+"/"):
		e.sessionAPI(n).ServeHTTP(w, r)
	case e.tools.processes == nil:
		refuse(w, http.StatusNotImplemented, "unsupported", process.ErrUnsupported.Error())
	default:
		e.processAPI().ServeHTTP(w, r)
	}
}

// whyNotEngine returns the reason why this process is not the engine, and the way out.
func (n *Node) whyNotEngine() string {
	if trouble := n.currentTakeoverError(); trouble != nil {
		return fmt.Sprintf("there is no engine for now (trying again): %v", trouble)
	}
	return "another process is the engine of this data folder, and does not answer: try again"
}

// sessionAPI returns the API of sessions. It is made when it is first used: most engines are
// there for one command, and serve nobody over HTTP.
func (e *engine) sessionAPI(n *Node) *rest.Server {
	e.webOnce.Do(func() {
		e.web = rest.New(rest.Options{
			Version: n.config.Version, Log: n.log, Host: e.host, Memory: e.remembered, Tasks: e.tools.shown(), Input: e.tools.input(), Checkout: e.server.Checkout,
			Connect: func(context.Context) (io.ReadWriteCloser, error) {
				ours, theirs := net.Pipe()
				n.work.Go(func() {
					_ = e.server.Serve(e.ctx, theirs, rpc.Door{Positions: true, Retries: true, Faults: true, Defaults: n.config.Defaults}) // its only client is in this process
				})
				return ours, nil
			},
		})
	})
	return e.web
}

// processAPI returns the process API for the sessions of the engine. Their commands have a
// plain environment: clients with the token may run commands, but must not read the API
// keys in the environment of this process.
func (e *engine) processAPI() http.Handler {
	return httpapi.New(clientProcesses{routedProcesses{e.tools.workspaces}, e}, httpapi.Options{
		Owner: func(r *http.Request, session string) (process.Owner, error) {
			_, err := e.store.Session(r.Context(), event.SessionID(session))
			if errors.Is(err, eventlog.ErrNotFound) {
				err = fmt.Errorf("%w %s; list the sessions with: abide sessions list (or start one with: abide run)", httpapi.ErrNoSession, session)
			}
			return process.Owner(session), err
		},
		Env: func(ctx context.Context, owner process.Owner) ([]string, error) {
			return e.tools.workspaces.env(ctx, tool.Call{Session: event.SessionID(owner)})
		},
	})
}

// clientProcesses are the processes of sessions, for clients of the process API. A command
// is started where its session works, and confined as the commands of the session are.
type clientProcesses struct {
	routedProcesses
	engine *engine
}

func (p clientProcesses) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	id := event.SessionID(spec.Owner)
	st, err := p.engine.host.Status(ctx, id)
	if err != nil {
		return process.Info{}, false, err
	}
	if st.Config.Sealed {
		spec.Profile = sandbox.Sealed
	}
	dir := st.Config.WorkingDirectory
	if dir == "" && !p.isRemote(ctx, id) {
		dir = homeFolder()
	}
	if !filepath.IsAbs(spec.Dir) {
		spec.Dir = filepath.Join(dir, spec.Dir)
	}
	if err := p.engine.tools.settle(ctx, &spec); err != nil {
		return process.Info{}, false, err
	}
	return p.routedProcesses.Start(ctx, spec)
}

// homeFolder returns the default working directory of commands. It is not the data
// folder, where a command could damage the database by accident.
func homeFolder() string {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "/"
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() { // the home directory of a service user often does not exist
		return "/"
	}
	return home
}
