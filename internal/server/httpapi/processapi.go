// Package httpapi serves durable commands over HTTP, for programs that need nothing else:
//
//		POST /api/v0/processes/start        start a command, once for each key
//		GET  /api/v0/processes/list         what the session has
//		GET  /api/v0/processes/{id}/output  its output: a view, a part, or as it comes
//		POST /api/v0/processes/{id}/signal  send it a signal
//
//	  - Every request names its session. A request without one is refused, and the
//	    processes of other sessions are invisible.
//	  - An answer that says that a process has ended has all of its output.
//	  - The end of a request does not affect the process.
//	  - Errors are JSON: a code for programs, and a message that says what to do.
//
// The program that mounts the handler decides who may name which session.
// docs/WORKSPACE.md has the fields.
package httpapi

import (
	"context"
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

	maxBody    = 2 << 20 // maximum size of a request, in bytes
	maxSession = 1024    // maximum length of a session's name, in bytes
)

// Options are the settings of the API. The zero value works.
type Options struct {
	// Owner returns the owner of a session's processes, or an error that refuses the
	// request. If it is nil, the session's name is the owner.
	Owner func(r *http.Request, session string) (process.Owner, error)
	// Env returns the environment to which the variables of a request are added;
	// process.PlainEnv() if it is nil or returns nil. It must not hold secrets: clients can
	// read it.
	Env func(ctx context.Context, owner process.Owner) ([]string, error)
}

// An api answers requests.
type api struct {
	processes workspace.Processes
	opts      Options
}

// New returns the handler of all paths below Prefix.
func New(p workspace.Processes, opts Options) http.Handler {
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
		refuse(w, &apiError{http.StatusNotFound, "not_found", "unknown path; use /start, /list, /{id}/output or /{id}/signal below " + Prefix})
	})
	return mux
}

// An answerer handles a request for an owner.
type answerer func(w http.ResponseWriter, r *http.Request, owner process.Owner) error

// identified finds the owner of a request and calls the answerer.
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
		return "", &apiError{http.StatusBadRequest, "no_session", "the header " + SessionHeader + " is given more than once: name one session"}
	case len(names[0]) > maxSession || !utf8.ValidString(names[0]):
		return "", &apiError{http.StatusBadRequest, "no_session", fmt.Sprintf("the header %s is not UTF-8 of at most %d bytes", SessionHeader, maxSession)}
	case a.opts.Owner == nil:
		return process.Owner(names[0]), nil
	}
	return a.opts.Owner(r, names[0])
}

// only refuses requests with another method.
func only(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", method)
		refuse(w, &apiError{http.StatusMethodNotAllowed, "method", "use " + method})
	}
}

// An apiError is an error in JSON, with its HTTP status.
type apiError struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

// ErrNoSession is wrapped by the error of Options.Owner for an unknown session.
var ErrNoSession = errors.New("there is no session")

// answers maps errors that callers can handle to a status and a code.
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
	{workspace.ErrAway, http.StatusServiceUnavailable, "unavailable"},
	{workspace.ErrLost, http.StatusServiceUnavailable, "unavailable"},
}

// toAnswer converts any error to an apiError. No other place does so.
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

// reply writes a value as JSON. An error means that the client is gone.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
