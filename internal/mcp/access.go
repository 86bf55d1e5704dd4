package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/mcp/oauth"
)

// access is what a client knows of the rights that a server has given it.
type access struct {
	wants    *Server // what wants a login, with the variables replaced; nil if nothing does
	refused  string  // token that it has refused
	given    string  // token that the program behind the session has given; empty if none
	scope    string  // rights that the server has asked for so far
	asksMore bool    // true while a person is asked for more rights
}

// A TokenRequest asks the program behind a session for a token.
type TokenRequest struct {
	Server    Server
	Reason    string // one of the reasons below
	Challenge oauth.Challenge
	Metadata  json.RawMessage // how the server describes itself; nil if it does not
}

// The reasons for a TokenRequest, in the words of the protocol.
const (
	reasonInitial = "initial" // there is no token yet
	reasonRefresh = "refresh" // the server has refused the last one
	reasonUpscope = "upscope" // it has too few rights
	reasonReauth  = "reauth"  // the last one was refused, and the program has no other one like it
)

// LoginWanted is the error of a request that a server has refused because it wants a login.
// Nothing was done.
type LoginWanted struct {
	Server string
	Scope  string // rights that the server wants; it may be empty
	More   bool   // true if there is a login, which has too few rights
}

func (e *LoginWanted) Error() string {
	text := "the MCP server " + e.Server + " wants a login"
	if e.More {
		text += " with more rights"
	}
	if e.Scope != "" {
		text += " (" + quote(e.Scope, maxServerName) + ")"
	}
	return text + "; a person has to log in: abide mcp login " + e.Server
}

func (*LoginWanted) Is(target error) bool { return target == errLogin }

// hasHeader reports whether the configuration itself says how requests are authorised.
func (s Server) hasHeader() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// token returns the token for the next request; empty if there is none.
func (r *remote) token(ctx context.Context) (string, error) {
	if r.client == nil || r.server.hasHeader() {
		return "", nil
	}
	r.client.mu.Lock()
	given := r.client.given
	r.client.mu.Unlock()
	if given != "" || r.client.set.opts.Logins == nil {
		return given, nil
	}
	return r.client.set.opts.Logins.token(ctx, r.server)
}

// note remembers that a request was refused.
func (r *remote) note(ch oauth.Challenge, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied, r.used = &ch, token
}

// authorize returns another token in the place of one that the server has refused.
func (r *remote) authorize(ctx context.Context, ch oauth.Challenge, used string) (string, error) {
	wanted := &LoginWanted{r.server.Name, ch.Scope, ch.WantsMore()}
	c := r.client
	if c == nil || r.server.hasHeader() {
		return "", wanted
	}
	c.mu.Lock()
	given := c.given != ""
	c.mu.Unlock()
	if logins := c.set.opts.Logins; logins != nil && !given && used != "" && !wanted.More {
		switch next, err := logins.renew(ctx, r.server, used); {
		case err == nil:
			return next, nil
		case !oauth.AskAgain(err): // it passes: nobody has to log in
			r.mu.Lock()
			r.denied = nil
			r.mu.Unlock()
			return "", err
		}
	}
	r.mu.Lock()
	lost := r.lost
	r.mu.Unlock()
	if lost == nil { // whoever connects asks
		return "", wanted
	}
	if token := c.askProgram(ctx, r.server, ch, used); token != "" {
		return token, nil
	}
	if wanted.More {
		c.askForMore(r.server, ch, used)
		return "", wanted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.lost:
	default:
		close(r.lost)
	}
	return "", wanted
}

// askProgram asks the program behind the session for a token; empty if it gives none.
func (c *client) askProgram(ctx context.Context, s Server, ch oauth.Challenge, used string) string {
	if c.set.events.Token == nil || s.hasHeader() {
		return ""
	}
	c.mu.Lock()
	if c.given != "" && c.given != used { // another request has got one meanwhile
		defer c.mu.Unlock()
		return c.given
	}
	ch.Scope = union(c.scope, ch.Scope)
	c.mu.Unlock()
	reasons := []string{reasonInitial}
	switch {
	case ch.WantsMore():
		reasons = []string{reasonUpscope}
	case used != "":
		reasons = []string{reasonRefresh, reasonReauth}
	}
	c.ask(1)
	defer c.ask(-1)
	_, about, _ := oauth.ReadResource(ctx, oauth.NewHTTP(c.set.opts.HTTP), s.URL, ch) // it is for display
	for _, reason := range reasons {
		token, asked := c.set.events.Token(ctx, TokenRequest{s, reason, ch, about})
		if token != "" {
			c.mu.Lock()
			c.given, c.scope = token, ch.Scope
			c.mu.Unlock()
			return token
		}
		if !asked {
			break
		}
	}
	return ""
}

// union returns the rights of two texts, each once.
func union(a, b string) string {
	all := strings.Fields(a)
	for _, s := range strings.Fields(b) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}

// awaitLogin waits until a server that wants a login may take a connection: the program
// behind the session has given a token, a person has logged in, or somebody wants it tried.
func (c *client) awaitLogin(ctx context.Context, err error) {
	config, failed := c.config.expanded(c.set.in.Env)
	if failed != nil {
		c.pause(ctx, failed, len(pauses)+1)
		return
	}
	ch, used := oauth.Challenge{}, ""
	var denied *deniedError
	if errors.As(err, &denied) {
		ch, used = denied.challenge, denied.used
	}
	if c.askProgram(ctx, config, ch, used) != "" || ctx.Err() != nil {
		return
	}
	if logins := c.set.opts.Logins; logins != nil && ch.WantsMore() {
		if err := logins.want(config, ch); err != nil {
			c.log.note(Owner(c.set.in.Session), "what rights are needed could not be stored: %v", err)
		}
	}
	c.mu.Lock()
	c.given, c.wants, c.refused = "", &config, used
	c.mu.Unlock()
	c.setStatus(NeedsAuth, err.Error())
	c.log.note(Owner(c.set.in.Session), "%s: %v", NeedsAuth, err)
	c.askPerson(ctx, config, used, false, c.kick)
	c.mu.Lock()
	c.wants, c.tried = nil, false // whoever waits for the server waits for the next attempt
	c.mu.Unlock()
}

// settled reports whether the server was tried, and returns a channel that is closed when
// that may have changed. A server that somebody has logged in to since is not tried yet.
func (c *client) settled() (bool, <-chan struct{}) {
	c.mu.Lock()
	tried, changed, wants, refused := c.tried, c.changed, c.wants, c.refused
	c.mu.Unlock()
	if tried && wants != nil && !wants.hasHeader() && c.set.opts.Logins.has(*wants, refused) {
		return false, changed
	}
	return tried, changed
}

// askForMore asks a person to log in again with more rights, beside the connection.
func (c *client) askForMore(s Server, ch oauth.Challenge, used string) {
	logins := c.set.opts.Logins
	if logins == nil {
		return
	}
	if err := logins.want(s, ch); err != nil {
		c.log.note(Owner(c.set.in.Session), "what rights are needed could not be stored: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asksMore || c.set.ctx.Err() != nil {
		return
	}
	c.asksMore = true
	c.set.work.Go(func() {
		c.askPerson(c.set.ctx, s, used, true, nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asksMore = false
	})
}

// ErrLoggedIn is the cause with which the question for a login ends when there is one.
var ErrLoggedIn = errors.New("there is a login")

// askPerson tells a person that a login is needed, and waits until there is one, or until
// there is something in kick.
func (c *client) askPerson(ctx context.Context, s Server, used string, more bool, kick <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel(nil)
	answered := make(chan struct{})
	if c.set.events.Login != nil && !s.hasHeader() && c.set.opts.Logins != nil {
		work.Go(func() {
			if c.set.events.Login(ctx, s, more) {
				close(answered)
			}
		})
	}
	for {
		changed := c.set.opts.Logins.changed()
		if !s.hasHeader() && c.set.opts.Logins.has(s, used) {
			cancel(ErrLoggedIn)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-kick:
			return
		case <-answered:
			return
		case <-changed:
		}
	}
}

// deniedError is the error of a connection that wants a login.
type deniedError struct {
	challenge oauth.Challenge
	used      string
	header    bool // true if the configuration has a header that the server refuses
}

func (e *deniedError) Error() string {
	if e.header {
		return fmt.Sprintf("the server refuses the header Authorization of the configuration (status %d)", e.challenge.Status)
	}
	return errLogin.Error()
}

func (*deniedError) Is(target error) bool { return target == errLogin }

// loginError returns the error of a connection that wants a login.
func (r *remote) loginError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		return errLogin
	}
	return &deniedError{*r.denied, r.used, r.server.hasHeader()}
}

// wantsLogin reports whether the server has asked for a login.
func (r *remote) wantsLogin() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied != nil && (r.denied.Status == 401 || r.denied.WantsMore())
}

// ready notes that the connection is good, and returns a channel that is closed when it
// needs a login; nil if it is none over HTTP.
func (r *remote) ready() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied, r.lost = nil, make(chan struct{})
	return r.lost
}
