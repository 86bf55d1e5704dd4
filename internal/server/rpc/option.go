package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
)

// optionMethods change what a session was opened with.
var optionMethods = map[string]method{
	api.OptionsUpdate: on((*conn).updateOptions),
}

// updateOptions takes over what a client says; what it does not say stays. Options
// of features that there are none of are taken and have no effect.
func (c *conn) updateOptions(ctx context.Context, p api.OptionsParams) (api.Success, error) {
	if err := checkOptions(p); err != nil {
		return api.Success{}, err
	}
	err := c.server.host.Configure(ctx, p.SessionID, func(to *event.SessionConfiguredData) error {
		options(to, p)
		return nil
	})
	if err == nil && p.Provider != nil {
		err = c.replaceProvider(ctx, p)
	}
	if err == nil && p.Model != nil {
		err = c.chooseModel(ctx, p)
	}
	return succeeded(p.SessionID, err)
}

// checkOptions finds what makes no sense.
func checkOptions(p api.OptionsParams) error {
	if p.WorkingDirectory != nil && !filepath.IsAbs(*p.WorkingDirectory) {
		return errBadParams{errors.New("workingDirectory: want an absolute path")}
	}
	if p.Model != nil && *p.Model == "" {
		return errBadParams{errors.New("model: it is empty")}
	}
	return nil
}

func options(to *event.SessionConfiguredData, p api.OptionsParams) {
	set(&to.AvailableTools, p.AvailableTools)
	set(&to.ExcludedTools, p.ExcludedTools)
	set(&to.ExcludedAgents, p.ExcludedAgents)
	set(&to.ClientName, p.ClientName)
	set(&to.ReasoningEffort, p.ReasoningEffort)
	set(&to.Streaming, p.Streaming)
	set(&to.SkipInstructions, p.SkipInstructions)
	if p.WorkingDirectory != nil {
		to.WorkingDirectory = filepath.Clean(*p.WorkingDirectory)
	}
	if p.Capabilities != nil {
		to.Vision, to.Window = p.Capabilities.Supports.Vision, p.Capabilities.Limits.MaxContextWindowTokens
	}
	if p.AskUserDisabled != nil {
		const asking = "builtin:" + tool.AskUser
		to.ExcludedTools = slices.DeleteFunc(slices.Clone(to.ExcludedTools), func(name string) bool { return name == asking })
		if *p.AskUserDisabled {
			to.ExcludedTools = append(to.ExcludedTools, asking)
		}
	}
}

// set takes over what was said.
func set[T any](to *T, said *T) {
	if said != nil {
		*to = *said
	}
}

// replaceProvider gives a session another endpoint, with its secrets.
func (c *conn) replaceProvider(ctx context.Context, p api.OptionsParams) error {
	var provider api.Provider
	if err := json.Unmarshal(p.Provider, &provider); err != nil {
		return errBadParams{fmt.Errorf("provider: %w", err)}
	}
	return c.server.host.Settings.AddProviders(ctx, p.SessionID, func(to *event.SessionConfiguredData, secret []byte) ([]byte, error) {
		var had, next api.ProviderSecret
		if len(secret) > 0 {
			if err := json.Unmarshal(secret, &had); err != nil {
				return nil, err
			}
		}
		var spec session.Spec
		if err := c.provider(&spec, &provider); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(spec.Provider, &next); err != nil {
			return nil, err
		}
		to.Provider, next.Named = spec.Config.Provider, had.Named
		return json.Marshal(next)
	})
}

// chooseModel changes the model as session.model.switchTo does.
func (c *conn) chooseModel(ctx context.Context, p api.OptionsParams) error {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil || st.Model == *p.Model {
		return err
	}
	return c.server.host.SetModel(ctx, p.SessionID, session.Choice{Model: *p.Model, Effort: st.Config.ReasoningEffort, Vision: st.Config.Vision, Window: st.Config.Window})
}
