package daemon

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
)

func TestTheModelsOfAProviderAreListedWithWhatTheyCan(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Write([]byte(`{"data":[{"id":"mine"},{"id":"other"}]}`))
	}))
	defer server.Close()
	m := &models{version: "1", clients: make(map[string]*remote.Client)}
	blind := false
	p := provider.Provider{BaseURL: server.URL, APIKey: "k", Abide: &provider.Settings{Models: map[string]provider.Limits{"mine": {Window: 5000, Vision: &blind}}}}
	list, err := m.list(t.Context(), &p, nil)
	if err != nil || len(list) != 3 || list[0].ID != "mine" || list[1].ID != "other" || list[2].ID != "offline" {
		t.Fatalf("the models are %+v, %v", list, err)
	}
	if text := string(list[0].Capabilities); !strings.Contains(text, `"vision":false`) || !strings.Contains(text, `"max_context_window_tokens":5000`) {
		t.Errorf("the first one can %s", text)
	}
	if list, err := m.list(t.Context(), nil, nil); err != nil || len(list) != 1 {
		t.Errorf("without a provider the models are %+v, %v", list, err)
	}
	p.APIKey = "wrong"
	if _, err := m.list(t.Context(), &p, nil); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong key: %v", err)
	}
	p.APIKey = "k"
	calls := 0
	counting := transport(func(r *http.Request) (*http.Response, error) {
		calls++
		return http.DefaultTransport.RoundTrip(r)
	})
	if _, err := m.list(t.Context(), &p, counting); err != nil || calls != 1 {
		t.Errorf("the client made %d requests, %v", calls, err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
