package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/scripted"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/window"
)

// models finds the models that sessions name. It keeps the clients of providers, so
// that their connections are reused.
type models struct {
	version  string
	settings ModelSettings // settings of models for providers that clients bring along

	mu      sync.Mutex
	clients map[string]*remote.Client
	known   map[string]endpoint // by the provider, secret and client name of a session
}

// An endpoint is the decoded provider of a session, with its client.
type endpoint struct {
	api.Provider
	client *remote.Client
}

// resolve finds the model of a session: a built-in one, or one of the session's
// provider.
func (m *models) resolve(ctx context.Context, config event.SessionConfiguredData, name string, secret []byte) (session.Endpoint, error) {
	if scenario, ok := strings.CutPrefix(name, scripted.Name+":"); ok {
		played, err := scripted.Load(scenario)
		return session.Endpoint{Model: played, Name: name}, err
	}
	switch {
	case name == offline.Name, name == "" && config.Provider == nil:
		return session.Endpoint{Model: offline.Model{}, Name: offline.Name}, nil
	case name == scripted.Name:
		return session.Endpoint{}, unknown("The scripted model needs a scenario: name it as scripted:FILE, or use --scenario FILE.")
	case config.Provider == nil:
		return session.Endpoint{}, unknown("There is no model named %q here, because no provider is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY, or OPENAI_BASE_URL for any compatible server, or use the model %q, which needs none; abide models lists what there is.", name, offline.Name)
	}
	return m.provided(ctx, config, name, secret)
}

// provided finds a model of the session's provider.
func (m *models) provided(ctx context.Context, config event.SessionConfiguredData, name string, secret []byte) (session.Endpoint, error) {
	to, err := m.endpoint(config, secret)
	if err != nil {
		return session.Endpoint{}, err
	}
	p, client := to.Provider, to.client
	name = cmp.Or(p.WireModel, p.ModelID, name)
	if name == "" {
		if name, err = client.FirstModel(ctx); err != nil {
			return session.Endpoint{}, err
		}
	}
	p = withWindow(m.settings.on(p), name, client.Window(name))
	limits := window.LimitsOf(Capabilities(p, name), p.MaxOutputTokens)
	return session.Endpoint{Model: configure(client, p, name), Name: name, Blind: blind(p, name), Window: limits.Window, Output: limits.Output}, nil
}

// endpoint decodes the provider of a session. Every turn needs it, so it is cached.
func (m *models) endpoint(config event.SessionConfiguredData, secret []byte) (endpoint, error) {
	key := strings.Join([]string{string(config.Provider), string(secret), config.ClientName}, "\n")
	m.mu.Lock()
	to, ok := m.known[key]
	m.mu.Unlock()
	if ok {
		return to, nil
	}
	if err := json.Unmarshal(config.Provider, &to.Provider); err != nil {
		return endpoint{}, fmt.Errorf("provider: %w", err)
	}
	var s api.ProviderSecret
	if len(secret) > 0 {
		if err := json.Unmarshal(secret, &s); err != nil {
			return endpoint{}, fmt.Errorf("provider's key: %w", err)
		}
	}
	var err error
	if to.client, err = m.client(to.Provider, s, config.ClientName); err != nil {
		return endpoint{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxClients {
		m.known = make(map[string]endpoint)
	}
	m.known[key] = to
	return to, nil
}

// client returns the client of an endpoint.
func (m *models) client(p api.Provider, s api.ProviderSecret, clientName string) (*remote.Client, error) {
	open, err := wire(p)
	if err != nil {
		return nil, err
	}
	key, _ := json.Marshal([]any{p.Type, p.WireAPI, p.BaseURL, p.Azure, s, clientName}) // plain data
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.clients[string(key)]; c != nil {
		return c, nil
	}
	agent := "abide/" + m.version
	if clientName != "" {
		agent = clientName + " " + agent
	}
	c := open(remoteConfig(p, s, agent))
	if len(m.clients) >= maxClients {
		clear(m.clients)
	}
	m.clients[string(key)] = c
	return c, nil
}

// wire returns the constructor of clients for the API that a provider speaks.
func wire(p api.Provider) (func(remote.Config) *remote.Client, error) {
	switch kind := p.Type; {
	case kind == "anthropic":
		return anthropic.New, nil
	case kind != "" && kind != "openai" && kind != "azure":
		return nil, unknown("The provider type %q is unknown; use openai, which also fits every compatible endpoint, azure or anthropic.", kind)
	case p.WireAPI == "responses":
		return responses.New, nil
	case p.WireAPI != "" && p.WireAPI != "completions":
		return nil, unknown("The wire %q is unknown; use completions or responses.", p.WireAPI)
	}
	return openai.New, nil
}

// maxClients is the maximum number of endpoints that are cached.
const maxClients = 256

// list returns the models for a client: those of the provider, if there is one, and the
// offline model.
func (m *models) list(ctx context.Context, p *api.Provider, transport http.RoundTripper) ([]api.Model, error) {
	own := shown(offline.Name, "Offline (needs no key)", model.Capabilities{Window: 128000})
	if p == nil {
		return []api.Model{own}, nil
	}
	client, err := m.client(*p, api.ProviderSecret{APIKey: p.APIKey, BearerToken: p.BearerToken, Headers: p.Headers}, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, surveyTimeout, timeoutError(*p))
	defer cancel()
	if transport != nil {
		ctx = model.WithTransport(ctx, transport)
	}
	names, err := client.Models(ctx)
	if err != nil {
		return nil, err
	}
	known := m.settings.on(*p)
	var list []api.Model
	for _, name := range names {
		can := Capabilities(known, name)
		can.Vision = !blind(known, name)
		list = append(list, shown(name, name, can))
	}
	return append(list, own), nil
}

// shown returns a model as clients see it.
func shown(id, name string, can model.Capabilities) api.Model {
	var c struct {
		Supports struct {
			Vision          bool `json:"vision"`
			ReasoningEffort bool `json:"reasoningEffort"`
		} `json:"supports"`
		Limits struct {
			Window int `json:"max_context_window_tokens"`
			Output int `json:"max_output_tokens,omitempty"`
		} `json:"limits"`
	}
	c.Supports.Vision, c.Supports.ReasoningEffort = can.Vision, can.Reasoning
	c.Limits.Window, c.Limits.Output = can.Window, can.MaxOutput
	capable, _ := json.Marshal(c) // plain data
	return api.Model{ID: id, Name: name, Capabilities: capable}
}
