// Package openaitest is a local server that speaks Chat Completions in front of
// any model.Model, so that everything that runs with a model in the process can
// also be run over the wire.
//
// It is a working server, not a recording: it decodes the request, asks the
// model, and sends the reply as it comes, one flush for each piece. What the
// wire cannot carry is lost: that a tool result is a failure, which part of a
// user message is the volatile tail, what writing to a cache cost, and opaque
// reasoning. A [model.Error] becomes the answer of a provider with that problem.
//
// Options.Fault decides for each request whether something goes wrong with it.
package openaitest

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
	"time"

	"github.com/abide-run/abide/internal/model"
)

// Options changes how a server answers. The zero value just answers.
type Options struct {
	Key string // the bearer token that is asked for; any if empty

	// Fault is asked about every request, numbered 1, 2, 3, and says what goes
	// wrong with it; nil is nothing. It may be called concurrently.
	Fault func(n int, body []byte) Fault

	// Split sends the parts of a reply that is not streamed as choices of
	// their own: the text, and each call.
	Split bool
}

// A Server is a Handler that listens on loopback.
type Server struct {
	URL string // the base URL, for the client's configuration

	http     http.Server
	running  sync.WaitGroup
	requests *atomic.Int64
}

// NewServer starts a server. It panics if it cannot listen.
func NewServer(m model.Model, o Options) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("openaitest: %v", err))
	}
	return Serve(l, m, o)
}

// Serve starts a server on l, which it closes in the end.
func Serve(l net.Listener, m model.Model, o Options) *Server {
	h := newHandler(m, o)
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", requests: &h.requests}
	s.http.Handler = h
	s.http.ConnState = s.count
	s.running.Go(func() { _ = s.http.Serve(l) })
	return s
}

// count keeps track of connections, each of which has a goroutine.
func (s *Server) count(_ net.Conn, state http.ConnState) {
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

// Handler answers POST …/chat/completions by asking m.
func Handler(m model.Model, o Options) http.Handler { return newHandler(m, o) }

type handler struct {
	model    model.Model
	options  Options
	requests atomic.Int64
}

func newHandler(m model.Model, o Options) *handler { return &handler{model: m, options: o} }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
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
	req, stream, err := decodeRequest(body)
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
	h.whole(w, req, reply)
}

func (h *handler) admits(r *http.Request) bool {
	want := []byte("Bearer " + h.options.Key)
	return h.options.Key == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) == 1
}

// refuse answers with an error, as providers word it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(object{"error": object{"message": message, "code": code}}))
}

// statuses says how a provider reports an error of each kind. Of the others it
// reports nothing: the connection breaks.
var statuses = map[model.Kind]int{
	model.KindAuth:       http.StatusUnauthorized,
	model.KindNotFound:   http.StatusNotFound,
	model.KindRequest:    http.StatusBadRequest,
	model.KindOverflow:   http.StatusBadRequest,
	model.KindRateLimit:  http.StatusTooManyRequests,
	model.KindOverloaded: http.StatusServiceUnavailable,
	model.KindTimeout:    http.StatusRequestTimeout,
	model.KindScenario:   http.StatusBadRequest,
}

// fail reports an error of the model before anything else was sent.
func fail(w http.ResponseWriter, err error) {
	var e *model.Error
	if !errors.As(err, &e) {
		panic(http.ErrAbortHandler)
	}
	status := cmp.Or(e.Status, statuses[e.Kind])
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(e.RetryAfter.Milliseconds(), 10))
	}
	refuse(w, status, errorCode(e), e.Message)
}

func errorCode(e *model.Error) string {
	if e.Kind == model.KindOverflow {
		return "context_length_exceeded"
	}
	return ""
}

// object is JSON in the making.
type object map[string]any

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("openaitest: %v", err)) // only made of strings and numbers
	}
	return bytes.TrimSpace(b.Bytes())
}

func usageOf(u model.Usage) object {
	return object{
		"prompt_tokens":             u.Input + u.CacheRead,
		"completion_tokens":         u.Output,
		"total_tokens":              u.Input + u.CacheRead + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

func finishOf(r *model.Reply) string {
	if r.Finish == "" && len(r.Calls) > 0 {
		return "tool_calls"
	}
	return cmp.Or(r.Finish, "stop")
}

func completion(kind, name string) object {
	return object{"id": "chatcmpl-local", "object": kind, "created": time.Now().Unix(), "model": name}
}

// whole sends a reply in one piece.
func (h *handler) whole(w http.ResponseWriter, req *model.Request, r *model.Reply) {
	out := completion("chat.completion", cmp.Or(r.Model, req.Model))
	out["usage"] = usageOf(r.Usage)
	var choices []object
	for i, m := range h.messages(r) {
		choices = append(choices, object{"index": i, "message": m, "finish_reason": finishOf(r)})
	}
	out["choices"] = choices
	w.Header().Set("Content-Type", "application/json")
	if r.RequestID != "" {
		w.Header().Set("X-Request-Id", r.RequestID)
	}
	_, _ = w.Write(encode(out))
}

// messages is the reply as the messages of its choices.
func (h *handler) messages(r *model.Reply) []object {
	first := object{"role": "assistant", "content": nil}
	if r.Text != "" || len(r.Calls) == 0 {
		first["content"] = r.Text
	}
	if r.Reasoning != nil {
		first["reasoning_content"] = r.Reasoning.Text
	}
	var calls []object
	for _, c := range r.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.Arguments)}})
	}
	if !h.options.Split {
		if len(calls) > 0 {
			first["tool_calls"] = calls
		}
		return []object{first}
	}
	messages := []object{first}
	for _, c := range calls {
		messages = append(messages, object{"role": "assistant", "content": nil, "tool_calls": []object{c}})
	}
	return messages
}
