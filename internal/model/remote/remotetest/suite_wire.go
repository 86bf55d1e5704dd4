package remotetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

var word = rapid.StringMatching(`[a-z"\\\n <>é世]{0,12}`)

func drawCalls(t *rapid.T, prefix string) []model.Call {
	var calls []model.Call
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		calls = append(calls, model.Call{
			ID:        fmt.Sprintf("%s%d", prefix, i),
			Name:      rapid.SampledFrom([]string{"bash", "view", "ask_user"}).Draw(t, "tool"),
			Arguments: Encode(map[string]string{"value": word.Draw(t, "argument")}),
		})
	}
	return calls
}

// DrawRequest makes a conversation: turns of a user, an assistant who may call
// tools, and their results.
func DrawRequest(t *rapid.T) *model.Request {
	req := &model.Request{
		Model:           rapid.SampledFrom([]string{"m", "claude-sonnet", "a/b"}).Draw(t, "model"),
		System:          word.Draw(t, "system"),
		Tail:            word.Draw(t, "tail"),
		ReasoningEffort: rapid.SampledFrom([]string{"", "low"}).Draw(t, "effort"),
		MaxOutput:       rapid.IntRange(1, 9).Draw(t, "limit"),
	}
	if rapid.Bool().Draw(t, "tools") {
		req.Tools = &model.Tools{List: []model.Tool{{Name: "bash", Description: word.Draw(t, "description"), Parameters: json.RawMessage(`{"type":"object"}`)}}}
	}
	turns := rapid.IntRange(0, 4).Draw(t, "turns")
	for i := range turns {
		user := &model.Message{Role: model.User, Text: word.Draw(t, "user")}
		if rapid.Bool().Draw(t, "picture") {
			user.Images = []model.Image{{MediaType: "image/png", Data: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "png")}}
		}
		assistant := &model.Message{Role: model.Assistant, Text: word.Draw(t, "assistant"), Calls: drawCalls(t, fmt.Sprintf("%d-", i))}
		req.Messages = append(req.Messages, user, assistant)
		for _, c := range assistant.Calls {
			req.Messages = append(req.Messages, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: word.Draw(t, "result")})
		}
	}
	if rapid.Bool().Draw(t, "ends with the user") || turns == 0 {
		req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: word.Draw(t, "user")})
	}
	return req
}

func drawReply(t *rapid.T, name string) *model.Reply {
	r := &model.Reply{
		Text: word.Draw(t, "text") + word.Draw(t, "text"), Calls: drawCalls(t, "new-"), Finish: "stop",
		Model: name, Usage: model.Usage{Input: 7, Output: int64(rapid.IntRange(0, 9).Draw(t, "output")), CacheRead: 3, CacheWrite: 1, Reasoning: 2},
	}
	switch {
	case rapid.Bool().Draw(t, "too long"):
		r.Finish = "length"
	case len(r.Calls) > 0:
		r.Finish = "tool_calls"
	}
	if thought := word.Draw(t, "thought"); thought != "" {
		r.Reasoning = &model.Reasoning{Text: thought}
	}
	return r
}

func testAsking(t *testing.T, s Subject) {
	var mu sync.Mutex
	var asked *model.Request
	var reply *model.Reply
	var piece int // number of bytes of the text that the model streams at a time
	m := Ask(func(_ context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = req
		for text := reply.Text; on != nil && piece > 0 && text != ""; text = text[min(len(text), piece):] {
			on(model.Delta{Text: text[:min(len(text), piece)]})
		}
		return reply, nil
	})
	_, c := s.Client(t, m, Options{}, remote.Config{})
	rapid.Check(t, func(t *rapid.T) {
		req := DrawRequest(t)
		want := drawReply(t, req.Model)
		length := rapid.SampledFrom([]int{0, 64}).Draw(t, "piece")
		mu.Lock()
		reply, piece = want, length
		mu.Unlock()
		for _, stream := range []bool{false, true} {
			var h Pieces
			on := h.Add
			if !stream {
				on = nil
			}
			got, err := c.Ask(context.Background(), req, on)
			if err != nil {
				t.Fatalf("stream %v: %v", stream, err)
			}
			if diff := cmp.Diff(s.Arrived(req), asked, Same); diff != "" {
				t.Fatalf("stream %v: the model was asked something else (-want +got):\n%s", stream, diff)
			}
			opaque := cmpopts.IgnoreFields(model.Reasoning{}, "Opaque", "Encrypted")
			if diff := cmp.Diff(want, got, Same, opaque, cmpopts.IgnoreFields(model.Reply{}, "RequestID")); diff != "" {
				t.Fatalf("stream %v: another reply arrived (-want +got):\n%s", stream, diff)
			}
			if stream {
				h.Check(t, want)
			}
		}
	})
}

func testReasoning(t *testing.T, s Subject) {
	var asked []*model.Request
	thought := &model.Reasoning{Text: "hm <&>", Opaque: "sealed+/=", Encrypted: "locked+/="}
	m := Ask(func(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
		asked = append(asked, req)
		return &model.Reply{Text: "so", Finish: "tool_calls", Reasoning: thought, Calls: []model.Call{{ID: "a", Name: "bash", Arguments: json.RawMessage("{}")}}}, nil
	})
	_, c := s.Client(t, m, Options{}, remote.Config{})
	_, other := s.Client(t, m, Options{}, remote.Config{})
	for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
		r, err := c.Ask(t.Context(), Hello, on)
		if err != nil {
			t.Fatal(err)
		}
		next := *Hello
		next.Messages = append([]*model.Message{}, Hello.Messages...)
		next.Messages = append(next.Messages, &model.Message{Role: model.Assistant, Text: r.Text, Calls: r.Calls, Reasoning: r.Reasoning},
			&model.Message{Role: model.ToolRole, CallID: "a", Text: "done"})
		otherModel, forgetful := next, next
		otherModel.Model, forgetful.Forget = "another", true
		for i, try := range []struct {
			client *remote.Client
			req    *model.Request
			comes  bool
		}{
			{c, &next, s.KeepsReasoning},
			{c, &otherModel, false}, // each of the others beside its own
			{c, &next, s.KeepsReasoning},
			{other, &next, false},
			{c, &next, s.KeepsReasoning},
			{c, &forgetful, false},
			{c, &next, s.KeepsReasoning},
		} {
			asked = nil
			if _, err := try.client.Ask(t.Context(), try.req, on); err != nil {
				t.Fatal(err)
			}
			got := asked[0].Messages[1].Reasoning
			if comes := got != nil; comes != try.comes {
				t.Errorf("request %d: the reasoning comes: %v, want %v", i, comes, try.comes)
			}
			if got != nil && (got.Text != thought.Text || got.Opaque+got.Encrypted == "" || got.Opaque != "" && got.Opaque != thought.Opaque || got.Encrypted != "" && got.Encrypted != thought.Encrypted) {
				t.Errorf("request %d: what comes is %+v, want of %+v", i, got, thought)
			}
		}
	}
}

func testUsage(t *testing.T, s Subject) {
	_, c := s.Client(t, Says("x"), Options{}, remote.Config{})
	for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
		r, err := c.Ask(t.Context(), Hello, on)
		if err != nil {
			t.Fatal(err)
		}
		if want := (model.Usage{Input: 5, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}); r.Usage != want {
			t.Errorf("usage = %+v, want %+v", r.Usage, want)
		}
	}
}

func testUnaskedStream(t *testing.T, s Subject) {
	_, c := s.Client(t, nil, Always(Raw("text/event-stream", s.Stream("a", "b"))), remote.Config{})
	if r, err := c.Ask(t.Context(), Hello, nil); err != nil || r.Text != "ab" {
		t.Errorf("reply %v, err = %v", r, err)
	}
}

func testUnstreamed(t *testing.T, s Subject) {
	_, c := s.Client(t, nil, Always(Raw("application/json; charset=utf-8", s.Reply)), remote.Config{})
	var h Pieces
	r, err := c.Ask(t.Context(), Hello, h.Add)
	if err != nil || r.Text != "x" {
		t.Fatalf("reply %v, err = %v", r, err)
	}
	h.Check(t, r)
}

func testLongLine(t *testing.T, s Subject) {
	_, c := s.Client(t, nil, Always(Raw("text/event-stream", s.Stream(strings.Repeat("x", 10<<20)))), remote.Config{})
	r, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
	if err != nil || len(r.Text) != 10<<20 {
		t.Errorf("err = %v, want the whole text", err)
	}
}

func testTokens(t *testing.T, s Subject) {
	for name, test := range map[string]struct {
		config       remote.Config
		header, want string
	}{
		"nobody":           {remote.Config{}, s.KeyHeader, ""},
		"key":              {remote.Config{APIKey: "k"}, s.KeyHeader, s.KeyPrefix + "k"},
		"bearer, not key":  {remote.Config{APIKey: "k", BearerToken: "b"}, "Authorization", "Bearer b"},
		"provider, not it": {remote.Config{APIKey: "k", BearerToken: "b", Token: func(context.Context) (string, error) { return "t", nil }}, "Authorization", "Bearer t"},
		"header":           {remote.Config{APIKey: "k", Headers: map[string]string{strings.ToLower(s.KeyHeader): "other"}}, s.KeyHeader, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			_, c := s.Client(t, Says("x"), Always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				got = r.Header.Clone()
				next.ServeHTTP(w, r)
			}), test.config)
			req := *Hello
			req.Headers = map[string]string{"X-Extra": "1"}
			if _, err := c.Ask(t.Context(), &req, nil); err != nil {
				t.Fatal(err)
			}
			if a := got.Get(test.header); a != test.want {
				t.Errorf("%s is %q, want %q", test.header, a, test.want)
			}
			if test.header != s.KeyHeader && got.Get(s.KeyHeader) != "" {
				t.Errorf("the key was sent beside a token: %v", got)
			}
			if got.Get("X-Extra") != "1" || got.Get("User-Agent") != "abide" {
				t.Errorf("headers are %v", got)
			}
		})
	}
}

// testConnections waits for the provider to end its streams, and so it needs a
// clock that waits for the provider, too.
func testConnections(t *testing.T, s Subject) {
	s.inBubble(t, Says("x"), Options{}, remote.Config{}, func(t *testing.T, c *remote.Client) {
		fresh := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				fresh++
			}
		}})
		for _, on := range []func(model.Delta){nil, func(model.Delta) {}, func(model.Delta) {}, nil} {
			if _, err := c.Ask(ctx, Hello, on); err != nil {
				t.Fatal(err)
			}
		}
		if fresh != 1 {
			t.Errorf("4 requests opened %d connections, want 1", fresh)
		}
	})
}

func testRedirectElsewhere(t *testing.T, s Subject) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the other host got a request")
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server, c := s.Client(t, nil, Always(Status(status, "moved", "Location", elsewhere.URL+s.Path)), remote.Config{APIKey: "secret-key"})
		_, err := c.Ask(t.Context(), Hello, nil)
		e := WantError(t, err, model.KindNotFound)
		if !strings.Contains(e.Message, elsewhere.URL+"/v1;") && !strings.Contains(e.Message, elsewhere.URL+"/v1,") {
			t.Errorf("status %d: the message does not say where to: %s", status, e.Message)
		}
		if server.Requests() != 1 {
			t.Errorf("status %d: %d requests, want 1", status, server.Requests())
		}
	}
}

func testRedirectDropping(t *testing.T, s Subject) {
	for _, status := range []int{301, 302, 303} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			http.Redirect(w, r, "/new"+s.Path, status)
		}))
		c := s.New(remote.Config{BaseURL: server.URL, Transport: newTransport(t)})
		_, err := c.Ask(t.Context(), Hello, nil)
		WantError(t, err, model.KindNotFound)
		if requests != 1 {
			t.Errorf("status %d: %d requests, want 1", status, requests)
		}
		server.Close()
	}
}

func testRedirectHere(t *testing.T, s Subject) {
	var bodies []string
	forward := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			http.Redirect(w, r, s.Path, http.StatusPermanentRedirect)
			return
		}
		next.ServeHTTP(w, r)
	}
	server, _ := s.Client(t, Says("x"), Options{Key: "k", Fault: func(_ int, body []byte) Fault {
		bodies = append(bodies, string(body))
		return forward
	}}, remote.Config{})
	c := s.New(remote.Config{BaseURL: strings.TrimSuffix(server.URL, "/v1") + "/old/v1/", APIKey: "k", Transport: newTransport(t)})
	if _, err := c.Ask(t.Context(), Hello, nil); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 2 || bodies[0] != bodies[1] || !strings.Contains(bodies[1], `"hello"`) {
		t.Errorf("requests that arrived: %q", bodies)
	}
}

func testManySessions(t *testing.T, s Subject) {
	m := Ask(func(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
		return &model.Reply{Text: "to " + req.Messages[len(req.Messages)-1].Text}, nil
	})
	_, c := s.Client(t, m, Options{}, remote.Config{})
	shared := &model.Message{Role: model.User, Text: "common"}
	var sessions sync.WaitGroup
	for i := range 20 {
		sessions.Go(func() {
			name := fmt.Sprint("session ", i)
			req := &model.Request{Model: "m", Messages: []*model.Message{shared, {Role: model.User, Text: name}}}
			for range 5 {
				if r, err := c.Ask(t.Context(), req, func(model.Delta) {}); err != nil || r.Text != "to "+name {
					t.Errorf("%s got %v, %v", name, r, err)
				}
			}
		})
	}
	sessions.Wait()
}

func testBaseURL(t *testing.T, s Subject) {
	for _, base := range []string{"localhost:8080", "ftp://x/v1", "://", "/v1", "http://"} {
		_, err := s.New(remote.Config{BaseURL: base}).Ask(t.Context(), Hello, nil)
		WantError(t, err, model.KindNotFound)
	}
}

func testQuery(t *testing.T, s Subject) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.String()
		answer(w, http.StatusOK, "application/json", s.Reply)
	}))
	defer server.Close()
	c := s.New(remote.Config{BaseURL: server.URL + "/v1?api-version=1", Transport: newTransport(t)})
	if _, err := c.Ask(t.Context(), Hello, nil); err != nil {
		t.Fatal(err)
	}
	if want := s.Path + "?api-version=1"; got != want {
		t.Errorf("the request went to %s, want %s", got, want)
	}
}

func testModels(t *testing.T, s Subject) {
	status, list := http.StatusOK, `{"data":[{"id":"m1"},{"id":"m2"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get(s.KeyHeader) != s.KeyPrefix+"k" {
			t.Errorf("asked %s %s with %v", r.Method, r.URL, r.Header)
		}
		answer(w, status, "application/json", list)
	}))
	defer server.Close()
	c := s.New(remote.Config{BaseURL: server.URL + "/v1", APIKey: "k", Transport: newTransport(t)})
	if names, err := c.Models(t.Context()); err != nil || !cmp.Equal(names, []string{"m1", "m2"}) {
		t.Errorf("the models are %q, err = %v", names, err)
	}
	if name, _, err := c.DefaultModel(t.Context()); err == nil || !strings.Contains(err.Error(), "m1, m2") {
		t.Errorf("without a reason for one of them, %q is chosen, err = %v", name, err)
	}
	list = `{"data":[{"id":"text-embedding-3"},{"id":"m1"}]}`
	if name, why, err := c.DefaultModel(t.Context()); err != nil || name != "m1" || !strings.Contains(why, "only one") {
		t.Errorf("the default model is %q because %s, err = %v", name, why, err)
	}
	list = "<"
	_, err := c.Models(t.Context())
	WantError(t, err, model.KindStream)
	list = "<html>" // the base URL is wrong, and stays so
	_, err = c.Models(t.Context())
	if e := WantError(t, err, model.KindNotFound); !strings.Contains(e.Message, "answered with a web page") {
		t.Error(e)
	}
	list = "{}"
	if name, _, err := c.DefaultModel(t.Context()); err == nil {
		t.Errorf("a provider without models gave %q", name)
	}
	status, list = http.StatusUnauthorized, "{}"
	_, _, err = c.DefaultModel(t.Context())
	WantError(t, err, model.KindAuth)
}
