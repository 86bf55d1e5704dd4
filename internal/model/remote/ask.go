package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/abide-run/abide/internal/model"
)

const (
	// usageTimeout is the time in which a provider has to send the usage and end the
	// stream after the reply is complete.
	usageTimeout = 10 * time.Second
	// closeTimeout is the time in which it has to end a stream that is over. A connection
	// can only be used again after the stream has ended.
	closeTimeout = 100 * time.Millisecond
)

// Ask makes one request.
func (c *Client) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if c.invalid != nil {
		return nil, c.unusable()
	}
	a := c.begin(ctx, req)
	defer a.end()
	reply, err := a.run(on)
	if err != nil {
		return nil, model.Billed(a.explain(err), a.counted)
	}
	return reply, nil
}

// An attempt is one HTTP request and its reply.
type attempt struct {
	client   *Client
	req      *model.Request
	endpoint *url.URL
	token    string

	counted *model.Reply // what has arrived of a reply that broke off; nil if there was none

	caller context.Context // context of the caller
	ctx    context.Context // context of the request, which also ends when a time limit is reached
	cancel context.CancelCauseFunc
	idle   *time.Timer // cancels the request when no data arrives
}

var (
	errSilence = errors.New("nothing arrived for too long")
	errTooLong = errors.New("the request took too long")
	errEndless = errors.New("the reply has no end")

	errNoProgress = errors.New("the reply has not grown for too long")
)

func (c *Client) begin(caller context.Context, req *model.Request) *attempt {
	a := &attempt{client: c, req: req, endpoint: c.endpoint(req.Model), caller: caller}
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
	q := a.client.query(a.req, on != nil)
	if err := cmp.Or(checkSchema(q.Schema), a.client.checkDocuments(q)); err != nil {
		return nil, err
	}
	out, err := a.request(q)
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
	return a.read(resp, q, on)
}

func (a *attempt) request(q *Query) (*http.Request, error) {
	parts, err := a.client.withExtra(a.client.wire.Body(q), q)
	if err != nil {
		return nil, err
	}
	out, err := http.NewRequestWithContext(a.ctx, http.MethodPost, a.endpoint.String(), nil)
	if err != nil {
		return nil, err
	}
	if out.ContentLength = size(parts); out.ContentLength <= smallBody {
		parts = [][]byte{slices.Concat(parts...)}
		out.Body = io.NopCloser(bytes.NewReader(parts[0]))
	} else {
		out.Body = NewBody(parts)
	}
	out.GetBody = func() (io.ReadCloser, error) { return NewBody(parts), nil }
	return out, a.setHeaders(out.Header, q)
}

func (a *attempt) setHeaders(h http.Header, q *Query) error {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	if q.Stream {
		h.Set("Accept", "text/event-stream")
	}
	h.Set("User-Agent", a.client.UserAgent)
	if add := a.client.wire.Header; add != nil {
		add(h, q)
	}
	if err := a.authorize(h); err != nil {
		return err
	}
	for name, value := range a.client.Headers {
		h.Set(name, value)
	}
	for name, value := range a.req.Headers {
		h.Set(name, value)
	}
	return nil
}

// authorize adds the credentials to the headers.
func (a *attempt) authorize(h http.Header) error {
	c := a.client
	header := ""
	switch {
	case c.Token != nil:
		token, err := c.Token(a.ctx)
		if err != nil {
			return tokenError{err}
		}
		a.token = token
	case c.BearerToken != "":
		a.token = c.BearerToken
	default:
		a.token, header = c.APIKey, c.wire.KeyHeader
	}
	switch {
	case a.token == "":
	case header != "":
		h.Set(header, a.token)
	default:
		h.Set("Authorization", "Bearer "+a.token)
	}
	return nil
}

// read reads the reply. Its content type decides whether it is a stream, because some
// servers stream without being asked and others never do. Without a content type, its
// first byte decides.
func (a *attempt) read(resp *http.Response, q *Query, on func(model.Delta)) (*model.Reply, error) {
	d := a.client.wire.Decoder(q, on)
	body := newWatched(resp.Body, a.idle, a.client.IdleTimeout)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch coding := resp.Header.Get("Content-Encoding"); {
	case isPage(kind, nil):
		return nil, errPage
	case coding != "" && !strings.EqualFold(coding, "identity"): // what it expands to may have no end
		return nil, BadReply("it is compressed (" + coding + "), which was not asked for")
	}
	stream := kind == "text/event-stream"
	if !stream && !strings.HasSuffix(kind, "json") {
		start := bufio.NewReader(resp.Body)
		body.r, stream = start, !beginsObject(start)
	}
	read := readWhole
	if stream {
		read = readStream
	}
	err := read(body, d)
	reply := d.Reply()
	reply.Model = cmp.Or(shortName(reply.Model), q.Model)
	reply.Usage = atLeastZero(reply.Usage)
	reply.Finish = shortName(reply.Finish)
	reply.RequestID = shortName(cmp.Or(resp.Header.Get("X-Request-Id"), resp.Header.Get("Request-Id"), reply.RequestID))
	if err != nil {
		a.counted = reply
		return nil, err
	}
	return reply, nil
}

// shortName returns a name that the provider gave, without what no name has: it is stored
// and shown.
func shortName(name string) string {
	const longest = 256
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name[:min(len(name), longest)])
	return strings.ToValidUTF8(name, "")
}

// beginsObject reports whether a text begins with a JSON object. The fields of a stream of
// events begin with their names.
func beginsObject(r *bufio.Reader) bool {
	for i := 1; i <= r.Size(); i++ {
		b, err := r.Peek(i)
		if err != nil {
			return false
		}
		if c := b[i-1]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c == '{'
		}
	}
	return false
}

// atLeastZero returns a usage without negative numbers: a wrong count must not make others
// smaller.
func atLeastZero(u model.Usage) model.Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.Reasoning} {
		*n = max(0, *n)
	}
	return u
}

func readWhole(body *watched, d Decoder) error {
	data, err := io.ReadAll(io.LimitReader(body, replyLimit+1))
	if err != nil {
		return err
	}
	if len(data) > replyLimit {
		return errLineTooLong
	}
	if isPage("", data) {
		return errPage
	}
	return cmp.Or(d.Whole(data), d.Excess())
}

// ReadStream reads a stream without time limits, for tests.
func ReadStream(r io.Reader, d Decoder) error {
	idle := time.AfterFunc(defaultIdle, func() {})
	defer idle.Stop()
	return readStream(newWatched(r, idle, defaultIdle), d)
}

// readStream reads events until the stream is over. After the reply is complete, errors
// of the stream are ignored.
func readStream(body *watched, d Decoder) error {
	events := newEvents(body)
	defer events.release()
	for reached := Going; ; {
		data, err := events.next()
		progress, before := Going, d.Size()
		if err == nil {
			progress, err = d.Event(data)
		}
		if excess := d.Excess(); excess != nil {
			return excess
		}
		if d.Size() > before {
			body.grown = time.Now()
		}
		reached = max(reached, progress)
		switch {
		case err == nil && reached == Over:
			body.finish(closeTimeout)
			return nil
		case err == nil && reached == Finished:
			body.shortenIdle(usageTimeout)
		case err != nil && reached == Finished:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

// watched is the body of a reply. It resets the idle timer whenever data arrives, unless the
// provider has sent nothing but signs of life for too long.
type watched struct {
	r     io.Reader
	idle  *time.Timer
	limit time.Duration
	read  int64     // number of bytes so far
	grown time.Time // time at which the reply has last grown, or at which it began
}

func newWatched(r io.Reader, idle *time.Timer, limit time.Duration) *watched {
	return &watched{r: r, idle: idle, limit: limit, grown: time.Now()}
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 && !w.isAlive() {
		return n, errNoProgress
	}
	if n > 0 {
		w.idle.Reset(w.limit)
	}
	if w.read += int64(n); w.read > streamLimit {
		return n, errEndless
	}
	return n, err
}

// maxSilences is how many times as long as a silence signs of life are enough. A model that is
// waited for in a queue, or thinks, may take long.
const maxSilences = 12

// isAlive reports whether the reply has grown not too long ago. Events that bring nothing are
// signs of life, and so are the data of a reply that is not streamed.
func (w *watched) isAlive() bool { return time.Since(w.grown) < maxSilences*w.limit }

// shortenIdle shortens the time without data that is allowed from now on.
func (w *watched) shortenIdle(d time.Duration) {
	if d < w.limit {
		w.limit, w.grown = d, time.Now()
		w.idle.Reset(d)
	}
}

// finish reads the rest of the body if it arrives in time, so that the connection can be
// used for the next request.
func (w *watched) finish(d time.Duration) {
	w.idle.Reset(d)
	_, _ = io.CopyN(io.Discard, w.r, 4<<10)
}
