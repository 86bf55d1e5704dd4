// Package remote contains what models behind HTTP share: sending one request and
// reading its reply. A [Wire] defines the protocol of a provider.
//
//   - One Ask is one HTTP request. Nothing is retried.
//   - There is no limit on the duration of a reply by default, only on the time without
//     any data. Lines and whole replies of up to 32 MiB are read, and streams of up to
//     128 MiB.
//   - Requests are only sent to the configured host. A redirect to another one is an
//     error that names it.
//   - Errors name the host and never contain a key.
//   - Reasoning is only sent back to the host and the model that it came from.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
)

// Config says where a model is and how to reach it.
type Config struct {
	BaseURL string // URL without the wire's own path; the default of the wire if empty

	// Credentials. Token is preferred to BearerToken, and BearerToken to APIKey. The
	// first two are sent as bearer tokens, the key in the header of the wire. Token
	// is called before every request.
	APIKey      string
	BearerToken string
	Token       func(context.Context) (string, error)

	Headers   map[string]string // headers of every request; those of a Request override them
	UserAgent string            // "abide" if empty

	IdleTimeout time.Duration // longest time without data from the provider; 5 minutes if zero
	Timeout     time.Duration // longest time of a whole request; no limit if zero

	// Azure is set if the base URL is that of an Azure resource, which has no path.
	Azure *Azure

	ExtraBody string // JSON object whose members every request has as well

	Profile string // name of the provider's profile; that of the host if empty

	CacheTTL string // how long the provider keeps what it caches, "5m" or "1h"; its default if empty

	Transport http.RoundTripper // transport of requests; one that all clients share if nil
}

// Azure configures requests to an Azure resource.
type Azure struct {
	APIVersion string // version for the versioned routes; the v1 routes are used if empty
}

const (
	defaultIdle = 5 * time.Minute
	// replyLimit is the size limit of a line of a stream, and of a reply that is not
	// streamed.
	replyLimit = 32 << 20
	// streamLimit is the size limit of a whole stream. The longest replies of models have
	// a third of it.
	streamLimit = 128 << 20
)

// A Wire is a protocol of model providers.
type Wire struct {
	Name      string // name for error messages
	BaseURL   string // default base URL
	BaseEnv   string // environment variable from which people set the base URL
	KeyEnv    string // environment variable from which people set the key
	Version   string // path element before Path, unless the base URL ends with it
	Path      string // path of requests
	KeyHeader string // header of the API key; if empty, the key is sent as a bearer token

	// Azure returns the path at an Azure resource. It is nil if Azure does not
	// support the wire.
	Azure func(a Azure, model string) string
	// Documents reports whether the provider reads documents on the wire.
	Documents func(p *profile.Profile) bool
	// Header adds the wire's own headers to a request. It may be nil.
	Header func(h http.Header, q *Query)
	// Body returns the body of a request in pieces, which must not be changed.
	Body func(q *Query) [][]byte
	// Decoder returns a decoder of the reply.
	Decoder func(q *Query, on func(model.Delta)) Decoder
}

// A Query is a request and the host that it is sent to.
type Query struct {
	*model.Request
	Host   string
	Stream bool // true if the reply is to be streamed

	// Profile says what is special about the provider. If it is nil, the host does.
	Profile *profile.Profile

	// CacheTTL is how long the provider keeps what it caches; its default if empty.
	CacheTTL string

	documents  bool   // true if the provider reads documents on the wire
	answerTool string // name of the tool whose call is the answer; empty if there is none

	last *atomic.Pointer[promptForm] // form of the system prompt in the client's last request; nil without a client
}

// A promptForm is an encoded system prompt.
type promptForm struct {
	system, format string
	bytes          []byte
}

// Beginning returns the piece of a body that contains the system prompt, in a format of the
// wire. The client keeps the piece of its last request: prompts are long and rarely change.
func (q *Query) Beginning(format string, encode func() []byte) []byte {
	if q.last == nil || q.System == "" {
		return encode()
	}
	if f := q.last.Load(); f != nil && f.format == format && f.system == q.System {
		return f.bytes
	}
	f := &promptForm{q.System, format, encode()}
	q.last.Store(f)
	return f.bytes
}

// query returns a request to a host by the wire.
func (w Wire) query(req *model.Request, host string, stream bool, as *profile.Profile) *Query {
	q := &Query{Request: req, Host: host, Stream: stream, Profile: as}
	q.documents = w.Documents != nil && w.Documents(q.As())
	return q
}

func (c *Client) query(req *model.Request, stream bool) *Query {
	host := ""
	if c.base != nil {
		host = c.endpoint(req.Model).Host
	}
	q := c.wire.query(req, host, stream, c.profile)
	q.CacheTTL, q.last = c.CacheTTL, &c.prompt
	return q
}

// As returns the profile of the provider.
func (q *Query) As() *profile.Profile {
	if q.Profile == nil {
		q.Profile = profile.At(q.Host)
	}
	return q.Profile
}

// A Decoder decodes one reply and passes each piece on. Its errors are a *Failure that
// the provider reported, a BadReply, or the error of the connection.
type Decoder interface {
	// Event decodes an event of a stream.
	Event(data []byte) (Progress, error)
	// Whole decodes a reply that was not streamed.
	Whole(data []byte) error
	// Reply returns the reply as far as it was decoded.
	Reply() *model.Reply
	// Size returns how much of the reply has arrived, see [Draft.Size].
	Size() int
	// Excess returns an error if the reply has more than a reply should have.
	Excess() error
}

// Progress is the stage that a stream has reached.
type Progress int

// The stages of a stream.
const (
	Going    Progress = iota // the reply is not complete yet
	Finished                 // the reply is complete; only its usage may follow
	Over                     // nothing follows
)

// A Client is a model behind a wire.
type Client struct {
	Config
	wire    Wire
	base    *url.URL
	target  *url.URL // URL of requests, unless it depends on the model
	invalid error    // reason for which the base URL is invalid; nil if it is valid
	http    *http.Client
	profile *profile.Profile // nil if the host decides
	windows sync.Map         // window of each model that the provider listed, by name
	looks   looks            // windows that the provider was asked for
	prompt  atomic.Pointer[promptForm]
}

var _ model.Model = (*Client)(nil)

// New returns a client. An invalid base URL is reported by Ask.
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
	chosen, ok := profile.Named(c.Profile)
	if c.Profile != "" && !ok && err == nil {
		err = fmt.Errorf("there is no profile %q of a provider; use %s", c.Profile, either(profile.Names()))
	}
	client := &Client{
		Config:  c,
		profile: chosen,
		wire:    w,
		base:    base,
		invalid: err,
		http:    &http.Client{Transport: contextTransport{c.Transport}, CheckRedirect: stayAtOrigin},
	}
	if base != nil && c.Azure == nil {
		client.target = base.JoinPath(w.Path)
	}
	return client
}

// contextTransport is a transport that uses the transport of the request's context, if there is
// one.
type contextTransport struct{ http.RoundTripper }

func (t contextTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if other := model.Transport(req.Context()); other != nil {
		return other.RoundTrip(req)
	}
	return t.RoundTripper.RoundTrip(req)
}

// parseBase checks the base URL and adds the version of the wire.
func parseBase(c Config, w Wire) (*url.URL, error) {
	if c.Azure != nil && w.Azure == nil {
		return nil, errors.New(w.Name + " is not spoken at an Azure resource of OpenAI; choose another type of provider")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || !hasPort(u) || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("the base URL of the provider is not one of http or https with a host: %s; correct it in the provider's settings", baseAdvice(c, w))
	}
	if c.Azure != nil { // people often copy the route as well
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

// hasPort reports whether the port of a URL, if it has one, is one that a server can have.
func hasPort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// endpoint returns the URL of requests for a model, which is not to be changed.
func (c *Client) endpoint(name string) *url.URL {
	if c.target != nil {
		return c.target
	}
	u := c.base.JoinPath(c.wire.Azure(*c.Azure, name))
	if v := c.Azure.APIVersion; v != "" {
		query := u.Query()
		query.Set("api-version", v)
		u.RawQuery = query.Encode()
	}
	return u
}

// writeBuffer is the size of the buffer of a connection for what is written.
const writeBuffer = 32 << 10

// smallBody is the size up to which the body of a request is one piece of memory. Package
// http then writes it together with the header, which fits into the buffer as well. For
// other bodies it writes the header first, and needs another buffer.
const smallBody = writeBuffer - 4<<10

// sharedTransport returns the connection pool of the process, which all sessions share.
// It follows the environment variables for proxies and certificates as every Go program.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0 // connections are only limited for each host
	t.MaxIdleConnsPerHost = 256
	t.ReadBufferSize = 16 << 10
	t.WriteBufferSize = writeBuffer
	t.DisableCompression = true // compression would delay the pieces of a stream
	return t
})

// stayAtOrigin follows a redirect only if it leads to the same origin and does not change
// the method.
func stayAtOrigin(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= 10 || next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}
