package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
)

// tokenEndpoints returns the endpoints of the providers that a client gives tokens for.
func tokenEndpoints(p api.OpenParams) map[string]string {
	return provider.Set{Own: p.Provider, Listed: p.Providers}.TokenEndpoints()
}

// ownProvider returns a client's own provider as it is recorded.
func ownProvider(p provider.Provider) (*provider.Provider, error) {
	if p.BaseURL == "" {
		return nil, errBadParams{errors.New("provider.baseUrl: it is empty")}
	}
	p = p.WithoutUnknown()
	return &p, nil
}

// addListed adds a client's list of providers and models to a set. What has the same
// name is replaced.
func addListed(to *provider.Set, providers []provider.Provider, models []provider.Model) error {
	listed, offered := slices.Clone(providers), slices.Clone(models)
	for i := range listed {
		listed[i] = listed[i].WithoutUnknown()
	}
	for i := range offered {
		offered[i] = offered[i].WithoutUnknown()
	}
	for _, had := range to.Listed {
		if !slices.ContainsFunc(providers, func(p provider.Provider) bool { return p.Name == had.Name }) {
			listed = append(listed, had)
		}
	}
	for _, had := range to.Models {
		if !slices.ContainsFunc(models, func(m provider.Model) bool { return m.ID == had.ID && m.Provider == had.Provider }) {
			offered = append(offered, had)
		}
	}
	to.Listed, to.Models = listed, offered
	return checkListed(*to)
}

// checkListed checks that listed providers and models can be told apart and found.
func checkListed(set provider.Set) error {
	known := make(map[string]bool)
	for i, p := range set.Listed {
		switch {
		case p.Name == "":
			return errBadParams{fmt.Errorf("providers[%d].name: it is empty", i)}
		case p.BaseURL == "":
			return errBadParams{fmt.Errorf("providers[%d].baseUrl: it is empty", i)}
		case known[p.Name]:
			return errBadParams{fmt.Errorf("providers[%d].name: there is another %q", i, p.Name)}
		}
		known[p.Name] = true
	}
	for i, m := range set.Models {
		if !known[m.Provider] || m.ID == "" {
			return errBadParams{fmt.Errorf("models[%d]: it needs an id and one of the providers", i)}
		}
	}
	return nil
}

// changeProviders changes the providers of a session. From then on, this client is asked
// for the tokens of the providers that it brings.
func (c *conn) changeProviders(ctx context.Context, id event.SessionID, brought provider.Set, change func(*provider.Set) error) error {
	if err := c.server.host.Settings.ChangeProviders(ctx, id, change); err != nil {
		return err
	}
	if client, endpoints := c.clientOf(id), brought.TokenEndpoints(); client != nil && len(endpoints) > 0 {
		c.server.host.Clients.AddTokens(id, client, endpoints, c.token)
	}
	return nil
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
