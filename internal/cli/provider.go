package cli

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/scripted"
)

// vendors are the vendors that the configuration can name, by their schemes.
var vendors = func() map[string]remote.Vendor {
	all := make(map[string]remote.Vendor)
	for _, v := range daemon.Wires.Vendors() {
		all[v.Scheme] = v
	}
	return all
}()

// setVariable returns the name of the first environment variable of a vendor that is
// set; empty if there is none.
func setVariable(v remote.Vendor) string {
	for _, name := range []string{v.KeyEnv, v.TokenEnv, v.BaseEnv} {
		if name != "" && os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// A choice is a provider and a model, with the reason why they are used.
type choice struct {
	name     string             // name of the provider; empty for built-in models
	provider *provider.Provider // nil for built-in models
	model    string             // empty for the default model of the provider; without a provider, for the offline model
	why      string
}

// knownModel returns the name of the model; empty if only the provider knows it.
func (c choice) knownModel() string {
	if c.provider == nil {
		return cmp.Or(c.model, offline.Name)
	}
	return c.model
}

// defaultChoice returns the default provider and model of sessions: those of the
// configuration, or else those of the environment.
func defaultChoice(l *config.Loaded) (choice, error) {
	c, m := l.Config, l.Config.Model
	switch {
	case m.Scheme == offline.Name:
		return choice{model: offline.Name, why: from(l, "model.scheme")}, nil
	case m.Scheme == scripted.Name:
		path, err := filepath.Abs(m.ModelID) // the engine may have another working directory
		return choice{model: scripted.Name + ":" + path, why: from(l, "model.scheme")}, err
	case m.Scheme != "" || m.BaseURL != "" || m.APIKeyEnv != "" || m.APIKeyCommand != "":
		p, err := endpoint(m.Endpoint(), "model")
		name := cmp.Or(m.Scheme, provider.DefaultType)
		return choice{name, withModelSettings(p, c, name), m.ModelID, from(l, "model.model_id", "model.scheme", "model.base_url", "model.api_key_env", "model.api_key_command")}, err
	}
	usual, err := choiceFromEnvironment(c)
	if m.ModelID == "" || err != nil {
		return usual, err
	}
	usual.model, usual.why = m.ModelID, from(l, "model.model_id")
	found, ok, err := findProvider(c, usual, m.ModelID)
	if ok {
		found.why = usual.why
		return found, err
	}
	return usual, nil
}

// from returns the first of the keys that is set, with its source.
func from(l *config.Loaded, keys ...string) string {
	for _, key := range keys {
		if origin := l.Origins[key]; origin != "" {
			return key + " in " + origin
		}
	}
	return ""
}

// choiceFromEnvironment returns the choice that the environment variables make.
func choiceFromEnvironment(c config.Config) (choice, error) {
	for _, v := range daemon.Wires.Vendors() {
		variable := setVariable(v)
		if !v.Usual || variable == "" {
			continue
		}
		at := c.Model.Endpoint()
		at.Scheme = chosenScheme(v.Scheme)
		p, err := endpoint(at, "model")
		return choice{name: v.Scheme, provider: withModelSettings(p, c, v.Scheme), why: variable + " is set"}, err
	}
	if len(c.Providers) > 0 {
		return choice{why: "no key is set, and model.model_id names no model of [providers]"}, nil
	}
	return choice{why: "no provider is configured, and no key is set"}, nil
}

// findProvider returns the provider that a model name selects: with PROVIDER/MODEL, or
// with a name that only one vendor has. ok is false if the default provider is meant.
func findProvider(c config.Config, usual choice, name string) (found choice, ok bool, err error) {
	prefix, model, _ := strings.Cut(name, "/")
	p, ok := c.Providers[prefix]
	only := onlyVendor(name)
	switch {
	case ok && model != "":
	case model != "" && usual.isVendor(prefix):
		return choice{name: prefix, provider: usual.provider, model: model}, true, nil
	case model != "" && usual.usesVendor(prefix):
		p = config.Provider{Scheme: chosenScheme(prefix)}
	case only != "" && usual.usesVendor(only):
		prefix, model, p = only, name, config.Provider{Scheme: only}
	default:
		return choice{}, false, nil
	}
	at, err := endpoint(p, settingOf(prefix))
	return choice{name: prefix, provider: withModelSettings(at, c, prefix), model: model}, true, err
}

// onlyVendor returns the scheme of the vendor that alone has a model; empty if there is
// none.
func onlyVendor(model string) string {
	for _, v := range daemon.Wires.Vendors() {
		if v.Models != "" && strings.HasPrefix(model, v.Models) {
			return v.Scheme
		}
	}
	return ""
}

// usesVendor reports whether the models of another vendor are requested from that vendor:
// its variables must be set, and the default provider must be a vendor's own endpoint.
// Other endpoints have models of many vendors, with slashes in their names.
func (c choice) usesVendor(scheme string) bool {
	v, known := vendors[scheme]
	return known && scheme != c.name && setVariable(v) != "" && (c.provider == nil || ownEndpoint(c.provider))
}

// isVendor reports whether the default provider is a vendor's own endpoint, whose models have
// no slashes in their names.
func (c choice) isVendor(scheme string) bool {
	_, known := vendors[scheme]
	return known && scheme == c.name && c.provider != nil && ownEndpoint(c.provider)
}

// ownEndpoint reports whether an endpoint is a vendor's own.
func ownEndpoint(p *provider.Provider) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(vendors)), func(v remote.Vendor) bool { return v.URL == p.BaseURL })
}

// settingOf returns the table of a provider in the configuration.
func settingOf(name string) string { return "providers." + name }

// chosenScheme returns the scheme of a vendor that a variable or the name of a model has selected,
// for the configuration: that of the default is left out, because nobody has chosen its API.
func chosenScheme(scheme string) string {
	if scheme == provider.DefaultType {
		return ""
	}
	return scheme
}

// usualScheme returns the scheme of an endpoint if the configuration names none: the API that
// the models there need. An empty URL is that of the default.
func usualScheme(base string) string {
	v := vendors[provider.DefaultType]
	at, err := url.Parse(cmp.Or(strings.TrimSpace(base), strings.TrimSpace(os.Getenv(v.BaseEnv)), v.URL))
	if err != nil { // the wire says what is wrong with it
		return v.Scheme
	}
	api := profile.At(at.Host).API
	for _, other := range daemon.Wires.Vendors() {
		if api != "" && other.Type == v.Type && other.API == api {
			return other.Scheme
		}
	}
	return v.Scheme
}

// endpoint returns a provider of the configuration with its base URL, its headers, and its API
// key or the command that prints it. table is where it stands in the configuration.
func endpoint(p config.Provider, table string) (*provider.Provider, error) {
	p.Scheme = cmp.Or(p.Scheme, usualScheme(p.BaseURL))
	v := vendors[p.Scheme]
	p.BaseURL = cmp.Or(strings.TrimSpace(p.BaseURL), strings.TrimSpace(os.Getenv(v.BaseEnv)), v.URL)
	if p.BaseURL == "" {
		return nil, configError(fmt.Errorf("the %s provider has no endpoint: set base_url in the configuration, or %s", p.Scheme, v.BaseEnv))
	}
	headers, err := expandHeaders(p.Headers, table)
	if err != nil {
		return nil, err
	}
	found := &provider.Provider{Type: v.Type, WireAPI: v.API, BaseURL: p.BaseURL, Headers: headers,
		Azure: provider.Azure{APIVersion: p.APIVersion}, Abide: &provider.Settings{Profile: p.Profile, ExtraBody: p.ExtraBody, CacheTTL: p.CacheTTL}}
	switch {
	case p.APIKeyCommand != "" && p.APIKeyEnv != "":
		return nil, configError(fmt.Errorf("%s has both api_key_env and api_key_command: remove one of them", table))
	case p.APIKeyCommand != "":
		found.Abide.KeyCommand = &provider.KeyCommand{Command: p.APIKeyCommand, Setting: table + ".api_key_command"}
		return found, nil
	}
	found.APIKey = os.Getenv(cmp.Or(p.APIKeyEnv, v.KeyEnv))
	if found.APIKey == "" && p.APIKeyEnv == "" && v.TokenEnv != "" {
		found.BearerToken = os.Getenv(v.TokenEnv)
	}
	return found, nil
}

// expandHeaders returns headers with the values of the variables that they name.
func expandHeaders(headers map[string]string, table string) (map[string]string, error) {
	all := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, err := config.Expand(headers[name], os.Getenv)
		if err != nil {
			return nil, configError(fmt.Errorf("%s.headers.%s: %w", table, name, err))
		}
		all[name] = value
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// withModelSettings adds the configured settings of models to a provider.
func withModelSettings(p *provider.Provider, c config.Config, name string) *provider.Provider {
	if p != nil {
		p.MaxOutputTokens = c.Worker.MaxTokens
		if p.Abide == nil {
			p.Abide = new(provider.Settings)
		}
		p.Abide.ReasoningEffort, p.Abide.Models = c.Model.ReasoningEffort, limits(c, name)
	}
	return p
}

// limits returns the configured settings of the models of a provider, by model name.
// Settings for PROVIDER/MODEL win over those for MODEL.
func limits(c config.Config, name string) map[string]provider.Limits {
	known := make(map[string]provider.Limits, len(c.Models))
	for model, l := range c.Models {
		known[model] = provider.Limits(l)
	}
	for model, l := range c.Models {
		if own, ok := strings.CutPrefix(model, name+"/"); ok {
			known[own] = provider.Limits(l)
		}
	}
	return known
}

// copilotProvider returns the model endpoint that the environment of an SDK names, or
// nil. The token is in the variable tokenEnv, or in one of the usual ones.
func copilotProvider(tokenEnv string) *provider.Provider {
	url := os.Getenv("COPILOT_API_URL")
	if url == "" {
		return nil
	}
	p := &provider.Provider{Type: provider.DefaultType, BaseURL: url}
	for _, name := range append([]string{tokenEnv}, tokens...) {
		if p.BearerToken = os.Getenv(name); p.BearerToken != "" {
			break
		}
	}
	return p
}

// tokens are the environment variables in which SDKs pass a token.
var tokens = []string{"COPILOT_SDK_AUTH_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"}

// environment returns the environment of commands: all variables except those with API
// keys of models. Other secrets are the user's own, and commands may need them.
func environment(c config.Config) []string {
	secret := append(c.Model.Endpoint().Variables(), c.Model.APIKeyEnv)
	for v := range maps.Values(vendors) {
		secret = append(secret, v.KeyEnv, v.TokenEnv)
	}
	for p := range maps.Values(c.Providers) {
		secret = append(append(secret, p.Variables()...), p.APIKeyEnv)
	}
	for w := range maps.Values(c.Workspaces) {
		secret = append(secret, w.TokenEnv)
	}
	return withoutVariables(os.Environ(), c, func(name string) bool { return slices.Contains(secret, name) || isOwnSecret(name) })
}

// isOwnSecret reports whether a variable holds a secret of this program, or of the SDK
// that started it, judging by its name.
func isOwnSecret(name string) bool {
	if !strings.HasPrefix(name, "ABIDE_") && !strings.HasPrefix(name, "COPILOT_") {
		return false
	}
	return strings.Contains(name, "TOKEN") || strings.Contains(name, "KEY") || strings.Contains(name, "SECRET")
}

// withoutVariables removes variables from an environment, except those in
// commands.pass_env.
func withoutVariables(env []string, c config.Config, unwanted func(name string) bool) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return unwanted(name) && !slices.Contains(c.Commands.PassEnv, name)
	})
}
