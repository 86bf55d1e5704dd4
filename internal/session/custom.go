package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// ErrAgent means that there is no such agent.
var ErrAgent = errors.New("there is no such agent")

// Choose lets a custom agent answer in a session from the next turn on: with
// its prompt, its tools and its model.
func (as Agents) Choose(ctx context.Context, id event.SessionID, name string) (event.CustomAgent, error) {
	var chosen event.CustomAgent
	err := as.host.change(ctx, id, func(tx *txn) error {
		a := tx.State.Setup.Config.Custom(name)
		if a == nil {
			return fmt.Errorf("agent %s: %w", name, ErrAgent)
		}
		chosen = *a
		if tx.State.Setup.Config.Selected == name {
			return nil
		}
		if err := tx.letGo(); err != nil {
			return err
		}
		to := tx.State.Setup.Config
		to.Selected = name
		return errors.Join(tx.Record(to), tx.takeModel(a), tx.Record(event.SubagentSelectedData{
			Name: a.Name, DisplayName: cmp.Or(a.DisplayName, a.Name), Tools: a.Tools,
		}))
	})
	return chosen, err
}

// takeModel lets the chosen agent have its own model.
func (tx *txn) takeModel(a *event.CustomAgent) error {
	if a.Model == "" && a.ReasoningEffort == "" {
		return nil
	}
	had := &event.Own{Model: tx.State.Setup.Model, ReasoningEffort: tx.State.Setup.Config.ReasoningEffort}
	if err := tx.setModel(Choice{Model: cmp.Or(a.Model, had.Model), Effort: cmp.Or(a.ReasoningEffort, had.ReasoningEffort)}); err != nil {
		return err
	}
	to := tx.State.Setup.Config
	to.Before = had
	return tx.Record(to)
}

// Dismiss lets the session answer as it did before an agent was chosen.
func (as Agents) Dismiss(ctx context.Context, id event.SessionID) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		if tx.State.Setup.Config.Selected == "" {
			return nil
		}
		return errors.Join(tx.letGo(), tx.Record(event.Empty(event.SubagentDeselected)))
	})
}

// letGo takes back what a chosen agent has brought along.
func (tx *txn) letGo() error {
	to := tx.State.Setup.Config
	if to.Selected == "" {
		return nil
	}
	had := to.Before
	to.Selected, to.Before = "", nil
	if err := tx.Record(to); err != nil || had == nil {
		return err
	}
	return tx.setModel(Choice{Model: had.Model, Effort: had.ReasoningEffort})
}

// SetPrompt gives a custom agent another prompt.
func (as Agents) SetPrompt(ctx context.Context, id event.SessionID, name, prompt string) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		to := tx.State.Setup.Config
		if to.Custom(name) == nil {
			return fmt.Errorf("agent %s: %w", name, ErrAgent)
		}
		to.Agents = slices.Clone(to.Agents)
		to.Custom(name).Prompt = prompt
		return tx.Record(to)
	})
}

// Announce tells the clients of a session which agents there are.
func (as Agents) Announce(ctx context.Context, id event.SessionID, d event.CustomAgentsUpdatedData) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		tx.Tell(d)
		return nil
	})
}

// custom makes the session of an agent what its description says.
func custom(c *event.SessionConfiguredData, a event.CustomAgent) {
	c.Instructions = a.Prompt
	if a.Tools != nil {
		c.AvailableTools = a.Tools
	}
	c.Model, c.ReasoningEffort = cmp.Or(a.Model, c.Model), cmp.Or(a.ReasoningEffort, c.ReasoningEffort)
}
