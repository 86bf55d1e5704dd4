// Package jsonrpc speaks JSON-RPC 2.0 with Content-Length framing, as a peer:
// both sides of a [Conn] may call, answer and notify at any time.
//
//   - Messages of one side are sent in the order in which they are queued: answers,
//     calls and notifications share one [Outbox]. Only a [Piece] may overtake pieces
//     of other lanes.
//   - Requests are handled concurrently, each on its own goroutine, up to a
//     limit; one beyond it is refused at once. Reading never
//     waits for a handler, so a request may wait for a later one.
//   - Notifications are handled one by one in the order of arrival, before
//     anything that came after them: when [Conn.Call] returns, every
//     notification that came before the answer has been handled. Their handler
//     therefore must be quick and must not Call on the same connection.
//   - An answer is never dropped while the connection lives. A notification
//     sent with [Conn.TryNotify] is queued or refused, never half done.
//   - The text of a [Piece] arrives whole, once and in order; pieces that come
//     too fast arrive joined.
//   - Memory is bounded: the size of a frame, the size of the outbox and the size of what
//     waits for space in it are limited. A peer that stops reading is disconnected after
//     the stall time, and one that asks for far more than it reads at once.
//   - A peer that was not admitted yet can send only small messages, one after the other.
//   - Bytes given as json.RawMessage or as fragments are sent unchanged.
package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// Codes of the JSON-RPC specification, and two of common use.
const (
	CodeParse          = -32700 // the frame is not JSON
	CodeInvalidRequest = -32600 // JSON, but not a request
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	codeBusy           = -32003 // too many requests in flight
	codeCancelled      = -32800 // cancelled by the caller
	CodeClosing        = -32004 // the connection is about to end; the request was not handled
)

// An Error is an error of the protocol. A handler returns one to choose its code; Call
// returns one if the peer answered with it.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an error with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// MethodNotFound returns the error for an unknown method.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "Unhandled method %s", method)
}

// wireError converts an error of a handler to the error that is sent to the peer.
func wireError(ctx context.Context, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return Errorf(codeCancelled, "the request was cancelled")
	}
	return Errorf(CodeInternal, "%v", err)
}

var (
	// ErrClosed is wrapped by every error that is due to the end of the
	// connection.
	ErrClosed = errors.New("the connection is closed")
	// ErrGone is wrapped by the error of a read or a write that failed because the
	// peer is gone.
	ErrGone = errors.New("the peer has left")
	// ErrStalled is the cause of the end of a connection whose peer does not read.
	ErrStalled = errors.New("the peer has stopped reading")
	// ErrUnread is the cause of the end of a connection whose peer asks for much more than
	// it reads.
	ErrUnread = errors.New("the peer does not read its answers")
)

// wrapGone wraps an error of the stream in ErrGone if it means that the peer is gone.
func wrapGone(err error) error {
	for _, known := range []error{syscall.EPIPE, syscall.ECONNRESET, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	return err
}

// A Handler handles the requests and notifications of the peer. The result of a
// notification is ignored. The result of a request is encoded as JSON, unless it is a
// json.RawMessage, which is sent unchanged, or an [Answer]. An error that is not an
// [Error] is sent with CodeInternal and its text.
type Handler interface {
	Handle(ctx context.Context, req *Request) (result any, err error)
}

// A HandlerFunc is a function that handles requests.
type HandlerFunc func(ctx context.Context, req *Request) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req *Request) (any, error) { return f(ctx, req) }

// An Answer is a result with a function that runs right after the result was queued:
// messages that After queues follow the answer. After also runs, once, if the connection
// ended before.
type Answer struct {
	Result any
	After  func()
}

// A Request is a request or a notification of the peer. Its memory is not reused, so it
// may be kept.
type Request struct {
	Method string
	Params json.RawMessage // an object; nil if there are none
	ID     json.RawMessage // a string or a number as the peer wrote it; nil for a notification

	conn *Conn
}

// Conn returns the connection that the request came from.
func (r *Request) Conn() *Conn { return r.conn }

// Decode reads the params into v. Its error is an *Error with CodeInvalidParams.
func (r *Request) Decode(v any) error {
	params := r.Params
	if params == nil {
		params = emptyObject
	}
	if err := json.Unmarshal(params, v); err != nil {
		return Errorf(CodeInvalidParams, "%s: the params do not fit: %v", r.Method, err)
	}
	return nil
}

var (
	emptyObject = json.RawMessage(`{}`)
	null        = json.RawMessage(`null`)
)
