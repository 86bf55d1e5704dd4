package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// offline is the right to stay logged in.
const offline = "offline_access"

// A Setup is what the configuration says of the logins to a server. Its zero value is
// usable.
type Setup struct {
	ClientID     string // client that was registered by hand
	ClientSecret string
	Document     string // address of the description of the client
}

// The ways in which a client authenticates itself.
const (
	byNone  = "none"
	byPost  = "client_secret_post"
	byBasic = "client_secret_basic"
)

// A Client is this program as an authorization server knows it.
type Client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Method   string    `json:"method"` // how it authenticates itself
	Issuer   string    `json:"issuer"` // the only server that is shown the rest
	Redirect string    `json:"redirect"`
	Expires  time.Time `json:"expires,omitzero"` // of the secret; zero if never
}

// Fits reports whether the client can be used for a login. One that the configuration names
// is always taken from there, because what was stored of it may have changed.
func (k Client) Fits(p Place, s Setup, redirect string, now time.Time) bool {
	return !s.names(p) && k.ID != "" && k.Issuer == p.Issuer && k.Redirect == redirect && (k.Expires.IsZero() || now.Before(k.Expires))
}

// names reports whether the configuration says which client this program is.
func (s Setup) names(p Place) bool { return s.ClientID != "" || p.Documents && s.Document != "" }

// Configured returns the client with the secret that the configuration has for it now, if it
// has one.
func (k Client) Configured(p Place, s Setup) Client {
	if s.ClientID != "" && s.ClientID == k.ID && s.ClientSecret != "" {
		k.Secret, k.Method = s.ClientSecret, p.method(byPost, byBasic)
	}
	return k
}

// RegisterClient makes this program known to the authorization server, if that is needed.
func (p Place) RegisterClient(ctx context.Context, c *http.Client, s Setup, redirect string) (Client, error) {
	k := Client{Issuer: p.Issuer, Redirect: redirect, Method: byNone}
	switch {
	case s.ClientID != "":
		k.ID = s.ClientID
		return k.Configured(p, s), nil
	case p.Documents && s.Document != "":
		k.ID = s.Document
		return k, nil
	case p.Register == "":
		return k, fmt.Errorf("the authorization server %s does not know this program, and takes no registrations: register it by hand, and configure its client id", p.Issuer)
	}
	asked := &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, ClientName: "abide", ApplicationType: "native", ResponseTypes: []string{"code"},
		GrantTypes: []string{"authorization_code", "refresh_token"},
	}
	if len(p.Methods) > 0 {
		asked.TokenEndpointAuthMethod = p.method(byNone, byPost, byBasic)
	}
	got, err := register(ctx, c, p.Register, asked)
	if err != nil {
		return k, fmt.Errorf("the authorization server %s has not registered this program: %w", p.Issuer, err)
	}
	k.ID, k.Secret, k.Expires, k.Method = got.ClientID, got.ClientSecret, got.ClientSecretExpiresAt, got.TokenEndpointAuthMethod
	switch {
	case k.Secret == "":
		k.Method = byNone
	case k.Method == "":
		k.Method = asked.TokenEndpointAuthMethod
	}
	return k, nil
}

// register registers a client. Its errors have nothing of an answer but the refusal in it,
// because the rest may be a secret: errors are shown and logged.
func register(ctx context.Context, c *http.Client, at string, asked *oauthex.ClientRegistrationMetadata) (got oauthex.ClientRegistrationResponse, err error) {
	text, err := json.Marshal(asked)
	if err != nil {
		return got, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(text))
	if err != nil {
		return got, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	answer, err := c.Do(q)
	if err != nil {
		return got, err
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer)); err != nil {
		return got, err
	}
	if answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusOK {
		return got, refusalOf(answer.StatusCode, text)
	}
	if json.Unmarshal(text, &got) != nil || got.ClientID == "" {
		return got, errors.New("its answer has no client id that can be read")
	}
	return got, nil
}

// method returns the first of some methods that the authorization server knows.
func (p Place) method(prefer ...string) string {
	for _, m := range prefer {
		if contains(p.Methods, m) {
			return m
		}
	}
	return byBasic // the default of the specification
}

// A Login is a login that was begun.
type Login struct {
	Place    Place    `json:"place"`
	Client   Client   `json:"client"`
	Scopes   []string `json:"scopes,omitempty"`
	Verifier string   `json:"verifier"`
	State    string   `json:"state"`
}

// Begin begins a login. The rights are those that the server has asked for, or all that it
// knows, and those that there were before.
func (p Place) Begin(k Client, ch Challenge, before []string) Login {
	scopes := strings.Fields(ch.Scope)
	if len(scopes) == 0 {
		scopes = slices.Clone(p.Scopes)
	}
	for _, s := range before {
		if !contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if p.Offline && !contains(scopes, offline) {
		scopes = append(scopes, offline)
	}
	return Login{Place: p, Client: k, Scopes: scopes, Verifier: rand.Text() + rand.Text(), State: rand.Text()}
}

// URL returns the address that a person opens.
func (l Login) URL() (string, error) {
	u, err := url.Parse(l.Place.Authorize)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(l.Verifier))
	v := u.Query()
	v.Set("response_type", "code")
	v.Set("client_id", l.Client.ID)
	v.Set("redirect_uri", l.Client.Redirect)
	v.Set("state", l.State)
	v.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	v.Set("code_challenge_method", "S256")
	v.Set("resource", l.Place.Resource)
	if len(l.Scopes) > 0 {
		v.Set("scope", strings.Join(l.Scopes, " "))
	}
	if contains(l.Scopes, offline) {
		v.Set("prompt", "consent")
	}
	u.RawQuery = v.Encode()
	return u.String(), nil
}

// ErrOtherLogin means that an answer belongs to another login.
var ErrOtherLogin = errors.New("this is not the answer to the login that was begun last: open its address again")

// Answer reads the address to which the authorization server has sent the browser.
func Answer(text string) (url.Values, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err == nil && u.Query().Get("state") != "" {
		return u.Query(), nil
	}
	return nil, errors.New("this is not the address to which the browser was sent: copy it whole, with everything after the question mark")
}

// Finish changes the answer to a login into a token.
func (l Login) Finish(ctx context.Context, c *http.Client, answer url.Values, now time.Time) (Token, error) {
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(l.State)) != 1 {
		return Token{}, ErrOtherLogin
	}
	iss := answer.Get("iss")
	switch {
	case iss != "" && iss != l.Place.Issuer, iss == "" && l.Place.NamesIssuer:
		return Token{}, fmt.Errorf("the answer is from the authorization server %q, and not from %q", iss, l.Place.Issuer)
	case answer.Get("error") != "":
		return Token{}, &Refusal{Code: answer.Get("error"), Description: answer.Get("error_description")}
	case answer.Get("code") == "":
		return Token{}, errors.New("the answer has no code")
	}
	t := Token{Place: l.Place, Client: l.Client, Scopes: l.Scopes}
	err := t.ask(ctx, c, now, url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {l.Client.Redirect}, "code_verifier": {l.Verifier},
	})
	return t, err
}

// A Token is the result of a login.
type Token struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // what the server said by our clock; zero if it said nothing
	Scopes  []string  `json:"scopes,omitempty"`
	Place   Place     `json:"place"`
	Client  Client    `json:"client"`
}

// Old reports whether the token should be renewed before it is used. A token that only looks
// fresh because the clock is wrong is refused by the server, and is renewed then.
func (t Token) Old(now time.Time) bool {
	return t.Refresh != "" && !t.Expires.IsZero() && now.After(t.Expires.Add(-renewBefore))
}

// renewBefore is how long before its end a token is renewed.
const renewBefore = 30 * time.Second

// Renew returns a new token for the old one. The error is a *Refusal if the server says that
// it does not renew it.
func (t Token) Renew(ctx context.Context, c *http.Client, now time.Time) (Token, error) {
	refresh := t.Refresh
	if refresh == "" {
		return t, &Refusal{Code: invalidGrant, Description: "the token cannot be renewed"}
	}
	err := t.ask(ctx, c, now, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	return t, err
}

const invalidGrant = "invalid_grant"

// A Refusal is the answer of an authorization server that refuses something.
type Refusal struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (r *Refusal) Error() string {
	text := "the authorization server refused: " + printable(r.Code, 100)
	if r.Description != "" {
		text += " (" + printable(r.Description, 300) + ")"
	}
	return text
}

// printable returns the beginning of what a server has said, without control characters.
func printable(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// AskAgain reports whether an error means that a person has to log in again. Anything else,
// like a server that cannot be reached, passes.
func AskAgain(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && refusal.Code == invalidGrant
}

// ClientRefused reports whether an error means that the authorization server does not know
// the client, or not with this secret.
func ClientRefused(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && (refusal.Code == "invalid_client" || refusal.Code == "unauthorized_client")
}

// ask asks for a token, and takes in the answer.
func (t *Token) ask(ctx context.Context, c *http.Client, now time.Time, form url.Values) error {
	form.Set("resource", t.Place.Resource)
	if t.Client.Method != byBasic {
		form.Set("client_id", t.Client.ID)
	}
	if t.Client.Method == byPost {
		form.Set("client_secret", t.Client.Secret)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Place.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Accept", "application/json")
	if t.Client.Method == byBasic {
		q.SetBasicAuth(url.QueryEscape(t.Client.ID), url.QueryEscape(t.Client.Secret))
	}
	answer, err := c.Do(q)
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return refusalOf(answer.StatusCode, text)
	}
	return t.take(text, now)
}

// refusalOf returns the error of an answer that is none of those that were asked for.
func refusalOf(status int, text []byte) error {
	var r Refusal
	if status >= 400 && status < 500 && json.Unmarshal(text, &r) == nil && r.Code != "" {
		return &r
	}
	return fmt.Errorf("the authorization server answered with status %d", status)
}

// take takes in a token that was given.
func (t *Token) take(text []byte, now time.Time) error {
	var got struct {
		Access  string      `json:"access_token"`
		Type    string      `json:"token_type"`
		Refresh string      `json:"refresh_token"`
		Expires json.Number `json:"expires_in"` // some servers send a fraction, or a text
		Scope   *string     `json:"scope"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Access == "" || strings.ContainsFunc(got.Access, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return errors.New("ask for a token: the answer of the authorization server has no token that can be used")
	}
	if got.Type != "" && !strings.EqualFold(got.Type, "bearer") {
		return fmt.Errorf("ask for a token: the type %s is not supported", printable(got.Type, 40))
	}
	t.Access, t.Expires = got.Access, time.Time{}
	if seconds, err := got.Expires.Float64(); err == nil && seconds > 0 && seconds < 10*365*24*3600 {
		t.Expires = now.Add(time.Duration(seconds * float64(time.Second)))
	}
	if got.Refresh != "" { // a server that sends none keeps the old one
		t.Refresh = got.Refresh
	}
	if got.Scope != nil {
		t.Scopes = strings.Fields(*got.Scope)
	}
	return nil
}
