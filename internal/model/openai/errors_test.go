package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

func TestEveryRefusalHasItsKind(t *testing.T) {
	body := func(status int, contentType, text string) openaitest.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, test := range map[string]struct {
		fault openaitest.Fault
		kind  model.Kind
		says  []string
		wait  time.Duration
	}{
		"401":                   {openaitest.Status(401, "bad key"), model.KindAuth, []string{"401: bad key", "API key"}, 0},
		"402":                   {openaitest.Status(402, "pay"), model.KindAuth, []string{"billing"}, 0},
		"403":                   {openaitest.Status(403, "no"), model.KindAuth, []string{`"m"`, "403: no"}, 0},
		"404":                   {openaitest.Status(404, "no such model"), model.KindNotFound, []string{`"m"`, "/v1/chat/completions"}, 0},
		"400":                   {openaitest.Status(400, "unknown\nparameter."), model.KindRequest, []string{"400: unknown parameter"}, 0},
		"413":                   {openaitest.Status(413, ""), model.KindOverflow, []string{"compact"}, 0},
		"422":                   {openaitest.Status(422, "x"), model.KindRequest, nil, 0},
		"408":                   {openaitest.Status(408, "x"), model.KindTimeout, nil, 0},
		"429":                   {openaitest.Status(429, "slow down"), model.KindRateLimit, []string{"slow down"}, 0},
		"429 with seconds":      {openaitest.Status(429, "x", "Retry-After", "7"), model.KindRateLimit, nil, 7 * time.Second},
		"429 with a fraction":   {openaitest.Status(429, "x", "Retry-After", "0.5"), model.KindRateLimit, nil, 500 * time.Millisecond},
		"429 with milliseconds": {openaitest.Status(429, "x", "Retry-After", "7", "Retry-After-Ms", "1500"), model.KindRateLimit, nil, 1500 * time.Millisecond},
		"429 with nonsense":     {openaitest.Status(429, "x", "Retry-After", "soon"), model.KindRateLimit, nil, 0},
		"429 with less than 0":  {openaitest.Status(429, "x", "Retry-After", "-7"), model.KindRateLimit, nil, 0},
		"429 with too much":     {openaitest.Status(429, "x", "Retry-After", "1e300"), model.KindRateLimit, nil, 24 * time.Hour},
		"429 with a date gone":  {openaitest.Status(429, "x", "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), model.KindRateLimit, nil, 0},
		"no quota is not a rate limit": {body(429, "application/json", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`),
			model.KindAuth, []string{"quota"}, 0},
		"500":                        {openaitest.Status(500, "oops"), model.KindOverloaded, []string{"500: oops"}, 0},
		"503 with seconds":           {openaitest.Status(503, "x", "Retry-After", "3"), model.KindOverloaded, nil, 3 * time.Second},
		"529":                        {openaitest.Status(529, "overloaded"), model.KindOverloaded, nil, 0},
		"overflow by its code":       {body(400, "application/json", `{"error":{"message":"too long","code":"context_length_exceeded"}}`), model.KindOverflow, []string{"too long"}, 0},
		"overflow by its words":      {body(400, "application/json", `{"error":{"message":"This model's maximum context length is 8192 tokens","code":400}}`), model.KindOverflow, nil, 0},
		"an error that is a string":  {body(400, "application/json", `{"error":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"an error in a list":         {body(400, "application/json", `[{"error":{"message":"no way"}}]`), model.KindRequest, []string{"400: no way"}, 0},
		"only a message":             {body(400, "application/json", `{"message":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"only a detail":              {body(400, "application/json", `{"detail":"no way"}`), model.KindRequest, []string{"400: no way"}, 0},
		"plain text":                 {body(400, "text/plain", "no way"), model.KindRequest, []string{"400: no way"}, 0},
		"a page for people":          {body(502, "text/html", "<html><h1>Bad gateway</h1>"), model.KindOverloaded, []string{"(502)"}, 0},
		"a very long text":           {body(500, "text/plain", strings.Repeat("é", 100_000)), model.KindOverloaded, []string{"é…)"}, 0},
		"a reply that is an error":   {openaitest.Raw("application/json", `{"error":{"message":"busy","code":429}}`), model.KindRateLimit, []string{"busy"}, 0},
		"in the stream, by status":   {openaitest.Raw("text/event-stream", "data: {\"error\":{\"message\":\"busy\",\"code\":502}}\n\n"), model.KindOverloaded, []string{"502: busy"}, 0},
		"in the stream, rate limit":  {openaitest.Raw("text/event-stream", "data: {\"error\":{\"message\":\"busy\",\"type\":\"rate_limit_error\"}}\n\n"), model.KindRateLimit, []string{"busy"}, 0},
		"in the stream, server":      {openaitest.Raw("text/event-stream", "event: error\ndata: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\"}}\n\n"), model.KindOverloaded, nil, 0},
		"in the stream, key":         {openaitest.Raw("text/event-stream", "data: {\"error\":{\"type\":\"authentication_error\"}}\n\n"), model.KindAuth, nil, 0},
		"in the stream, permission":  {openaitest.Raw("text/event-stream", "data: {\"error\":{\"type\":\"permission_error\"}}\n\n"), model.KindAuth, nil, 0},
		"in the stream, not found":   {openaitest.Raw("text/event-stream", "data: {\"error\":{\"code\":\"model_not_found\"}}\n\n"), model.KindNotFound, nil, 0},
		"in the stream, request":     {openaitest.Raw("text/event-stream", "data: {\"error\":{\"type\":\"invalid_request_error\"}}\n\n"), model.KindRequest, nil, 0},
		"in the stream, overflow":    {openaitest.Raw("text/event-stream", "data: {\"error\":{\"code\":\"context_length_exceeded\"}}\n\n"), model.KindOverflow, nil, 0},
		"in the stream, unknown":     {openaitest.Raw("text/event-stream", "data: {\"error\":{}}\n\n"), model.KindStream, []string{"no reason"}, 0},
		"after some text":            {openaitest.Raw("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":\"broken\"}\n\n"), model.KindStream, []string{"broken"}, 0},
		"half a JSON":                {openaitest.InvalidJSON(), model.KindStream, []string{"not understood", "base URL"}, 0},
		"half a JSON in the stream":  {openaitest.Raw("text/event-stream", "data: {\"choices\":[\n\n"), model.KindStream, []string{"not understood"}, 0},
		"a page instead of a stream": {openaitest.Raw("text/html", "<html>"), model.KindStream, []string{"broke off"}, 0},
		"no choices":                 {openaitest.Raw("application/json", `{}`), model.KindStream, []string{"no choices"}, 0},
		"nothing":                    {openaitest.Raw("text/event-stream", ""), model.KindStream, []string{"before the model had finished"}, 0},
		"an end without a finish":    {openaitest.Raw("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"), model.KindStream, []string{"before the model had finished"}, 0},
		"a line of 33 MiB":           {openaitest.LongLine(33 << 20), model.KindStream, []string{"32 MiB"}, 0},
		"a reply of 33 MiB":          {openaitest.Raw("application/json", strings.Repeat(" ", 33<<20)), model.KindStream, []string{"32 MiB"}, 0},
		"a connection reset":         {openaitest.Refuse(), model.KindNetwork, []string{"closed the connection"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := serve(t, says("x"), always(test.fault), openai.Config{APIKey: "k"})
			_, err := c.Ask(t.Context(), hello, func(model.Delta) {})
			e := wantError(t, err, test.kind)
			host := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1")
			for _, part := range append(test.says, host) {
				if !strings.Contains(e.Message, part) {
					t.Errorf("%q is not in the message: %s", part, e.Message)
				}
			}
			if e.RetryAfter != test.wait {
				t.Errorf("RetryAfter = %v, want %v", e.RetryAfter, test.wait)
			}
			if s.Requests() != 1 {
				t.Errorf("there were %d requests: trying again is not the client's business", s.Requests())
			}
		})
	}
}

func TestErrorsOfTheModelKeepTheirKindOverTheWire(t *testing.T) {
	for _, kind := range []model.Kind{
		model.KindAuth, model.KindNotFound, model.KindRequest, model.KindOverflow, model.KindRateLimit, model.KindOverloaded, model.KindTimeout,
	} {
		for _, pieces := range []int{0, 1} { // an error at once, or after some text
			m := ask(func(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Reply, error) {
				for range pieces {
					on(model.Delta{Text: "a"})
				}
				return nil, &model.Error{Kind: kind, Message: "so it is", RetryAfter: 2 * time.Second}
			})
			_, c := serve(t, m, openaitest.Options{}, openai.Config{APIKey: "k"})
			_, err := c.Ask(t.Context(), hello, func(model.Delta) {})
			e := wantError(t, err, kind)
			if !strings.Contains(e.Message, "so it is") {
				t.Errorf("%s after %d pieces: %s", kind, pieces, e.Message)
			}
			if pieces == 0 && e.RetryAfter != 2*time.Second {
				t.Errorf("%s: RetryAfter = %v, want 2s", kind, e.RetryAfter)
			}
		}
	}
}

func TestAStreamCutAnywhereIsAnErrorOrTheWholeReply(t *testing.T) {
	// Two pieces of text, the finish, the usage, the end.
	const text, finish, all = "a text that is long enough to be sent in more than only one piece of a stream", 3, 5
	for chunks := range all + 1 {
		for name, fault := range map[string]openaitest.Fault{"cut": openaitest.CutChunks(chunks), "ended": openaitest.EndChunks(chunks)} {
			_, c := serve(t, says(text), always(fault), openai.Config{})
			r, err := c.Ask(t.Context(), hello, func(model.Delta) {})
			switch {
			case chunks >= finish:
				if err != nil || r.Text != text || r.Finish != "stop" {
					t.Errorf("%s after %d chunks: reply %v, err = %v, want all of it", name, chunks, r, err)
				}
			case chunks == 0 && name == "cut":
				wantError(t, err, model.KindNetwork)
			default:
				wantError(t, err, model.KindStream)
			}
		}
	}
}

func TestAReplyCutAtAnyByteIsAnError(t *testing.T) {
	for n := 1; n < 200; n += 7 {
		_, c := serve(t, says("text"), always(openaitest.CutBytes(n)), openai.Config{})
		_, err := c.Ask(t.Context(), hello, nil)
		wantError(t, err, model.KindStream)
	}
}

func TestNobodyListening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c := openai.New(openai.Config{BaseURL: "http://" + address, Transport: newTransport(t)})
	_, err = c.Ask(t.Context(), hello, nil)
	e := wantError(t, err, model.KindNetwork)
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

func TestTroubleOnTheWayNamesTheHost(t *testing.T) {
	for says, err := range map[string]error{
		"there is no host":      &net.DNSError{Err: "no such host", Name: "model.example", IsNotFound: true},
		"could not be looked":   &net.DNSError{Err: "server misbehaving", Name: "model.example"},
		"closed the connection": fmt.Errorf("write: %w", syscall.EPIPE),
		"something else":        errors.New("something else"),
	} {
		c := openai.New(openai.Config{BaseURL: "https://user:pass@model.example/v1?key=secret", Transport: fails{err}})
		_, got := c.Ask(t.Context(), hello, nil)
		e := wantError(t, got, model.KindNetwork)
		if !strings.Contains(e.Message, says) || !strings.Contains(e.Message, "model.example") {
			t.Errorf("%v became %q", err, e.Message)
		}
		if text := fmt.Sprintf("%v %v", e, e.Err); strings.Contains(text, "secret") || strings.Contains(text, "pass") {
			t.Errorf("the URL's secrets are in %q", text)
		}
	}
}

func TestAnUntrustedCertificateIsNamedAsSuch(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c := openai.New(openai.Config{BaseURL: s.URL, Transport: newTransport(t)})
	_, err := c.Ask(t.Context(), hello, nil)
	if e := wantError(t, err, model.KindNetwork); !strings.Contains(e.Message, "SSL_CERT_FILE") {
		t.Errorf("the message is %s", e.Message)
	}
}

func TestNoErrorContainsAKey(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	echo := func(w http.ResponseWriter, r *http.Request, status int) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"%s you sent %s and %s"}}`, strings.Repeat(". ", 130), r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	}
	for _, status := range []int{200, 400, 401, 403, 404, 429, 500} {
		for name, config := range map[string]openai.Config{
			"key":      {APIKey: key},
			"bearer":   {BearerToken: key},
			"provider": {Token: func(context.Context) (string, error) { return key, nil }},
			"header":   {Headers: map[string]string{"X-Key": key, "Authorization": "Bearer " + key}},
		} {
			_, c := serve(t, nil, always(func(w http.ResponseWriter, r *http.Request, _ http.Handler) { echo(w, r, status) }), config)
			for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
				_, err := c.Ask(t.Context(), hello, on)
				if err == nil {
					t.Fatalf("%s, status %d: no error", name, status)
				}
				if text := fmt.Sprintf("%v %+v %v", err, err, errors.Unwrap(err)); strings.Contains(text, "secret") {
					t.Errorf("%s, status %d: the key is in %q", name, status, text)
				}
			}
		}
	}
	config := openai.Config{Headers: map[string]string{"X-Key": key}, Token: func(context.Context) (string, error) { return "", errors.New("no token, only " + key) }}
	_, c := serve(t, nil, openaitest.Options{}, config)
	_, err := c.Ask(t.Context(), hello, nil)
	if e := wantError(t, err, model.KindAuth); strings.Contains(e.Message, "secret") {
		t.Errorf("the key is in %q", e.Message)
	}
}

func TestAMissingKeyIsNotCalledAWrongOne(t *testing.T) {
	for key, want := range map[string]string{"": "none is set", "wrong": "does not accept the key", "right": ""} {
		_, c := serve(t, says("x"), openaitest.Options{Key: "right"}, openai.Config{APIKey: key})
		_, err := c.Ask(t.Context(), hello, nil)
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if e := wantError(t, err, model.KindAuth); !strings.Contains(e.Message, want) {
			t.Errorf("with key %q: %s", key, e.Message)
		}
	}
}

func TestGivingUpReturnsTheCallersReason(t *testing.T) {
	why := errors.New("the user pressed stop")
	for name, fault := range map[string]openaitest.Fault{"before the reply": openaitest.Hang(), "in the middle": openaitest.StallChunks(1)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			waiting := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if name == "before the reply" {
					cancel(why)
				}
				fault(w, r, next)
			}
			_, c := serve(t, says("x"), always(waiting), openai.Config{})
			_, err := c.Ask(ctx, hello, func(model.Delta) { cancel(why) })
			if err != why {
				t.Errorf("err = %v, want the cause", err)
			}
		})
	}
	t.Run("a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		_, c := serve(t, says("x"), openaitest.Options{}, openai.Config{})
		if _, err := c.Ask(ctx, hello, nil); err != context.DeadlineExceeded {
			t.Errorf("err = %v, want the deadline's", err)
		}
	})
}

// pipes is a listener whose connections are in memory, so that they can live in
// a bubble with a clock of its own.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return address("memory.example") }

type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// inBubble runs test with a client and a server in a bubble.
func inBubble(t *testing.T, m model.Model, o openaitest.Options, config openai.Config, test func(*testing.T, *openai.Client)) {
	synctest.Test(t, func(t *testing.T) {
		listener := make(pipes)
		s := openaitest.Serve(listener, m, o)
		transport := &http.Transport{DialContext: listener.dial}
		config.BaseURL, config.Transport = s.URL, transport
		test(t, openai.New(config))
		transport.CloseIdleConnections()
		s.Close()
	})
}

func TestSilenceEndsTheRequest(t *testing.T) {
	for name, fault := range map[string]openaitest.Fault{
		"before the reply": openaitest.Hang(), "at the beginning": openaitest.StallChunks(1), "in the middle": openaitest.StallChunks(2),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, says(strings.Repeat("long ", 50)), always(fault), openai.Config{}, func(t *testing.T, c *openai.Client) {
				start := time.Now()
				_, err := c.Ask(t.Context(), hello, func(model.Delta) {})
				if e := wantError(t, err, model.KindTimeout); !strings.Contains(e.Message, "5m0s") {
					t.Errorf("the message does not say how long: %s", e.Message)
				}
				if waited := time.Since(start); waited != 5*time.Minute {
					t.Errorf("it took %v, want 5m", waited)
				}
			})
		})
	}
}

// slowly streams words with a pause before each.
func slowly(pause time.Duration, words ...string) model.Model {
	return ask(func(_ context.Context, _ *model.Request, on func(model.Delta)) (*model.Reply, error) {
		for _, w := range words {
			time.Sleep(pause)
			on(model.Delta{Text: w})
		}
		return &model.Reply{Text: strings.Join(words, ""), Finish: "stop"}, nil
	})
}

func TestASlowReplyIsNoSilence(t *testing.T) {
	inBubble(t, slowly(50*time.Second, "a", "b", "c"), openaitest.Options{}, openai.Config{IdleTimeout: time.Minute}, func(t *testing.T, c *openai.Client) {
		if r, err := c.Ask(t.Context(), hello, func(model.Delta) {}); err != nil || r.Text != "abc" {
			t.Errorf("reply %v, err = %v", r, err)
		}
	})
}

func TestTheWholeRequestCanBeLimited(t *testing.T) {
	inBubble(t, slowly(50*time.Second, "a", "b", "c"), openaitest.Options{}, openai.Config{Timeout: 2 * time.Minute}, func(t *testing.T, c *openai.Client) {
		start := time.Now()
		_, err := c.Ask(t.Context(), hello, func(model.Delta) {})
		if e := wantError(t, err, model.KindTimeout); !strings.Contains(e.Message, "2m0s") {
			t.Errorf("the message does not say how long: %s", e.Message)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("it took %v, want 2m", took)
		}
	})
}

func TestAFinishedReplyDoesNotWaitForTheProvider(t *testing.T) {
	// The reply in one piece: its text, the finish, the usage, the end.
	for chunks, want := range map[int]time.Duration{2: 10 * time.Second, 3: 10 * time.Second, 4: 100 * time.Millisecond} {
		stall := openaitest.StallChunks(chunks)
		if chunks == 4 {
			stall = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				<-r.Context().Done()
			}
		}
		inBubble(t, says("text"), always(stall), openai.Config{}, func(t *testing.T, c *openai.Client) {
			start := time.Now()
			r, err := c.Ask(t.Context(), hello, func(model.Delta) {})
			if err != nil || r.Text != "text" {
				t.Fatalf("reply %v, err = %v", r, err)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("silence after %d chunks: waited %v, want %v", chunks, waited, want)
			}
		})
	}
}

func TestGivingUpOnAFinishedReplyStillReturnsIt(t *testing.T) {
	const textAndFinish = 2
	inBubble(t, says("text"), always(openaitest.StallChunks(textAndFinish)), openai.Config{}, func(t *testing.T, c *openai.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, err := c.Ask(ctx, hello, func(model.Delta) {}); err != nil || r.Text != "text" {
			t.Errorf("reply %v, err = %v", r, err)
		}
	})
}

func TestRetryAfterMayBeADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		listener := make(pipes)
		s := openaitest.Serve(listener, nil, always(openaitest.Status(429, "x", "Retry-After", at)))
		transport := &http.Transport{DialContext: listener.dial}
		_, err := openai.New(openai.Config{BaseURL: s.URL, Transport: transport}).Ask(t.Context(), hello, nil)
		if e := wantError(t, err, model.KindRateLimit); e.RetryAfter != 90*time.Second {
			t.Errorf("RetryAfter = %v, want 90s", e.RetryAfter)
		}
		transport.CloseIdleConnections()
		s.Close()
	})
}
