package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods are about the agents that a client describes.
var _ = register(map[string]method{
	api.AgentList:       on((*conn).agents),
	api.AgentGetCurrent: on((*conn).currentAgent),
	api.AgentSelect:     on((*conn).selectAgent),
	api.AgentDeselect:   on((*conn).deselectAgent),
	api.AgentReload:     on((*conn).reloadAgents),
	api.AgentSetPrompt:  on((*conn).setAgentPrompt),
})

// customAgents takes over the agents that a client describes, and the one that is
// to answer.
func customAgents(to *event.SessionConfiguredData, p api.OpenMore) error {
	known := map[string]bool{}
	for i, a := range p.CustomAgents {
		if a.Name == "" || known[a.Name] {
			return errBadParams{fmt.Errorf("customAgents[%d].name: it is empty, or another agent has it", i)}
		}
		known[a.Name] = true
	}
	if p.Agent != "" && !known[p.Agent] {
		return errBadParams{fmt.Errorf("agent: there is no %q among customAgents", p.Agent)}
	}
	to.Agents, to.Selected = p.CustomAgents, p.Agent
	if a := to.Chosen(); a != nil {
		to.Model, to.ReasoningEffort = cmp.Or(to.Model, a.Model), cmp.Or(to.ReasoningEffort, a.ReasoningEffort)
	}
	return nil
}

// described is a custom agent as clients are told of it.
func described(a event.CustomAgent, prompt bool) api.AgentInfo {
	info := api.AgentInfo{
		ID: a.Name, Name: a.Name, DisplayName: cmp.Or(a.DisplayName, a.Name), Description: a.Description, Model: a.Model,
		NoInference: !a.Inferred(), UserInvocable: true,
	}
	if a.Tools != nil {
		info.Tools = &a.Tools
	}
	if prompt {
		info.Prompt = a.Prompt
	}
	return info
}

func (c *conn) agents(ctx context.Context, p api.AgentListParams) (api.AgentsResult, error) {
	result := api.AgentsResult{Agents: []api.AgentInfo{}}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return result, noSession(p.SessionID, err)
	}
	for _, a := range st.Config.Agents {
		result.Agents = append(result.Agents, described(a, p.Prompt))
	}
	if !p.Builtin {
		return result, nil
	}
	briefs := c.server.opts.Agents
	for _, name := range slices.Sorted(maps.Keys(briefs)) {
		if !slices.Contains(st.Config.ExcludedAgents, name) {
			result.Agents = append(result.Agents, api.AgentInfo{ID: name, Name: name, DisplayName: name, Description: briefs[name], Source: "builtin"})
		}
	}
	return result, nil
}

func (c *conn) currentAgent(ctx context.Context, p api.SessionParams) (api.AgentResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if a := st.Config.Chosen(); a != nil {
		info := described(*a, false)
		return api.AgentResult{Agent: &info}, nil
	}
	return api.AgentResult{}, noSession(p.SessionID, err)
}

func (c *conn) selectAgent(ctx context.Context, p api.AgentParams) (api.AgentResult, error) {
	if p.Name == "" {
		return api.AgentResult{}, errBadParams{errors.New("name: it is empty")}
	}
	a, err := c.server.host.Agents.Choose(ctx, p.SessionID, p.Name)
	if err != nil {
		return api.AgentResult{}, noAgent(p.SessionID, p.Name, err)
	}
	info := described(a, false)
	return api.AgentResult{Agent: &info}, nil
}

// noAgent is how the protocol says that there is no such agent.
func noAgent(id event.SessionID, name string, err error) error {
	if errors.Is(err, session.ErrAgent) {
		return said("Agent not found: %s", name)
	}
	return noSession(id, err)
}

func (c *conn) deselectAgent(ctx context.Context, p api.SessionParams) (any, error) {
	return nil, noSession(p.SessionID, c.server.host.Agents.Dismiss(ctx, p.SessionID))
}

// reloadAgents tells all clients which agents there are. Those of clients are as
// they were described: there are no files to be read.
func (c *conn) reloadAgents(ctx context.Context, p api.SessionParams) (api.AgentsResult, error) {
	list, err := c.agents(ctx, api.AgentListParams{SessionID: p.SessionID})
	if err != nil {
		return list, err
	}
	told := event.CustomAgentsUpdatedData{Agents: []event.CustomAgentInfo{}, Errors: []string{}, Warnings: []string{}}
	for _, a := range list.Agents {
		info := event.CustomAgentInfo{ID: a.ID, Name: a.Name, DisplayName: a.DisplayName, Description: a.Description, Source: "remote", UserInvocable: true, Model: a.Model}
		if a.Tools != nil {
			info.Tools = *a.Tools
		}
		told.Agents = append(told.Agents, info)
	}
	return list, noSession(p.SessionID, c.server.host.Agents.Announce(ctx, p.SessionID, told))
}

func (c *conn) setAgentPrompt(ctx context.Context, p api.AgentPromptParams) (any, error) {
	if p.Prompt == nil {
		return nil, missing("prompt")
	}
	return nil, noAgent(p.SessionID, p.ID, c.server.host.Agents.SetPrompt(ctx, p.SessionID, p.ID, *p.Prompt))
}
