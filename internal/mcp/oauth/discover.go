package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	maxAnswer   = 1 << 20          // maximum bytes of an answer of a server
	requestTime = 30 * time.Second // for one request
)

// NewHTTP returns what the requests of this package are made with. Redirections are followed
// within one place only, because what is sent is meant for that place.
func NewHTTP(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: base, Timeout: requestTime, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		first := before[0]
		if first.Method != http.MethodGet || len(before) > 3 || to.URL.Scheme != first.URL.Scheme || !strings.EqualFold(to.URL.Host, first.URL.Host) {
			return fmt.Errorf("%s redirects to another place, %s", first.URL.Host, to.URL.Host)
		}
		return nil
	}}
}

// A Challenge is what a server says when it wants a login.
type Challenge struct {
	Status   int    `json:"status"`
	Metadata string `json:"metadata,omitempty"` // address of the description of the resource
	Scope    string `json:"scope,omitempty"`    // rights that are needed, separated by spaces
	Error    string `json:"error,omitempty"`
}

// ReadChallenge reads the challenge in an answer. One that cannot be read is as good as none.
func ReadChallenge(status int, h http.Header) Challenge {
	c := Challenge{Status: status}
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		return c
	}
	for _, one := range all {
		if one.Scheme == "bearer" {
			c.Metadata, c.Scope, c.Error = one.Params["resource_metadata"], one.Params["scope"], one.Params["error"]
			return c
		}
	}
	return c
}

// WantsMore reports whether a server has refused a token because it has too few rights.
func (c Challenge) WantsMore() bool {
	return c.Status == http.StatusForbidden && c.Error == "insufficient_scope"
}

// A Place is where a login is made.
type Place struct {
	Resource    string   `json:"resource"` // the MCP server, as its description names it
	Issuer      string   `json:"issuer"`   // the authorization server
	Authorize   string   `json:"authorize"`
	Token       string   `json:"token"`
	Register    string   `json:"register,omitempty"`
	Scopes      []string `json:"scopes,omitempty"`      // rights that the resource knows
	Offline     bool     `json:"offline,omitempty"`     // true if the right to stay logged in can be asked for
	Methods     []string `json:"methods,omitempty"`     // how clients can authenticate themselves
	Documents   bool     `json:"documents,omitempty"`   // true if a client can be the address of its description
	NamesIssuer bool     `json:"namesIssuer,omitempty"` // true if every answer has to name the issuer
}

// Discover finds where a login to a server is made.
func Discover(ctx context.Context, c *http.Client, server string, ch Challenge) (Place, error) {
	at, err := url.Parse(server)
	if err != nil {
		return Place{}, err
	}
	about, _, err := ReadResource(ctx, c, server, ch)
	if err != nil {
		return Place{}, err
	}
	if about == nil { // servers of 2025-03-26 are their own authorization servers
		root := url.URL{Scheme: at.Scheme, Host: at.Host}
		about = &Resource{Resource: server, AuthorizationServers: []string{root.String()}}
	}
	if len(about.AuthorizationServers) == 0 {
		return Place{}, errors.New("the server does not say where to log in")
	}
	issuer := about.AuthorizationServers[0]
	if err := allowed(issuer, at); err != nil {
		return Place{}, fmt.Errorf("the authorization server %s: %w", issuer, err)
	}
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, c)
	if err != nil {
		return Place{}, fmt.Errorf("the authorization server %s: %w", issuer, err)
	}
	if meta == nil { // the paths that 2025-03-26 has fixed
		meta = &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register"}
	}
	return placeOf(about, meta, at)
}

// placeOf checks the addresses that an authorization server names.
func placeOf(about *Resource, meta *oauthex.AuthServerMeta, server *url.URL) (Place, error) {
	for _, address := range []string{meta.AuthorizationEndpoint, meta.TokenEndpoint} {
		if address == "" {
			return Place{}, fmt.Errorf("the authorization server %s does not say where to log in", meta.Issuer)
		}
	}
	for _, address := range []string{meta.AuthorizationEndpoint, meta.TokenEndpoint, meta.RegistrationEndpoint} {
		if err := allowed(address, server); address != "" && err != nil {
			return Place{}, fmt.Errorf("the authorization server %s names %s: %w", meta.Issuer, address, err)
		}
	}
	return Place{
		Resource: about.Resource, Issuer: meta.Issuer, Authorize: meta.AuthorizationEndpoint, Token: meta.TokenEndpoint, Register: meta.RegistrationEndpoint,
		Scopes: about.Scopes, Offline: contains(meta.ScopesSupported, offline), Methods: meta.TokenEndpointAuthMethodsSupported,
		Documents: meta.ClientIDMetadataDocumentSupported, NamesIssuer: meta.AuthorizationResponseIssParameterSupported,
	}, nil
}

// allowed returns an error if a server must not send us to an address. A server elsewhere
// could otherwise make us ask programs of this machine.
func allowed(address string, server *url.URL) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.User != nil:
		return errors.New("it is no address of a server")
	case isLoopback(u.Hostname()) && !isLoopback(server.Hostname()):
		return errors.New("it is on this machine, and the MCP server is not")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("it is not https")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// A Resource is how a server describes itself.
type Resource struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
}

// ReadResource reads how a server describes itself, also as the server said it. It returns
// nil if there is no description.
func ReadResource(ctx context.Context, c *http.Client, server string, ch Challenge) (*Resource, json.RawMessage, error) {
	at, err := url.Parse(server)
	if err != nil {
		return nil, nil, err
	}
	const known = "/.well-known/oauth-protected-resource"
	root := url.URL{Scheme: at.Scheme, Host: at.Host, Path: known}
	own := root
	own.Path += "/" + strings.TrimLeft(at.Path, "/")
	for _, address := range []string{ch.Metadata, own.String(), root.String()} {
		if address == "" {
			continue
		}
		if err := allowed(address, at); err != nil {
			return nil, nil, fmt.Errorf("the server describes itself at %s: %w", address, err)
		}
		about, raw, err := readResource(ctx, c, address)
		if err != nil {
			return nil, nil, err
		}
		if about != nil {
			if !covers(about.Resource, at) {
				return nil, nil, fmt.Errorf("the server describes itself as another one, %s", about.Resource)
			}
			return about, raw, nil
		}
	}
	return nil, nil, nil
}

// covers reports whether what a server calls itself is its address, or a folder above it.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Scheme != server.Scheme || !strings.EqualFold(u.Host, server.Host) || u.Fragment != "" {
		return false
	}
	above, path := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(server.Path, "/")
	return above == path || strings.HasPrefix(path, above+"/")
}

// readResource reads a description; nil if there is none at the address.
func readResource(ctx context.Context, c *http.Client, address string) (*Resource, json.RawMessage, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("Accept", "application/json")
	answer, err := c.Do(q)
	if err != nil {
		return nil, nil, fmt.Errorf("read the description of the server: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("read the description of the server: %w", err)
	}
	var about Resource
	if json.Unmarshal(text, &about) != nil || about.Resource == "" { // a page for people, for example
		return nil, nil, nil
	}
	return &about, text, nil
}

func contains(list []string, one string) bool {
	for _, s := range list {
		if s == one {
			return true
		}
	}
	return false
}
