package oracle

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// gemini is a server with the two answers of Gemini that have a form of its own.
type gemini struct {
	*httptest.Server
	path, key string // of the last request
}

func newGemini(t *testing.T, status int, answer string) *gemini {
	g := new(gemini)
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.path, g.key = r.Method+" "+r.URL.Path, r.Header.Get("X-Goog-Api-Key")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(g.Close)
	return g
}

// ask asks the server for a model, with the SDK.
func (g *gemini) ask(t *testing.T, name string) (*genai.Model, error) {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: g.URL, RetryOptions: &genai.HTTPRetryOptions{Attempts: new(int32(1))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.Models.Get(t.Context(), name, nil)
}

func (g *gemini) ours() *remote.Client {
	return openai.New(remote.Config{BaseURL: g.URL + "/v1beta/openai", APIKey: "k", Profile: "gemini"})
}

func TestTheWindowIsWhatTheSDKOfGeminiReads(t *testing.T) {
	const name = "gemini-2.5-flash"
	g := newGemini(t, http.StatusOK, `{"name":"models/gemini-2.5-flash","displayName":"Flash","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent"]}`)
	theirs, err := g.ask(t, name)
	if err != nil || theirs.InputTokenLimit == 0 {
		t.Fatalf("the SDK reads %+v, %v", theirs, err)
	}
	path, key := g.path, g.key
	g.path, g.key = "", ""
	if ours := g.ours().FindWindow(t.Context(), name); ours != int(theirs.InputTokenLimit) {
		t.Errorf("the window is %d, and %d to the SDK", ours, theirs.InputTokenLimit)
	}
	if g.path != path || g.key != key {
		t.Errorf("we ask for %s with the key %q, and the SDK for %s with %q", g.path, g.key, path, key)
	}
}

func TestARefusalOfGeminiMeansTheSameToTheSDK(t *testing.T) {
	g := newGemini(t, http.StatusTooManyRequests, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[`+
		`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`)
	_, err := g.ask(t, "gemini-2.5-flash")
	theirs, ok := errors.AsType[genai.APIError](err)
	if !ok {
		t.Fatalf("the SDK reports %v", err)
	}
	var delay time.Duration
	for _, d := range theirs.Details {
		if text, ok := d["retryDelay"].(string); ok {
			if delay, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = g.ours().Ask(t.Context(), remotetest.Hello, nil)
	ours := remotetest.WantError(t, err, model.KindRateLimit)
	if ours.Status != theirs.Code || ours.RetryAfter.Round(time.Millisecond) != delay.Round(time.Millisecond) || delay == 0 {
		t.Errorf("we read status %d and a wait of %v, and the SDK %d and %v", ours.Status, ours.RetryAfter, theirs.Code, delay)
	}
}
