package cli

import (
	"slices"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/event"
)

// terminalPatience is how long a turn waits for a model while a person watches, by
// default: that person can decide to go on waiting.
const terminalPatience = 10 * time.Minute

// outageRules converts the settings of outages.
func (a *app) outageRules(c config.Model) event.OutageRules {
	r := event.OutageRules{Fallback: slices.Clone(c.Fallback)}
	patience := c.Patience.Value()
	switch {
	case c.Patience != "":
	case terminal(a.in) != nil && terminal(a.err) != nil:
		patience = terminalPatience
	default:
		return r // that of the engine
	}
	ms := patience.Milliseconds()
	r.PatienceMs = &ms
	return r
}

// setOutage sets what sessions do while their models cannot be reached. The providers of
// fallbacks are listed for the sessions, unless a fallback is of the default provider.
func (a *app) setOutage(d *api.Defaults, c config.Config) error {
	d.Outage = a.outageRules(c.Model)
	for i, name := range c.Model.Fallback {
		found, ok, err := findProvider(c, choice{provider: d.Provider}, name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		found.provider.Name = found.name
		d.Outage.Fallback[i] = found.name + "/" + found.model
		if !hasProvider(d.Providers, found.name) {
			d.Providers = append(d.Providers, *found.provider)
		}
		d.Models = append(d.Models, api.ProviderModel{ID: found.model, Provider: found.name})
	}
	return nil
}

func hasProvider(list []api.Provider, name string) bool {
	for _, p := range list {
		if p.Name == name {
			return true
		}
	}
	return false
}
