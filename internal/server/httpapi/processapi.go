// Package httpapi is durable commands over HTTP, for whoever wants nothing else:
//
//		POST /api/v0/processes/start        start a command, once for each key
//		GET  /api/v0/processes/list         what the session has
//		GET  /api/v0/processes/{id}/output  its output: a view, a part, or as it comes
//		POST /api/v0/processes/{id}/signal  send it a signal
//
//	  - Every request names its session. One that does not is refused, and other
//	    sessions' processes do not exist.
//	  - An answer that says that a process has ended has all of its output.
//	  - The end of a request ends nothing else.
//	  - Errors are JSON: a code for programs, and a message that says what to do.
//
// Who may name which session is for whoever mounts the handler to decide.
// docs/WORKSPACE.md has the fields.
package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

const (
	// Prefix is where the handler is mounted.
	Prefix = "/api/v0/processes"
	// SessionHeader is the header that names the session of a request.
	SessionHeader = "Abide-Session-Id"

	maxBody    = 2 << 20 // bytes of a request
	maxSession = 1024    // bytes of a session's name
)

// Options are the settings of the API. The zero value works.
type Options struct {
	// Owner says whose processes a session's are; it may refuse. If nil, the
	// session's name is the owner.
	Owner func(r *http.Request, session string) (process.Owner, error)
	// Env is the environment that a request's own variables are added to;
	// process.PlainEnv() if nil. It must not hold keys: whoever makes a request can
	// read it.
	Env []string
}

// An api answers requests.
type api struct {
	processes workspace.Processes
	opts      Options
}

// New returns the handler of all that is below Prefix.
func New(p workspace.Processes, opts Options) http.Handler {
	if opts.Env == nil {
		opts.Env = process.PlainEnv()
	}
	a := &api{p, opts}
	mux := http.NewServeMux()
	for _, route := range []struct {
		method, path string
		answer       answerer
	}{
		{http.MethodPost, "/start", a.start},
		{http.MethodGet, "/list", a.list},
		{http.MethodGet, "/{id}/output", a.output},
		{http.MethodPost, "/{id}/signal", a.signal},
	} {
		mux.Handle(route.method+" "+Prefix+route.path, a.identified(route.answer))
		mux.Handle(Prefix+route.path, only(route.method))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &apiError{http.StatusNotFound, "not_found", "there is no such path; there are /start, /list, /{id}/output and /{id}/signal below " + Prefix})
	})
	return mux
}

// An answerer answers a request that was made for an owner.
type answerer func(w http.ResponseWriter, r *http.Request, owner process.Owner) error

// identified finds out for whom a request is made.
func (a *api) identified(answer answerer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner, err := a.owner(r)
		if err == nil {
			err = answer(w, r, owner)
		}
		if err != nil {
			refuse(w, err)
		}
	})
}

func (a *api) owner(r *http.Request) (process.Owner, error) {
	names := r.Header.Values(SessionHeader)
	switch {
	case len(names) == 0 || names[0] == "":
		return "", &apiError{http.StatusBadRequest, "no_session", "the header " + SessionHeader + " is missing: name the session"}
	case len(names) > 1:
		return "", &apiError{http.StatusBadRequest, "no_session", "the header " + SessionHeader + " is there more than once: name one session"}
	case len(names[0]) > maxSession || !utf8.ValidString(names[0]):
		return "", &apiError{http.StatusBadRequest, "no_session", fmt.Sprintf("the header %s is not UTF-8 of at most %d bytes", SessionHeader, maxSession)}
	case a.opts.Owner == nil:
		return process.Owner(names[0]), nil
	}
	return a.opts.Owner(r, names[0])
}

// only refuses other methods.
func only(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method)
		refuse(w, &apiError{http.StatusMethodNotAllowed, "method", "use " + method})
	}
}

// An apiError is an answer that is an error.
type apiError struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

// ErrNoSession is for an Owner that knows no such session.
var ErrNoSession = errors.New("there is no session")

// answers are the errors that callers can do something about.
var answers = []struct {
	err    error
	status int
	code   string
}{
	{ErrNoSession, http.StatusNotFound, "not_found"},
	{process.ErrNotFound, http.StatusNotFound, "not_found"},
	{process.ErrInvalid, http.StatusBadRequest, "invalid"},
	{process.ErrNoOwner, http.StatusBadRequest, "no_session"},
	{process.ErrConflict, http.StatusConflict, "conflict"},
	{process.ErrEnded, http.StatusConflict, "not_running"},
	{process.ErrDropped, http.StatusGone, "dropped"},
	{process.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{workspace.ErrLost, http.StatusServiceUnavailable, "unavailable"},
}

// toAnswer makes an answer of any error. It is the only place that does.
func toAnswer(err error) *apiError {
	var e *apiError
	var start *process.StartError
	var full *process.CapError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &start):
		return &apiError{http.StatusUnprocessableEntity, "failed_to_start", err.Error()}
	case errors.As(err, &full):
		return &apiError{http.StatusTooManyRequests, "full", err.Error()}
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return &apiError{a.status, a.code, err.Error()}
		}
	}
	return &apiError{http.StatusInternalServerError, "internal", err.Error()}
}

func refuse(w http.ResponseWriter, err error) {
	e := toAnswer(err)
	reply(w, e.Status, e)
}

// reply writes JSON. Whoever cannot be told has left.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
