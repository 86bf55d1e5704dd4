package provider_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
)

func parse(t *testing.T, text string) *provider.Keys {
	t.Helper()
	k, err := provider.ParseKeys([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func encoded(t *testing.T, k *provider.Keys) string {
	t.Helper()
	b, err := k.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The bytes are those that earlier versions have stored.
func TestKeysAreStoredAsEver(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"apiKey":"k\u0026","bearerToken":"t","for":"openai http://a","headers":{"A":"1","B":"2"}}`,
		`{"for":""}`,
		`{"apiKey":"k","named":{"x":{"apiKey":"l","for":"openai http://x"},"y":{}}}`,
		`{"named":{"x":{"for":"openai http://x"}}}`,
		`{"apiKey":"k","later":{"n":1.0},"named":{"x":{"apiKey":"l","later":["\u003c"]}}}`,
	} {
		if got := encoded(t, parse(t, text)); got != text {
			t.Errorf("%s is stored again as %s", text, got)
		}
	}
	if k := parse(t, ""); k.Own != nil || k.Named != nil {
		t.Errorf("no keys are %+v", k)
	}
	for text, want := range map[string]string{`[]`: "the keys of the providers: want", `{"apiKey":7}`: "apiKey: want string", `{"named":{"x":{"headers":1}}}`: "headers: want", `{`: "the keys"} {
		if _, err := provider.ParseKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestAKeyIsForItsEndpointAlone(t *testing.T) {
	here := setOf(t, stored(`{"type":"openai","baseUrl":"http://a"}`, `[{"name":"x","baseUrl":"http://x"}]`, `[]`))
	moved := setOf(t, stored(`{"type":"anthropic","baseUrl":"http://a"}`, `[{"name":"x","baseUrl":"http://z"}]`, `[]`))
	gone := setOf(t, stored("", "", ""))
	const all = `{"apiKey":"k","named":{"x":{"apiKey":"l"}}}`
	bound := parse(t, all).Bind(here)
	if got, want := encoded(t, bound), `{"apiKey":"k","for":"openai http://a","named":{"x":{"apiKey":"l","for":"openai http://x"}}}`; got != want {
		t.Errorf("bound: %s, want %s", got, want)
	}
	if again := encoded(t, bound.Bind(moved)); again != encoded(t, bound) {
		t.Errorf("what is bound was bound again: %s", again)
	}
	for _, test := range []struct {
		keys string
		by   provider.Set
		want string
	}{
		{encoded(t, bound), here, all},
		{encoded(t, bound), moved, `{}`},
		{all, moved, all}, // secrets without a binding belong to the present providers
		{`{"apiKey":"k","for":"openai http://a"}`, gone, `{}`},
	} {
		if got := encoded(t, parse(t, test.keys).Usable(test.by)); got != test.want {
			t.Errorf("of %s can be used %s, want %s", test.keys, got, test.want)
		}
	}
}

func TestKeysAndProvidersAreJoinedAndSeparated(t *testing.T) {
	config := stored(`{"baseUrl":"http://a","apiKey":"of the log"}`, `[{"name":"x","baseUrl":"http://x"},{"name":"y","baseUrl":"http://y"}]`, `[]`)
	keys := parse(t, `{"apiKey":"k","headers":{"A":"1"},"named":{"x":{"bearerToken":"t","for":"openai http://x"},"y":{"apiKey":"of another","for":"openai http://z"}}}`)
	set := setOf(t, config)
	with := set.WithKeys(keys)
	if with.Own.APIKey != "k" || with.Own.Headers["A"] != "1" || with.Listed[0].BearerToken != "t" || with.Listed[1].APIKey != "" {
		t.Errorf("with keys: %+v, %+v", with.Own, with.Listed)
	}
	if set.Own.APIKey != "" || set.Listed[0].BearerToken != "" {
		t.Error("the set without keys was changed, or has a key of the log")
	}
	var into event.SessionConfiguredData
	apart, err := with.Record(&into)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(into.Provider)+string(into.Providers), `{"baseUrl":"http://a"}`+string(config.Providers); got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if got, want := encoded(t, apart), `{"apiKey":"k","headers":{"A":"1"},"named":{"x":{"bearerToken":"t"},"y":{}}}`; got != want {
		t.Errorf("kept apart: %s, want %s", got, want)
	}
	if with.Own.APIKey != "k" || with.Listed[0].BearerToken != "t" {
		t.Error("recording took the keys from the set")
	}
}

// The keys are stored by the names of their providers, so that there is only one for two
// providers of one name.
func TestOfTwoProvidersOfOneNameNoneGetsTheKeyOfTheOther(t *testing.T) {
	both := provider.Set{Listed: []provider.Provider{
		{Name: "x", BaseURL: "http://a", APIKey: "key of a"},
		{Name: "x", BaseURL: "http://b", APIKey: "key of b"},
	}}
	var config event.SessionConfiguredData
	keys, err := both.Record(&config)
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t, config)
	for _, k := range []*provider.Keys{keys, keys.Bind(set)} {
		if got := set.WithKeys(k).Listed; got[0].APIKey != "" || got[1].APIKey != "key of b" {
			t.Errorf("http://a has %q and http://b has %q", got[0].APIKey, got[1].APIKey)
		}
	}
}

// A password or a query in a base URL is kept like a key: not in the configuration, and for one endpoint.
func TestAPasswordInABaseURLIsKeptLikeAKey(t *testing.T) {
	for base, open := range map[string]string{
		"http://me:pass-word@a/v1":        "http://a/v1",
		"http://me:pass-word@a":           "http://a",
		"https://me:pass-word@a:8080/":    "https://a:8080/",
		"https://me:pass-word@a?x=a@b":    "https://a",
		"https://a/v1?key=pass-word":      "https://a/v1",
		"https://me:x/pass-word@a/v1":     "https://a/v1",
		"me:pass-word@a:80/v1":            "a:80/v1",
		"https://me:pass-word@a/@cf/meta": "https://a/@cf/meta",
	} {
		brought := provider.Set{Own: &provider.Provider{BaseURL: base, APIKey: "k"}, Listed: []provider.Provider{{Name: "n", BaseURL: base}}}
		var config event.SessionConfiguredData
		keys, err := brought.Record(&config)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(config.Provider) + string(config.Providers); strings.Contains(text, "pass-word") || !strings.Contains(text, `"baseUrl":"`+open+`"`) {
			t.Errorf("%s: the configuration is %s", base, text)
		}
		kept := parse(t, encoded(t, keys.Bind(setOf(t, config))))
		if set := setOf(t, config).WithKeys(kept); set.Own.BaseURL != base || set.Own.APIKey != "k" || set.Listed[0].BaseURL != base {
			t.Errorf("%s: read again it is %+v", base, set)
		}
		if brought.Own.Endpoint() != setOf(t, config).Own.Endpoint() {
			t.Errorf("%s: the endpoint of a client is %q, and the stored one %q", base, brought.Own.Endpoint(), setOf(t, config).Own.Endpoint())
		}
		moved := setOf(t, config)
		moved.Own.BaseURL = "http://evil"
		if moved = moved.WithKeys(kept); moved.Own.BaseURL != "http://evil" {
			t.Errorf("%s: another endpoint got %q", base, moved.Own.BaseURL)
		}
	}
	for _, base := range []string{"http://a/v1", "http://a/@cf/meta", "http://a:80/@cf/meta", "a:80"} {
		var config event.SessionConfiguredData
		if keys, err := (provider.Set{Own: &provider.Provider{BaseURL: base}}).Record(&config); err != nil || keys.Own.BaseURL != "" || !strings.Contains(string(config.Provider), `"`+base+`"`) {
			t.Errorf("%s: it became %s and %+v, %v", base, config.Provider, keys.Own, err)
		}
	}
	old := setOf(t, stored(`{"baseUrl":"http://me:pass-word@a/v1?x=1"}`, "", ""))
	if old = old.WithKeys(parse(t, `{"apiKey":"k","for":"openai http://me:pass-word@a/v1?x=1"}`)); old.Own.BaseURL != "http://me:pass-word@a/v1?x=1" || old.Own.APIKey != "k" {
		t.Errorf("what an older version has stored is read as %+v", old.Own)
	}
}
