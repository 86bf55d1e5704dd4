package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/scripted"
)

// A vendor is what is usual for a wire.
type vendor struct {
	kind, wire string // as the protocol calls them
	key        string // the variable that holds the key
	token      string // the variable that holds a bearer token instead
	base       string // the variable that names another endpoint
	url        string // the vendor's own
}

var vendors = map[string]vendor{
	"openai":    {"openai", "", "OPENAI_API_KEY", "", "OPENAI_BASE_URL", "https://api.openai.com/v1"},
	"responses": {"openai", "responses", "OPENAI_API_KEY", "", "OPENAI_BASE_URL", "https://api.openai.com/v1"},
	"anthropic": {"anthropic", "", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"},
	"azure":     {"azure", "", "AZURE_OPENAI_API_KEY", "", "AZURE_OPENAI_API_ENDPOINT", ""},
}

// vendorsByEnvironment are the vendors whose variables alone make a provider, in the order in
// which they are chosen. OpenAI's go first: they also name every compatible
// endpoint.
var vendorsByEnvironment = []string{"openai", "anthropic"}

// set is the variable that says that the vendor is to be used; empty if none
// does.
func (v vendor) set() string {
	for _, name := range []string{v.key, v.token, v.base} {
		if name != "" && os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// A choice is who answers, and why.
type choice struct {
	name     string        // of the provider; empty for the models that ship with us
	provider *api.Provider // nil for them
	model    string        // if empty, the first that the provider lists; without a provider, the offline one
	why      string
}

// knownModel is the model, if it is known without asking the provider.
func (c choice) knownModel() string {
	if c.provider == nil {
		return cmp.Or(c.model, offline.Name)
	}
	return c.model
}

// defaultChoice is who answers in sessions that name nobody else: what the
// configuration says, else what the environment does.
func defaultChoice(l *config.Loaded) (choice, error) {
	c, m := l.Config, l.Config.Model
	switch {
	case m.Scheme == offline.Name:
		return choice{model: offline.Name, why: from(l, "model.scheme")}, nil
	case m.Scheme == scripted.Name:
		path, err := filepath.Abs(m.ModelID) // the engine may be elsewhere
		return choice{model: scripted.Name + ":" + path, why: from(l, "model.scheme")}, err
	case m.Scheme != "" || m.BaseURL != "" || m.APIKeyEnv != "":
		p, err := endpoint(config.Provider{Scheme: m.Scheme, BaseURL: m.BaseURL, APIKeyEnv: m.APIKeyEnv})
		name := cmp.Or(m.Scheme, "openai")
		return choice{name, withModelSettings(p, c, name), m.ModelID, from(l, "model.model_id", "model.scheme", "model.base_url", "model.api_key_env")}, err
	}
	usual := choiceFromEnvironment(c)
	if m.ModelID == "" {
		return usual, nil
	}
	usual.model, usual.why = m.ModelID, from(l, "model.model_id")
	found, ok, err := findProvider(c, usual, m.ModelID)
	if ok {
		found.why = usual.why
		return found, err
	}
	return usual, nil
}

// from says which of the keys is set, and where.
func from(l *config.Loaded, keys ...string) string {
	for _, key := range keys {
		if origin := l.Origins[key]; origin != "" {
			return key + " in " + origin
		}
	}
	return ""
}

// choiceFromEnvironment is what the environment names.
func choiceFromEnvironment(c config.Config) choice {
	for _, scheme := range vendorsByEnvironment {
		v := vendors[scheme]
		variable := v.set()
		if variable == "" {
			continue
		}
		if p, err := endpoint(config.Provider{Scheme: scheme}); err == nil { // all have endpoints of their own
			return choice{name: scheme, provider: withModelSettings(p, c, scheme), why: variable + " is set"}
		}
	}
	return choice{why: "no provider is configured, and no key is set"}
}

// findProvider finds a model by the name that people give it, if it is not one of
// the provider that is used anyway: PROVIDER/MODEL, or what only one vendor has.
func findProvider(c config.Config, usual choice, name string) (found choice, ok bool, err error) {
	prefix, model, _ := strings.Cut(name, "/")
	p, ok := c.Providers[prefix]
	switch {
	case ok && model != "":
	case model != "" && usual.usesVendor(prefix):
		p = config.Provider{Scheme: prefix}
	case strings.HasPrefix(name, "claude") && usual.usesVendor("anthropic"):
		prefix, model, p = "anthropic", name, config.Provider{Scheme: "anthropic"}
	default:
		return choice{}, false, nil
	}
	at, err := endpoint(p)
	return choice{name: prefix, provider: withModelSettings(at, c, prefix), model: model}, true, err
}

// usesVendor reports whether models of another vendor are asked for there: if its
// variables are set, and the provider that is used anyway is a vendor's own.
// Others have names with slashes for models of everybody.
func (c choice) usesVendor(scheme string) bool {
	v, known := vendors[scheme]
	return known && scheme != c.name && v.set() != "" && (c.provider == nil || ownEndpoint(c.provider))
}

// ownEndpoint reports whether an endpoint is a vendor's own.
func ownEndpoint(p *api.Provider) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(vendors)), func(v vendor) bool { return v.url == p.BaseURL })
}

// endpoint is a provider of the configuration with its key.
func endpoint(p config.Provider) (*api.Provider, error) {
	p.Scheme = cmp.Or(p.Scheme, "openai")
	v := vendors[p.Scheme]
	p.BaseURL = cmp.Or(p.BaseURL, os.Getenv(v.base), v.url)
	if p.BaseURL == "" {
		return nil, configError(fmt.Errorf("the %s provider has no endpoint: set base_url in the configuration, or %s", p.Scheme, v.base))
	}
	found := &api.Provider{Type: v.kind, WireAPI: v.wire, BaseURL: p.BaseURL, APIKey: os.Getenv(cmp.Or(p.APIKeyEnv, v.key)), Headers: p.Headers,
		Azure: api.AzureProvider{APIVersion: p.APIVersion}}
	if found.APIKey == "" && p.APIKeyEnv == "" && v.token != "" {
		found.BearerToken = os.Getenv(v.token)
	}
	return found, nil
}

// withModelSettings adds to a provider what is written down about its models.
func withModelSettings(p *api.Provider, c config.Config, name string) *api.Provider {
	if p != nil {
		p.MaxOutputTokens = c.Worker.MaxTokens
		p.Abide = &api.ProviderAbide{ReasoningEffort: c.Model.ReasoningEffort, Models: limits(c, name)}
	}
	return p
}

// limits is what is written down about the models of a provider, by the names
// that it has for them. What names the provider, too, goes first.
func limits(c config.Config, name string) map[string]api.ModelLimits {
	known := make(map[string]api.ModelLimits, len(c.Models))
	for model, l := range c.Models {
		known[model] = api.ModelLimits(l)
	}
	for model, l := range c.Models {
		if own, ok := strings.CutPrefix(model, name+"/"); ok {
			known[own] = api.ModelLimits(l)
		}
	}
	return known
}

// copilotProvider is the model endpoint that an SDK's environment names, or nil.
// The token is in the named variable, or in one of those that SDKs fall back to.
func copilotProvider(tokenEnv string) *api.Provider {
	url := os.Getenv("COPILOT_API_URL")
	if url == "" {
		return nil
	}
	p := &api.Provider{Type: "openai", BaseURL: url}
	for _, name := range append([]string{tokenEnv}, tokens...) {
		if p.BearerToken = os.Getenv(name); p.BearerToken != "" {
			break
		}
	}
	return p
}

// tokens are the variables that SDKs pass a token in.
var tokens = []string{"COPILOT_SDK_AUTH_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"}

// environment is what commands of a session get: everything but the variables
// that hold keys of ours. Keys of anything else are the user's, and commands may
// need them.
func environment(c config.Config) []string {
	secret := []string{c.Model.APIKeyEnv}
	for v := range maps.Values(vendors) {
		secret = append(secret, v.key, v.token)
	}
	for p := range maps.Values(c.Providers) {
		secret = append(secret, p.APIKeyEnv)
	}
	return withoutVariables(os.Environ(), c, func(name string) bool { return slices.Contains(secret, name) || isOwnSecret(name) })
}

// isOwnSecret reports whether a variable by its name holds a secret of this program
// or of the SDK that started it.
func isOwnSecret(name string) bool {
	if !strings.HasPrefix(name, "ABIDE_") && !strings.HasPrefix(name, "COPILOT_") {
		return false
	}
	return strings.Contains(name, "TOKEN") || strings.Contains(name, "KEY") || strings.Contains(name, "SECRET")
}

// withoutVariables removes variables from an environment, but for those that the
// settings pass on.
func withoutVariables(env []string, c config.Config, unwanted func(name string) bool) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return unwanted(name) && !slices.Contains(c.Commands.PassEnv, name)
	})
}
