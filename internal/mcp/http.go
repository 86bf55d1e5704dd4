package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A remote is the HTTP side of a connection to a server.
type remote struct {
	server Server
	origin *url.URL
	base   http.RoundTripper

	mu     sync.Mutex
	denied *http.Response // last answer that asked for a login, without its body; nil if there was none
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

// transport returns the transport for one connection.
func (r *remote) transport() sdk.Transport {
	client := &http.Client{Transport: r, CheckRedirect: r.checkRedirect}
	if r.server.Type == SSE {
		return &sdk.SSEClientTransport{Endpoint: r.server.URL, HTTPClient: client}
	}
	return &sdk.StreamableClientTransport{Endpoint: r.server.URL, HTTPClient: client}
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

// RoundTrip makes a request with the configured headers. They are sent to no other place
// than the server.
func (r *remote) RoundTrip(q *http.Request) (*http.Response, error) {
	if !sameOrigin(q.URL, r.origin) {
		return nil, fmt.Errorf("the server names another place, %s, to send messages to", q.URL.Host)
	}
	q = q.Clone(q.Context())
	for name, value := range r.server.Headers {
		q.Header.Set(name, value)
	}
	q, release := r.limitDiscovery(q)
	answer, err := r.base.RoundTrip(q)
	if err != nil {
		release()
		return nil, err
	}
	answer.Body = &releasingBody{answer.Body, release}
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		r.mu.Lock()
		r.denied = answer
		r.mu.Unlock()
	}
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
	ctx, cancel := context.WithTimeout(q.Context(), discover)
	return q.WithContext(ctx), cancel
}

// A releasingBody calls a function when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// wantsLogin reports whether the server has asked for a login.
func (r *remote) wantsLogin() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied != nil && r.denied.StatusCode == http.StatusUnauthorized
}
