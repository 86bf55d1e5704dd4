package rpc_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
)

// newWired is a server whose sessions ask models by HTTP.
func newWired(t *testing.T) *testServer {
	return newTestServerWith(t, session.Options{
		Retries: []time.Duration{time.Millisecond, time.Millisecond},
		Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
			p := as.Provider
			if p == nil {
				return session.Endpoint{}, errors.New("there is no provider")
			}
			return session.Endpoint{Model: openai.New(openai.Config{BaseURL: p.BaseURL, APIKey: p.APIKey}), Name: cmp.Or(p.WireModel, as.Model)}, nil
		},
	})
}

// An upstream is a client that makes the requests to models.
type upstream struct {
	*peer
	mu       sync.Mutex
	requests []api.RequestStartParams
	bodies   map[string]string
	tokens   []string // tokens that were asked for
	reply    func(u *upstream, id string)
	token    func(provider string, n int) (string, error)
	cancels  chan api.RequestChunkParams
}

const done = `{"choices":[{"message":{"role":"assistant","content":"Übung"}}]}`

func (r *testServer) upstream(reply func(u *upstream, id string)) *upstream {
	p := r.dial(rpc.Door{})
	u := &upstream{peer: p, bodies: make(map[string]string), reply: reply, cancels: make(chan api.RequestChunkParams, 10)}
	p.serve = u.handle
	p.must(api.Connect, object{}, nil)
	return u
}

func (u *upstream) handle(method string, params json.RawMessage) (any, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch method {
	case api.ProviderToken:
		var p api.TokenParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		u.tokens = append(u.tokens, p.Provider)
		token, err := u.token(p.Provider, len(u.tokens))
		return api.TokenResult{Token: token}, err
	case api.InferenceRequestStart:
		var p api.RequestStartParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		u.requests = append(u.requests, p)
		return object{}, nil
	case api.InferenceRequestChunk:
		var p api.RequestChunkParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		if p.Cancel {
			u.cancels <- p
			return object{}, nil
		}
		u.bodies[p.RequestID] += p.Data
		if p.End {
			go u.reply(u, p.RequestID)
		}
		return object{}, nil
	}
	return nil, jsonrpc.MethodNotFound(method)
}

// send sends a response in pieces.
func (u *upstream) send(id string, status int, pieces ...string) {
	ctx := context.Background()
	u.Call(ctx, api.InferenceResponseStart, object{"requestId": id, "status": status, "headers": object{"content-type": []string{"application/json"}}}, nil)
	for _, p := range pieces {
		u.Call(ctx, api.InferenceResponseChunk, object{"requestId": id, "data": p}, nil)
	}
	u.Call(ctx, api.InferenceResponseChunk, object{"requestId": id, "data": "", "end": true}, nil)
}

func (u *upstream) headers(name string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []string
	for _, r := range u.requests {
		list = append(list, r.URL+" "+strings.Join(r.Headers[name], ","))
	}
	return list
}

var byok = object{
	"sessionId": "s", "model": "red/fast",
	"providers": []object{
		{"name": "red", "type": "openai", "baseUrl": "https://red.invalid/v1", "hasBearerTokenProvider": true},
		{"name": "blue", "baseUrl": "https://blue.invalid/v1", "apiKey": "blue-key", "headers": object{}},
	},
	"models": []object{{"id": "fast", "provider": "red", "wireModel": "wire-red"}, {"id": "slow", "provider": "blue"}},
}

func TestAClientMakesTheRequestsAndGivesTheTokens(t *testing.T) {
	r := newWired(t)
	u := r.upstream(func(u *upstream, id string) { u.send(id, 200, done[:60], done[60:]) })
	u.token = func(provider string, n int) (string, error) { return fmt.Sprintf("%s-%d", provider, n), nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, byok, nil)
	long := strings.Repeat("üx", 70<<10) // more than one piece
	ask := func(prompt string) {
		t.Helper()
		u.must(api.SessionSend, object{"sessionId": "s", "prompt": prompt}, nil)
		if d := data[event.AssistantMessageData](t, u.await(event.AssistantMessage)); d.Content != "Übung" {
			t.Errorf("answer = %q", d.Content)
		}
		u.await(event.SessionIdle)
	}
	ask("Größe? " + long)
	ask("Noch einmal.")
	var now api.ModelResult
	u.must(api.ModelGetCurrent, object{"sessionId": "s"}, &now)
	if now.ModelID != "red/fast" {
		t.Errorf("the model is now %s", now.ModelID)
	}
	u.must(api.ModelSwitchTo, object{"sessionId": "s", "modelId": "blue/slow"}, nil)
	ask("Und jetzt?")
	want := []string{
		"https://red.invalid/v1/chat/completions Bearer red-1", "https://red.invalid/v1/chat/completions Bearer red-2",
		"https://blue.invalid/v1/chat/completions Bearer blue-key",
	}
	if got := u.headers("Authorization"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, wire := range []string{"wire-red", "wire-red", "slow"} {
		body := u.bodies[u.requests[i].RequestID]
		if !json.Valid([]byte(body)) || !strings.Contains(body, `"model":"`+wire+`"`) || !strings.Contains(body, long) {
			t.Errorf("request %d: the body is damaged or names another model than %s", i, wire)
		}
		if u.requests[i].SessionID != "s" || u.requests[i].AgentID == "" {
			t.Errorf("request %d = %+v", i, u.requests[i])
		}
	}
	var log api.ReadResult
	u.must(api.Events, object{"sessionId": "s"}, &log)
	for _, e := range log.Events {
		if strings.Contains(string(e), "blue-key") || strings.Contains(string(e), "red-1") {
			t.Errorf("a secret is in the log: %s", e)
		}
	}
}

func TestATokenThatIsRefusedEndsTheTurn(t *testing.T) {
	u := newWired(t).upstream(func(u *upstream, id string) { t.Error("the model was asked") })
	u.token = func(string, int) (string, error) { return "", errors.New("logged out") }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, byok, nil)
	u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
	if d := data[event.SessionErrorData](t, u.await(event.SessionError)); d.ErrorType != "auth" || !strings.Contains(d.Message, "red") {
		t.Errorf("error = %+v", d)
	}
}

func TestTheOnlyProviderTakesTokensToo(t *testing.T) {
	u := newWired(t).upstream(func(u *upstream, id string) { u.send(id, 200, done) })
	u.token = func(provider string, n int) (string, error) { return provider, nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, object{"sessionId": "s", "model": "m", "provider": object{"baseUrl": "https://one.invalid", "hasBearerTokenProvider": true}}, nil)
	u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
	u.await(event.AssistantMessage)
	if got := u.headers("Authorization"); len(got) != 1 || !strings.HasSuffix(got[0], "Bearer default") {
		t.Errorf("requests = %v", got)
	}
}

// A client that came without such a provider can add one, and move it elsewhere.
func TestAProviderThatIsAddedTakesTokensToo(t *testing.T) {
	u := newWired(t).upstream(func(u *upstream, id string) { u.send(id, 200, done) })
	u.token = func(provider string, n int) (string, error) { return fmt.Sprintf("%s-%d", provider, n), nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, object{"sessionId": "s", "model": "red/fast"}, nil)
	for _, url := range []string{"https://one.invalid", "https://two.invalid"} {
		u.must(api.ProviderAdd, object{
			"sessionId": "s", "providers": []object{{"name": "red", "baseUrl": url, "hasBearerTokenProvider": true}},
			"models": []object{{"id": "fast", "provider": "red"}},
		}, nil)
		u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
		u.await(event.AssistantMessage)
		u.await(event.SessionIdle)
	}
	want := []string{"https://one.invalid/chat/completions Bearer red-1", "https://two.invalid/chat/completions Bearer red-2"}
	if got := u.headers("Authorization"); !slices.Equal(got, want) {
		t.Errorf("requests = %q, want %q", got, want)
	}
}

// A client that replaces the provider by options is asked for the tokens of the new one.
func TestAProviderOfOptionsTakesTokensToo(t *testing.T) {
	u := newWired(t).upstream(func(u *upstream, id string) { u.send(id, 200, done) })
	u.token = func(provider string, n int) (string, error) { return fmt.Sprintf("%s-%d", provider, n), nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, object{"sessionId": "s", "model": "m"}, nil)
	for _, url := range []string{"https://one.invalid", "https://two.invalid"} {
		u.must(api.OptionsUpdate, object{"sessionId": "s", "provider": object{"baseUrl": url, "hasBearerTokenProvider": true}}, nil)
		u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
		u.await(event.SessionIdle)
	}
	want := []string{"https://one.invalid/chat/completions Bearer default-1", "https://two.invalid/chat/completions Bearer default-2"}
	if got := u.headers("Authorization"); !slices.Equal(got, want) {
		t.Errorf("requests = %q, want %q", got, want)
	}
}

// A client moves a provider before it answers with a token: the token may be for the
// endpoint that the provider has now, and is not sent to the one before.
func TestATokenIsNotSentToWhereItsProviderWasBefore(t *testing.T) {
	needsTokens := func(url string) object {
		return object{"name": "red", "baseUrl": url, "hasBearerTokenProvider": true}
	}
	for method, params := range map[string]func(url string) object{
		api.ProviderAdd: func(url string) object {
			return object{"sessionId": "s", "providers": []object{needsTokens(url)}, "models": []object{{"id": "fast", "provider": "red"}}}
		},
		api.OptionsUpdate: func(url string) object { return object{"sessionId": "s", "provider": needsTokens(url)} },
	} {
		t.Run(method, func(t *testing.T) {
			u := newWired(t).upstream(func(u *upstream, id string) { u.send(id, 200, done) })
			u.token = func(provider string, n int) (string, error) {
				if n == 1 {
					u.must(method, params("https://two.invalid"), nil)
				}
				return "of-two", nil
			}
			u.must(api.InferenceSetProvider, nil, nil)
			u.must(api.SessionCreate, object{"sessionId": "s", "model": "red/fast"}, nil)
			u.must(method, params("https://one.invalid"), nil)
			u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
			u.await(event.SessionIdle)
			want := []string{"https://two.invalid/chat/completions Bearer of-two"}
			if got := u.headers("Authorization"); !slices.Equal(got, want) {
				t.Errorf("requests = %q, want %q", got, want)
			}
		})
	}
}

func TestAnAbortedRequestIsCancelledAtTheClient(t *testing.T) {
	asked := make(chan string, 10)
	u := newWired(t).upstream(func(u *upstream, id string) { asked <- id })
	u.token = func(string, int) (string, error) { return "t", nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, byok, nil)
	u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
	id := <-asked
	u.must(api.SessionAbort, object{"sessionId": "s"}, nil)
	if c := <-u.cancels; c.RequestID != id {
		t.Errorf("cancelled %s, want %s", c.RequestID, id)
	}
	u.await(event.SessionIdle)
	var late api.AcceptedResult
	u.must(api.InferenceResponseStart, object{"requestId": id, "status": 200}, &late)
	if late.Accepted {
		t.Error("a response that nobody waits for was accepted")
	}
	u.must(api.InferenceResponseChunk, object{"requestId": id, "data": "x"}, &late)
	if late.Accepted {
		t.Error("a piece that nobody waits for was accepted")
	}
}

func TestTheNextClientMakesTheRequestOfOneThatWasLost(t *testing.T) {
	r := newWired(t)
	asked := make(chan string, 10)
	lost := r.upstream(func(u *upstream, id string) {
		u.Call(context.Background(), api.InferenceResponseStart, object{"requestId": id, "status": 200}, nil)
		asked <- id
	})
	lost.token = func(string, int) (string, error) { return "old", nil }
	lost.must(api.InferenceSetProvider, nil, nil)
	lost.must(api.SessionCreate, byok, nil)
	lost.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
	<-asked
	lost.Close()
	r.open(api.SessionResume, object{"continuePendingWork": true}) // cannot do it
	r.open(api.SessionResume, object{"continuePendingWork": true})
	next := r.upstream(func(u *upstream, id string) {
		u.Call(context.Background(), api.InferenceResponseStart, object{"requestId": id, "status": 200, "headers": object{}}, nil)
		u.Call(context.Background(), api.InferenceResponseChunk, object{"requestId": id, "data": base64.StdEncoding.EncodeToString([]byte(done)), "binary": true, "end": true}, nil)
	})
	next.token = func(string, int) (string, error) { return "new", nil }
	next.must(api.InferenceSetProvider, nil, nil)
	resume := object{"continuePendingWork": true}
	for k, v := range byok {
		resume[k] = v
	}
	next.must(api.SessionResume, resume, nil)
	if d := data[event.AssistantMessageData](t, next.await(event.AssistantMessage)); d.Content != "Übung" {
		t.Errorf("answer = %q", d.Content)
	}
	if got := next.headers("Authorization"); !strings.HasSuffix(got[0], "Bearer new") {
		t.Errorf("requests = %v", got)
	}
}

func TestAResponseThatBreaksOffIsAskedForAgain(t *testing.T) {
	n := 0
	u := newWired(t).upstream(nil)
	u.reply = func(u *upstream, id string) {
		if n++; n > 1 {
			u.send(id, 200, done)
			return
		}
		u.Call(context.Background(), api.InferenceResponseStart, object{"requestId": id, "status": 200}, nil)
		u.Call(context.Background(), api.InferenceResponseChunk, object{"requestId": id, "data": "", "error": object{"message": "the line is cut"}}, nil)
	}
	u.token = func(string, int) (string, error) { return "t", nil }
	u.must(api.InferenceSetProvider, nil, nil)
	u.must(api.SessionCreate, byok, nil)
	u.must(api.SessionSend, object{"sessionId": "s", "prompt": "x"}, nil)
	u.await(event.AssistantMessage)
	if got := u.headers("Authorization"); len(got) != 2 || len(u.tokens) != 2 {
		t.Errorf("requests = %v, tokens = %v", got, u.tokens)
	}
}
