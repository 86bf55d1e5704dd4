package remotetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

type refusal struct {
	fault Fault
	kind  model.Kind
	says  []string
	wait  time.Duration
}

// testNegativeUsage checks that a count that makes no sense is none.
func testNegativeUsage(t *testing.T, s Subject) {
	m := Ask(func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
		return &model.Reply{Text: "x", Finish: "stop", Usage: model.Usage{Input: 7, Output: -3, CacheRead: -2, Reasoning: -1}}, nil
	})
	_, c := s.Client(t, m, Options{}, remote.Config{})
	for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
		r, err := c.Ask(t.Context(), Hello, on)
		if err != nil || r.Usage.Output != 0 || r.Usage.CacheRead != 0 || r.Usage.Reasoning != 0 || r.Usage.Input < 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// testExtraBody checks that configured members are in the body once, or refused.
func testExtraBody(t *testing.T, s Subject) {
	var sent []byte
	o := Options{Fault: func(_ int, body []byte) Fault { sent = body; return nil }}
	for extra, fits := range map[string]bool{`{"temperature":0.2,"provider":{"order":["x"]}}`: true, `{}`: true, `{"model":"other"}`: false, `{"messages":[]}`: false, `[`: false} {
		sent = nil
		_, c := s.Client(t, Says("x"), o, remote.Config{ExtraBody: extra})
		req := *Hello
		req.Tail = "tail"
		_, err := c.Ask(t.Context(), &req, nil)
		if fits != (err == nil) {
			t.Errorf("%s: %v", extra, err)
		}
		if !fits {
			WantError(t, err, model.KindNotFound) // a mistake of the configuration
			if sent != nil {
				t.Errorf("%s was sent: %s", extra, sent)
			}
			continue
		}
		var body struct {
			Temperature float64
			Provider    struct{ Order []string }
		}
		if err := json.Unmarshal(sent, &body); err != nil || extra != "{}" && (body.Temperature != 0.2 || len(body.Provider.Order) != 1) {
			t.Errorf("%s became %s, %v", extra, sent, err)
		}
	}
}

// testWrongBase checks what is said of a base URL that is not one of an API.
func testWrongBase(t *testing.T, s Subject) {
	page := "<!DOCTYPE html><html><body>Welcome</body></html>"
	for name, contentType := range map[string]string{"by its type": "text/html; charset=utf-8", "by its content": "application/json"} {
		t.Run(name, func(t *testing.T) {
			server, c := s.Client(t, nil, Always(Raw(contentType, page)), remote.Config{})
			_, err := c.Ask(t.Context(), Hello, nil)
			e := WantError(t, err, model.KindNotFound)
			for _, says := range []string{"web page", server.URL, "looks like https://"} {
				if !strings.Contains(e.Message, says) {
					t.Errorf("%q is not in %s", says, e.Message)
				}
			}
			if strings.Contains(e.Message, "Welcome") || e.Temporary() {
				t.Errorf("the page is quoted, or asked for again: %s", e.Message)
			}
		})
	}
	t.Run("https for http", func(t *testing.T) {
		server, _ := s.Client(t, nil, Options{}, remote.Config{})
		base := strings.Replace(server.URL, "http://", "https://", 1)
		_, err := s.New(remote.Config{BaseURL: base}).Ask(t.Context(), Hello, nil)
		e := WantError(t, err, model.KindNotFound)
		for _, says := range []string{"does not speak TLS", "begins with http://", base} {
			if !strings.Contains(e.Message, says) {
				t.Errorf("%q is not in %s", says, e.Message)
			}
		}
	})
	t.Run("written as it is", func(t *testing.T) {
		for base, shown := range map[string]string{
			`""`: `""`, "http://a b/v1": "http://a b/v1", "user:secret@host/v1": "host/v1", "ftp://user:secret@host/v1#secret": "ftp://host/v1",
		} {
			_, err := s.New(remote.Config{BaseURL: base}).Ask(t.Context(), Hello, nil)
			if e := WantError(t, err, model.KindNotFound); !strings.Contains(e.Message, strconv.Quote(shown)) || strings.Contains(e.Message, "secret") {
				t.Errorf("%s: the error does not name %q, or too much: %s", base, shown, e.Message)
			}
		}
	})
	t.Run("a place that redirects to itself", func(t *testing.T) {
		server, c := s.Client(t, nil, Always(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.Header().Set("Location", r.URL.Path)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), remote.Config{})
		_, err := c.Ask(t.Context(), Hello, nil)
		if e := WantError(t, err, model.KindNotFound); !strings.Contains(e.Message, "redirects from "+server.URL) || !strings.Contains(e.Message, "the base URL is") {
			t.Errorf("the error does not name the place: %s", e.Message)
		}
	})
	t.Run("no URL", func(t *testing.T) {
		_, err := s.New(remote.Config{BaseURL: "localhost:8000/v1?key=hidden"}).Ask(t.Context(), Hello, nil)
		if e := WantError(t, err, model.KindNotFound); !strings.Contains(e.Message, "localhost:8000/v1") || strings.Contains(e.Message, "hidden") {
			t.Errorf("the error does not name the URL, or too much of it: %s", e.Message)
		}
	})
}

// refusals are what every provider may say, on every wire.
func refusals(s Subject) map[string]refusal {
	body := func(status int, contentType, text string) Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, status, contentType, text) }
	}
	event := func(kind, code, message string) Fault {
		return Raw("text/event-stream", "event: error\ndata: "+s.Failure(kind, code, message)+"\n\n")
	}
	return map[string]refusal{
		"401":                   {Status(401, "bad key"), model.KindAuth, []string{"401: bad key", "API key"}, 0},
		"402":                   {Status(402, "pay"), model.KindAuth, []string{"billing"}, 0},
		"403":                   {Status(403, "no"), model.KindAuth, []string{`"m"`, "403: no"}, 0},
		"404":                   {Status(404, "no such model"), model.KindNotFound, []string{`"m"`, s.Path}, 0},
		"400":                   {Status(400, "unknown\nparameter."), model.KindRequest, []string{"400: unknown parameter"}, 0},
		"413":                   {Status(413, ""), model.KindOverflow, []string{"compact"}, 0},
		"422":                   {Status(422, "x"), model.KindRequest, nil, 0},
		"405":                   {Status(405, "x"), model.KindNotFound, []string{s.Path, "the base URL is \"http://", "looks like https://"}, 0},
		"408":                   {Status(408, "x"), model.KindTimeout, nil, 0},
		"429":                   {Status(429, "slow down"), model.KindRateLimit, []string{"slow down"}, 0},
		"429 with seconds":      {Status(429, "x", "Retry-After", "7"), model.KindRateLimit, nil, 7 * time.Second},
		"429 with a fraction":   {Status(429, "x", "Retry-After", "0.5"), model.KindRateLimit, nil, 500 * time.Millisecond},
		"429 with milliseconds": {Status(429, "x", "Retry-After", "7", "Retry-After-Ms", "1500"), model.KindRateLimit, nil, 1500 * time.Millisecond},
		"429 with nonsense":     {Status(429, "x", "Retry-After", "soon"), model.KindRateLimit, nil, 0},
		"429 with less than 0":  {Status(429, "x", "Retry-After", "-7"), model.KindRateLimit, nil, 0},
		"429 with a week":       {Status(429, "x", "Retry-After", "604800"), model.KindRateLimit, nil, 7 * 24 * time.Hour},
		"429 with too much":     {Status(429, "x", "Retry-After", "1e300"), model.KindRateLimit, nil, 100 * 365 * 24 * time.Hour},
		"429 with a date gone":  {Status(429, "x", "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), model.KindRateLimit, nil, 0},
		"429 with a retry info": {body(429, "application/json", `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"PerDay"}],"retryDelay":"1s"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]`), model.KindRateLimit, nil, 34500 * time.Millisecond},
		"429 with both": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", "7")
			answer(w, 429, "application/json", `{"error":{"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}`)
		}, model.KindRateLimit, nil, 7 * time.Second},
		"429 with other details": {body(429, "application/json", `{"error":{"message":"slow down","details":{"retryDelay":"3s"}}}`), model.KindRateLimit, []string{"slow down"}, 0},
		"429 with a bad delay":   {body(429, "application/json", `{"error":{"message":"x","details":[7,{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"-3s"}]}}`), model.KindRateLimit, nil, 0},
		"429 with a huge delay":  {body(429, "application/json", `{"error":{"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1e300s"}]}}`), model.KindRateLimit, nil, 100 * 365 * 24 * time.Hour},
		"500":                    {Status(500, "oops"), model.KindOverloaded, []string{"500: oops"}, 0},
		"503 with seconds":       {Status(503, "x", "Retry-After", "3"), model.KindOverloaded, nil, 3 * time.Second},
		"529":                    {Status(529, "overloaded"), model.KindOverloaded, nil, 0},

		"no quota is not a rate limit": {body(429, "application/json", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`), model.KindAuth, []string{"quota"}, 0},
		"no credit":                    {Status(400, "Your credit balance is too low"), model.KindAuth, []string{"billing"}, 0},
		"overflow by its code":         {body(400, "application/json", `{"error":{"message":"too long","code":"context_length_exceeded"}}`), model.KindOverflow, []string{"too long"}, 0},
		"overflow by its words":        {body(400, "application/json", `{"error":{"message":"This model's maximum context length is 8192 tokens","code":400}}`), model.KindOverflow, nil, 0},
		"overflow by other words":      {Status(400, "prompt is too long: 208310 tokens > 200000 maximum"), model.KindOverflow, nil, 0},
		"reasoning of another account": {body(400, "application/json", `{"error":{"message":"The encrypted content could not be verified.","code":"invalid_encrypted_content"}}`), model.KindReasoning, []string{"without it"}, 0},
		"reasoning out of place":       {Status(400, "messages.1.content.0: Invalid `signature` in `thinking` block"), model.KindReasoning, nil, 0},
		"an error that is a string":    {body(400, "application/json", `{"error":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"an error in a list":           {body(400, "application/json", `[{"error":{"message":"no way"}}]`), model.KindRequest, []string{"400: no way"}, 0},
		"only a message":               {body(400, "application/json", `{"message":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"only a detail":                {body(400, "application/json", `{"detail":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"plain text":                   {body(400, "text/plain", "no way"), model.KindRequest, []string{"400: no way"}, 0},
		"a page for people":            {body(502, "text/html", "<html><h1>Bad gateway</h1>"), model.KindOverloaded, []string{"(502)"}, 0},
		"a very long text":             {body(500, "text/plain", strings.Repeat("é", 100_000)), model.KindOverloaded, []string{"é…)"}, 0},

		"in the stream, rate limit":  {event("rate_limit_error", "", "busy"), model.KindRateLimit, []string{"busy"}, 0},
		"in the stream, a delay":     {Raw("text/event-stream", "event: error\ndata: "+strings.Replace(s.Failure("rate_limit_error", "", "busy"), `"message"`, `"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}],"message"`, 1)+"\n\n"), model.KindRateLimit, []string{"busy"}, 2 * time.Second},
		"in the stream, server":      {event("", "server_error", "busy"), model.KindOverloaded, []string{"busy"}, 0},
		"in the stream, overloaded":  {event("overloaded_error", "", "Overloaded"), model.KindOverloaded, nil, 0},
		"in the stream, internal":    {event("api_error", "", "x"), model.KindOverloaded, nil, 0},
		"in the stream, time":        {event("timeout_error", "", "x"), model.KindTimeout, nil, 0},
		"in the stream, key":         {event("authentication_error", "", "x"), model.KindAuth, nil, 0},
		"in the stream, permission":  {event("permission_error", "", "x"), model.KindAuth, nil, 0},
		"in the stream, billing":     {event("billing_error", "", "x"), model.KindAuth, nil, 0},
		"in the stream, not found":   {event("", "model_not_found", "x"), model.KindNotFound, nil, 0},
		"in the stream, request":     {event("invalid_request_error", "", "x"), model.KindRequest, nil, 0},
		"in the stream, prompt":      {event("", "invalid_prompt", "x"), model.KindRequest, nil, 0},
		"in the stream, overflow":    {event("", "context_length_exceeded", "x"), model.KindOverflow, nil, 0},
		"in the stream, reasoning":   {event("", "invalid_encrypted_content", "x"), model.KindReasoning, nil, 0},
		"in the stream, unknown":     {event("", "", ""), model.KindStream, []string{"no reason"}, 0},
		"half a JSON":                {Raw("application/json", s.Reply[:len(s.Reply)/2]), model.KindStream, []string{"not understood", "the base URL is \"http://", "looks like https://"}, 0},
		"half a JSON in the stream":  {Raw("text/event-stream", "data: {\"choices\":[\n\n"), model.KindStream, []string{"not understood"}, 0},
		"JSON of something else":     {Raw("application/json", `{}`), model.KindStream, []string{"not understood: it has no ", "looks like https://"}, 0},
		"a list instead of a reply":  {Raw("application/json", `[]`), model.KindStream, []string{"not understood"}, 0},
		"rubbish in the stream":      {Raw("text/event-stream", "data: 7\n\ndata: \"\"\n\n"), model.KindStream, []string{"not understood"}, 0},
		"a page instead of a stream": {Raw("text/html", "<html>"), model.KindNotFound, []string{"web page", "base URL"}, 0},
		"nothing":                    {Raw("text/event-stream", ""), model.KindStream, []string{"before the model had finished"}, 0},
		"a line of 33 MiB":           {Raw("text/event-stream", s.Stream(strings.Repeat("x", 33<<20))), model.KindStream, []string{"32 MiB"}, 0},
		"a reply of 33 MiB":          {Raw("application/json", strings.Repeat(" ", 33<<20)), model.KindStream, []string{"32 MiB"}, 0},
		"a connection reset":         {Refuse(), model.KindNetwork, []string{"closed the connection"}, 0},
	}
}

func testRefusals(t *testing.T, s Subject) {
	for name, test := range refusals(s) {
		t.Run(name, func(t *testing.T) {
			server, c := s.Client(t, Says("x"), Always(test.fault), remote.Config{APIKey: "k"})
			_, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
			e := WantError(t, err, test.kind)
			host := strings.TrimSuffix(strings.TrimPrefix(server.URL, "http://"), "/v1")
			for _, part := range append(test.says, host) {
				if !strings.Contains(e.Message, part) {
					t.Errorf("%q is not in the message: %s", part, e.Message)
				}
			}
			if e.RetryAfter != test.wait {
				t.Errorf("RetryAfter = %v, want %v", e.RetryAfter, test.wait)
			}
			if server.Requests() != 1 {
				t.Errorf("there were %d requests: trying again is not the client's business", server.Requests())
			}
		})
	}
	t.Run("reasoning that was not even sent", func(t *testing.T) {
		_, c := s.Client(t, nil, Always(Status(400, "bad thinking block")), remote.Config{})
		req := *Hello
		req.Forget = true
		_, err := c.Ask(t.Context(), &req, nil)
		WantError(t, err, model.KindRequest)
	})
}

func testModelErrors(t *testing.T, s Subject) {
	for _, kind := range []model.Kind{
		model.KindAuth, model.KindNotFound, model.KindRequest, model.KindOverflow, model.KindReasoning, model.KindRateLimit, model.KindOverloaded, model.KindTimeout,
	} {
		for _, pieces := range []int{0, 1} { // an error at once, or after some text
			m := Ask(func(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Reply, error) {
				for range pieces {
					on(model.Delta{Text: "a"})
				}
				return nil, &model.Error{Kind: kind, Message: "so it is", RetryAfter: 2 * time.Second}
			})
			_, c := s.Client(t, m, Options{}, remote.Config{APIKey: "k"})
			_, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
			e := WantError(t, err, kind)
			if !strings.Contains(e.Message, "so it is") {
				t.Errorf("%s after %d pieces: %s", kind, pieces, e.Message)
			}
			if pieces == 0 && e.RetryAfter != 2*time.Second {
				t.Errorf("%s: RetryAfter = %v, want 2s", kind, e.RetryAfter)
			}
		}
	}
}

func testCutStream(t *testing.T, s Subject) {
	const text = "a text that is long enough to be sent in more than only one piece of a stream"
	finish, all := s.Finished+1, s.Events+1 // it takes two pieces
	for events := range all + 1 {
		for name, fault := range map[string]Fault{"cut": CutChunks(events), "ended": EndChunks(events)} {
			_, c := s.Client(t, Says(text), Always(fault), remote.Config{})
			r, err := c.Ask(t.Context(), Hello, func(model.Delta) {})
			switch {
			case events >= finish:
				if err != nil || r.Text != text || r.Finish != "stop" {
					t.Errorf("%s after %d events: reply %v, err = %v, want all of it", name, events, r, err)
				}
			case events == 0 && name == "cut":
				WantError(t, err, model.KindNetwork)
			default:
				WantError(t, err, model.KindStream)
			}
		}
	}
}

func testCutReply(t *testing.T, s Subject) {
	for n := 1; n < 200; n += 7 {
		_, c := s.Client(t, Says("text"), Always(CutBytes(n)), remote.Config{})
		_, err := c.Ask(t.Context(), Hello, nil)
		WantError(t, err, model.KindStream)
	}
}

func testNobody(t *testing.T, s Subject) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c := s.New(remote.Config{BaseURL: "http://" + address, Transport: newTransport(t)})
	_, err = c.Ask(t.Context(), Hello, nil)
	e := WantError(t, err, model.KindNetwork)
	if !strings.Contains(e.Message, address) || !strings.Contains(e.Message, "refused") || !errors.Is(e, syscall.ECONNREFUSED) {
		t.Errorf("the error is %v", e)
	}
}

// fails is a transport that cannot send.
type fails struct{ err error }

func (f fails) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return nil, f.err
}

func testTrouble(t *testing.T, s Subject) {
	for says, err := range map[string]error{
		"there is no host":      &net.DNSError{Err: "no such host", Name: "model.example", IsNotFound: true},
		"could not be looked":   &net.DNSError{Err: "server misbehaving", Name: "model.example"},
		"closed the connection": fmt.Errorf("write: %w", syscall.EPIPE),
		"something else":        errors.New("something else"),
	} {
		c := s.New(remote.Config{BaseURL: "https://user:pass@model.example/v1?key=secret", Transport: fails{err}})
		_, got := c.Ask(t.Context(), Hello, nil)
		e := WantError(t, got, model.KindNetwork)
		if !strings.Contains(e.Message, says) || !strings.Contains(e.Message, "model.example") {
			t.Errorf("%v became %q", err, e.Message)
		}
		if text := fmt.Sprintf("%v %v", e, e.Err); strings.Contains(text, "secret") || strings.Contains(text, "pass") {
			t.Errorf("the URL's secrets are in %q", text)
		}
	}
}

func testCertificate(t *testing.T, s Subject) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := s.New(remote.Config{BaseURL: server.URL, Transport: newTransport(t)})
	_, err := c.Ask(t.Context(), Hello, nil)
	if e := WantError(t, err, model.KindNetwork); !strings.Contains(e.Message, "SSL_CERT_FILE") {
		t.Errorf("the message is %s", e.Message)
	}
}

func testSecrets(t *testing.T, s Subject) {
	const key = "sk-very-secret-0123456789"
	echo := func(w http.ResponseWriter, r *http.Request, status int) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"%s you sent %s and %s and %s"}}`, strings.Repeat(". ", 120),
			r.Header.Get("Authorization"), r.Header.Get(s.KeyHeader), r.Header.Get("X-Key"))
	}
	for _, status := range []int{200, 400, 401, 403, 404, 429, 500} {
		for name, config := range map[string]remote.Config{
			"key":      {APIKey: key},
			"bearer":   {BearerToken: key},
			"provider": {Token: func(context.Context) (string, error) { return key, nil }},
			"header":   {Headers: map[string]string{"X-Key": key, "Authorization": "Bearer " + key}},
		} {
			_, c := s.Client(t, nil, Always(func(w http.ResponseWriter, r *http.Request, _ http.Handler) { echo(w, r, status) }), config)
			for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
				_, err := c.Ask(t.Context(), Hello, on)
				if err == nil {
					t.Fatalf("%s, status %d: no error", name, status)
				}
				if text := fmt.Sprintf("%v %+v %v", err, err, errors.Unwrap(err)); strings.Contains(text, "secret") {
					t.Errorf("%s, status %d: the key is in %q", name, status, text)
				}
			}
		}
	}
	config := remote.Config{Headers: map[string]string{"X-Key": key}, Token: func(context.Context) (string, error) { return "", errors.New("no token, only " + key) }}
	_, c := s.Client(t, nil, Options{}, config)
	_, err := c.Ask(t.Context(), Hello, nil)
	if e := WantError(t, err, model.KindAuth); strings.Contains(e.Message, "secret") {
		t.Errorf("the key is in %q", e.Message)
	}
}

func testMissingKey(t *testing.T, s Subject) {
	for key, want := range map[string]string{"": "none is set", "wrong": "does not accept the key", "right": ""} {
		_, c := s.Client(t, Says("x"), Options{Key: "right"}, remote.Config{APIKey: key})
		_, err := c.Ask(t.Context(), Hello, nil)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if e := WantError(t, err, model.KindAuth); !strings.Contains(e.Message, want) {
			t.Errorf("with key %q: %s", key, e.Message)
		}
	}
}
