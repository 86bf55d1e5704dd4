package rpc

import (
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// hook asks the client's hook.
func (c *conn) hook(ctx context.Context, id event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
	var result api.HookResult
	err := c.rpc.Call(ctx, api.HooksInvoke, api.HookParams{SessionID: id, HookType: kind, Input: input}, &result)
	if string(result.Output) == "null" {
		result.Output = nil
	}
	return result.Output, c.leftOrFailed(ctx, id, err)
}

// transform lets the client look over sections of the system prompt.
func (c *conn) transform(ctx context.Context, id event.SessionID, sections map[string]string) (map[string]string, error) {
	asked := make(map[string]api.Section, len(sections))
	for name, text := range sections {
		asked[name] = api.Section{Content: text}
	}
	var result api.TransformResult
	if err := c.rpc.Call(ctx, api.SystemTransform, api.TransformParams{SessionID: id, Sections: asked}, &result); err != nil {
		return nil, c.leftOrFailed(ctx, id, err)
	}
	changed := make(map[string]string, len(result.Sections))
	for name, s := range result.Sections {
		changed[name] = s.Content
	}
	return changed, nil
}

// leftOrFailed tells an answer that says no from a client that is no longer there.
func (c *conn) leftOrFailed(ctx context.Context, id event.SessionID, err error) error {
	if err == nil || ctx.Err() != nil || c.repliedWithError(ctx, id, err) {
		return err
	}
	return session.ErrLeft
}

// transforms reports whether a client wants to look over the system prompt.
func transforms(systemMessage json.RawMessage) bool {
	var m struct {
		Mode     string
		Sections map[string]struct{ Action string }
	}
	if json.Unmarshal(systemMessage, &m) != nil || m.Mode != "customize" {
		return false
	}
	for _, s := range m.Sections {
		if s.Action == "transform" {
			return true
		}
	}
	return false
}

// guide gives a session of a person what its user and its project keep for agents. Other
// programs that start sessions ask for the skills of a project, and name the folders of others.
func guide(config *event.SessionConfiguredData, defaults api.Defaults) {
	if config.ClientName != api.ClientCLI && config.ClientName != api.ClientHTTP {
		return
	}
	config.InstructionDirs = append(config.InstructionDirs, defaults.InstructionDirectories...)
	config.Skills.Discover = true
	config.Skills.Directories = append(config.Skills.Directories, defaults.SkillDirectories...)
}

// more takes what else a client says about a session.
func more(config *event.SessionConfiguredData, p api.OpenMore) {
	config.Vision, config.Window = p.ModelCapabilities.Supports.Vision, p.ModelCapabilities.Limits.MaxContextWindowTokens
	config.InstructionDirs, config.SkipInstructions = p.InstructionDirectories, p.SkipInstructions
	config.AgentExcluded = p.DefaultAgent.ExcludedTools
	config.ExcludedAgents = p.ExcludedBuiltinAgents
	config.Skills = event.SkillRules{
		Directories: p.SkillDirectories, Disabled: p.DisabledSkills, Off: p.EnableSkills != nil && !*p.EnableSkills, Discover: p.Discover,
	}
	config.Infinite = p.InfiniteSessions
}
