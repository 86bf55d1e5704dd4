// Package remotetest is a local server in front of any model.Model, so that
// everything that runs with a model in the process can also be run over a wire,
// and the tests that the client of every wire has to pass.
//
// It is a working server, not a recording: it decodes the request, asks the
// model, and sends the reply as it comes, one flush for each piece. A
// [model.Error] becomes the answer of a provider with that problem. How requests
// and replies are written is the business of a [ServerWire].
//
// Options.Fault decides for each request whether something goes wrong with it.
package remotetest

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/abide-run/abide/internal/model"
)

// A ServerWire is the server's half of a wire.
type ServerWire interface {
	// Path is how the path of a request ends.
	Path() string
	// Decode reads a request, and whether its reply is to be streamed.
	Decode(body []byte) (req *model.Request, stream bool, err error)
	// Whole is a reply in one piece.
	Whole(req *model.Request, r *model.Reply) Object
	// Stream returns what sends a reply piece by piece.
	Stream(req *model.Request, send Send) Stream
}

// A Stream sends a reply. Calls are numbered from zero, in the order in which
// they begin.
type Stream interface {
	Text(piece string)
	Reasoning(piece string)
	Call(n int, id, name string)
	Arguments(n int, piece string)
	// End sends what is left: the reply was sent as far as it goes.
	End(r *model.Reply)
	// Fail reports an error in the middle.
	Fail(status int, e *model.Error)
}

// Send sends an event, with a name if the wire has names for them.
type Send func(name string, data []byte)

// Object is JSON in the making.
type Object map[string]any

// Encode returns the object as JSON.
func (o Object) Encode() []byte { return Encode(o) }

// Encode returns any value as JSON. It panics if there is none for it.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("remotetest: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}

// Options changes how a server answers. The zero value just answers.
type Options struct {
	Key string // the token or key that is asked for; any if empty

	// Fault is asked about every request, numbered 1, 2, 3, and says what goes
	// wrong with it; nil is nothing. It may be called concurrently.
	Fault func(n int, body []byte) Fault
}

// A Server is a Handler that listens on loopback.
type Server struct {
	URL string // the base URL, for the client's configuration

	http     http.Server
	running  sync.WaitGroup
	requests *atomic.Int64

	mu      sync.Mutex
	changed sync.Cond
	busy    map[net.Conn]bool // connections on which a request is awaited or answered
}

// Settle returns when all requests whose clients have left are counted. Connections are
// accepted in their order, so that those of the requests are when the one that is made
// here is. No client may be connected.
func (s *Server) Settle() {
	if r, err := http.Get(s.URL); err == nil { // there is nothing
		_ = r.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.busy) > 0 {
		s.changed.Wait()
	}
}

// NewServer starts a server. It panics if it cannot listen.
func NewServer(s ServerWire, m model.Model, o Options) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("remotetest: %v", err))
	}
	return Serve(l, s, m, o)
}

// Serve starts a server on l, which it closes in the end.
func Serve(l net.Listener, speaker ServerWire, m model.Model, o Options) *Server {
	h := newHandler(speaker, m, o)
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", requests: &h.requests, busy: make(map[net.Conn]bool)}
	s.changed.L = &s.mu
	s.http.Handler = h
	s.http.ConnState = s.count
	s.running.Go(func() { _ = s.http.Serve(l) })
	return s
}

// count keeps track of connections, each of which has a goroutine.
func (s *Server) count(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew || state == http.StateActive {
		s.busy[c] = true
	} else {
		delete(s.busy, c)
	}
	s.changed.Broadcast()
	switch state {
	case http.StateNew:
		s.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.running.Done()
	}
}

// Requests tells how many requests there were.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Close hangs up on everybody and waits until all is quiet.
func (s *Server) Close() {
	_ = s.http.Close()
	s.running.Wait()
}

// Handler answers POST requests to the speaker's path by asking m.
func Handler(s ServerWire, m model.Model, o Options) http.Handler { return newHandler(s, m, o) }

type handler struct {
	wire     ServerWire
	model    model.Model
	options  Options
	requests atomic.Int64
}

func newHandler(s ServerWire, m model.Model, o Options) *handler {
	return &handler{wire: s, model: m, options: o}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, h.wire.Path()) {
		w.Header().Set("Connection", "close") // a request on a connection that is idle could be counted after Settle
		refuse(w, http.StatusNotFound, "", "there is nothing at "+r.URL.Path)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // nobody is there to be told
	}
	n := h.requests.Add(1)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, body) })
	if h.options.Fault != nil {
		if fault := h.options.Fault(int(n), body); fault != nil {
			fault(w, r, answer)
			return
		}
	}
	answer(w, r)
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	if !h.admits(r) {
		refuse(w, http.StatusUnauthorized, "invalid_api_key", "the key is wrong")
		return
	}
	req, stream, err := h.wire.Decode(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "", err.Error())
		return
	}
	if stream {
		h.stream(w, r, req)
		return
	}
	reply, err := h.model.Ask(r.Context(), req, nil)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if reply.RequestID != "" {
		w.Header().Set("X-Request-Id", reply.RequestID)
	}
	_, _ = w.Write(h.wire.Whole(req, reply).Encode())
}

// admits looks for the key in all places where wires put it.
func (h *handler) admits(r *http.Request) bool {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, name := range []string{"X-Api-Key", "Api-Key"} {
		key = cmp.Or(r.Header.Get(name), key)
	}
	return h.options.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(h.options.Key)) == 1
}

// refuse answers with an error. All wires word it so, and each has members in
// it that the others do not know.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(Object{"type": "error", "error": Object{"type": ErrorType(status), "code": code, "message": message}}.Encode())
}

// ErrorType is the word for a status.
func ErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusRequestTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// statuses says how a provider reports an error of each kind. Of the others it
// reports nothing: the connection breaks.
var statuses = map[model.Kind]int{
	model.KindAuth:       http.StatusUnauthorized,
	model.KindNotFound:   http.StatusNotFound,
	model.KindRequest:    http.StatusBadRequest,
	model.KindOverflow:   http.StatusBadRequest,
	model.KindReasoning:  http.StatusBadRequest,
	model.KindRateLimit:  http.StatusTooManyRequests,
	model.KindOverloaded: http.StatusServiceUnavailable,
	model.KindTimeout:    http.StatusRequestTimeout,
	model.KindScenario:   http.StatusBadRequest,
}

// statusOf returns the error of a model and the status that reports it. Without
// one, the connection breaks.
func statusOf(err error) (int, *model.Error) {
	var e *model.Error
	if errors.As(err, &e) {
		if status := cmp.Or(e.Status, statuses[e.Kind]); status != 0 {
			return status, e
		}
	}
	panic(http.ErrAbortHandler)
}

// fail reports an error of the model before anything else was sent.
func fail(w http.ResponseWriter, err error) {
	status, e := statusOf(err)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
	}
	refuse(w, status, ErrorCode(e), e.Message)
}

// ErrorCode is the word for an error that its status does not tell.
func ErrorCode(e *model.Error) string {
	switch e.Kind {
	case model.KindOverflow:
		return "context_length_exceeded"
	case model.KindReasoning:
		return "invalid_encrypted_content"
	}
	return ""
}

// Finish is the word with which a reply ends.
func Finish(r *model.Reply) string {
	if r.Finish == "" && len(r.Calls) > 0 {
		return "tool_calls"
	}
	return cmp.Or(r.Finish, "stop")
}
