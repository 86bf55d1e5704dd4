// Package remote is what models behind HTTP share: one request and its reply,
// whatever is written in them. A [Wire] says that.
//
//   - One Ask is one HTTP request: nothing is tried again.
//   - A reply may be as slow as it likes, as long as something arrives: only
//     silence ends it. Lines and whole replies of up to 32 MiB are read.
//   - A request never leaves for another host than the one configured: a
//     redirect elsewhere is an error that says where to.
//   - Errors name the host and never contain a key.
//   - Reasoning goes back only to the host and the model that it came from.
package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/model"
)

// Config says where a model is and how to reach it.
type Config struct {
	BaseURL string // up to and without the wire's own path; that of the wire's inventor if empty

	// Who asks. Token goes before BearerToken, and that before APIKey. The
	// first two are sent as bearer tokens, the key where the wire wants it.
	// Token is asked before every request.
	APIKey      string
	BearerToken string
	Token       func(context.Context) (string, error)

	Headers   map[string]string // added to every request; those of a Request go before them
	UserAgent string            // "abide" if empty

	IdleTimeout time.Duration // longest silence of the provider; 5 minutes if zero
	Timeout     time.Duration // longest request as a whole; none if zero

	// Azure says that the base URL is that of an Azure resource: only a host.
	Azure *Azure

	Transport http.RoundTripper // one shared by all clients if nil
}

// Azure says how a resource of Azure is spoken to.
type Azure struct {
	APIVersion string // selects the versioned routes; those of v1 if empty
}

const (
	defaultIdle = 5 * time.Minute
	// replyLimit bounds a line of a stream, and a reply that is not streamed.
	replyLimit = 32 << 20
)

// A Wire is a protocol in which models are asked.
type Wire struct {
	Name      string // what people call it
	BaseURL   string // of its inventor
	Version   string // stands before the path, unless the base URL ends with it
	Path      string // of requests
	KeyHeader string // where the API key goes; if empty, it is a bearer token

	// Azure returns the path at a resource of Azure, or is nil if the wire is
	// not spoken there.
	Azure func(a Azure, model string) string
	// Header adds what the wire wants in the header of a request; may be nil.
	Header func(h http.Header, q *Query)
	// Body returns the body of a request in pieces, which are not changed.
	Body func(q *Query) [][]byte
	// Decoder returns what reads the reply.
	Decoder func(q *Query, on func(model.Delta)) Decoder
}

// A Query is a request and where it goes.
type Query struct {
	*model.Request
	Host   string
	Stream bool
}

// A Decoder puts one reply together and tells about each piece. An error is a
// *Failure that the provider reported, a BadReply, or that of the connection.
type Decoder interface {
	// Event adds an event of a stream.
	Event(data []byte) (Progress, error)
	// Whole adds a reply that was not streamed.
	Whole(data []byte) error
	Reply() *model.Reply
}

// Progress is how far a stream has come.
type Progress int

// The stages of a stream.
const (
	Going    Progress = iota // more has to come
	Finished                 // the reply is whole; the rest is a courtesy
	Over                     // nothing comes after it
)

// A Client is a model behind a wire.
type Client struct {
	Config
	wire    Wire
	base    *url.URL
	invalid error // why there is none
	http    *http.Client
	windows sync.Map // what the provider said of its models, by name
}

var _ model.Model = (*Client)(nil)

// New returns a client. A base URL that makes no sense is reported by Ask.
func New(c Config, w Wire) *Client {
	if c.BaseURL == "" && c.Azure == nil {
		c.BaseURL = w.BaseURL
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
	if c.Azure != nil {
		w.KeyHeader = "Api-Key"
	}
	base, err := parseBase(c, w)
	return &Client{
		Config:  c,
		wire:    w,
		base:    base,
		invalid: err,
		http:    &http.Client{Transport: through{c.Transport}, CheckRedirect: stayAtHome},
	}
}

// through makes requests in the way that their context asks for.
type through struct{ http.RoundTripper }

func (t through) RoundTrip(req *http.Request) (*http.Response, error) {
	if other := model.Transport(req.Context()); other != nil {
		return other.RoundTrip(req)
	}
	return t.RoundTripper.RoundTrip(req)
}

func parseBase(c Config, w Wire) (*url.URL, error) {
	if c.Azure != nil && w.Azure == nil {
		return nil, errors.New(w.Name + " is not spoken at an Azure resource of OpenAI; choose another type of provider")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("the base URL of the provider is not one of http or https with a host; correct it in the provider's settings")
	}
	if c.Azure != nil { // people also copy the route with it
		u = u.JoinPath()
		u.Path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1"), "/openai")
		u.RawPath = ""
		return u, nil
	}
	if v := w.Version; v != "" && !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/"+v) {
		u = u.JoinPath(v)
	}
	return u, nil
}

// endpoint is where requests for a model go.
func (c *Client) endpoint(name string) *url.URL {
	if c.Azure == nil {
		return c.base.JoinPath(c.wire.Path)
	}
	u := c.base.JoinPath(c.wire.Azure(*c.Azure, name))
	if v := c.Azure.APIVersion; v != "" {
		query := u.Query()
		query.Set("api-version", v)
		u.RawQuery = query.Encode()
	}
	return u
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
