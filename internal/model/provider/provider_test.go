package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
)

// stored returns a configuration with a provider and lists, each of which may be empty.
func stored(own, listed, models string) event.SessionConfiguredData {
	raw := func(text string) json.RawMessage {
		if text == "" {
			return nil
		}
		return json.RawMessage(text)
	}
	return event.SessionConfiguredData{Provider: raw(own), Providers: raw(listed), Models: raw(models), ClientName: "me"}
}

func setOf(t *testing.T, config event.SessionConfiguredData) provider.Set {
	t.Helper()
	set, err := provider.Of(&config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Configurations as this and earlier versions store them, and with members of newer
// versions.
var recorded = map[string]event.SessionConfiguredData{
	"nothing":       stored("", "", ""),
	"a provider":    stored(`{"type":"azure","wireApi":"responses","baseUrl":"https://a/x\u0026y","modelId":"m","hasBearerTokenProvider":true,"azure":{"apiVersion":"1"},"maxOutputTokens":7,"abide":{"reasoningEffort":"low","models":{"m":{"window":5}}},"default":true}`, "", ""),
	"an empty list": stored("", `[]`, `null`),
	"no providers":  stored("", `null`, `[]`),
	"lists":         stored("", `[{"name":"x","baseUrl":"http://x"},{"name":"y","baseUrl":""}]`, `[{"id":"m","provider":"x","wireModel":"w","capabilities":{"a":1}}]`),
	"newer members": stored(`{"baseUrl":"http://a","a region":{"n":1.10,"s":"<\u003c>"},"zone":null}`, `[{"name":"x","baseUrl":"http://x","transport":"http"}]`,
		`[{"id":"m","provider":"x","tier":[1,2]}]`),
	"wrong fields": stored(`{"baseUrl":7,"transport":"http"}`, `[{"name":"x","baseUrl":"http://x","maxOutputTokens":"many"},3]`, `[{"id":"m","provider":"x","maxOutputTokens":[]}]`),
}

func TestWhatIsRecordedAgainIsWhatWasStored(t *testing.T) {
	for name, config := range recorded {
		again := event.SessionConfiguredData{ClientName: "me"}
		if _, err := setOf(t, config).Record(&again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, config) {
			t.Errorf("%s: recorded\n%s %s %s, want\n%s %s %s", name, again.Provider, again.Providers, again.Models, config.Provider, config.Providers, config.Models)
		}
	}
}

func TestAProviderIsNullAbsentOrThere(t *testing.T) {
	for raw, want := range map[string]string{``: "", `null`: "openai", `{}`: "openai", `{"type":null,"baseUrl":null}`: "openai", `{"type":"t","baseUrl":"u"}`: "t u"} {
		set := setOf(t, stored(raw, "", ""))
		if got := set.Own.Endpoint(); got != want || (set.Own == nil) != (raw == "") || set.Own.Err() != nil {
			t.Errorf("%q: endpoint %q, %v; want %q", raw, got, set.Own.Err(), want)
		}
	}
}

func TestAWrongFieldIsNamed(t *testing.T) {
	for _, test := range []struct {
		config event.SessionConfiguredData
		model  string
		want   string
	}{
		{stored(`{"baseUrl":7}`, "", ""), "", "provider.baseUrl: want string, have number"},
		{stored(`{"baseUrl":"u","azure":{"apiVersion":true}}`, "", ""), "", "provider.azure.apiVersion: want string, have bool"},
		{stored(`[]`, "", ""), "", "provider: want"},
		{recorded["wrong fields"], "x/m", "providers[0].maxOutputTokens: want int, have string"},
		{stored("", `[{"name":"x","baseUrl":"u"}]`, `[{"id":"m","provider":"x","maxOutputTokens":[]}]`), "x/m", "models[0].maxOutputTokens: want int, have array"},
	} {
		as, err := setOf(t, test.config).Choose(test.model)
		if err != nil || as.Provider.Err() == nil || !strings.HasPrefix(as.Provider.Err().Error(), test.want) {
			t.Errorf("%s: %v, %v; want %q", test.config.Provider, as.Provider.Err(), err, test.want)
		}
	}
	for want, config := range map[string]event.SessionConfiguredData{"providers: want": stored("", `7`, ""), "models: want": stored("", "", `{}`)} {
		if _, err := provider.Of(&config); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What cannot be read is not mistaken for the endpoint that a key is for.
func TestAnUnreadableProviderHasNoEndpoint(t *testing.T) {
	p := provider.Stored(json.RawMessage(`{"baseUrl":"http://a","maxOutputTokens":"many","default":true}`))
	if p.Endpoint() != "" || !p.Default {
		t.Errorf("endpoint %q, default %v", p.Endpoint(), p.Default)
	}
}

func TestAModelIsFoundWithItsProvider(t *testing.T) {
	lists := func(own string) event.SessionConfiguredData {
		return stored(own, `[{"name":"x","baseUrl":"http://x","wireModel":"w","maxOutputTokens":3},{"name":"y","baseUrl":"http://y"}]`,
			`[{"id":"m","provider":"x"},{"id":"m","provider":"y","wireModel":"v","modelId":"i","maxPromptTokens":1,"maxOutputTokens":2},{"id":"lost","provider":"z"}]`)
	}
	const own = `{"baseUrl":"http://own"}`
	for _, test := range []struct {
		config event.SessionConfiguredData
		name   string
		want   provider.Choice
		at     string
	}{
		{stored("", "", ""), "m", provider.Choice{Model: "m"}, ""},
		{stored(own, "", ""), "m", provider.Choice{Model: "m"}, "openai http://own"},
		{lists(own), "", provider.Choice{}, "openai http://own"},
		{lists(""), "", provider.Choice{Model: "m", Listed: true}, "openai http://x"},
		{lists(own), "x/m", provider.Choice{Model: "m", Listed: true}, "openai http://x"},
		{lists(own), "y/m", provider.Choice{Model: "m", Listed: true}, "openai http://y"},
		{lists(own), "m", provider.Choice{Model: "m"}, "openai http://own"},
		{stored(own, "", `[{"id":"m","provider":"x"}]`), "x/m", provider.Choice{Model: "x/m"}, "openai http://own"},
	} {
		as, err := setOf(t, test.config).Choose(test.name)
		if err != nil || as.Model != test.want.Model || as.Listed != test.want.Listed || as.Client != "me" || as.Provider.Endpoint() != test.at {
			t.Errorf("%q: %+v at %q, %v", test.name, as, as.Provider.Endpoint(), err)
		}
	}
	as, _ := setOf(t, lists("")).Choose("x/m")
	if p := as.Provider; p.WireModel != "w" || p.MaxOutputTokens != 3 {
		t.Errorf("a model that says nothing changes its provider: %+v", p)
	}
	as, _ = setOf(t, lists("")).Choose("y/m")
	if p := as.Provider; p.WireModel != "v" || p.ModelID != "i" || p.MaxPromptTokens != 1 || p.MaxOutputTokens != 2 {
		t.Errorf("what a model says does not count: %+v", p)
	}
	var unknown *model.Error
	if _, err := setOf(t, lists("")).Choose("z/lost"); !errors.As(err, &unknown) || unknown.Kind != model.KindNotFound {
		t.Errorf("a model of no provider: %v", err)
	}
}

func TestAClientIsAskedForTokensByName(t *testing.T) {
	for raw, want := range map[string]string{``: "", `{}`: "", `{"hasBearerTokenProvider":true}`: "default", `{"name":"n","hasBearerTokenProvider":true}`: "n", `{"name":"n"}`: ""} {
		set := setOf(t, stored(raw, "", ""))
		if got := set.Own.TokenName(); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// Only a provider that needs tokens moves them, whatever the others do.
func TestTokensMoveWithTheirProvider(t *testing.T) {
	is := setOf(t, stored(`{"baseUrl":"http://a","hasBearerTokenProvider":true}`, `[{"name":"x","baseUrl":"http://x"},{"name":"y","baseUrl":"http://y","hasBearerTokenProvider":true}]`, ""))
	for _, test := range []struct {
		own, listed string
		moves       bool
	}{
		{`{"baseUrl":"http://a"}`, `[{"name":"y","baseUrl":"http://y"}]`, false},
		{`{"baseUrl":"http://a"}`, `[{"name":"new","baseUrl":"http://n"},{"name":"y","baseUrl":"http://y"},{"name":"x","baseUrl":"http://z"}]`, false},
		{`{"baseUrl":"http://b"}`, `[{"name":"y","baseUrl":"http://y"}]`, true},
		{`{"baseUrl":"http://a"}`, `[{"name":"y","baseUrl":"http://z"}]`, true},
		{`{"baseUrl":"http://a"}`, `[]`, true},
		{``, `[{"name":"y","baseUrl":"http://y"}]`, true},
	} {
		if got := is.MovesTokens(setOf(t, stored(test.own, test.listed, ""))); got != test.moves {
			t.Errorf("%s and %s: %v, want %v", test.own, test.listed, got, test.moves)
		}
	}
	without := setOf(t, stored(`{"baseUrl":"http://a"}`, `[{"name":"x","baseUrl":"http://x"}]`, ""))
	if without.MovesTokens(provider.Set{}) {
		t.Error("providers without tokens move tokens")
	}
}

// FuzzProvider decodes any object: what is encoded again is decoded to the same, has
// every unknown member byte for byte, and has no key once it is recorded.
func FuzzProvider(f *testing.F) {
	for _, config := range recorded {
		f.Add([]byte(config.Provider))
	}
	f.Add([]byte(`{"APIKEY":"secret","baseurl":"u","Headers":{"A":"secret"},"x":"<","x":"y","":1,"é":2}`))
	f.Add([]byte(`{"bearer\u0054oken":"secret"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, again provider.Provider
		if json.Unmarshal(b, &p) != nil {
			return
		}
		text, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || !same(p, again) {
			t.Errorf("%s became %s, %v", b, text, err)
		}
		var config event.SessionConfiguredData
		keys, err := provider.Set{Own: &p}.Record(&config)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(config.Provider, &members); err != nil {
			t.Fatal(err)
		}
		for name := range maps.Keys(members) {
			if strings.EqualFold(name, "apiKey") || strings.EqualFold(name, "bearerToken") || strings.EqualFold(name, "headers") {
				t.Errorf("%s is recorded as %s", b, config.Provider)
			}
		}
		if keys.Own.APIKey != p.APIKey || keys.Own.BearerToken != p.BearerToken {
			t.Errorf("the keys of %s are %+v", b, keys.Own)
		}
	})
}

// same reports whether two providers have the same fields and the same other members.
func same(a, b provider.Provider) bool {
	x, errX := a.MarshalJSON()
	y, errY := b.MarshalJSON()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func TestUnknownMembersOfAClientAreNotRecorded(t *testing.T) {
	var p provider.Provider
	var m provider.Model
	if err := errors.Join(json.Unmarshal([]byte(`{"baseUrl":"u","clientSecret":"s"}`), &p), json.Unmarshal([]byte(`{"id":"m","provider":"x","clientSecret":"s"}`), &m)); err != nil {
		t.Fatal(err)
	}
	known, err := json.Marshal([]any{p.WithoutUnknown(), m.WithoutUnknown()})
	if want := `[{"baseUrl":"u"},{"id":"m","provider":"x"}]`; string(known) != want {
		t.Errorf("%s, %v; want %s", known, err, want)
	}
	if all, _ := json.Marshal(p); !strings.Contains(string(all), "clientSecret") {
		t.Errorf("the provider itself was changed to %s", all)
	}
}
