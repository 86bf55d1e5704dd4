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
		return r // the patience of the engine counts
	}
	ms := patience.Milliseconds()
	r.PatienceMs = &ms
	return r
}

// setOutage sets what sessions do while their models cannot be reached.
func (a *app) setOutage(d *api.Defaults, c config.Config) (err error) {
	d.Outage = a.outageRules(c.Model)
	for i, name := range c.Model.Fallback {
		if d.Outage.Fallback[i], err = listModel(d, c, name); err != nil {
			return err
		}
	}
	return nil
}

// setHelpers sets the models that summarise and extract. They are found like any model, so that
// they can be of another provider than the sessions.
func setHelpers(d *api.Defaults, c config.Config) (err error) {
	if d.Compaction.Model, err = listModel(d, c, d.Compaction.Model); err == nil {
		d.Memory.Model, err = listModel(d, c, d.Memory.Model)
	}
	return err
}

// listModel lists a model and its provider for the sessions, unless it is of the default
// provider, and returns the name by which they ask for it.
func listModel(d *api.Defaults, c config.Config, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	found, ok, err := findProvider(c, choice{provider: d.Provider}, name)
	if err != nil || !ok {
		return name, err
	}
	found.provider.Name = found.name
	if !hasProvider(d.Providers, found.name) {
		d.Providers = append(d.Providers, *found.provider)
	}
	model := api.ProviderModel{ID: found.model, Provider: found.name}
	if !slices.ContainsFunc(d.Models, func(m api.ProviderModel) bool { return m.ID == model.ID && m.Provider == model.Provider }) {
		d.Models = append(d.Models, model)
	}
	return found.name + "/" + found.model, nil
}

func hasProvider(list []api.Provider, name string) bool {
	for _, p := range list {
		if p.Name == name {
			return true
		}
	}
	return false
}
