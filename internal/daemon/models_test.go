package daemon

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
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
		"another lifetime": {ask(with(func(p *provider.Provider) { p.Abide = &provider.Settings{CacheTTL: "1h"} }), "c"), false},
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

func TestTheWindowOfANamedModelIsLookedUp(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		io.WriteString(w, `{"data":[{"id":"mine","max_model_len":32768},{"id":"gpt-4.1","max_model_len":5}]}`)
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		provider provider.Provider
		model    string
		through  bool
		window   int
		asked    int
	}{
		"an unknown model":            {model: "mine", window: 32_768, asked: 1},
		"a model that is not listed":  {model: "other", window: 128_000, asked: 1},
		"a known model":               {model: "gpt-4.1", window: 1_047_576},
		"one with a configured size":  {provider: provider.Provider{Abide: &provider.Settings{Models: map[string]provider.Limits{"mine": {Window: 9000}}}}, model: "mine", window: 9000},
		"one whose size a client has": {provider: provider.Provider{MaxPromptTokens: 1000}, model: "mine", window: 1000 + 16_384},
		"one that needs tokens":       {provider: provider.Provider{HasToken: true}, model: "mine", window: 128_000},
		"one that a client reaches":   {model: "mine", through: true, window: 128_000},
	} {
		asked = 0
		m := &models{clients: make(map[string]*remote.Client)}
		p := test.provider
		p.BaseURL = server.URL
		ctx := t.Context()
		if test.through {
			ctx = model.WithTransport(ctx, http.DefaultTransport)
		}
		for range 2 {
			to, err := m.resolve(ctx, provider.Choice{Provider: &p, Model: test.model})
			if err != nil || to.Window != test.window || asked != test.asked {
				t.Errorf("%s: window %d, want %d; asked %d times, want %d; %v", name, to.Window, test.window, asked, test.asked, err)
			}
		}
	}
}

func TestTheDefaultModelOfAProviderHasAReason(t *testing.T) {
	list := `{"data":[{"id":"zeta"},{"id":"gpt-4.1"},{"id":"gpt-5"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, list) }))
	defer server.Close()
	p := provider.Provider{BaseURL: server.URL}
	m := &models{clients: make(map[string]*remote.Client)}
	to, err := m.resolve(t.Context(), provider.Choice{Provider: &p})
	if err != nil || to.Name != "gpt-5" {
		t.Errorf("the default is %q, %v", to.Name, err)
	}
	s, err := Ask(t.Context(), p, "test", nil)
	if err != nil || s.Default != "gpt-5" || !strings.Contains(s.Why, "newest") {
		t.Errorf("the survey says %+v, %v", s, err)
	}
	list = `{"data":[{"id":"b"},{"id":"a"}]}`
	if to, err := m.resolve(t.Context(), provider.Choice{Provider: &p}); err == nil || !strings.Contains(err.Error(), "name one with --model") {
		t.Errorf("without a reason the default is %q, %v", to.Name, err)
	}
}
