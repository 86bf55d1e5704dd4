// Package client has the calls of the protocol as Go methods, and the events that the
// runtime sends.
//
//   - Calls may be made from any goroutine. Each returns when the runtime has
//     answered; an error of the runtime is a [*jsonrpc.Error].
//   - The events of a session arrive in order, each once, at the [Stream] that was
//     opened for it. Events that came before the answer to a call are in the stream
//     when the call returns.
//   - A question to a person is answered by Options.AskUser or stays open; a client
//     that leaves does not answer it.
//
// The client keeps no state of a session: the log has it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// Options are the settings of a client. The zero value is usable.
type Options struct {
	// AskUser asks a person. If it is nil, questions stay open and can be answered
	// with AnswerUserInput.
	AskUser func(context.Context, api.UserInputParams) (api.UserInputResult, error)
	// Changed is called when a session was created, updated or deleted. It must be
	// quick and must not call the client.
	Changed func(api.LifecycleParams)
}

// A Client is one connection to a runtime.
type Client struct {
	rwc  io.Closer
	rpc  *jsonrpc.Conn
	opts Options
	done chan struct{} // closed when the connection is over and its goroutines have ended

	mu      sync.Mutex
	streams map[event.SessionID]*Stream
}

// New makes a client on a connection and starts to read it. The client must be closed.
func New(rwc io.ReadWriteCloser, opts Options) *Client {
	c := &Client{rwc: rwc, opts: opts, done: make(chan struct{}), streams: make(map[event.SessionID]*Stream)}
	c.rpc = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle)})
	go func() { // Close waits for it
		defer close(c.done)
		c.rpc.Run(context.Background()) // Err tells why it ended
	}()
	return c
}

// Close closes the connection and waits until all goroutines of the client have ended.
// The sessions are not affected. Calls under way fail, and nothing more is sent: an
// error for a question that arrives at this moment would count as its answer.
func (c *Client) Close() error {
	err := c.rwc.Close()
	c.rpc.Close()
	<-c.done
	return err
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.rpc.Done() }

// Err returns the reason why the connection is over; nil while it is not.
func (c *Client) Err() error { return c.rpc.Err() }

// Connect must be the first call on every connection. The token is empty if none is
// needed.
func (c *Client) Connect(ctx context.Context, token string) (api.ConnectResult, error) {
	r, err := call[api.ConnectResult](ctx, c, api.Connect, api.ConnectParams{Token: token})
	if err == nil && r.ProtocolVersion != api.ProtocolVersion {
		err = fmt.Errorf("the runtime speaks version %d of the protocol, this client version %d: use the same release of both",
			r.ProtocolVersion, api.ProtocolVersion)
	}
	return r, err
}

// handle handles the requests and notifications of the runtime.
func (c *Client) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case api.SessionEvent:
		c.event(req.Params)
		return nil, nil
	case api.SessionLifecycle:
		c.changed(req)
		return nil, nil
	case api.UserInput:
		return c.askUser(ctx, req)
	}
	return nil, jsonrpc.MethodNotFound(req.Method)
}

// changed handles the notification that a session has changed. It comes for every
// stored event of every session, so only the necessary members are decoded.
func (c *Client) changed(req *jsonrpc.Request) {
	for key, value := range jsonrpc.Members(req.Params) {
		if string(key) == "sessionId" {
			if s := c.stream(event.SessionID(text(value))); s != nil {
				s.hint()
			}
		}
	}
	var p api.LifecycleParams
	if c.opts.Changed != nil && req.Decode(&p) == nil {
		c.opts.Changed(p)
	}
}

// askUser answers a question to a person, or leaves it open. An error would count as an
// answer, so none is sent when the client leaves.
func (c *Client) askUser(ctx context.Context, req *jsonrpc.Request) (any, error) {
	if c.opts.AskUser == nil {
		<-ctx.Done()
		return nil, jsonrpc.ErrClosed
	}
	var p api.UserInputParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	r, err := c.opts.AskUser(ctx, p)
	if ctx.Err() != nil {
		return nil, jsonrpc.ErrClosed
	}
	return r, err
}

// event passes an event on to the stream of its session. Events of sessions without a
// stream, and invalid events, are ignored.
func (c *Client) event(params json.RawMessage) {
	id, e, ok := decodeEvent(params)
	if !ok {
		return
	}
	if s := c.stream(id); s != nil {
		s.put(e)
	}
}

func (c *Client) stream(id event.SessionID) *Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// decodeEvent reads a session.event notification without decoding the event.
func decodeEvent(params json.RawMessage) (event.SessionID, event.Event, bool) {
	var id event.SessionID
	var seq event.Seq
	var raw json.RawMessage
	for key, value := range jsonrpc.Members(params) {
		switch string(key) {
		case "sessionId":
			id = event.SessionID(text(value))
		case "seq":
			n, _ := strconv.ParseInt(string(value), 10, 64) // zero: not stored
			seq = event.Seq(n)
		case "event":
			raw = value
		}
	}
	e, err := event.Parse(seq, raw)
	return id, e, err == nil && id != ""
}

// text decodes a JSON string. A string without escapes, as nearly all ids are, is only
// copied.
func text(v json.RawMessage) string {
	if len(v) >= 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	var s string
	_ = json.Unmarshal(v, &s) // a value that is not a string reads as empty
	return s
}

// call makes a request and decodes the answer. If ctx ends the call, the error is its cause
// alone: whoever ended it need not know which request was under way.
func call[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var r R
	err := c.rpc.Call(ctx, method, params, &r)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		err = cause
	}
	return r, explained(method, err)
}

// explained says what it means that the engine does not know one of its own methods: it is of
// an earlier version than this client.
func explained(method string, err error) error {
	fault, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || fault.Code != jsonrpc.CodeMethodNotFound || fault.Message != jsonrpc.MethodNotFound(method).Message {
		return err
	}
	return fmt.Errorf("the engine that serves this data folder is another version of abide and cannot do this; stop it, and try again (%w)", err)
}
