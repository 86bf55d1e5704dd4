package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/mcp/oauth"
)

// A remote is the HTTP side of a connection to a server.
type remote struct {
	server Server
	origin *url.URL // the address of the server
	base   http.RoundTripper

	client *client

	mu     sync.Mutex
	denied *oauth.Challenge // last answer that asked for a login; nil if there was none since the last good one
	used   string           // token of that request
	lost   chan struct{}    // closed when a connection that was good needs a login; nil until it was good
}

// newRemote returns the HTTP side of a server.
func newRemote(s Server, base http.RoundTripper) (*remote, error) {
	at, err := s.address()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &remote{server: s, origin: at, base: base}, nil
}

// open returns the address without what may be secret. Requests are made for it, because their
// errors show the address.
func (r *remote) open() url.URL {
	at := *r.origin
	at.User, at.RawQuery, at.Fragment, at.RawFragment = nil, "", "", ""
	return at
}

// transport returns the transport for one connection.
func (r *remote) transport() sdk.Transport {
	client := &http.Client{Transport: r, CheckRedirect: r.checkRedirect}
	at := r.open()
	if r.server.Type == SSE {
		return sseTransport{&sdk.SSEClientTransport{Endpoint: at.String(), HTTPClient: client}}
	}
	return &sdk.StreamableClientTransport{Endpoint: at.String(), HTTPClient: client}
}

// An sseTransport is a transport whose connections last longer than the context in which they are
// made: all messages of the server come in the answer to the first request.
type sseTransport struct{ *sdk.SSEClientTransport }

func (t sseTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	conn, err := t.SSEClientTransport.Connect(lasting)
	if err != nil {
		cancel()
		return nil, err
	}
	stop() // the connection ends when it is closed
	return conn, nil
}

// checkRedirect refuses a redirection to another place: it would be sent what is meant for
// the server.
func (r *remote) checkRedirect(to *http.Request, before []*http.Request) error {
	if !sameOrigin(to.URL, r.origin) {
		return fmt.Errorf("the server redirects to another place, %s; if that is right, configure it as the url", to.URL.Host)
	}
	if len(before) >= 5 {
		return errors.New("the server redirects again and again")
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// RoundTrip makes a request with the configured headers, or with the token of a login. They
// are sent to no other place than the server. A token that the server refuses is renewed, and
// the request is made again.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	if !sameOrigin(q.URL, r.origin) {
		return nil, fmt.Errorf("the server names another place, %s, to send messages to", q.URL.Host)
	}
	token, err := r.token(q.Context())
	if err != nil {
		return nil, err
	}
	for round := 1; ; round++ {
		answer, err := r.send(q, token)
		if err != nil {
			return nil, err
		}
		ch := oauth.ReadChallenge(answer.StatusCode, answer.Header)
		if answer.StatusCode != http.StatusUnauthorized && !ch.WantsMore() {
			return answer, nil
		}
		r.note(ch, token)
		if q.Method != http.MethodPost || q.GetBody == nil {
			return answer, nil
		}
		answer.Body.Close()
		next, err := r.authorize(q.Context(), ch, token)
		if err != nil || round == maxRounds {
			return nil, cmp.Or(err, error(&LoginWanted{r.server.Name, ch.Scope, ch.WantsMore()}))
		}
		token = next
	}
}

// maxRounds is how often a request is made: with the token that there was, and with two
// that came in its place.
const maxRounds = 3

// send makes a request with a token, and with the query, the user and the password of the address.
// The query is that of the address alone.
func (r *remote) send(q *http.Request, token string) (*http.Response, error) {
	again := q.Clone(q.Context())
	if q.GetBody != nil {
		body, err := q.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	if *again.URL == r.open() {
		again.URL.RawQuery = r.origin.RawQuery
	}
	if by := r.origin.User; by != nil {
		password, _ := by.Password()
		again.SetBasicAuth(by.Username(), password)
	}
	if token != "" {
		again.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range r.server.Headers {
		again.Header.Set(name, value)
	}
	again, release := r.limitDiscovery(again)
	answer, err := r.base.RoundTrip(again)
	if err != nil {
		release()
		return nil, err
	}
	body := &releasingBody{ReadCloser: answer.Body, release: release, left: math.MaxInt64}
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "text/event-stream" { // of that, each event is limited
		body.left = maxLine
	}
	answer.Body = body
	return answer, nil
}

// limitDiscovery limits the time of a request that older servers may ignore.
func (r *remote) limitDiscovery(q *http.Request) (*http.Request, func()) {
	if q.Method != http.MethodPost || q.GetBody == nil {
		return q, func() {}
	}
	body, err := q.GetBody()
	if err != nil {
		return q, func() {}
	}
	text, err := io.ReadAll(io.LimitReader(body, 4096))
	body.Close()
	if err != nil || !bytes.Contains(text, []byte(`"method":"`+discoverMethod+`"`)) {
		return q, func() {}
	}
	ctx, cancel := context.WithTimeout(q.Context(), discoverWeb)
	return q.WithContext(ctx), cancel
}

// A releasingBody calls a function when it is closed, and has so many bytes at most: a server
// must not fill our memory.
type releasingBody struct {
	io.ReadCloser
	release func()
	left    int64
}

func (b *releasingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the server answers with more than %d bytes", maxLine)
	}
	return n, err
}

func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
