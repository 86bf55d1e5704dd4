package daemon

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
)

func TestAnEndpointIsThatOfItsProviderKeyAndClient(t *testing.T) {
	m := &models{clients: make(map[string]*remote.Client)}
	ask := func(p provider.Provider, client string) *remote.Client {
		t.Helper()
		c, err := m.client(p, client)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	at := provider.Provider{BaseURL: "http://a", APIKey: "k", Headers: map[string]string{"A": "1", "B": "2"}}
	with := func(change func(*provider.Provider)) provider.Provider {
		p := at
		change(&p)
		return p
	}
	first := ask(at, "c")
	for name, test := range map[string]struct {
		got  *remote.Client
		same bool
	}{
		"the same":         {ask(at, "c"), true},
		"another model":    {ask(with(func(p *provider.Provider) { p.WireModel = "m" }), "c"), true},
		"another provider": {ask(with(func(p *provider.Provider) { p.BaseURL = "http://b" }), "c"), false},
		"another type":     {ask(with(func(p *provider.Provider) { p.Type = "anthropic" }), "c"), false},
		"another wire":     {ask(with(func(p *provider.Provider) { p.WireAPI = "responses" }), "c"), false},
		"another version":  {ask(with(func(p *provider.Provider) { p.Azure.APIVersion = "1" }), "c"), false},
		"another key":      {ask(with(func(p *provider.Provider) { p.APIKey = "l" }), "c"), false},
		"no key":           {ask(with(func(p *provider.Provider) { p.APIKey = "" }), "c"), false},
		"the key as token": {ask(with(func(p *provider.Provider) { p.APIKey, p.BearerToken = "", "k" }), "c"), false},
		"another header":   {ask(with(func(p *provider.Provider) { p.Headers = map[string]string{"A": "1", "B": "3"} }), "c"), false},
		"one header":       {ask(with(func(p *provider.Provider) { p.Headers = map[string]string{"A": `1""B""2`} }), "c"), false},
		"another client":   {ask(at, "d"), false},
		"another body":     {ask(with(func(p *provider.Provider) { p.Abide = &provider.Settings{ExtraBody: `{"a":1}`} }), "c"), false},
		"another profile":  {ask(with(func(p *provider.Provider) { p.Abide = &provider.Settings{Profile: "mistral"} }), "c"), false},
	} {
		if (test.got == first) != test.same {
			t.Errorf("%s: the same connections are used: %v, want %v", name, !test.same, test.same)
		}
	}
	for i := range 3 * maxClients {
		ask(provider.Provider{BaseURL: fmt.Sprintf("http://%d", i)}, "c")
	}
	if len(m.clients) > maxClients {
		t.Errorf("%d clients are kept", len(m.clients))
	}
}

func TestAWindowIsWhatTheProviderSaysOfItUnlessItIsWrittenDown(t *testing.T) {
	for said, want := range map[string]int{
		`"capabilities":{"limits":{"max_context_window_tokens":32000}}`: 32_000,
		`"context_length":40000`:    40_000,
		`"context_length":"a lot"`:  1_000_000, // the name of the model has a known window
		`"max_model_len":-5`:        1_000_000,
		`"owned_by":"somebody"`:     1_000_000,
		`"max_input_tokens":50000 `: 50_000,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"data":[{"id":"claude-sonnet-5",`+said+`}]}`)
		}))
		for _, written := range []int{0, 9000} {
			m := &models{clients: make(map[string]*remote.Client)}
			p := &provider.Provider{BaseURL: server.URL, Abide: &provider.Settings{Models: map[string]provider.Limits{"claude-sonnet-5": {Window: written}}}}
			to, err := m.resolve(t.Context(), provider.Choice{Provider: p})
			if err != nil || to.Window != cmp.Or(written, want) {
				t.Errorf("%s, written down %d: window %d, %v", said, written, to.Window, err)
			}
		}
		server.Close()
	}
}
