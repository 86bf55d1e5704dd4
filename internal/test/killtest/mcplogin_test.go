package killtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/model/scripted"
	"github.com/abide-run/abide/internal/turn"
)

// A loginServer is an MCP server over HTTP that wants a login, and the authorization server
// that it trusts. It has a tool with an effect.
type loginServer struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	codes   map[string]string // challenges of the logins, by their codes; a code counts once
	tokens  map[string]bool
	effects int
	onToken func(give func()) // called when a token is wanted; it gives the token, or does not
}

func newLoginServer(t *testing.T) *loginServer {
	s := &loginServer{t: t, codes: make(map[string]string), tokens: make(map[string]bool), onToken: func(give func()) { give() }}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, rule{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, rule{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		s.reply(w, rule{"client_id": "abide", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.giveToken)
	mux.HandleFunc("POST /mcp", s.serve)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *loginServer) reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // whoever has asked may be dead
}

// authorize is the page on which a person logs in: it sends the browser back at once.
func (s *loginServer) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	code := fmt.Sprint("code-", len(s.codes)+1)
	s.codes[code] = q.Get("code_challenge")
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (s *loginServer) giveToken(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	on := s.onToken
	s.mu.Unlock()
	on(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		code := r.PostFormValue("code")
		if s.codes[code] != base64.RawURLEncoding.EncodeToString(sum[:]) {
			w.WriteHeader(http.StatusBadRequest)
			s.reply(w, rule{"error": "invalid_grant"})
			return
		}
		s.codes[code] = "used"
		token := fmt.Sprint("token-", len(s.tokens)+1)
		s.tokens[token] = true
		s.reply(w, rule{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
		_ = http.NewResponseController(w).Flush() // the same
	})
}

func (s *loginServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, ok := "", false
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer %s", &token); err == nil {
		ok = s.tokens[token]
	}
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		s.t.Error(err)
	}
	var result any
	switch m.Method {
	case "initialize":
		result = rule{"protocolVersion": "2025-06-18", "capabilities": rule{"tools": rule{}}, "serverInfo": rule{"name": "docs", "version": "1"}}
	case "tools/list":
		result = rule{"tools": []rule{{"name": "count", "inputSchema": rule{"type": "object"}}}}
	case "tools/call":
		s.effects++
		result = rule{"content": []rule{{"type": "text", "text": "counted"}}}
	}
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case result == nil:
		s.reply(w, rule{"jsonrpc": "2.0", "id": m.ID, "error": rule{"code": -32601, "message": "unknown"}})
	default:
		s.reply(w, rule{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// A loginRun is a run in which a person logs in to an MCP server whose tool the model calls then.
type loginRun struct {
	*run
	server *loginServer
}

func newLoginRun(t *testing.T) *loginRun {
	t.Helper()
	b, err := json.Marshal(rule{"rules": []rule{
		{"when": rule{"user": "Count.", "step": 1}, "reply": rule{"calls": []rule{call("docs-count", "value", "a")}}},
		{"when": rule{"user": "Count.", "step": 2}, "reply": rule{"text": "It is {{result}}."}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(script, b, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &loginRun{server: newLoginServer(t)}
	m := &modelSource{model: scripted.Name + ":" + script, faults: noRequests, history: noRequests}
	open := m.open("s")
	open.RequestElicitation = true
	if open.MCPServers, err = json.Marshal(rule{"docs": rule{"type": "http", "url": l.server.URL + "/mcp"}}); err != nil {
		t.Fatal(err)
	}
	l.run = newRun(t, conversation{open, []exchange{{prompt: "Count."}}})
	l.instructions.OneByOne = false
	l.driveClient = l.logInAndCount
	return l
}

// logInAndCount logs in if that is needed, and lets the model call the tool.
func (l *loginRun) logInAndCount(ctx context.Context, c *client) error {
	c.mayLose = true // a question for a login is closed when there is one
	if err := c.open(ctx); err != nil {
		return err
	}
	for {
		known := 0
		c.recorder.update(func() { known = len(c.recorder.shown[c.number]) })
		var list api.MCPListResult
		if err := c.call(ctx, api.MCPList, api.SessionParams{SessionID: c.session}, &list); err != nil {
			return err
		}
		if len(list.Servers) == 1 && list.Servers[0].Status == string(mcp.Connected) {
			break
		}
		if err := l.logIn(ctx, c); err != nil {
			return err
		}
		if err := c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return len(c.recorder.shown[c.number]) > known }); err != nil {
			return err
		}
	}
	log, err := c.log(ctx)
	if err != nil {
		return err
	}
	x := c.conversation.turns[0]
	if !hasInput(log, x.prompt) {
		if err := c.send(ctx, api.SendParams{Prompt: x.prompt}); err != nil {
			return err
		}
	}
	return c.answerUntilIdle(ctx, x)
}

// logIn answers the question for a login, if it is open, as a person whose browser is on another
// machine.
func (l *loginRun) logIn(ctx context.Context, c *client) error {
	var r api.QuestionsResult
	if err := c.call(ctx, api.Questions, api.SessionParams{SessionID: c.session}, &r); err != nil {
		return err
	}
	for _, q := range r.Questions {
		e, err := event.Parse(0, q.Event)
		if err != nil {
			return err
		}
		asked, err := event.As[event.ElicitationAskedData](e)
		if err != nil || e.Type != event.ElicitationAsked || asked.Source != "docs" {
			continue
		}
		var begun api.MCPLoginResult
		if err := c.call(ctx, api.MCPOAuthLogin, api.MCPLoginParams{SessionID: c.session, ServerName: "docs"}, &begun); err != nil {
			return err
		}
		if begun.AuthorizationURL == "" {
			continue
		}
		browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		page, err := browser.Get(begun.AuthorizationURL)
		if err != nil {
			return err
		}
		page.Body.Close()
		content, err := json.Marshal(map[string]string{"url": page.Header.Get("Location")})
		if err != nil {
			return err
		}
		if err := c.answerOnce(ctx, api.AnswerElicitation, api.AnswerElicitationParams{
			SessionID: c.session, RequestID: asked.RequestID, Result: api.ElicitationResult{Action: turn.Accept, Content: content},
		}, asked.RequestID); err != nil {
			return err
		}
	}
	return nil
}

// judge reports every promise that was broken. With unsure, the call may be told as one that may
// have happened: it was under way when the engine was killed.
func (l *loginRun) judge(got outcome, unsure bool) {
	l.t.Helper()
	for _, broken := range got.checkLog() {
		l.t.Error(broken)
	}
	told := got.unsure()
	answers := got.answers()
	switch {
	case len(told) > 0 && unsure && l.server.effects <= 1:
	case len(told) > 0 || l.server.effects != 1 || !slices.Equal(answers, []string{"It is counted."}):
		l.t.Errorf("the answers are %q, %v is told to be unknown, and there are %d effects", answers, told, l.server.effects)
	}
	if l.t.Failed() {
		l.t.Log(got.describeLog())
	}
}

// The engine is killed while a login is open, while it is answered, and at the call after it.
func TestKilledDuringALoginToAnMCPServerItGoesOn(t *testing.T) {
	newLoginRun(t).judgeCalm()
	for _, kind := range []event.Type{event.ElicitationAsked, event.ElicitationDone, event.MCPOffered, event.ToolBegun, event.ToolComplete} {
		for _, p := range []point{before, committed} {
			t.Run(fmt.Sprint(kind, "/", p), func(t *testing.T) {
				t.Parallel()
				l := newLoginRun(t)
				l.instructions.On = kindStop{Kind: kind, Session: "s", Point: p}
				if reached, err := l.runUntilStop(stop{}); err != nil || !reached {
					t.Fatalf("it was not killed: %v", err)
				}
				l.instructions.On = kindStop{}
				l.judge(l.play(), kind == event.ToolBegun || kind == event.ToolComplete)
			})
		}
	}
}

func (l *loginRun) judgeCalm() {
	l.t.Helper()
	l.judge(l.play(), false)
}

// The engine is killed while it asks for the token, for which the code of the login counts only
// once.
func TestKilledWhenItAsksForATokenItAsksAPersonAgain(t *testing.T) {
	for name, given := range map[string]bool{"before it is given": false, "when it is given": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoginRun(t)
			p := l.start(stop{})
			l.server.mu.Lock()
			l.server.onToken = func(give func()) {
				if given {
					give()
				}
				p.kill()
			}
			l.server.mu.Unlock()
			c, err := l.drive(p)
			defer c.close()
			if !errors.Is(err, errDied) {
				t.Fatalf("the engine was not killed: %v", err)
			}
			if err := l.await(p); err != nil {
				t.Fatal(err)
			}
			l.server.mu.Lock()
			l.server.onToken = func(give func()) { give() }
			l.server.mu.Unlock()
			l.audit()
			l.judge(l.play(), false)
		})
	}
}
