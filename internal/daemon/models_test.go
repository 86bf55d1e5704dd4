package daemon

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/remote"
)

func TestAnEndpointIsThatOfItsProviderKeyAndClient(t *testing.T) {
	m := &models{clients: make(map[string]*remote.Client)}
	ask := func(provider, secret, client string) *remote.Client {
		t.Helper()
		to, err := m.endpoint(event.SessionConfiguredData{Provider: []byte(provider), ClientName: client}, []byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return to.client
	}
	const a, b, key = `{"baseUrl":"http://a"}`, `{"baseUrl":"http://b"}`, `{"apiKey":"k"}`
	first := ask(a, key, "c")
	for name, test := range map[string]struct {
		got  *remote.Client
		same bool
	}{
		"the same":         {ask(a, key, "c"), true},
		"another model":    {ask(`{"baseUrl":"http://a","wireModel":"m"}`, key, "c"), true},
		"another provider": {ask(b, key, "c"), false},
		"another key":      {ask(a, `{"apiKey":"l"}`, "c"), false},
		"no key":           {ask(a, "", "c"), false},
		"another client":   {ask(a, key, "d"), false},
	} {
		if (test.got == first) != test.same {
			t.Errorf("%s: the same connections are used: %v, want %v", name, !test.same, test.same)
		}
	}
	for i := range 3 * maxClients {
		ask(fmt.Sprintf(`{"baseUrl":"http://%d"}`, i), key, "c")
	}
	if len(m.known) > maxClients {
		t.Errorf("%d endpoints are kept", len(m.known))
	}
}

func TestAnEndpointThatCannotBeReadIsAnErrorEachTime(t *testing.T) {
	m := &models{clients: make(map[string]*remote.Client)}
	for range 2 {
		if _, err := m.endpoint(event.SessionConfiguredData{Provider: []byte(`{"baseUrl":7}`)}, nil); err == nil {
			t.Error("a number was taken for an address")
		}
		if _, err := m.endpoint(event.SessionConfiguredData{Provider: []byte(`{}`)}, []byte(`[]`)); err == nil {
			t.Error("a list was taken for a key")
		}
	}
}

func TestAWindowIsWhatTheProviderSaysOfItUnlessItIsWrittenDown(t *testing.T) {
	for said, want := range map[string]int{
		`"capabilities":{"limits":{"max_context_window_tokens":32000}}`: 32_000,
		`"context_length":40000`:    40_000,
		`"context_length":"a lot"`:  1_000_000, // what is known of the name
		`"max_model_len":-5`:        1_000_000,
		`"owned_by":"somebody"`:     1_000_000,
		`"max_input_tokens":50000 `: 50_000,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"data":[{"id":"claude-sonnet-5",`+said+`}]}`)
		}))
		for _, written := range []int{0, 9000} {
			m := &models{clients: make(map[string]*remote.Client)}
			provider := fmt.Sprintf(`{"baseUrl":%q,"abide":{"models":{"claude-sonnet-5":{"window":%d}}}}`, server.URL, written)
			to, err := m.resolve(t.Context(), event.SessionConfiguredData{Provider: []byte(provider)}, "", nil)
			if err != nil || to.Window != cmp.Or(written, want) {
				t.Errorf("%s, written down %d: window %d, %v", said, written, to.Window, err)
			}
		}
		server.Close()
	}
}
