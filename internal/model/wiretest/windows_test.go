package wiretest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
)

// A place is what a provider answers at an address.
type place struct {
	at    string // method and path
	reply string
}

// windows is how each provider tells the window of a model, as the cited pages show it.
var windows = map[string]struct {
	wire, as, base, model string
	key                   string // header that must have the key
	places                []place
	want                  int
}{
	// https://docs.anthropic.com/en/api/models-list: max_input_tokens
	"anthropic": {wire: messages, as: "anthropic", model: "claude-sonnet-5", key: "X-Api-Key", want: 1_000_001, places: []place{
		{"GET /v1/models", `{"data":[{"id":"claude-sonnet-5","type":"model","display_name":"Claude","max_input_tokens":1000001,"max_tokens":64000,"capabilities":{"batch":{"supported":true}}}],"has_more":false}`},
	}},
	// https://openrouter.ai/docs/models: context_length
	"openrouter": {as: "openrouter", base: "/api/v1", model: "openai/gpt-4", key: "Authorization", want: 8192, places: []place{
		{"GET /api/v1/models", `{"data":[{"id":"openai/gpt-4","canonical_slug":"openai/gpt-4","context_length":8192,"top_provider":{"context_length":8192,"max_completion_tokens":4096}}]}`},
	}},
	// https://docs.mistral.ai/api/endpoint/models: max_context_length, and capabilities of another form
	"mistral": {as: "mistral", base: "/v1", model: "mistral-large-latest", want: 131_072, places: []place{
		{"GET /v1/models", `{"object":"list","data":[{"id":"mistral-large-latest","capabilities":{"completion_chat":true,"function_calling":true},"max_context_length":131072}]}`},
	}},
	// https://docs.vllm.ai/en/latest/serving/openai_compatible_server: max_model_len
	"vllm": {as: "vllm", base: "/v1", model: "Qwen/Qwen3-8B", want: 40_960, places: []place{
		{"GET /v1/models", `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","root":"Qwen/Qwen3-8B","max_model_len":40960}]}`},
	}},
	// https://docs.github.com/en/rest/models/catalog: limits of an array without an object around it
	"github": {as: "github", base: "/inference", model: "openai/gpt-4.1", want: 1_048_576, places: []place{
		{"GET /catalog/models", `[{"id":"openai/gpt-4.1","name":"OpenAI GPT-4.1","capabilities":["streaming","tool-calling"],"limits":{"max_input_tokens":1048576,"max_output_tokens":32768}}]`},
	}},
	// https://ai.google.dev/api/models: inputTokenLimit of the model, in the API beside that of OpenAI
	"gemini": {as: "gemini", base: "/v1beta/openai", model: "gemini-2.5-flash", key: "X-Goog-Api-Key", want: 1_048_576, places: []place{
		{"GET /v1beta/models/gemini-2.5-flash", `{"name":"models/gemini-2.5-flash","inputTokenLimit":1048576,"outputTokenLimit":65536}`},
	}},
	// https://docs.ollama.com/api/ps: context_length of a model that is loaded
	"ollama, loaded": {as: "ollama", base: "/v1", model: "gemma3", want: 4096, places: []place{
		{"GET /api/ps", `{"models":[{"name":"gemma3:latest","model":"gemma3:latest","context_length":4096}]}`},
		{"POST /api/show", `{"model_info":{"gemma3.context_length":131072}}`},
	}},
	// https://docs.ollama.com/api-reference/show-model-details: parameters and model_info
	"ollama, configured": {as: "ollama", base: "/v1", model: "mine", want: 16_384, places: []place{
		{"GET /api/ps", `{"models":[]}`},
		{"POST /api/show", `{"parameters":"temperature 0.7\nnum_ctx 16384","model_info":{"llama.context_length":131072},"capabilities":["completion","tools"]}`},
	}},
	"ollama, not loaded": {as: "ollama", base: "/v1", model: "qwen3:8b", want: 40_960, places: []place{
		{"GET /api/ps", `{"models":[{"name":"another:latest","context_length":1}]}`},
		{"POST /api/show", `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`},
	}},
	// https://lmstudio.ai/docs/developer/rest/endpoints: loaded_context_length and max_context_length
	"lmstudio, loaded": {as: "lmstudio", base: "/v1", model: "qwen3-8b", want: 8192, places: []place{
		{"GET /api/v0/models", `{"object":"list","data":[{"id":"qwen3-8b","state":"loaded","max_context_length":40960,"loaded_context_length":8192}]}`},
	}},
	"lmstudio, not loaded": {as: "lmstudio", base: "/v1", model: "qwen3-8b", want: 40_960, places: []place{
		{"GET /api/v0/models", `{"object":"list","data":[{"id":"qwen3-8b","state":"not-loaded","max_context_length":40960}]}`},
	}},
	"an unknown server and model": {as: "other", base: "/v1", model: "mine", want: 7000, places: []place{
		{"GET /v1/models", `{"data":[{"id":"mine","context_window":7000}]}`},
	}},
	"a window that no model has": {as: "other", base: "/v1", model: "mine", want: 0, places: []place{
		{"GET /v1/models", `{"data":[{"id":"mine","context_window":9223372036854775807}]}`},
	}},
	"a negative window beside another one": {as: "other", base: "/v1", model: "mine", want: 7000, places: []place{
		{"GET /v1/models", `{"data":[{"id":"mine","context_length":-1,"context_window":7000}]}`},
	}},
	"ollama, with a window that no model has": {as: "ollama", base: "/v1", model: "qwen3:8b", want: 0, places: []place{
		{"GET /api/ps", `{"models":[{"name":"qwen3:8b","context_length":4611686018427387904}]}`},
		{"POST /api/show", `{"parameters":"num_ctx 4611686018427387904"}`},
	}},
	// These say nothing, so they are not asked: https://platform.openai.com/docs/api-reference/models,
	// https://api-docs.deepseek.com/api/list-models. Azure has no list of deployments.
	"openai":                            {as: "openai", model: "gpt-5"},
	"deepseek":                          {as: "deepseek", model: "deepseek-chat"},
	"azure":                             {as: "azure", model: "gpt-5"},
	"an unknown server, a known model":  {as: "other", model: "gpt-5"},
	"a server that has no such address": {as: "ollama", base: "/v1", model: "qwen3:8b", places: []place{{"GET /nothing", ""}}},
}

func TestEveryProviderTellsTheWindowOfAModelInItsOwnWay(t *testing.T) {
	for name, test := range windows {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.key != "" && r.Header.Get(test.key) != "k" && r.Header.Get(test.key) != "Bearer k" {
					t.Errorf("the key is not in %s: %v", test.key, r.Header)
				}
				if test.as == "gemini" && r.Header.Get("Authorization") != "" {
					t.Error("the API of Gemini takes a key in Authorization for a token")
				}
				for _, p := range test.places {
					if r.Method+" "+r.URL.Path == p.at && p.reply != "" {
						_, _ = io.WriteString(w, p.reply)
						return
					}
				}
				if test.places == nil {
					t.Errorf("asked for %s %s", r.Method, r.URL)
				}
				http.NotFound(w, r)
			}))
			defer server.Close()
			wire := wires[chat]
			if test.wire != "" {
				wire = wires[test.wire]
			}
			c := wire.open(remote.Config{BaseURL: server.URL + test.base, APIKey: "k", Profile: test.as})
			for range 2 {
				if got := c.FindWindow(t.Context(), test.model); got != test.want {
					t.Errorf("the window is %d, want %d", got, test.want)
				}
			}
		})
	}
}

// A fakeProvider is a transport to a provider that lists one model of a window. It
// answers after a while.
type fakeProvider struct {
	asked  atomic.Int64
	takes  time.Duration
	status int
	window int
}

func (f *fakeProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked.Add(1)
	select {
	case <-time.After(f.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	w.WriteHeader(f.status)
	fmt.Fprintf(w, `{"data":[{"id":"mine","context_length":%d}]}`, f.window)
	return w.Result(), nil
}

func (f *fakeProvider) client() *remote.Client {
	return openai.New(remote.Config{BaseURL: "http://provider.test/v1", Transport: f})
}

func TestAProviderIsAskedForAWindowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProvider{takes: time.Second, status: http.StatusOK, window: 9000}
		c := f.client()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got := c.FindWindow(t.Context(), "mine"); got != 9000 {
					t.Errorf("the window is %d", got)
				}
			})
		}
		all.Wait()
		time.Sleep(24 * time.Hour)
		if got := c.FindWindow(t.Context(), "mine"); got != 9000 || f.asked.Load() != 1 {
			t.Errorf("the window is %d, the provider was asked %d times", got, f.asked.Load())
		}
	})
}

func TestAProviderThatDoesNotSayIsAskedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProvider{status: http.StatusServiceUnavailable, window: 9000}
		c := f.client()
		for range 3 {
			if got := c.FindWindow(t.Context(), "mine"); got != 0 || f.asked.Load() != 1 {
				t.Errorf("the window is %d, the provider was asked %d times", got, f.asked.Load())
			}
		}
		f.status = http.StatusOK
		time.Sleep(time.Minute)
		if got := c.FindWindow(t.Context(), "mine"); got != 9000 {
			t.Errorf("after a minute the window is %d", got)
		}
	})
}

func TestAnEndlessQuestionForAWindowIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProvider{takes: time.Hour, status: http.StatusOK, window: 9000}
		c := f.client()
		start := time.Now()
		if got := c.FindWindow(t.Context(), "mine"); got != 0 || time.Since(start) > 5*time.Second {
			t.Errorf("the window is %d after %v", got, time.Since(start))
		}
	})
}

// TestAQuestionInAHurryIsAskedAgainAtLeisure: a caller in a hurry does not wait for long, and its
// failure is not kept for callers that have time.
func TestAQuestionInAHurryIsAskedAgainAtLeisure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProvider{takes: time.Second, status: http.StatusOK, window: 9000}
		c := f.client()
		start := time.Now()
		if got := c.FindWindow(model.WithHurry(t.Context(), 100*time.Millisecond), "mine"); got != 0 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("in a hurry the window is %d after %v", got, time.Since(start))
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if got := c.FindWindow(cancelled, "mine"); got != 0 {
			t.Errorf("for somebody who left it is %d", got)
		}
		if got := c.FindWindow(t.Context(), "mine"); got != 9000 {
			t.Errorf("at leisure the window is %d", got)
		}
	})
}
