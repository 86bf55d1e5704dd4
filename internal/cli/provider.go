package cli

import (
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
	base       string // the variable that names another endpoint
	url        string // the vendor's own
}

var vendors = map[string]vendor{
	"openai":    {"openai", "", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"},
	"responses": {"openai", "responses", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"},
	"anthropic": {"anthropic", "", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"},
	"azure":     {"azure", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_API_ENDPOINT", ""},
}

// chosen is the endpoint and the model that sessions use unless they name
// others: what the configuration says, else what the environment does.
func chosen(c config.Config) (*api.Provider, string, error) {
	m := c.Model
	if name, model, ok := strings.Cut(m.ModelID, "/"); ok && m.Scheme == "" {
		if p, known := c.Providers[name]; known {
			provider, err := endpoint(p)
			return provider, model, err
		}
	}
	switch m.Scheme {
	case "":
		return provider(), m.ModelID, nil
	case offline.Name:
		return nil, offline.Name, nil
	case scripted.Name:
		path, err := filepath.Abs(m.ModelID) // the engine may be elsewhere
		return nil, scripted.Name + ":" + path, err
	}
	p, err := endpoint(config.Provider{Scheme: m.Scheme, BaseURL: m.BaseURL, APIKeyEnv: m.APIKeyEnv})
	return p, m.ModelID, err
}

// endpoint is a provider of the configuration with its key.
func endpoint(p config.Provider) (*api.Provider, error) {
	if p.Scheme == "" {
		p.Scheme = "openai"
	}
	v := vendors[p.Scheme]
	for _, url := range []string{os.Getenv(v.base), v.url} {
		if p.BaseURL == "" {
			p.BaseURL = url
		}
	}
	if p.BaseURL == "" {
		return nil, configError(fmt.Errorf("the %s provider has no endpoint: set base_url in the configuration, or %s", p.Scheme, v.base))
	}
	if p.APIKeyEnv == "" {
		p.APIKeyEnv = v.key
	}
	return &api.Provider{Type: v.kind, WireAPI: v.wire, BaseURL: p.BaseURL, APIKey: os.Getenv(p.APIKeyEnv), Headers: p.Headers,
		Azure: api.AzureProvider{APIVersion: p.APIVersion}}, nil
}

// provider is the model endpoint that the environment names, or nil. OpenAI's
// variables go before Anthropic's: they also name every compatible endpoint.
func provider() *api.Provider {
	for _, scheme := range []string{"openai", "anthropic"} {
		v := vendors[scheme]
		if os.Getenv(v.key) == "" && os.Getenv(v.base) == "" {
			continue
		}
		if p, err := endpoint(config.Provider{Scheme: scheme}); err == nil { // both have endpoints of their own
			return p
		}
	}
	return nil
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
// that hold keys of ours.
func environment(c config.Config) []string {
	secret := []string{"COPILOT_SDK_AUTH_TOKEN", "COPILOT_CONNECTION_TOKEN", "ABIDE_TOKEN", c.Model.APIKeyEnv}
	for v := range maps.Values(vendors) {
		secret = append(secret, v.key)
	}
	for p := range maps.Values(c.Providers) {
		secret = append(secret, p.APIKeyEnv)
	}
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(secret, name)
	})
}
