package rpc

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
)

// These methods change what a session was opened with.
var _ = register(map[string]method{
	api.OptionsUpdate: on((*conn).updateOptions),
})

// updateOptions takes over what a client says; what it does not say stays. Options
// of features that there are none of are taken and have no effect.
func (c *conn) updateOptions(ctx context.Context, p api.OptionsParams) (api.Success, error) {
	if err := checkOptions(p); err != nil {
		return api.Success{}, err
	}
	own, err := optionProvider(p)
	if err != nil {
		return api.Success{}, err
	}
	err = c.server.host.Configure(ctx, p.SessionID, func(to *event.SessionConfiguredData) error {
		options(to, p)
		return nil
	})
	if err == nil && own != nil {
		err = c.replaceProvider(ctx, p.SessionID, own)
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

// optionProvider returns the provider of the options, or nil if they have none. One that
// is null is wrong, not left out.
func optionProvider(p api.OptionsParams) (*provider.Provider, error) {
	if p.Provider == nil {
		return nil, nil
	}
	var said provider.Provider
	if err := decode(p.Provider, "provider", &said); err != nil {
		return nil, err
	}
	return ownProvider(said)
}

// replaceProvider gives a session another endpoint, with its secrets. If the endpoint
// needs tokens, this client is asked for them.
func (c *conn) replaceProvider(ctx context.Context, id event.SessionID, own *provider.Provider) error {
	return c.changeProviders(ctx, id, provider.Set{Own: own}, func(to *provider.Set) error {
		to.Own = own
		return nil
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
