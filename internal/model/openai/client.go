// Package openai speaks Chat Completions, the wire that most providers and
// local servers understand.
//
//   - One Ask is one HTTP request: nothing is tried again.
//   - History is never encoded twice. Messages and tools keep their wire form,
//     and a request is read from these pieces as it is sent.
//   - A reply may be as slow as it likes, as long as something arrives: only
//     silence ends it. Lines and whole replies of up to 32 MiB are read.
//   - Several choices are parts of one message.
//   - A request never leaves for another host than the one configured: a
//     redirect elsewhere is an error that says where to.
//   - Errors name the host and never contain a key.
//
// The wire has no place for pictures in tool results; whoever wants to show one
// puts it into a user message after them. Reasoning is read and never sent back.
package openai

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/model"
)

// Config says where the model is and how to reach it.
type Config struct {
	BaseURL string // up to and without /chat/completions; OpenAI's own if empty

	// Who asks. Token goes before BearerToken, and that before APIKey; all are
	// sent as bearer tokens. Token is asked before every request.
	APIKey      string
	BearerToken string
	Token       func(context.Context) (string, error)

	Headers   map[string]string // added to every request; those of a Request go before them
	UserAgent string            // "abide" if empty

	IdleTimeout time.Duration // longest silence of the provider; 5 minutes if zero
	Timeout     time.Duration // longest request as a whole; none if zero

	Transport http.RoundTripper // one shared by all clients if nil
}

const (
	defaultBaseURL = "https://api.openai.com/v1"
	defaultIdle    = 5 * time.Minute

	// lastWords is how long a provider that said it is finished may take to
	// send the usage and to end the stream.
	lastWords = 10 * time.Second
	// goodbye is how long it may take to end a stream that is over. Waiting for
	// that is what lets the connection be used again.
	goodbye = 100 * time.Millisecond
	// replyLimit bounds a line of a stream, and a reply that is not streamed.
	replyLimit = 32 << 20
)

// A Client is a model behind Chat Completions.
type Client struct {
	Config
	endpoint *url.URL
	invalid  error // why there is no endpoint
	http     *http.Client
}

var _ model.Model = (*Client)(nil)

// New returns a client. A base URL that makes no sense is reported by Ask.
func New(c Config) *Client {
	if c.BaseURL == "" {
		c.BaseURL = defaultBaseURL
	}
	if c.UserAgent == "" {
		c.UserAgent = "abide"
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdle
	}
	if c.Transport == nil {
		c.Transport = sharedTransport()
	}
	endpoint, err := parseEndpoint(c.BaseURL)
	return &Client{
		Config:   c,
		endpoint: endpoint,
		invalid:  err,
		http:     &http.Client{Transport: c.Transport, CheckRedirect: stayAtHome},
	}
}

func parseEndpoint(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("the base URL of the provider is not one of http or https with a host; correct it in the provider's settings")
	}
	return u.JoinPath("chat/completions"), nil
}

// sharedTransport is the connection pool of the process: sessions come and go,
// their connections to a provider stay. Proxy and certificate variables count
// as for every Go program.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0 // bounded by host
	t.MaxIdleConnsPerHost = 256
	t.ReadBufferSize = 16 << 10
	t.DisableCompression = true // a compressed stream arrives late
	return t
})

// stayAtHome follows redirects only where they lead to the same origin and keep
// the request as it is.
func stayAtHome(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= 10 || next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// Ask makes one request.
func (c *Client) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if c.invalid != nil {
		return nil, &model.Error{Kind: model.KindRequest, Message: c.invalid.Error()}
	}
	a := c.begin(ctx, req)
	defer a.end()
	reply, err := a.run(on)
	if err != nil {
		return nil, a.explain(err)
	}
	return reply, nil
}

// An attempt is one request on its way.
type attempt struct {
	client *Client
	req    *model.Request
	token  string

	caller context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
}

var (
	errSilence = errors.New("nothing arrived for too long")
	errTooLong = errors.New("the request took too long")
)

func (c *Client) begin(caller context.Context, req *model.Request) *attempt {
	a := &attempt{client: c, req: req, caller: caller}
	a.ctx, a.cancel = context.WithCancelCause(caller)
	a.idle = time.AfterFunc(c.IdleTimeout, func() { a.cancel(errSilence) })
	return a
}

func (a *attempt) end() {
	a.idle.Stop()
	a.cancel(nil)
}

func (a *attempt) run(on func(model.Delta)) (*model.Reply, error) {
	if d := a.client.Timeout; d > 0 {
		total := time.AfterFunc(d, func() { a.cancel(errTooLong) })
		defer total.Stop()
	}
	out, err := a.request(on != nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.http.Do(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, a.refusal(resp)
	}
	return a.read(resp, on)
}

func (a *attempt) request(stream bool) (*http.Request, error) {
	parts := fragments(a.req, stream)
	out, err := http.NewRequestWithContext(a.ctx, http.MethodPost, a.client.endpoint.String(), newBody(parts))
	if err != nil {
		return nil, err
	}
	out.ContentLength = size(parts)
	out.GetBody = func() (io.ReadCloser, error) { return newBody(parts), nil }
	return out, a.setHeaders(out.Header, stream)
}

func (a *attempt) setHeaders(h http.Header, stream bool) error {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	if stream {
		h.Set("Accept", "text/event-stream")
	}
	h.Set("User-Agent", a.client.UserAgent)
	var err error
	if a.token, err = a.client.bearer(a.ctx); err != nil {
		return err
	}
	if a.token != "" {
		h.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range a.client.Headers {
		h.Set(name, value)
	}
	for name, value := range a.req.Headers {
		h.Set(name, value)
	}
	return nil
}

// bearer is the token of the next request.
func (c *Client) bearer(ctx context.Context) (string, error) {
	switch {
	case c.Token != nil:
		token, err := c.Token(ctx)
		if err != nil {
			return "", tokenError{err}
		}
		return token, nil
	case c.BearerToken != "":
		return c.BearerToken, nil
	}
	return c.APIKey, nil
}

// read takes the reply as what it says it is, and as what was asked for if it
// says nothing: some servers stream unasked, others do not stream at all.
func (a *attempt) read(resp *http.Response, on func(model.Delta)) (*model.Reply, error) {
	b := newBuilder(a.req, on)
	b.requestID = resp.Header.Get("X-Request-Id")
	body := &watched{r: resp.Body, idle: a.idle, limit: a.client.IdleTimeout}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stream := on != nil
	switch {
	case kind == "text/event-stream":
		stream = true
	case strings.HasSuffix(kind, "json"):
		stream = false
	}
	read := a.readWhole
	if stream {
		read = a.readStream
	}
	if err := read(body, b); err != nil {
		return nil, err
	}
	return b.reply(), nil
}

func (a *attempt) readWhole(body *watched, b *builder) error {
	data, err := io.ReadAll(io.LimitReader(body, replyLimit+1))
	if err != nil {
		return err
	}
	if len(data) > replyLimit {
		return errLineTooLong
	}
	c, err := decodeChunk(data)
	if err != nil {
		return err
	}
	return b.whole(c)
}

// readStream reads events until the stream says that it is over. If the model
// has finished, no trouble after that can spoil the reply.
func (a *attempt) readStream(body *watched, b *builder) error {
	events := newEvents(body)
	defer events.release()
	for {
		data, err := events.next()
		if err == nil && string(data) == "[DONE]" {
			body.finish(goodbye)
			return b.end()
		}
		if err == nil {
			err = b.event(data)
		}
		if err != nil && b.finish != "" {
			return nil
		}
		if err == io.EOF {
			return b.end()
		}
		if err != nil {
			return err
		}
		if b.finish != "" {
			body.hurry(lastWords)
		}
	}
}

// watched is a reply that must not fall silent.
type watched struct {
	r     io.Reader
	idle  *time.Timer
	limit time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.idle.Reset(w.limit)
	}
	return n, err
}

// hurry shortens the silence that is allowed from now on.
func (w *watched) hurry(d time.Duration) {
	if d < w.limit {
		w.limit = d
		w.idle.Reset(d)
	}
}

// finish reads what is left, if it comes soon: then the connection is free for
// the next request.
func (w *watched) finish(d time.Duration) {
	w.idle.Reset(d)
	_, _ = io.CopyN(io.Discard, w.r, 4<<10)
}
