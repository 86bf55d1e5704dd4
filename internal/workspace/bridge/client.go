package bridge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/workspacepb"
)

// ClientOptions are the settings of a Client. Address or Dial is required.
type ClientOptions struct {
	Address string      // "unix:PATH" or "tcp:HOST:PORT"
	Token   string      // token of the workspace; empty if it needs none
	TLS     *tls.Config // trusted certificates; no TLS if nil

	// Dial makes a connection. If it is nil, the client connects to Address.
	Dial func(ctx context.Context) (net.Conn, error)
	// Retries are the pauses before a lost request is repeated, if it is idempotent, or
	// a lost stream is resumed; up to 3s if nil.
	Retries []time.Duration
	// Patience is how long a request waits for a connection while none can be made; if
	// zero, one attempt is made. A request that waits has had no effect.
	Patience time.Duration
	// Identity is the identity of the workspace that is wanted. The workspace refuses
	// every request for another one. Any workspace is wanted if it is empty.
	Identity string
	// Explain returns the error for people if the workspace cannot be used, which
	// workspace.Unusable reports. It wraps the error that it is given. It may be nil.
	Explain func(error) error
}

// defaultRetries are long enough for a workspace to restart.
var defaultRetries = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 3 * time.Second}

// A Client uses a workspace on another machine. It is safe for concurrent use.
type Client struct {
	rpc       workspacepb.WorkspaceServiceClient
	http      *http.Client // makes the requests of rpc
	raw       *http.Client // makes the requests for large files
	url       string
	headers   *headers
	retries   []time.Duration
	dialer    *patientDialer
	explainer explainer
	close     context.CancelFunc // ends the attempts to connect
}

// Workspace returns the workspace that the client uses.
func (c *Client) Workspace() workspace.Workspace {
	return workspace.Workspace{Files: remoteFiles{c}, Processes: remoteProcesses{c}}
}

type (
	remoteFiles     struct{ *Client }
	remoteProcesses struct{ *Client }
)

// NewClient returns a client of a workspace. It connects when it is used, and again
// after a lost connection.
func NewClient(o ClientOptions) (*Client, error) {
	dial, err := dialer(o)
	if err != nil {
		return nil, err
	}
	open, close := context.WithCancel(context.Background())
	d := &patientDialer{dial: dial, patience: o.Patience, open: open}
	c := &Client{
		http: &http.Client{Transport: transport(o, d)}, raw: &http.Client{Transport: rawTransport(o, d)}, url: baseURL(o),
		headers: &headers{o.Token, o.Identity}, retries: o.Retries, dialer: d, explainer: explainer{o.Explain}, close: close,
	}
	if c.retries == nil {
		c.retries = defaultRetries
	}
	c.rpc = workspacepb.NewWorkspaceServiceClient(
		c.http, c.url,
		connect.WithGRPC(), connect.WithCodec(answerCodec{}), connect.WithReadMaxBytes(maxMessage), connect.WithAcceptCompression("gzip", nil, nil),
		connect.WithInterceptors(c.explainer, c.headers, retryInterceptor(c.retries)),
	)
	return c, nil
}

// Close ends the attempts to connect and closes the connections that are not in use.
func (c *Client) Close() error {
	c.close()
	c.http.CloseIdleConnections()
	c.raw.CloseIdleConnections()
	return nil
}

// Made returns how many connections were made so far.
func (c *Client) Made() int64 { return c.dialer.made.Load() }

// IsLoopback reports whether only this machine can reach the address HOST:PORT.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	return net.ParseIP(host).IsLoopback()
}

// ParseAddress parses an address: "unix:PATH" or "tcp:HOST:PORT".
func ParseAddress(address string) (network, addr string, err error) {
	network, addr, ok := strings.Cut(address, ":")
	switch {
	case !ok || addr == "", network != "unix" && network != "tcp":
		return "", "", fmt.Errorf("%q is not the address of a workspace: use unix:PATH or tcp:HOST:PORT", address)
	case network == "tcp":
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return "", "", fmt.Errorf("%q is not the address of a workspace: use unix:PATH or tcp:HOST:PORT (%w)", address, err)
		}
	}
	return network, addr, nil
}

func dialer(o ClientOptions) (func(context.Context) (net.Conn, error), error) {
	if o.Dial != nil {
		return o.Dial, nil
	}
	network, addr, err := ParseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if c, ok := conn.(*net.TCPConn); ok {
			hurry(c)
		}
		return conn, err
	}, nil
}

func transport(o ClientOptions, d *patientDialer) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP2(o.TLS != nil)
	p.SetUnencryptedHTTP2(o.TLS == nil)
	secure := tlsConfig(o, "h2")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return d.connectAndGreet(ctx, secure) }
	return &http.Transport{DialContext: dial, DialTLSContext: dial, Protocols: p, HTTP2: keepalive(), ForceAttemptHTTP2: true}
}

// tlsConfig returns the configuration of TLS for a protocol; nil if none is used.
func tlsConfig(o ClientOptions, protocol string) *tls.Config {
	if o.TLS == nil {
		return nil
	}
	c := o.TLS.Clone()
	c.NextProtos = []string{protocol}
	if _, addr, err := ParseAddress(o.Address); err == nil && c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(addr)
	}
	c.ServerName = cmp.Or(c.ServerName, "workspace")
	return c
}

// baseURL returns the URL for requests. Its host is only used to check certificates.
func baseURL(o ClientOptions) string {
	if o.TLS == nil {
		return "http://workspace"
	}
	if network, addr, err := ParseAddress(o.Address); err == nil && network == "tcp" {
		return "https://" + addr
	}
	return "https://workspace"
}

// headers is an interceptor that sends with every request the token, the protocol, and
// which workspace is wanted.
type headers struct{ token, identity string }

func (h *headers) set(header http.Header) {
	header.Set(protocolHeader, strconv.Itoa(Protocol))
	if h.token != "" {
		header.Set("Authorization", "Bearer "+h.token)
	}
	if h.identity != "" {
		header.Set(identityHeader, h.identity)
	}
}

func (h *headers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		h.set(r.Header())
		setFence(ctx, r.Header())
		return next(ctx, r)
	}
}

func (h *headers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		h.set(conn.RequestHeader())
		setFence(ctx, conn.RequestHeader())
		return conn
	}
}

func (h *headers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// retryInterceptor returns an interceptor that repeats a request whose answer was lost, if the
// request is idempotent.
func retryInterceptor(pauses []time.Duration) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (answer connect.AnyResponse, err error) {
			if r.Spec().IdempotencyLevel == connect.IdempotencyUnknown {
				return next(ctx, r)
			}
			err = retry(ctx, pauses, func() error {
				answer, err = next(ctx, r)
				return err
			})
			return answer, err
		}
	}
}

// retry calls do, and again after each pause as long as its answer is lost or the workspace
// is away. If it is away at last, and an attempt before that was lost, that one may have had
// an effect: it is not true that nothing was asked.
//
// Whoever was lost as soon as a connection counts as dead has heard nothing at all. After two
// such attempts there is no third one, because all of them would take minutes.
func retry(ctx context.Context, pauses []time.Duration, do func() error) error {
	began, silent := time.Now(), 0
	err := do()
	var lost error
	for _, pause := range pauses {
		if errors.Is(fromWire(ctx, err), workspace.ErrLost) {
			lost = err
		}
		if took := time.Since(began); took >= deadTime && took < 2*deadTime {
			silent++
		}
		if !isLost(ctx, err) || silent == 2 || wait(ctx, pause) != nil {
			break
		}
		began = time.Now()
		err = do()
	}
	if lost != nil && errors.Is(fromWire(ctx, err), workspace.ErrAway) {
		return lost
	}
	return err
}

// isLost reports whether an error means that the workspace could not be reached, so
// that it may help to repeat the request.
func isLost(ctx context.Context, err error) bool {
	err = fromWire(ctx, err)
	if gone, ok := errors.AsType[*away](err); ok {
		return !gone.final
	}
	return errors.Is(err, workspace.ErrLost)
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
