package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

// A Problem is an error as clients get it: problem details of RFC 9457 with a code for
// programs.
type Problem struct {
	Type   string `json:"type" doc:"URN of the code"`
	Title  string `json:"title" doc:"text of the status"`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"code for programs"`
	Detail string `json:"detail" doc:"what is wrong, and what to do"`
}

func (p *Problem) Error() string { return p.Detail }

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

func notFound(detail string) error {
	return &Problem{Status: http.StatusNotFound, Code: "not_found", Detail: detail}
}

func invalid(format string, args ...any) error {
	return &Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: fmt.Sprintf(format, args...)}
}

func conflict(code, format string, args ...any) error {
	return &Problem{Status: http.StatusConflict, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// problems maps errors that callers can handle to a status and a code.
var problems = []struct {
	err    error
	status int
	code   string
}{
	{session.ErrNotFound, http.StatusNotFound, "not_found"},
	{process.ErrNotFound, http.StatusNotFound, "not_found"},
	{session.ErrPosition, http.StatusNotFound, "not_found"},
	{eventlog.ErrNoJob, http.StatusNotFound, "not_found"},
	{session.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{eventlog.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{eventlog.ErrFenced, http.StatusServiceUnavailable, "unavailable"},
	{jsonrpc.ErrClosed, http.StatusServiceUnavailable, "unavailable"},
	{workspace.ErrAway, http.StatusServiceUnavailable, "unavailable"},
	{workspace.ErrLost, http.StatusServiceUnavailable, "unavailable"},
	{process.ErrEnded, http.StatusConflict, "not_running"},
	{process.ErrNoStdin, http.StatusConflict, "not_running"},
	{process.ErrDropped, http.StatusGone, "dropped"},
	{eventlog.ErrConflict, http.StatusConflict, "conflict"},
}

// toProblem converts any error. No other place does so.
func toProblem(err error) *Problem {
	var p *Problem
	var fault *jsonrpc.Error
	var damage *eventlog.Damage
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &fault):
		return ofProtocol(fault)
	case errors.As(err, &damage):
		return &Problem{Status: http.StatusConflict, Code: "damaged", Detail: damage.Error()}
	}
	for _, k := range problems {
		if errors.Is(err, k.err) {
			return &Problem{Status: k.status, Code: k.code, Detail: err.Error()}
		}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: err.Error()}
}

// faults has the status and the code for each kind of fault.
var faults = map[string]Problem{
	api.FaultNotFound:    {Status: http.StatusNotFound, Code: "not_found"},
	api.FaultDamaged:     {Status: http.StatusConflict, Code: "damaged"},
	api.FaultUnavailable: {Status: http.StatusServiceUnavailable, Code: "unavailable"},
	api.FaultFull:        {Status: http.StatusTooManyRequests, Code: "full"},
	api.FaultInternal:    {Status: http.StatusInternalServerError, Code: "internal"},
}

// ofProtocol converts an error of the protocol. What the engine refuses, and is no fault of a
// known kind, is a conflict with the state of the session.
func ofProtocol(fault *jsonrpc.Error) *Problem {
	text := fault.Message
	if _, after, ok := strings.Cut(text, " failed with message: "); ok {
		text = after
	}
	switch {
	case fault.Code == jsonrpc.CodeInvalidParams:
		if _, after, ok := strings.Cut(text, ": "); ok {
			text = after // the name of the method means nothing here
		}
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: text}
	case fault.Code == api.CodeAttachment, fault.Code == api.CodeUnseen:
		return &Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: text}
	case fault.Code == api.CodeShuttingDown, fault.Code == jsonrpc.CodeClosing:
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the engine is stopping; try again"}
	case fault.Code == jsonrpc.CodeMethodNotFound:
		return &Problem{Status: http.StatusNotImplemented, Code: "unsupported", Detail: text}
	case strings.Contains(text, "ession not found"), strings.Contains(text, "not found or has no persisted events"):
		return &Problem{Status: http.StatusNotFound, Code: "not_found", Detail: text} // in the protocol's own words
	}
	var of api.Fault
	_ = json.Unmarshal(fault.Data, &of) // an error without data is none of these
	if p, known := faults[of.Kind]; known {
		p.Detail = text
		return &p
	}
	return &Problem{Status: http.StatusConflict, Code: "refused", Detail: text}
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, err error) {
	p := *toProblem(err)
	p.Type, p.Title = "urn:abide:problem:"+p.Code, http.StatusText(p.Status)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", ProblemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // an error means that the client is gone
}

// reply answers with a value as JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // events are sent byte for byte
	if err := e.Encode(v); err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stall)) // the request may have waited for long
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client is gone
	return nil
}

// Sizes of the bodies of requests.
const (
	maxBody    = 2 << 20
	maxMessage = 24 << 20 // with attachments
)

// decode reads the body of a request, which is one JSON value with known fields. An empty
// body is an empty object.
func decode(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	body, err := readBody(w, r, most)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	if err := event.CheckDepth(body); err != nil {
		return invalid("the body: %v", err)
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("the body is not a valid request: %v", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.Decode(new(json.RawMessage)) != io.EOF {
		return invalid("the body has more than one value")
	}
	return nil
}

// readBody reads the body of a request. A request that was read before, for its key, has
// it in memory.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); r.ContentLength != 0 && kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, &Problem{Status: http.StatusUnsupportedMediaType, Code: "content_type", Detail: fmt.Sprintf("the body is %s: send application/json", kind)}
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: fmt.Sprintf("the body is larger than %d MiB", most>>20)}
	}
	if err != nil {
		return nil, invalid("the body could not be read: %v", err)
	}
	return body, nil
}

// number reads a number of the query.
func number(r *http.Request, name string, least, most, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, invalid("%s is %q: give a number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// flag reads a truth value of the query.
func flag(r *http.Request, name string) (bool, error) {
	switch text := r.URL.Query().Get(name); text {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	default:
		return false, invalid("%s is %q: give true or false", name, text)
	}
}

// filled returns a list that is not null in JSON.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
