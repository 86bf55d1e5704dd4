package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/model/provider"
)

func TestAProviderIsAskedForItsModelsAsItsWireWantsIt(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(`{"data":[{"id":"b"},{"id":"a"}]}`))
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		provider    provider.Provider
		header, key string
	}{
		"Chat Completions": {provider.Provider{BaseURL: server.URL + "/v1", APIKey: "k"}, "Authorization", "Bearer k"},
		"Responses":        {provider.Provider{BaseURL: server.URL + "/v1", WireAPI: "responses", BearerToken: "t"}, "Authorization", "Bearer t"},
		"Anthropic":        {provider.Provider{BaseURL: server.URL, Type: "anthropic", APIKey: "k"}, "X-Api-Key", "k"},
		"own headers":      {provider.Provider{BaseURL: server.URL + "/v1", Headers: map[string]string{"X-Mine": "h"}}, "X-Mine", "h"},
	} {
		told, err := daemon.Ask(t.Context(), test.provider, "1", nil)
		if err != nil || !slices.Equal(told.Models, []string{"b", "a"}) || !told.Asked || told.Date.IsZero() {
			t.Errorf("%s: %+v, %v", name, told, err)
		}
		if got := seen.Get(test.header); got != test.key || seen.Get("User-Agent") != "abide/1" {
			t.Errorf("%s: %s is %q", name, test.header, got)
		}
	}
	if told, err := daemon.Ask(t.Context(), provider.Provider{Type: "azure", BaseURL: server.URL}, "1", nil); err != nil || told.Asked {
		t.Errorf("Azure: %+v, %v", told, err)
	}
}

func TestAProviderThatDoesNotListItsModelsSaysWhy(t *testing.T) {
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer server.Close()
	for _, test := range []struct {
		status     int
		body, want string
	}{
		{401, "", "does not accept the key (401)"},
		{403, "no", "does not show its models with this key (403); use another key"},
		{404, "no", "has no list of models at /v1/models (404); check the base URL"},
		{503, "", "has a problem of its own (503)"},
		{200, "<html>", "answered with a web page"},
		{200, "<", "was not understood"},
		{200, `{"data":7}`, "was not understood"},
	} {
		status, body = test.status, test.body
		told, err := daemon.Ask(t.Context(), provider.Provider{BaseURL: server.URL + "/v1", APIKey: "secret-key"}, "1", nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), `model ""`) || !told.Asked {
			t.Errorf("%d %q: %+v, %v; want %q", test.status, test.body, told, err, test.want)
		}
	}
	if _, err := daemon.Ask(t.Context(), provider.Provider{Type: "telepathy", BaseURL: server.URL}, "1", nil); err == nil {
		t.Error("an unknown type is asked")
	}
}
