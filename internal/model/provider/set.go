package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// A Set is the providers and models of a session.
type Set struct {
	Own    *Provider  // the provider of models that are not listed; nil if there is none
	Listed []Provider // the providers of the models that are listed
	Models []Model    // the models that are listed; they are selected as "provider/id"

	client string // name of the session's client
}

// Of returns the providers of a configuration, without keys. It fails only if a list
// is none: what is wrong with one provider or model is reported by its use.
func Of(config *event.SessionConfiguredData) (Set, error) {
	s := Set{Own: Stored(config.Provider), client: config.ClientName}
	var providers, models []json.RawMessage
	if err := decodeList("providers", config.Providers, &providers); err != nil {
		return s, err
	}
	if err := decodeList("models", config.Models, &models); err != nil {
		return s, err
	}
	if providers != nil {
		s.Listed = make([]Provider, len(providers))
	}
	for i, raw := range providers {
		s.Listed[i].read(fmt.Sprintf("providers[%d]", i), raw)
	}
	if models != nil {
		s.Models = make([]Model, len(models))
	}
	for i, raw := range models {
		m := &s.Models[i]
		if err := m.UnmarshalJSON(raw); err != nil {
			m.rest = rest{err: fieldError(fmt.Sprintf("models[%d]", i), err), stored: raw}
		}
	}
	return s, nil
}

// SameIn reports whether two configurations have the same providers.
func SameIn(a, b *event.SessionConfiguredData) bool {
	return a.ClientName == b.ClientName && bytes.Equal(a.Provider, b.Provider) &&
		bytes.Equal(a.Providers, b.Providers) && bytes.Equal(a.Models, b.Models)
}

func decodeList(name string, raw json.RawMessage, list *[]json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, list); err != nil {
		return fieldError(name, err)
	}
	return nil
}

// Stored returns the provider of a configuration, without keys; nil if there is none.
// If it cannot be read, Err says why, and only the fields that are right are set.
func Stored(raw json.RawMessage) *Provider {
	if raw == nil {
		return nil
	}
	p := new(Provider)
	p.read("provider", raw)
	return p
}

// read decodes a stored provider. It ignores keys: those of a session are stored
// elsewhere. A base URL with a password or a query is one that an older version has stored: it
// is used as it is, until a client gives it again.
func (p *Provider) read(name string, raw json.RawMessage) {
	if err := p.UnmarshalJSON(raw); err != nil {
		p.rest = rest{err: fieldError(name, err), stored: raw}
	}
	base := p.BaseURL
	p.takeSecret()
	p.BaseURL = base
}

// Record puts the providers into a configuration, and returns their keys. It leaves
// the lists of the configuration as they are if the set has none, and likewise its own
// provider. The keys are nil if nothing was put.
func (s Set) Record(into *event.SessionConfiguredData) (keys *Keys, err error) {
	if s.Own == nil && s.Listed == nil && s.Models == nil {
		return nil, nil
	}
	keys = &Keys{}
	if s.Own != nil {
		own := *s.Own
		keys.Own = own.takeSecret()
		if into.Provider, err = own.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	if s.Listed == nil && s.Models == nil {
		return keys, nil
	}
	keys.Named = make(map[string]*Secret)
	listed := slices.Clone(s.Listed)
	for i := range listed {
		keys.Named[listed[i].Name] = listed[i].takeSecret()
	}
	if into.Providers, err = encodeList(listed); err != nil {
		return nil, err
	}
	into.Models, err = encodeList(s.Models)
	return keys, err
}

// WithKeys returns the providers with those of the keys that are for their endpoints.
// If two listed providers have one name, each is given the key only if it is for its
// own endpoint.
func (s Set) WithKeys(k *Keys) Set {
	bound := k.Bind(s)
	if s.Own != nil {
		own := *s.Own
		own.addSecret(bound.Own)
		s.Own = &own
	}
	s.Listed = slices.Clone(s.Listed)
	for i := range s.Listed {
		s.Listed[i].addSecret(bound.Named[s.Listed[i].Name])
	}
	return s
}

// endpoints returns the endpoints of the listed providers by their names.
func (s Set) endpoints() map[string]string {
	all := make(map[string]string, len(s.Listed))
	for i := range s.Listed {
		all[s.Listed[i].Name] = s.Listed[i].Endpoint()
	}
	return all
}

// SameListed reports whether two sets list providers of the same names with the same
// endpoints.
func (s Set) SameListed(t Set) bool { return maps.Equal(s.endpoints(), t.endpoints()) }

// MovesTokens reports whether a provider that needs tokens from a client is not at the
// same endpoint in the next set.
func (s Set) MovesTokens(next Set) bool {
	if s.Own.TokenName() != "" && s.Own.Endpoint() != next.Own.Endpoint() {
		return true
	}
	at := next.endpoints()
	return slices.ContainsFunc(s.Listed, func(p Provider) bool { return p.HasToken && p.Endpoint() != at[p.Name] })
}

// TokenEndpoints returns the endpoints of the providers that need tokens from a client,
// by the names under which the client is asked.
func (s Set) TokenEndpoints() map[string]string {
	all := make(map[string]string)
	for i := range s.Listed {
		if name := s.Listed[i].TokenName(); name != "" {
			all[name] = s.Listed[i].Endpoint()
		}
	}
	if name := s.Own.TokenName(); name != "" {
		all[name] = s.Own.Endpoint()
	}
	return all
}

// A Choice is a model with its provider.
type Choice struct {
	Model    string    // the name that the session has for the model; for a listed model, its id
	Provider *Provider // nil if there is none
	Client   string    // name of the session's client
	Listed   bool      // true if the model is listed
}

// Choose finds a model. A model that is not listed has the own provider of the set. An
// empty name is the first listed model if the set has no own provider.
func (s Set) Choose(name string) (Choice, error) {
	as := Choice{Model: name, Provider: s.Own, Client: s.client}
	if s.Listed == nil {
		return as, nil
	}
	first := name == "" && s.Own == nil
	i := slices.IndexFunc(s.Models, func(m Model) bool { return first || m.Provider+"/"+m.ID == name })
	if i < 0 {
		return as, nil
	}
	m := s.Models[i]
	j := slices.IndexFunc(s.Listed, func(p Provider) bool { return p.Name == m.Provider })
	if j < 0 {
		return as, &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("The model %s names the provider %q, which there is none of; add it to providers.", name, m.Provider)}
	}
	as.Model, as.Provider, as.Listed = m.ID, s.Listed[j].ForModel(m), true
	return as, nil
}
