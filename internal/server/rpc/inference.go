package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods let a client make the requests to models.
var _ = register(map[string]method{
	api.InferenceSetProvider:   on((*conn).setInference),
	api.InferenceResponseStart: on((*conn).responseStart),
	api.InferenceResponseChunk: on((*conn).responseChunk),
})

// inference is the requests to models that a client makes for its sessions.
type inference struct {
	mu      sync.Mutex
	on      bool
	pending map[string]*response
	work    sync.WaitGroup // cancellations on their way
}

// A response is what a client brings back.
type response struct {
	head chan api.ResponseStartParams // holds one
	body *io.PipeReader
	in   *io.PipeWriter
}

// setInference makes this client the one that makes the requests to models, for
// the sessions that it opens from now on.
func (c *conn) setInference(context.Context, struct{}) (api.Success, error) {
	c.inference.mu.Lock()
	defer c.inference.mu.Unlock()
	c.inference.on = true
	return api.Success{Success: true}, nil
}

func (c *conn) infers() bool {
	c.inference.mu.Lock()
	defer c.inference.mu.Unlock()
	return c.inference.on
}

// A courier makes the requests of one session through a client.
type courier struct {
	conn    *conn
	session event.SessionID
}

// RoundTrip makes a request through the client. Its pieces go one after the other:
// a client may handle what it gets in any order.
func (t courier) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ctx, id := t.conn, req.Context(), event.NewID()
	r := c.expect(id)
	start := api.RequestStartParams{
		RequestID: id, SessionID: t.session, Method: req.Method, URL: req.URL.String(), Headers: req.Header, Transport: "http",
		AgentID: string(t.session), InteractionType: "conversation-agent",
	}
	err := c.rpc.Call(ctx, api.InferenceRequestStart, start, nil)
	if err == nil {
		err = c.sendBody(ctx, id, req.Body)
	}
	if err == nil {
		var resp *http.Response
		if resp, err = c.receive(ctx, id, r, req); err == nil {
			return resp, nil
		}
	}
	c.unexpect(id, err)
	if ctx.Err() != nil {
		c.cancelRequest(id, context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("the client could not make the request: %w", err)
}

// bodyPiece is how much of a body goes in one message.
const bodyPiece = 256 << 10

// sendBody sends the body of a request and its end.
func (c *conn) sendBody(ctx context.Context, id string, body io.ReadCloser) error {
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	buf := make([]byte, bodyPiece)
	kept := 0 // the beginning of a character whose rest is still to come
	for {
		n, err := io.ReadFull(body, buf[kept:])
		n += kept
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		whole := n
		if !last {
			whole = wholeRunes(buf[:n])
		}
		if err := c.rpc.Call(ctx, api.InferenceRequestChunk, chunk(id, buf[:whole], last), nil); err != nil || last {
			return err
		}
		kept = copy(buf, buf[whole:n])
	}
}

// wholeRunes is how much of a text has no character cut off at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return len(b)
			}
			return i
		}
	}
	return len(b)
}

func chunk(id string, data []byte, last bool) api.RequestChunkParams {
	if utf8.Valid(data) {
		return api.RequestChunkParams{RequestID: id, Data: string(data), End: last}
	}
	return api.RequestChunkParams{RequestID: id, Data: base64.StdEncoding.EncodeToString(data), Binary: true, End: last}
}

// expect makes room for a response.
func (c *conn) expect(id string) *response {
	r := &response{head: make(chan api.ResponseStartParams, 1)}
	r.body, r.in = io.Pipe()
	c.inference.mu.Lock()
	defer c.inference.mu.Unlock()
	if c.inference.pending == nil {
		c.inference.pending = make(map[string]*response)
	}
	c.inference.pending[id] = r
	return r
}

func (c *conn) expected(id string) *response {
	c.inference.mu.Lock()
	defer c.inference.mu.Unlock()
	return c.inference.pending[id]
}

// unexpect takes nothing more for a request, and reports whether something was
// expected.
func (c *conn) unexpect(id string, err error) bool {
	c.inference.mu.Lock()
	r := c.inference.pending[id]
	delete(c.inference.pending, id)
	c.inference.mu.Unlock()
	if r == nil {
		return false
	}
	if err == nil {
		err = io.EOF
	}
	r.in.CloseWithError(err)
	return true
}

// receive waits for the head of a response.
func (c *conn) receive(ctx context.Context, id string, r *response, req *http.Request) (*http.Response, error) {
	select {
	case head := <-r.head:
		return &http.Response{
			Status: fmt.Sprintf("%d %s", head.Status, head.StatusText), StatusCode: head.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: canonical(head.Headers), ContentLength: -1, Request: req,
			Body: &responseBody{PipeReader: r.body, conn: c, id: id, stop: context.AfterFunc(ctx, func() { r.body.CloseWithError(context.Cause(ctx)) })},
		}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.rpc.Done():
		return nil, session.ErrLeft
	}
}

func canonical(headers map[string][]string) http.Header {
	h := make(http.Header, len(headers))
	for name, values := range headers {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}

// A responseBody is the body of a response. Closing it early tells the client
// that nobody wants the rest.
type responseBody struct {
	*io.PipeReader
	conn *conn
	id   string
	stop func() bool
}

func (b *responseBody) Close() error {
	b.stop()
	if b.conn.unexpect(b.id, io.ErrClosedPipe) {
		b.conn.cancelRequest(b.id, errors.New("the response is not needed any more"))
	}
	return b.PipeReader.Close()
}

// cancelWait is how long a client may take to hear that a request is cancelled.
const cancelWait = 10 * time.Second

// cancelRequest tells the client that nobody wants a response any more. Nobody
// waits for that.
func (c *conn) cancelRequest(id string, why error) {
	c.inference.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cancelWait)
		defer cancel()
		_ = c.rpc.Call(ctx, api.InferenceRequestChunk, api.RequestChunkParams{RequestID: id, Cancel: true, CancelReason: why.Error()}, nil)
	})
}

func (c *conn) responseStart(_ context.Context, p api.ResponseStartParams) (api.AcceptedResult, error) {
	if p.Status < 100 || p.Status > 599 {
		return api.AcceptedResult{}, errBadParams{fmt.Errorf("status: %d is no status of HTTP", p.Status)}
	}
	r := c.expected(p.RequestID)
	if r == nil {
		return api.AcceptedResult{}, nil
	}
	select {
	case r.head <- p:
		return api.AcceptedResult{Accepted: true}, nil
	default: // the client has sent the start of this response before
		return api.AcceptedResult{}, nil
	}
}

// responseChunk takes a piece of a response. It is answered when the piece was
// read, so that a client is not faster than who reads.
func (c *conn) responseChunk(ctx context.Context, p api.ResponseChunkParams) (api.AcceptedResult, error) {
	data := []byte(p.Data)
	if p.Binary {
		var err error
		if data, err = base64.StdEncoding.DecodeString(p.Data); err != nil {
			return api.AcceptedResult{}, errBadParams{fmt.Errorf("data: %w", err)}
		}
	}
	r := c.expected(p.RequestID)
	if r == nil {
		return api.AcceptedResult{}, nil
	}
	if p.Error != nil {
		return api.AcceptedResult{Accepted: c.unexpect(p.RequestID, errors.New(p.Error.Message))}, nil
	}
	var err error
	if len(data) > 0 {
		stop := context.AfterFunc(ctx, func() { r.in.CloseWithError(session.ErrLeft) })
		_, err = r.in.Write(data)
		stop()
	}
	if p.End {
		c.unexpect(p.RequestID, err)
	}
	return api.AcceptedResult{Accepted: err == nil}, nil
}

// lostInference ends what a client that was lost has not brought back.
func (c *conn) lostInference() {
	c.inference.mu.Lock()
	pending := c.inference.pending
	c.inference.pending = nil
	c.inference.mu.Unlock()
	for _, r := range pending {
		r.in.CloseWithError(session.ErrLeft)
	}
	c.inference.work.Wait()
}

// token asks the client for a token that a provider takes.
func (c *conn) token(ctx context.Context, id event.SessionID, provider, _ string) (string, error) {
	var result api.TokenResult
	err := c.rpc.Call(ctx, api.ProviderToken, api.TokenParams{SessionID: id, Provider: provider}, &result)
	if err != nil && !c.repliedWithError(ctx, id, err) {
		return "", errors.Join(session.ErrLeft, err)
	}
	return result.Token, err
}
