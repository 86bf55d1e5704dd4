package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/scripted"
)

func loaded(t *testing.T, text string) *config.Loaded {
	t.Helper()
	l, err := config.Load(config.Layer{Name: "c.toml", Path: "/p/c.toml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// where returns the parts of a choice that the tests compare.
func where(c choice) string {
	if c.provider == nil {
		return c.knownModel()
	}
	key := c.provider.APIKey + c.provider.BearerToken
	return c.provider.Type + c.provider.WireAPI + " " + c.provider.BaseURL + " " + key + " " + c.model
}

const (
	openAI    = "https://api.openai.com/v1"
	claudeURL = "https://api.anthropic.com"
)

func TestWhoAnswersAndWhy(t *testing.T) {
	for name, test := range map[string]struct {
		env             map[string]string
		text, want, why string
	}{
		"nothing":       {nil, "", "offline", "no provider is configured, and no key is set"},
		"none chosen":   {nil, "providers.p={base_url='http://l'}", "offline", "no key is set, and model.model_id names no model of [providers]"},
		"a key":         {map[string]string{"OPENAI_API_KEY": "k"}, "", "openairesponses " + openAI + " k ", "OPENAI_API_KEY is set"},
		"both keys":     {map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a"}, "", "openairesponses " + openAI + " k ", "OPENAI_API_KEY is set"},
		"a model":       {map[string]string{"OPENAI_API_KEY": "k"}, "model.model_id='m'", "openairesponses " + openAI + " k m", "model.model_id in c.toml"},
		"no key for it": {nil, "model.model_id='m'", "m", "model.model_id in c.toml"},
		"a vendor's model": {map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a"}, "model.model_id='claude-x'",
			"anthropic " + claudeURL + " a claude-x", "model.model_id in c.toml"},
		"a scheme":      {map[string]string{"OPENAI_API_KEY": "k"}, "model.scheme='responses'\nmodel.model_id='m'", "openairesponses " + openAI + " k m", "model.model_id in c.toml"},
		"the other API": {map[string]string{"OPENAI_API_KEY": "k"}, "model.scheme='openai'\nmodel.model_id='m'", "openai " + openAI + " k m", "model.model_id in c.toml"},
		"its address":   {map[string]string{"OPENAI_API_KEY": "k"}, "model.base_url='https://API.openai.com:443/v1'", "openairesponses https://API.openai.com:443/v1 k ", "model.base_url in c.toml"},
		"a gateway":     {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://api.openai.com.example/v1"}, "", "openai https://api.openai.com.example/v1 k ", "OPENAI_API_KEY is set"},
		"blanks":        {map[string]string{"OPENAI_BASE_URL": " http://l/v1\n"}, "", "openai http://l/v1  ", "OPENAI_BASE_URL is set"},
		"only a scheme": {map[string]string{"ANTHROPIC_AUTH_TOKEN": "t"}, "model.scheme='anthropic'", "anthropic " + claudeURL + " t ", "model.scheme in c.toml"},
		"an address":    {nil, "model.base_url='http://l'\nmodel.model_id='m'", "openai http://l  m", "model.model_id in c.toml"},
		"a key's name":  {map[string]string{"MINE": "s", "OPENAI_API_KEY": "k"}, "model.api_key_env='MINE'", "openairesponses " + openAI + " s ", "model.api_key_env in c.toml"},
		"a provider":    {map[string]string{"MINE": "s"}, "model.model_id='p/a/b'\nproviders.p={base_url='http://l',api_key_env='MINE'}", "openai http://l s a/b", "model.model_id in c.toml"},
		"offline":       {map[string]string{"OPENAI_API_KEY": "k"}, "model.scheme='offline'", "offline", "model.scheme in c.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, test.env)
			got, err := defaultChoice(loaded(t, test.text))
			if err != nil || where(got) != test.want || got.why != test.why {
				t.Errorf("%q because %q, %v; want %q because %q", where(got), got.why, err, test.want, test.why)
			}
		})
	}
}

func TestAModelIsFoundByTheNameThatPeopleGiveIt(t *testing.T) {
	both := map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a"}
	gateway := map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "OPENAI_BASE_URL": "http://gateway"}
	const providers = "providers.local.base_url='http://l'\nproviders.anthropic.base_url='http://mine'\n"
	for name, test := range map[string]struct {
		env               map[string]string
		text, model, want string // empty: the usual provider's
	}{
		"plain":                      {both, "", "gpt-5", ""},
		"with a vendor":              {both, "", "anthropic/claude-x", "anthropic " + claudeURL + " a claude-x"},
		"only one vendor has it":     {both, "", "claude-x", "anthropic " + claudeURL + " a claude-x"},
		"the usual vendor":           {both, "", "openai/gpt-5", "openairesponses " + openAI + " k gpt-5"},
		"the usual gateway":          {gateway, "", "openai/gpt-5", ""},
		"a vendor without a key":     {map[string]string{"OPENAI_API_KEY": "k"}, "", "anthropic/claude-x", ""},
		"a gateway has its own name": {gateway, "", "anthropic/claude-x", ""},
		"so it has for others":       {gateway, "", "claude-x", ""},
		"a provider of OpenAI":       {both, "providers.o.api_key_env='OPENAI_API_KEY'", "o/gpt-5", "openairesponses " + openAI + " k gpt-5"},
		"a provider":                 {gateway, providers, "local/a/b", "openai http://l k a/b"},
		"a provider like a vendor":   {both, providers, "anthropic/x", "openai http://mine k x"},
		"a provider and no model":    {both, providers, "local/", ""},
		"no provider":                {both, providers, "elsewhere/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, test.env)
			l := loaded(t, test.text)
			usual, err := defaultChoice(l)
			if err != nil {
				t.Fatal(err)
			}
			found, ok, err := findProvider(l.Config, usual, test.model)
			if err != nil || ok != (test.want != "") || ok && where(found) != test.want {
				t.Errorf("%v %q, %v, want %q", ok, where(found), err, test.want)
			}
		})
	}
}

// The models that summarise and extract are named like any other, also if their provider is
// not that of the sessions: the name as it is written would go to the sessions' provider.
func TestModelsThatHelpAreOfAnyProvider(t *testing.T) {
	setenv(t, map[string]string{"OPENAI_API_KEY": "k"})
	l := loaded(t, `
compaction.model = "local/small"
memory.model = "local/small"
[providers.local]
scheme = "openai"
base_url = "http://l"
api_key_env = "OPENAI_API_KEY"
`)
	d, err := defaults(l, "/")
	if err == nil {
		err = setHelpers(&d, l.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d.Compaction.Model != "local/small" || d.Memory.Model != "local/small" || len(d.Providers) != 1 || d.Providers[0].Name != "local" || len(d.Models) != 1 || d.Models[0].ID != "small" {
		t.Errorf("compaction %q, memory %q, providers %+v, models %+v", d.Compaction.Model, d.Memory.Model, d.Providers, d.Models)
	}
	d.Providers, d.Models, d.Compaction.Model, d.Memory.Model = nil, nil, "gpt-mini", ""
	if err := setHelpers(&d, l.Config); err != nil || d.Compaction.Model != "gpt-mini" || d.Memory.Model != "" || d.Providers != nil {
		t.Errorf("a model of the sessions' provider: %q, %q, %+v, %v", d.Compaction.Model, d.Memory.Model, d.Providers, err)
	}
}

func TestWhatIsWrittenDownGoesWithTheProvider(t *testing.T) {
	setenv(t, nil)
	l := loaded(t, `
worker.max_tokens = 7
model = {base_url = "http://l", reasoning_effort = "high"}
models."a.b" = {window = 1, vision = true}
models."openai/a.b" = {window = 2}
models."other/a.b" = {window = 3}
`)
	c, err := defaultChoice(l)
	if err != nil {
		t.Fatal(err)
	}
	if c.provider.MaxOutputTokens != 7 || c.provider.Abide.ReasoningEffort != "high" {
		t.Errorf("%+v", c.provider)
	}
	if diff := cmp.Diff(provider.Limits{Window: 2}, c.provider.Abide.Models["a.b"]); diff != "" {
		t.Errorf("what names the provider, too, does not go first: %s", diff)
	}
}

func TestKeysStayOutOfTheEnvironmentOfCommands(t *testing.T) {
	setenv(t, map[string]string{"OPENAI_API_KEY": "secret", "ANTHROPIC_AUTH_TOKEN": "secret", "MINE": "secret"})
	for _, name := range []string{"AZURE_OPENAI_API_KEY", "ABIDE_TOKEN", "ABIDE_WORKSPACE_TOKEN", "COPILOT_SDK_AUTH_TOKEN", "COPILOT_CONNECTION_TOKEN", "COPILOT_API_KEY"} {
		t.Setenv(name, "secret")
	}
	for _, entry := range environment(loaded(t, "providers.p.api_key_env='MINE'").Config) {
		if filepath.Base(entry) == "secret" || len(entry) > 7 && entry[len(entry)-7:] == "=secret" {
			t.Errorf("commands get %s", entry)
		}
	}
}

// TestEveryVendorIsAScheme holds the schemes that the configuration accepts against the
// table of wires.
func TestEveryVendorIsAScheme(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	type scheme struct{ Enum []string }
	var schema struct {
		Properties struct {
			Model     struct{ Properties struct{ Scheme scheme } }
			Providers struct {
				AdditionalProperties struct{ Properties struct{ Scheme scheme } }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	known := slices.Sorted(maps.Keys(vendors))
	of := schema.Properties.Providers.AdditionalProperties.Properties.Scheme.Enum
	if slices.Sort(of); !slices.Equal(of, known) {
		t.Errorf("providers.NAME.scheme is one of %q, and the table of wires has %q: correct the field in internal/config/config.go", of, known)
	}
	all := append(known, offline.Name, scripted.Name)
	own := schema.Properties.Model.Properties.Scheme.Enum
	slices.Sort(all)
	if slices.Sort(own); !slices.Equal(own, all) {
		t.Errorf("model.scheme is one of %q, want %q: correct the field in internal/config/config.go", own, all)
	}
}

// The token of a model endpoint is in a variable that whoever starts us names.
func TestATokenThatIsNamedStaysOutOfTheEnvironmentOfCommands(t *testing.T) {
	setenv(t, nil)
	t.Setenv("MY_AUTH", "secret")
	t.Setenv("MY_AUTH_TOO", "kept")
	a := &app{out: &printer{}, err: &printer{}}
	c, err := a.headlessConfig(&headlessFlags{home: t.TempDir(), logLevel: "error", tokenEnv: "MY_AUTH"})
	if err != nil {
		t.Fatal(err)
	}
	if env := c.Defaults.Env; slices.Contains(env, "MY_AUTH=secret") || !slices.Contains(env, "MY_AUTH_TOO=kept") {
		t.Errorf("commands get %q", env)
	}
}

func TestAnSDKThatSaysNothingGetsWhatIsConfigured(t *testing.T) {
	setenv(t, nil)
	home := t.TempDir()
	text := "model = {base_url = 'http://l', model_id = 'm'}\nstore.rest = '7s'\nworker.max_tokens = 5\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	configure := func(f headlessFlags) (rest time.Duration, model, url string, most int) {
		a := &app{out: &printer{}, err: &printer{}}
		f.home, f.logLevel = home, "error"
		c, err := a.headlessConfig(&f)
		if err != nil {
			t.Fatal(err)
		}
		return c.Rest, c.Defaults.Model, c.Defaults.Provider.BaseURL, c.Defaults.Provider.MaxOutputTokens
	}
	if rest, model, url, most := configure(headlessFlags{}); rest != 7*time.Second || model != "m" || url != "http://l" || most != 5 {
		t.Errorf("%v %q %q %d", rest, model, url, most)
	}
	if rest, model, _, _ := configure(headlessFlags{idle: 3, model: "other"}); rest != 3*time.Second || model != "other" {
		t.Errorf("flags do not count: %v %q", rest, model)
	}
	t.Setenv("COPILOT_API_URL", "http://c")
	if _, model, url, most := configure(headlessFlags{}); model != "" || url != "http://c" || most != 5 {
		t.Errorf("the endpoint of the SDK: %q at %q, %d", model, url, most)
	}
}
