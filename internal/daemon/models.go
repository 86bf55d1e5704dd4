package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/scripted"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/window"
)

// models finds the models that sessions name. It keeps the clients of providers, so
// that their connections are reused.
type models struct {
	version  string
	settings ModelSettings // settings of models for providers that clients bring along
	keys     keys          // keys that commands have printed

	mu      sync.Mutex
	clients map[string]*remote.Client // clients by appendClientKey
}

// resolve finds the model of a session: a built-in one, or one of the session's
// provider.
func (m *models) resolve(ctx context.Context, as provider.Choice) (session.Endpoint, error) {
	name := as.Model
	if scenario, ok := strings.CutPrefix(name, scripted.Name+":"); ok {
		played, err := scripted.Load(scenario)
		return session.Endpoint{Model: played, Name: name, Price: &model.Price{}}, err
	}
	switch {
	case name == offline.Name, name == "" && as.Provider == nil:
		return session.Endpoint{Model: offline.Model{}, Name: offline.Name, Price: &model.Price{}}, nil
	case name == scripted.Name:
		return session.Endpoint{}, unknown("The scripted model needs a scenario: name it as scripted:FILE, or use --scenario FILE.")
	case as.Provider == nil:
		return session.Endpoint{}, unknown("There is no model named %q here, because no provider is configured for it: name a model of [providers] as NAME/MODEL, set OPENAI_API_KEY, ANTHROPIC_API_KEY, or OPENAI_BASE_URL for any compatible server, or use the model %q, which needs none; abide models lists what there is.", name, offline.Name)
	}
	return m.provided(ctx, *as.Provider, name, as.Client)
}

// provided finds a model of a provider. If a command prints the provider's key and the key is
// not accepted, the command is run once more.
func (m *models) provided(ctx context.Context, p provider.Provider, name, clientName string) (session.Endpoint, error) {
	if p.KeyCommand() == nil {
		return m.withKey(ctx, p, name, clientName)
	}
	keyed, err := m.keys.withKey(ctx, p, "")
	if err != nil {
		return session.Endpoint{}, err
	}
	renew := func(ctx context.Context, name string) (session.Endpoint, error) {
		other, err := m.keys.withKey(ctx, p, keyed.APIKey)
		if err != nil {
			return session.Endpoint{}, err
		}
		return m.withKey(ctx, other, name, clientName)
	}
	to, err := m.withKey(ctx, keyed, name, clientName)
	if isRefusedKey(err) { // it has no name, and the provider was asked for one
		return renew(ctx, name)
	}
	to.Model = keyedModel{to.Model, func(ctx context.Context) (model.Model, error) {
		again, err := renew(ctx, to.Name)
		return again.Model, err
	}}
	return to, err
}

// withKey finds a model of a provider that has its key.
func (m *models) withKey(ctx context.Context, p provider.Provider, name, clientName string) (session.Endpoint, error) {
	client, err := m.client(p, clientName)
	if err != nil {
		return session.Endpoint{}, err
	}
	name = cmp.Or(p.WireModel, p.ModelID, name)
	if name == "" {
		if name, _, err = client.DefaultModel(ctx); err != nil {
			return session.Endpoint{}, err
		}
	}
	p = m.settings.on(p)
	p = withWindow(p, name, findWindow(ctx, client, p, name))
	can := Capabilities(p, name)
	limits := window.LimitsOf(can, p.MaxOutputTokens)
	to := session.Endpoint{Model: configure(client, p, name), Name: name, Blind: blind(p, name), Window: limits.Window, Output: limits.Output, Price: can.Price}
	if can.Known {
		to.Longest = can.MaxOutput
	}
	to.Unread = !client.ReadsDocuments(name, &can)
	return to, nil
}

// findWindow returns the window that a provider says a model has. It is not asked if the
// window is configured, or if a client makes its requests or gives tokens for them: that
// client would not know what to do with a question of ours.
func findWindow(ctx context.Context, c *remote.Client, p provider.Provider, name string) int {
	if p.Abide.Models[name].Window > 0 || p.MaxPromptTokens > 0 || p.HasToken || model.Transport(ctx) != nil {
		return c.Window(name)
	}
	return c.FindWindow(ctx, name)
}

// client returns the client of an endpoint.
func (m *models) client(p provider.Provider, clientName string) (*remote.Client, error) {
	wire, err := Wires.Find(p.Type, p.WireAPI)
	if err != nil {
		return nil, err
	}
	key := appendClientKey(make([]byte, 0, 512), p, clientName)
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.clients[string(key)]; c != nil {
		return c, nil
	}
	agent := "abide/" + m.version
	if clientName != "" {
		agent = clientName + " " + agent
	}
	how := remoteConfig(p, agent)
	how.IdleTimeout = m.settings.Silence
	c := wire.New(how)
	if len(m.clients) >= maxClients {
		clear(m.clients)
	}
	m.clients[string(key)] = c
	return c, nil
}

// appendClientKey appends a text of everything that a client is made of. The parts are
// quoted, so that different clients have different keys.
func appendClientKey(key []byte, p provider.Provider, clientName string) []byte {
	for _, part := range [...]string{p.Type, p.WireAPI, p.BaseURL, p.Azure.APIVersion, p.APIKey, p.BearerToken, clientName} {
		key = strconv.AppendQuote(key, part)
	}
	if p.Abide != nil {
		for _, part := range [...]string{p.Abide.Profile, p.Abide.ExtraBody, p.Abide.CacheTTL} {
			key = strconv.AppendQuote(key, part)
		}
	}
	if len(p.Headers) == 0 {
		return key
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		key = strconv.AppendQuote(strconv.AppendQuote(key, name), p.Headers[name])
	}
	return key
}

// maxClients is the maximum number of clients that are cached.
const maxClients = 256

// list returns the models for a client: those of the provider, if there is one, and the
// offline model.
func (m *models) list(ctx context.Context, p *provider.Provider, transport http.RoundTripper) ([]api.Model, error) {
	own := shown(offline.Name, "Offline (needs no key)", model.Capabilities{Window: 128000})
	if p == nil {
		return []api.Model{own}, nil
	}
	keyed, err := m.keys.withKey(ctx, *p, "")
	if err != nil {
		return nil, err
	}
	client, err := m.client(keyed, "")
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
