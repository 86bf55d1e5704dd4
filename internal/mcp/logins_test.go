package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp/oauth"
	"github.com/abide-run/abide/internal/seal"
)

// An authority is an authorization server and the MCP server that trusts it. It is
// one HTTP server, so that a test has one address to speak with.
type authority struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	code      string            // the code that counts
	challenge string            // of the login that the code belongs to
	access    string            // the token that opens the MCP server
	refresh   string            // what it can be renewed with
	renewals  int               // number of renewals
	clients   int               // number of registrations
	token     func() (int, any) // answers requests for tokens instead, if it is not nil
	metadata  func(m map[string]any)
	known     string // the only client that counts; any if empty
	secret    string // the secret of that client
	issuer    string // the authorization server that the MCP server names; itself if empty
	resource  string // what the MCP server calls itself; its address if empty
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", a.describe)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.describeAuthority)
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.giveToken)
	mux.HandleFunc("POST /mcp", a.serve)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Error(err)
	}
}

func (a *authority) describe(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := a.URL + "/mcp"
	if a.resource != "" {
		name = a.resource
	}
	a.reply(w, http.StatusOK, map[string]any{"resource": name, "authorization_servers": []string{cmp.Or(a.issuer, a.URL)}, "scopes_supported": []string{"read"}})
}

func (a *authority) describeAuthority(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
	}
	a.mu.Lock()
	change := a.metadata
	a.mu.Unlock()
	if change != nil {
		change(m)
	}
	a.reply(w, http.StatusOK, m)
}

func (a *authority) register(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients++
	a.reply(w, http.StatusCreated, map[string]any{"client_id": fmt.Sprint("client-", a.clients), "token_endpoint_auth_method": "none"})
}

// authorize is the page on which a person logs in: it sends the browser back at once.
func (a *authority) authorize(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := r.URL.Query()
	a.code, a.challenge = "code-"+q.Get("state"), q.Get("code_challenge")
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {a.code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (a *authority) giveToken(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token != nil {
		status, v := a.token()
		a.reply(w, status, v)
		return
	}
	if a.known != "" && (r.PostFormValue("client_id") != a.known || r.PostFormValue("client_secret") != a.secret) {
		a.reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		if r.PostFormValue("code") != a.code || r.PostFormValue("code_verifier") == "" || r.PostFormValue("resource") != a.URL+"/mcp" {
			a.reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		a.code = ""
	case "refresh_token":
		if r.PostFormValue("refresh_token") != a.refresh {
			a.reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		a.renewals++
	}
	a.access, a.refresh = fmt.Sprint("access-", a.renewals), fmt.Sprint("refresh-", a.renewals)
	a.reply(w, http.StatusOK, map[string]any{"access_token": a.access, "refresh_token": a.refresh, "token_type": "Bearer", "expires_in": 3600})
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.access == "" || r.Header.Get("Authorization") != "Bearer "+a.access {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// browse opens an address as a browser on another machine, and returns where it is sent.
func (a *authority) browse(at string) string {
	a.t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.Get(at)
	if err != nil {
		a.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.Header.Get("Location")
}

func (a *authority) server() Server {
	return Server{MCPServer: event.MCPServer{Name: "docs", Type: HTTP, URL: a.URL + "/mcp"}}
}

// openLogins opens the logins of a folder.
func openLogins(t *testing.T, dir string) *Logins {
	t.Helper()
	key, err := seal.OpenFile(filepath.Join(dir, seal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	l := OpenLogins(filepath.Join(dir, "mcp-logins"), key, nil)
	t.Cleanup(l.Close)
	return l
}

// logIn logs in, as a person who pastes the address.
func (a *authority) logIn(l *Logins) {
	a.t.Helper()
	at, err := l.Begin(a.t.Context(), a.server())
	if err == nil {
		err = l.Finish(a.t.Context(), a.browse(at))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestALoginIsContinuedByAnotherProcess(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	first := openLogins(t, dir)
	begun, err := first.Begin(t.Context(), a.server())
	if err != nil {
		t.Fatal(err)
	}
	first.Close()

	second := openLogins(t, dir)
	again, err := second.Begin(t.Context(), a.server())
	if err != nil || again != begun {
		t.Errorf("the second process begins %q (%v), want the login of the first, %q", again, err, begun)
	}
	if err := second.Finish(t.Context(), a.browse(begun)); err != nil {
		t.Fatal(err)
	}
	if token, err := second.token(t.Context(), a.server()); token != a.access || err != nil {
		t.Errorf("the token is %q (%v), want %q", token, err, a.access)
	}
	if a.clients != 1 {
		t.Errorf("the program was registered %d times, want 1", a.clients)
	}
	third := openLogins(t, dir)
	if token, err := third.token(t.Context(), a.server()); token != a.access || err != nil {
		t.Errorf("a third process has the token %q (%v), want %q", token, err, a.access)
	}
}

func TestNothingOfALoginIsStoredInTheOpen(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	l := openLogins(t, dir)
	at, err := l.Begin(t.Context(), a.server())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	look := func(words ...string) {
		text, err := os.ReadFile(l.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if w == "" || bytes.Contains(text, []byte(w)) {
				t.Errorf("%q is in the file", w)
			}
		}
	}
	look(u.Query().Get("state"), l.all[a.URL+"/mcp"].Begun.Verifier, "client-1", a.URL)
	if err := l.Finish(t.Context(), a.browse(at)); err != nil {
		t.Fatal(err)
	}
	look(a.access, a.refresh, "client-1")
}

func TestTheAnswerOfABrowserHereIsTaken(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	at, err := l.Begin(t.Context(), a.server())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(at) // it follows the redirection
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the browser is shown status %d", answer.StatusCode)
	}
	if in, err := l.Await(t.Context(), a.server()); !in || err != nil {
		t.Errorf("logged in: %v (%v)", in, err)
	}
}

func TestATokenIsRenewedOnceForAll(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	a.logIn(l)
	var wg sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = l.renew(t.Context(), a.server(), "access-0"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range got {
		if token != "access-1" {
			t.Errorf("somebody got %q, want access-1", token)
		}
	}
	if a.renewals != 1 {
		t.Errorf("the token was renewed %d times, want 1", a.renewals)
	}
}

func TestARenewalThatNobodyWaitsForIsKept(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	a.logIn(l)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if token, err := l.renew(ctx, a.server(), "access-0"); token != "access-1" || err != nil {
		t.Errorf("the renewed token is %q (%v), want access-1", token, err)
	}
}

func TestOnlyARefusalOfTheTokenOrTheClientAsksAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   any
		again  bool
	}{
		"invalid_grant": {http.StatusBadRequest, map[string]any{"error": "invalid_grant"}, true},
		"other client":  {http.StatusUnauthorized, map[string]any{"error": "invalid_client"}, true},
		"no client":     {http.StatusBadRequest, map[string]any{"error": "unauthorized_client"}, true},
		"other refusal": {http.StatusBadRequest, map[string]any{"error": "temporarily_unavailable"}, false},
		"down":          {http.StatusServiceUnavailable, map[string]any{"error": "invalid_grant"}, false},
		"nonsense":      {http.StatusOK, []int{1}, false},
		"no token":      {http.StatusOK, map[string]any{"token_type": "Bearer"}, false},
		"other type":    {http.StatusOK, map[string]any{"access_token": "x", "token_type": "mac"}, false},
		"header":        {http.StatusOK, map[string]any{"access_token": "x\r\nHost: elsewhere"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			l := openLogins(t, t.TempDir())
			a.logIn(l)
			a.mu.Lock()
			a.token = func() (int, any) { return c.status, c.body }
			a.mu.Unlock()
			_, err := l.renew(t.Context(), a.server(), "access-0")
			if err == nil || oauth.AskAgain(err) != c.again {
				t.Errorf("the error is %v, want one that asks again: %v", err, c.again)
			}
			if token, _ := l.token(t.Context(), a.server()); (token == "") != c.again {
				t.Errorf("the token is %q, want that it is forgotten: %v", token, c.again)
			}
		})
	}
}

// A clock that is wrong must not keep an old token in use, nor throw a good one away.
func TestTheServerDecidesWhetherATokenIsGood(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	a.logIn(l)

	l.now = func() time.Time { return time.Now().Add(-24 * time.Hour) } // it looks fresh
	a.mu.Lock()
	a.access = "revoked"
	a.mu.Unlock()
	web := &remote{server: a.server(), base: http.DefaultTransport, client: &client{set: &Set{opts: Options{Logins: l}}}}
	web.origin, _ = url.Parse(a.URL)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent || a.renewals != 1 {
		t.Errorf("the request is answered with %d after %d renewals, want 204 after 1", answer.StatusCode, a.renewals)
	}

	l.now = func() time.Time { return time.Now().Add(24 * time.Hour) } // it looks old, and cannot be renewed now
	a.mu.Lock()
	a.token = func() (int, any) { return http.StatusServiceUnavailable, nil }
	a.mu.Unlock()
	if token, err := l.token(t.Context(), a.server()); token != "access-1" || err != nil {
		t.Errorf("the token is %q (%v), want access-1", token, err)
	}
}

func TestAnAnswerCountsForItsOwnLoginOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		names  bool // true if the authority has to name itself
		answer func(v url.Values)
	}{
		"another state":      {false, func(v url.Values) { v.Set("state", "other") }},
		"no code":            {false, func(v url.Values) { v.Del("code") }},
		"refused":            {false, func(v url.Values) { v.Set("error", "access_denied") }},
		"another issuer":     {false, func(v url.Values) { v.Set("iss", "https://evil.example") }},
		"no issuer":          {true, func(url.Values) {}},
		"almost the issuer":  {true, func(v url.Values) { v.Set("iss", "ISSUER/") }},
		"the code of others": {false, func(v url.Values) { v.Set("code", "theirs") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			a.metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = c.names }
			l := openLogins(t, t.TempDir())
			at, err := l.Begin(t.Context(), a.server())
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(a.browse(at))
			if err != nil {
				t.Fatal(err)
			}
			v := u.Query()
			c.answer(v)
			if v.Get("iss") == "ISSUER/" {
				v.Set("iss", a.URL+"/")
			}
			u.RawQuery = v.Encode()
			if err := l.Finish(t.Context(), u.String()); err == nil {
				t.Error("the answer counts")
			}
			if token, _ := l.token(t.Context(), a.server()); token != "" {
				t.Errorf("there is a token: %q", token)
			}
		})
	}
}

func TestAnAuthorityThatLiesIsRefused(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(a *authority){
		"another resource": func(a *authority) { a.resource = "https://other.example/mcp" },
		"another issuer": func(a *authority) {
			a.metadata = func(m map[string]any) { m["issuer"] = "https://other.example" }
		},
		"no PKCE": func(a *authority) {
			a.metadata = func(m map[string]any) { delete(m, "code_challenge_methods_supported") }
		},
		"a script": func(a *authority) {
			a.metadata = func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }
		},
		"tokens in the open": func(a *authority) {
			a.metadata = func(m map[string]any) { m["token_endpoint"] = "http://other.example/token" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			lie(a)
			if at, err := openLogins(t, t.TempDir()).Begin(t.Context(), a.server()); err == nil {
				t.Errorf("a login is begun at %s", at)
			}
		})
	}
}

func TestTheTokenIsNotSentWhereAnAuthorityRedirects(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	seen := make(chan struct{}, 1)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen <- struct{}{} }))
	t.Cleanup(other.Close)
	l := openLogins(t, t.TempDir())
	at, err := l.Begin(t.Context(), a.server())
	if err != nil {
		t.Fatal(err)
	}
	sent := a.browse(at)
	a.Config.Handler = http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	if err := l.Finish(t.Context(), sent); err == nil {
		t.Error("the login is finished")
	}
	select {
	case <-seen:
		t.Error("the other place was asked")
	default:
	}
}

func TestLogoutForgets(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	l := openLogins(t, dir)
	if was, err := l.Logout(a.server()); was || err != nil {
		t.Errorf("nobody was logged in, and it says %v (%v)", was, err)
	}
	a.logIn(l)
	if was, err := l.Logout(a.server()); !was || err != nil {
		t.Errorf("somebody was logged in, and it says %v (%v)", was, err)
	}
	if token, _ := openLogins(t, dir).token(t.Context(), a.server()); token != "" {
		t.Errorf("there is still a token, %q", token)
	}
	var refusal *oauth.Refusal
	if _, err := l.renew(t.Context(), a.server(), "access-0"); !errors.As(err, &refusal) {
		t.Errorf("a renewal after the logout: %v", err)
	}
}

// configured returns the server with a client that was registered by hand, and its secret.
func (a *authority) configured(secret string) Server {
	s := a.server()
	s.OAuth.ClientID, s.ClientSecret = "by-hand", secret
	return s
}

// accept makes a client the only one that counts.
func (a *authority) accept(client, secret string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.secret = client, secret
	a.metadata = func(m map[string]any) {
		m["token_endpoint_auth_methods_supported"] = []string{"none", "client_secret_post"}
	}
}

// tryLogIn begins a login and finishes it.
func (a *authority) tryLogIn(l *Logins, s Server) error {
	a.t.Helper()
	at, err := l.Begin(a.t.Context(), s)
	if err != nil {
		a.t.Fatal(err)
	}
	return l.Finish(a.t.Context(), a.browse(at))
}

func TestARegistrationThatTheServerForgotIsMadeAgain(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	l := openLogins(t, dir)
	a.accept("client-1", "")
	a.logIn(l)

	a.accept("client-2", "")
	if _, err := l.renew(t.Context(), a.server(), "access-0"); !oauth.AskAgain(err) {
		t.Errorf("a renewal is refused with %v, want an error that asks for a login", err)
	}
	if err := a.tryLogIn(openLogins(t, dir), a.server()); err != nil {
		t.Errorf("the login after a renewal that was refused: %v", err)
	}

	l = openLogins(t, dir)
	a.accept("client-3", "")
	if err := a.tryLogIn(l, a.server()); !oauth.ClientRefused(err) {
		t.Errorf("a login with a client that was forgotten: %v", err)
	}
	if err := a.tryLogIn(openLogins(t, dir), a.server()); err != nil {
		t.Errorf("the login after one that was refused: %v", err)
	}
}

// An authorization server need not send a browser back that comes with a client that it does
// not know, so there has to be a command that registers again.
func TestLogoutForgetsTheRegistration(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	a.logIn(l)
	for n := range 2 { // the second time with nothing but the registration
		if _, err := l.Logout(a.server()); err != nil {
			t.Fatal(err)
		}
		at, err := l.Begin(t.Context(), a.server())
		if want := fmt.Sprint("client_id=client-", n+2); err != nil || !strings.Contains(at, want) {
			t.Errorf("the login after the logout is at %s (%v), want %s", at, err, want)
		}
		if err := l.Finish(t.Context(), "http://127.0.0.1/callback?error=access_denied&state="+l.all[a.URL+"/mcp"].Begun.State); err == nil {
			t.Error("the refused login is finished")
		}
	}
}

func TestTheSecretOfTheConfigurationCounts(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	l := openLogins(t, dir)
	a.accept("by-hand", "first")
	if err := a.tryLogIn(l, a.configured("first")); err != nil {
		t.Fatal(err)
	}

	a.accept("by-hand", "second")
	if _, err := l.renew(t.Context(), a.configured("first"), "access-0"); err == nil || oauth.AskAgain(err) || !strings.Contains(err.Error(), "client secret") {
		t.Errorf("a renewal with the old secret: %v, want an error that names the secret, and asks for no login", err)
	}
	if token, err := l.renew(t.Context(), a.configured("second"), "access-0"); err != nil || token != "access-1" {
		t.Errorf("a renewal with the new secret: %q, %v", token, err)
	}
	if token, err := l.renew(t.Context(), a.configured(""), "access-1"); err != nil || token != "access-2" {
		t.Errorf("a renewal without a secret: %q, %v, want that of the last renewal", token, err)
	}

	a.accept("by-hand", "third")
	if err := a.tryLogIn(openLogins(t, dir), a.configured("third")); err != nil {
		t.Errorf("a login with the third secret: %v", err)
	}
}

// A server that is taken over must not have the secret of the configuration sent elsewhere.
func TestAConfiguredClientIsShownToOneAuthorityOnly(t *testing.T) {
	t.Parallel()
	a, other, dir := newAuthority(t), newAuthority(t), t.TempDir()
	for _, each := range []*authority{a, other} {
		each.accept("by-hand", "secret")
	}
	name := func(issuer string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.issuer = issuer
	}
	s := a.configured("secret")
	refused := func(l *Logins, when string) {
		t.Helper()
		at, err := l.Begin(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "abide mcp logout docs") {
			t.Errorf("%s, a login is begun at %q (%v), want an error that names the logout", when, at, err)
		}
	}
	l := openLogins(t, dir)
	if _, err := l.Begin(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	name(other.URL)
	refused(l, "after a login that was begun")
	name("")
	if err := a.tryLogIn(l, s); err != nil {
		t.Fatal(err)
	}
	name(other.URL)
	refused(openLogins(t, dir), "after a login")

	old := openLogins(t, dir) // its account is stored without an issuer, as an older version did
	if err := old.store(s, func(a *account) { a.Issuer = "" }); err != nil {
		t.Fatal(err)
	}
	refused(old, "after an old login")
	if err := old.Forget(s); err != nil {
		t.Fatal(err)
	}
	refused(openLogins(t, dir), "after a login that was to be made again")

	l = openLogins(t, dir)
	if _, err := l.Logout(s); err != nil {
		t.Fatal(err)
	}
	if at, err := l.Begin(t.Context(), s); err != nil || !strings.HasPrefix(at, other.URL) {
		t.Errorf("after a logout, the login is begun at %q (%v), want at %s", at, err, other.URL)
	}
}

func TestARegistrationIsMadeWithEachAuthority(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	l := openLogins(t, t.TempDir())
	a.logIn(l)
	a.mu.Lock()
	a.issuer = other.URL
	a.mu.Unlock()
	if at, err := l.Begin(t.Context(), a.server()); err != nil || !strings.HasPrefix(at, other.URL) {
		t.Errorf("the login is begun at %q (%v), want at %s", at, err, other.URL)
	}
}

// hold makes the authority answer requests for tokens only when release is called. Something
// is in asked when there is a request.
func (a *authority) hold(status int, answer any) (asked <-chan struct{}, release func()) {
	in, out := make(chan struct{}, 1), make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = func() (int, any) {
		in <- struct{}{}
		<-out
		return status, answer
	}
	release = sync.OnceFunc(func() { close(out) })
	a.t.Cleanup(release)
	return in, release
}

func TestTheOutcomeOfALoginIsThatOfItsExchange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer any
		want   bool
	}{
		"given":   {http.StatusOK, map[string]any{"access_token": "new", "token_type": "Bearer"}, true},
		"refused": {http.StatusBadRequest, map[string]any{"error": "invalid_grant"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			l := openLogins(t, t.TempDir())
			a.logIn(l) // there is a token from before
			at, err := l.Begin(t.Context(), a.server())
			if err != nil {
				t.Fatal(err)
			}
			sent := a.browse(at)
			asked, release := a.hold(c.status, c.answer)
			finished := make(chan error, 1)
			go func() { finished <- l.Finish(t.Context(), sent) }()
			<-asked

			if err := l.Finish(t.Context(), sent); !errors.Is(err, oauth.ErrOtherLogin) {
				t.Errorf("the same answer counts again: %v", err)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if in, err := l.Await(over, a.server()); !errors.Is(err, context.Canceled) {
				t.Errorf("before the exchange ends, the outcome is %v (%v)", in, err)
			}
			release()
			if in, err := l.Await(t.Context(), a.server()); in != c.want || err != nil {
				t.Errorf("logged in: %v (%v), want %v", in, err, c.want)
			}
			if err := <-finished; (err == nil) != c.want {
				t.Errorf("the login is finished with %v", err)
			}
			if in, err := l.Await(t.Context(), a.server()); in != c.want || err != nil {
				t.Errorf("asked later, logged in: %v (%v), want %v", in, err, c.want)
			}
		})
	}
}

func TestALogoutCountsWhileALoginIsFinished(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	l := openLogins(t, t.TempDir())
	at, err := l.Begin(t.Context(), a.server())
	if err != nil {
		t.Fatal(err)
	}
	sent := a.browse(at)
	asked, release := a.hold(http.StatusOK, map[string]any{"access_token": "new"})
	finished := make(chan error, 1)
	go func() { finished <- l.Finish(t.Context(), sent) }()
	<-asked
	if was, err := l.Logout(a.server()); !was || err != nil {
		t.Errorf("a login was under way, and the logout says %v (%v)", was, err)
	}
	release()
	if err := <-finished; !errors.Is(err, errGivenUp) {
		t.Errorf("the login is finished with %v, want %v", err, errGivenUp)
	}
	if token, _ := l.token(t.Context(), a.server()); token != "" {
		t.Errorf("there is a token after the logout: %q", token)
	}
}

func TestLoginsUnderALostKeyAreKept(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	key := filepath.Join(dir, seal.FileName)
	file := filepath.Join(dir, "mcp-logins")
	var before [][]byte
	for n := range 3 {
		l := openLogins(t, dir)
		if token, err := l.token(t.Context(), a.server()); token != "" || err != nil {
			t.Errorf("under key %d, there is the token %q (%v)", n, token, err)
		}
		a.logIn(l)
		for i, want := range before {
			got, err := os.ReadFile(fmt.Sprint(file, ".unreadable-", i+1))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("under key %d, the logins under key %d are lost (%v)", n, i, err)
			}
		}
		if names, err := filepath.Glob(file + "*"); err != nil || len(names) != n+1 {
			t.Errorf("under key %d, the files are %q (%v), want %d", n, names, err, n+1)
		}
		l.Close()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, text)
		if err := os.Rename(key, fmt.Sprint(key, n)); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Rename(fmt.Sprint(key, 0), key); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".unreadable-1", file); err != nil {
		t.Fatal(err)
	}
	if token, err := openLogins(t, dir).token(t.Context(), a.server()); token != "access-0" || err != nil {
		t.Errorf("when the key is back, the token is %q (%v), want access-0", token, err)
	}
}
