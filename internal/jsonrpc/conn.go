package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the settings of a Conn. The zero value is usable.
type Options struct {
	Handler     Handler       // handles requests and notifications; if nil, every method is unknown
	MaxFrame    int           // maximum size of a message of the peer; DefaultMaxFrame if zero
	FirstFrame  int           // maximum size of a message until Admit is called; as MaxFrame if zero, and then Admit need not be called
	MaxRequests int           // maximum number of requests of the peer in flight; 1024 if zero
	Outbox      int           // maximum number of bytes queued for the peer; 1 MiB if zero
	MaxUnread   int           // maximum number of bytes of answers that wait for room in the outbox, beside the largest; 32 MiB if zero
	Stall       time.Duration // time without reading after which the peer is disconnected; 1m if zero
	Drain       time.Duration // time in which queued messages are sent at the end; 5s if zero
}

func (o Options) filled() Options {
	if o.Handler == nil {
		o.Handler = HandlerFunc(unhandled)
	}
	orDefault(&o.MaxFrame, DefaultMaxFrame)
	orDefault(&o.MaxRequests, 1024)
	orDefault(&o.Outbox, 1<<20)
	orDefault(&o.MaxUnread, 32<<20)
	orDefault(&o.Stall, time.Minute)
	orDefault(&o.Drain, 5*time.Second)
	return o
}

func orDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

func unhandled(_ context.Context, req *Request) (any, error) {
	return nil, MethodNotFound(req.Method)
}

// A Conn is one side of a connection. Nothing is sent or received until Run is called.
type Conn struct {
	rwc  io.ReadWriteCloser
	opt  Options
	out  *Outbox
	done chan struct{} // closed when the connection begins to end

	admitted    atomic.Bool         // true if the limits before Admit do not hold, or not any more
	closeStream func() error        // closes rwc, once
	handlers    sync.WaitGroup      // counts the requests in flight
	workers     sync.WaitGroup      // counts the goroutines that handle requests
	idleWorkers atomic.Int32        // number of goroutines that wait for a request
	idle        chan pendingRequest // requests for the idle goroutines

	mu       sync.Mutex
	ended    bool
	running  bool
	cause    error // reason of the end; nil for an ordinary one
	lastCall int64
	calls    map[int64]chan Message        // answers to calls of this side, by id
	requests map[string]context.CancelFunc // requests of the peer in flight, by id
}

// New makes a connection on a stream. Closing the stream must end its pending reads and
// writes.
func New(rwc io.ReadWriteCloser, opt Options) *Conn {
	c := &Conn{
		rwc:         rwc,
		opt:         opt.filled(),
		done:        make(chan struct{}),
		closeStream: sync.OnceValue(rwc.Close),
		calls:       make(map[int64]chan Message),
		requests:    make(map[string]context.CancelFunc),
		idle:        make(chan pendingRequest),
	}
	c.admitted.Store(opt.FirstFrame == 0)
	c.out = NewOutbox(peer{c}, c.opt.Outbox, c.opt.Stall)
	c.out.maxUnread = c.opt.MaxUnread
	return c
}

// Admit ends the limits that hold for a peer that has not shown who it is: the size of its
// messages, and that its requests are handled one after the other. The handler of a request
// calls it.
func (c *Conn) Admit() { c.admitted.Store(true) }

// A peer is the stream as the outbox sees it. The outbox closes it only if the peer
// stalls; the connection then ends with that cause, before the reader fails with a less
// clear one.
type peer struct{ c *Conn }

func (p peer) Write(b []byte) (int, error) { return p.c.rwc.Write(b) }

func (p peer) Close() error {
	p.c.end(p.c.out.stallError())
	return p.c.closeStream()
}

// Run serves the connection until the peer leaves, Close is called, ctx is done or an
// error occurs, and returns when all its goroutines have ended. At the end the contexts
// of running handlers are cancelled, and queued messages are sent within the drain time.
// The error is nil after Close, and if the peer left between two frames.
func (c *Conn) Run(ctx context.Context) error {
	c.mu.Lock()
	c.running = true
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })
	defer stop()
	working, cancel := context.WithCancelCause(ctx)

	var reader, writer sync.WaitGroup
	reader.Go(func() { c.end(c.read(working)) })
	writer.Go(func() {
		if err := c.out.Run(); err != nil {
			c.end(ordinary(err))
		}
	})
	<-c.done
	cancel(ErrClosed)
	deadline := time.AfterFunc(c.opt.Drain, func() { c.closeStream() })
	defer deadline.Stop()
	c.handlers.Wait()
	c.workers.Wait()
	c.out.Close()
	writer.Wait()
	c.closeStream()
	reader.Wait()
	return c.cause
}

// Close begins the end of the connection: queued messages are still sent, then Run
// returns. Close does not wait. A connection that does not run yet is closed at once.
func (c *Conn) Close() error {
	c.end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return c.closeStream()
	}
	return nil
}

// Done returns a channel that is closed when the connection begins to end.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns the reason why the connection is over, which wraps ErrClosed; nil while it
// is not over.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.ended:
		return nil
	case c.cause == nil:
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, c.cause)
}

// end begins the end of the connection. Only the first cause is kept.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.cause = true, cause
	close(c.done)
	c.out.failWaiting()
}

// read reads frames until there are no more or the connection begins to end.
func (c *Conn) read(ctx context.Context) error {
	in := NewReader(c.rwc, c.opt.FirstFrame)
	for {
		if c.admitted.Load() {
			in.SetMax(c.opt.MaxFrame)
		}
		body, err := in.Next(nil)
		if err != nil {
			return c.readEnd(err)
		}
		if c.Err() != nil {
			return nil
		}
		m, fault := Parse(body)
		switch {
		case fault != nil:
			c.refuse(m.ID, fault)
		case m.IsAnswer():
			c.deliverAnswer(m)
		case m.IsRequest():
			c.accept(ctx, m)
		default:
			c.handleNotification(ctx, m)
		}
	}
}

// readEnd answers a malformed frame with an error, and returns the error of the read;
// nil for an ordinary end.
func (c *Conn) readEnd(err error) error {
	if fault, ok := errors.AsType[*FrameError](err); ok {
		c.refuse(nil, Errorf(CodeParse, "%v", fault))
	}
	return ordinary(err)
}

// ordinary returns nil for the error of a peer that is gone.
func ordinary(err error) error {
	if err == io.EOF || errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// handleNotification handles a notification before the next frame is read.
func (c *Conn) handleNotification(ctx context.Context, m Message) {
	if m.Params != nil && !IsObject(m.Params) {
		return
	}
	if m.Method == cancelMethod {
		c.cancelRequest(m.Params)
		return
	}
	c.opt.Handler.Handle(ctx, &Request{Method: m.Method, Params: m.Params, conn: c})
}

const cancelMethod = "$/cancelRequest"

// cancelRequest cancels the request of the peer with the id in the params.
func (c *Conn) cancelRequest(params json.RawMessage) {
	for key, id := range Members(params) {
		if string(key) != "id" {
			continue
		}
		c.mu.Lock()
		cancel := c.requests[string(id)]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
}

// accept starts a request's handler, or refuses it.
func (c *Conn) accept(ctx context.Context, m Message) {
	if m.Params != nil && !IsObject(m.Params) {
		c.refuse(m.ID, Errorf(CodeInvalidParams, "%s: the params must be an object", m.Method))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := c.admit(m, cancel); err != nil {
		cancel()
		c.refuse(m.ID, err)
		return
	}
	w := pendingRequest{ctx, cancel, &Request{Method: m.Method, Params: m.Params, ID: m.ID, conn: c}}
	if !c.admitted.Load() {
		c.serveRequest(w)
		return
	}
	select {
	case c.idle <- w:
	default:
		c.workers.Go(func() { c.serveRequests(w) })
	}
}

// pendingRequest is a request to be handled.
type pendingRequest struct {
	ctx    context.Context
	cancel context.CancelFunc
	req    *Request
}

// maxIdle is the maximum number of goroutines that wait for the next request. They are
// kept because a new goroutine would have to grow its stack again.
const maxIdle = 8

// serveRequests handles a request, and further ones when it is done.
func (c *Conn) serveRequests(w pendingRequest) {
	for more := true; more; w, more = c.nextRequest() {
		c.serveRequest(w)
	}
}

func (c *Conn) serveRequest(w pendingRequest) {
	defer c.handlers.Done()
	defer c.forgetRequest(w.req.ID, w.cancel)
	c.handle(w.ctx, w.req)
}

// nextRequest waits for the next request, unless enough goroutines wait already.
func (c *Conn) nextRequest() (pendingRequest, bool) {
	if c.idleWorkers.Add(1) > maxIdle {
		c.idleWorkers.Add(-1)
		return pendingRequest{}, false
	}
	defer c.idleWorkers.Add(-1)
	select {
	case w := <-c.idle:
		return w, true
	case <-c.done:
		return pendingRequest{}, false
	}
}

// admit registers a request, so that Run waits for it.
func (c *Conn) admit(m Message, cancel context.CancelFunc) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return Errorf(CodeClosing, "the connection is closing")
	case len(c.requests) >= c.opt.MaxRequests:
		return Errorf(codeBusy, "%d requests are in flight; wait for an answer", len(c.requests))
	case c.requests[string(m.ID)] != nil:
		return Errorf(CodeInvalidRequest, "the id %s belongs to a request in flight", clip(m.ID))
	}
	c.requests[string(m.ID)] = cancel
	c.handlers.Add(1)
	return nil
}

func (c *Conn) forgetRequest(id json.RawMessage, cancel context.CancelFunc) {
	cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, string(id))
}

// handle runs the handler and queues its answer.
func (c *Conn) handle(ctx context.Context, req *Request) {
	result, err := c.opt.Handler.Handle(ctx, req)
	answer, ok := result.(Answer)
	if !ok {
		answer.Result = result
	}
	if err == nil {
		err = c.answer(req.ID, answer.Result)
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		c.refuse(req.ID, wireError(ctx, err))
	}
	if answer.After != nil {
		answer.After()
	}
}

// putAnswer queues an answer. A peer for which too many answers wait loses its connection.
func (c *Conn) putAnswer(parts ...[]byte) error {
	err := c.out.putAnswer(parts...)
	if errors.Is(err, ErrUnread) {
		c.end(err)
		c.closeStream()
		return ErrClosed
	}
	return err
}

// answer queues a result.
func (c *Conn) answer(id json.RawMessage, result any) error {
	raw, err := encode(result, null)
	if err != nil {
		return err
	}
	defer raw.free()
	var scratch [96]byte
	head := append(scratch[:0], `{"jsonrpc":"2.0","id":`...)
	head = append(head, id...)
	head = append(head, `,"result":`...)
	return c.putAnswer(head, raw.bytes, closing)
}

// refuse queues an error. If it cannot be queued, the peer is gone.
func (c *Conn) refuse(id json.RawMessage, fault *Error) {
	if id == nil {
		id = null
	}
	raw, err := json.Marshal(fault)
	if err != nil { // only Data can fail
		raw, _ = json.Marshal(&Error{Code: fault.Code, Message: fault.Message})
	}
	c.putAnswer([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), raw, closing)
}

var closing = []byte{'}'}

// An encoded value holds JSON and the pooled buffer that it is in, if it needed one.
type encoded struct {
	bytes  []byte
	buffer *bytes.Buffer
}

func (e encoded) free() {
	if e.buffer != nil && e.buffer.Cap() <= keepSpare {
		buffers.Put(e.buffer)
	}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode encodes a value as JSON; a json.RawMessage is used unchanged.
func encode(v any, ifNil json.RawMessage) (encoded, error) {
	raw, isRaw := v.(json.RawMessage)
	if v == nil || isRaw && len(raw) == 0 {
		return encoded{bytes: ifNil}, nil
	}
	if isRaw {
		return encoded{bytes: raw}, nil
	}
	e := encoded{buffer: buffers.Get().(*bytes.Buffer)}
	e.buffer.Reset()
	enc := json.NewEncoder(e.buffer)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		e.free()
		return encoded{}, fmt.Errorf("encode %T: %w", v, err)
	}
	e.bytes = e.buffer.Bytes()[:e.buffer.Len()-1] // the encoder adds a newline
	return e, nil
}
