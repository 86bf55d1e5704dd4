package rpc

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// givesTokens reports whether a client has tokens to give for its providers.
func givesTokens(p api.OpenParams) bool {
	return (p.Provider != nil && p.Provider.HasToken) || slices.ContainsFunc(p.Providers, func(p api.Provider) bool { return p.HasToken })
}

// providers takes a client's list of endpoints and models: what is secret is kept
// apart.
func providers(s *session.Spec, p api.OpenParams) error {
	if p.Providers == nil && p.Models == nil {
		return nil
	}
	var secret api.ProviderSecret
	if s.Provider != nil {
		if err := json.Unmarshal(s.Provider, &secret); err != nil {
			return err
		}
	}
	secret.Named = make(map[string]api.ProviderSecret)
	open := slices.Clone(p.Providers)
	for i := range open {
		o := &open[i]
		switch {
		case o.Name == "":
			return errBadParams{fmt.Errorf("providers[%d].name: it is empty", i)}
		case o.BaseURL == "":
			return errBadParams{fmt.Errorf("providers[%d].baseUrl: it is empty", i)}
		}
		if _, twice := secret.Named[o.Name]; twice {
			return errBadParams{fmt.Errorf("providers[%d].name: there is another %q", i, o.Name)}
		}
		secret.Named[o.Name] = api.ProviderSecret{APIKey: o.APIKey, BearerToken: o.BearerToken, Headers: o.Headers}
		o.APIKey, o.BearerToken, o.Headers = "", "", nil
	}
	for i, m := range p.Models {
		if _, known := secret.Named[m.Provider]; !known || m.ID == "" {
			return errBadParams{fmt.Errorf("models[%d]: it needs an id and one of the providers", i)}
		}
	}
	var err error
	if s.Config.Providers, err = json.Marshal(open); err != nil {
		return err
	}
	if s.Config.Models, err = json.Marshal(p.Models); err != nil {
		return err
	}
	s.Provider, err = json.Marshal(secret)
	return err
}

// clientOf returns this connection as a client of a session, or nil if it is not
// attached.
func (c *conn) clientOf(id event.SessionID) *session.Client {
	if a := c.attachedTo(id); a != nil {
		return a.client
	}
	return nil
}

func (c *conn) attachedTo(id event.SessionID) *attached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}
