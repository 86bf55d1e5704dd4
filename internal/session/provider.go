package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// defaultProvider is the name of a session's only provider.
const defaultProvider = "default"

// ErrLeft means that a client left before it could do what it was asked for.
var ErrLeft = errors.New("the client has left")

// resolveModel finds the model of a session and how it is reached: a client may have
// to make the requests, or give a token for each request.
func (s *Session) resolveModel(ctx context.Context, config event.SessionConfiguredData, name string) (Endpoint, error) {
	secret, err := s.usableKeys(ctx, config)
	if err != nil {
		return Endpoint{}, err
	}
	as, err := chooseModel(config, name, secret)
	if err != nil {
		return Endpoint{}, err
	}
	provider, err := tokenProvider(as.config.Provider)
	if err != nil {
		return Endpoint{}, err
	}
	through := config.ClientHTTP || s.clients.find(transports) != nil
	if through {
		ctx = model.WithTransport(ctx, clientTransport{s})
	}
	to, err := s.host.opts.Resolve(ctx, as.config, as.name, as.secret)
	if err != nil || (provider == "" && !through && !as.listed) {
		return to, err
	}
	to.Model = &reached{Model: to.Model, session: s, name: to.Name, provider: provider, through: through}
	if as.listed {
		to.Name = cmp.Or(name, to.Name)
	}
	return to, nil
}

// A reached model is a model whose requests need a client.
type reached struct {
	model.Model
	session  *Session
	name     string // the name that is sent to the provider
	provider string // the provider that needs a client's token for each request; empty if none does
	through  bool   // true if a client makes the requests
}

// Ask makes one attempt.
func (m *reached) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	own := *req
	own.Model = m.name
	if m.provider != "" {
		token, err := m.session.askToken(ctx, m.provider)
		if err != nil {
			return nil, err
		}
		own.Headers = maps.Clone(req.Headers)
		if own.Headers == nil {
			own.Headers = make(map[string]string)
		}
		own.Headers["Authorization"] = "Bearer " + token
	}
	if m.through {
		ctx = model.WithTransport(ctx, clientTransport{m.session})
	}
	return m.Model.Ask(ctx, &own, on)
}

// tokenProvider returns the name of a provider whose tokens come from a client; empty
// if they do not.
func tokenProvider(raw json.RawMessage) (string, error) {
	var p struct {
		Name  string `json:"name"`
		Asked bool   `json:"hasBearerTokenProvider"`
	}
	if raw == nil {
		return "", nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", fmt.Errorf("provider: %w", err)
	}
	if !p.Asked {
		return "", nil
	}
	return cmp.Or(p.Name, defaultProvider), nil
}

var errOtherProvider = errors.New("the session has another provider now")

// stopForOtherProvider stops requests under way if the resuming client brings other
// providers and clients give tokens for the present ones. Otherwise a request that
// waits for a token would get the token of another endpoint. The model is asked
// again.
func (tx *txn) stopForOtherProvider(to event.SessionConfiguredData) error {
	is, err := endpointsOf(tx.State.Setup.Config)
	if err != nil {
		return err
	}
	next, err := endpointsOf(to)
	if err != nil {
		return err
	}
	another := to.Provider != nil && tx.takesProvider(to.Provider) && next.own != is.own
	others := to.Providers != nil && !maps.Equal(next.named, is.named)
	if (another || others) && takesTokens(tx.State.Setup.Config) {
		tx.s.asking.stop(errOtherProvider)
		tx.s.compacting.stop(errOtherProvider)
	}
	return nil
}

// takesTokens reports whether a provider of the session needs tokens from a client.
func takesTokens(config event.SessionConfiguredData) bool {
	var listed []json.RawMessage
	if config.Providers != nil && json.Unmarshal(config.Providers, &listed) != nil {
		return false
	}
	return slices.ContainsFunc(append(listed, config.Provider), func(p json.RawMessage) bool {
		name, err := tokenProvider(p)
		return name != "" && err == nil
	})
}

// A choice is a model with its provider.
type choice struct {
	config event.SessionConfiguredData // the configuration with the model's provider
	name   string                      // the name that the provider has for the model
	secret []byte                      // the keys of the provider
	listed bool                        // true if the session's client listed it
}

type members = map[string]json.RawMessage

// chooseModel finds a model among those that the session's client listed, and makes
// its provider that of the configuration. A model that is not listed has the
// session's own provider.
func chooseModel(config event.SessionConfiguredData, name string, secret []byte) (choice, error) {
	as := choice{config: config, name: name, secret: secret}
	if config.Models == nil || config.Providers == nil {
		return as, nil
	}
	var models, providers []members
	if err := errors.Join(json.Unmarshal(config.Models, &models), json.Unmarshal(config.Providers, &providers)); err != nil {
		return as, fmt.Errorf("providers: %w", err)
	}
	first := name == "" && config.Provider == nil
	i := slices.IndexFunc(models, func(m members) bool {
		return first || jsonString(m["provider"])+"/"+jsonString(m["id"]) == name
	})
	if i < 0 {
		return as, nil
	}
	owner := jsonString(models[i]["provider"])
	j := slices.IndexFunc(providers, func(p members) bool { return jsonString(p["name"]) == owner })
	if j < 0 {
		return as, &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("The model %s names the provider %q, which there is none of; add it to providers.", name, owner)}
	}
	own, err := providerFor(providers[j], models[i])
	if err != nil {
		return as, err
	}
	as.config.Provider, as.name, as.listed = own, jsonString(models[i]["id"]), true
	as.secret, err = secretOf(owner, secret)
	return as, err
}

// providerFor returns a provider with what one of its models says differently.
func providerFor(provider, m members) (json.RawMessage, error) {
	for _, name := range []string{"wireModel", "modelId", "maxPromptTokens", "maxOutputTokens"} {
		if v := m[name]; v != nil {
			provider[name] = v
		}
	}
	return json.Marshal(provider)
}

// secretOf returns the keys of one of a session's providers.
func secretOf(provider string, all []byte) ([]byte, error) {
	var kept struct {
		Named members `json:"named"`
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(all, &kept); err != nil {
		return nil, fmt.Errorf("providers' keys: %w", err)
	}
	return kept.Named[provider], nil
}

// jsonString decodes a JSON string; anything else is empty.
func jsonString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// askToken asks a client for a provider's token. If the client leaves before it
// answers, the next one is asked.
func (s *Session) askToken(ctx context.Context, provider string) (string, error) {
	lost := make(map[*Client]bool)
	for {
		c, err := s.clients.await(ctx, func(c *Client) bool { return tokens(c) && !lost[c] })
		if err != nil {
			return "", err
		}
		token, err := c.Token(ctx, s.id, provider)
		switch {
		case errors.Is(err, ErrLeft) && ctx.Err() == nil:
			lost[c] = true
			continue
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", &model.Error{Kind: model.KindAuth, Message: fmt.Sprintf("The client gave no token for the provider %s: %v", provider, err), Err: err}
		case token == "":
			return "", &model.Error{Kind: model.KindAuth, Message: fmt.Sprintf("The client gave an empty token for the provider %s.", provider)}
		}
		return token, nil
	}
}

// clientTransport lets a client make HTTP requests.
type clientTransport struct{ session *Session }

// RoundTrip makes one request.
func (t clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.session.clients.await(req.Context(), transports)
	if err != nil {
		return nil, err
	}
	return c.Transport.RoundTrip(req)
}
