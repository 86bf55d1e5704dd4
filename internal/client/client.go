// Package client is the protocol as Go calls: what any program can ask of a
// runtime, and what it is shown.
//
//   - Calls may be made from any goroutine. Each returns when the runtime has
//     answered; an error of the runtime is a [*jsonrpc.Error].
//   - The events of a session come in order, each once, to the [Stream] that was
//     opened for it. What came before the answer to a call is in the stream when
//     the call returns.
//   - A question for a person is either answered by Options.AskUser or stays
//     open; that a client leaves is never an answer.
//
// The client keeps no state of a session: the log has it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// Options are what a client can be told. The zero value runs.
type Options struct {
	// AskUser puts a question to a person. If it is nil, questions stay open and
	// can be answered with AnswerUserInput.
	AskUser func(context.Context, api.UserInputParams) (api.UserInputResult, error)
	// Changed is told that a session was created, updated or deleted. It is a
	// hint; it must be quick and must not call the client.
	Changed func(api.LifecycleParams)
}

// A Client is one connection to a runtime.
type Client struct {
	rwc  io.Closer
	rpc  *jsonrpc.Conn
	opts Options
	done chan struct{} // closed when the connection is over and all is cleaned up

	mu      sync.Mutex
	streams map[event.SessionID]*Stream
}

// New makes a client of a connection and starts to read it. It has to be
// closed.
func New(rwc io.ReadWriteCloser, opts Options) *Client {
	c := &Client{rwc: rwc, opts: opts, done: make(chan struct{}), streams: make(map[event.SessionID]*Stream)}
	c.rpc = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle)})
	go func() { // Close waits for it
		defer close(c.done)
		c.rpc.Run(context.Background()) // Err tells why it ended
	}()
	return c
}

// Close leaves and waits until nothing of the client is at work. The sessions
// stay as they are. Calls under way fail, and nothing more is sent: to refuse a
// question that arrives at this moment would be to answer it.
func (c *Client) Close() error {
	err := c.rwc.Close()
	c.rpc.Close()
	<-c.done
	return err
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.rpc.Done() }

// Err returns why the connection is over: nil while it is not.
func (c *Client) Err() error { return c.rpc.Err() }

// Connect is the first call on every connection. The token is empty where none
// is needed.
func (c *Client) Connect(ctx context.Context, token string) (api.ConnectResult, error) {
	r, err := call[api.ConnectResult](ctx, c, api.Connect, api.ConnectParams{Token: token})
	if err == nil && r.ProtocolVersion != api.ProtocolVersion {
		err = fmt.Errorf("the runtime speaks version %d of the protocol, this client version %d: use the same release of both",
			r.ProtocolVersion, api.ProtocolVersion)
	}
	return r, err
}

// handle takes what the runtime sends.
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

// changed passes on that a session went on. It is told for every stored event of
// every session, so nothing more is decoded than somebody wants to know.
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

// askUser answers a question for a person, or leaves it open. An error would be
// taken for an answer, so there is none when the client leaves.
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

// event hands an event to the stream of its session. Events of sessions that
// nobody watches, and what is no event, are passed over.
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

// text decodes a JSON string; ids need no decoding nearly always.
func text(v json.RawMessage) string {
	if len(v) >= 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	var s string
	_ = json.Unmarshal(v, &s) // not a string: empty
	return s
}

// call asks the runtime and decodes the answer.
func call[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var r R
	err := c.rpc.Call(ctx, method, params, &r)
	return r, err
}
