package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The requests to clients with hooks and transforms.
const (
	HooksInvoke     = "hooks.invoke"
	SystemTransform = "systemMessage.transform"
)

// OpenMore holds further parameters of session.create and session.resume.
type OpenMore struct {
	Hooks                  bool                    `json:"hooks,omitempty"` // true if the client has hooks
	ModelCapabilities      ModelCapabilities       `json:"modelCapabilities,omitzero"`
	InstructionDirectories []string                `json:"instructionDirectories,omitempty"`
	SkipInstructions       bool                    `json:"skipCustomInstructions,omitempty"`
	DefaultAgent           DefaultAgent            `json:"defaultAgent,omitzero"`
	ExcludedBuiltinAgents  []string                `json:"excludedBuiltinAgents,omitempty"`
	CustomAgents           []event.CustomAgent     `json:"customAgents,omitempty"`
	SkillDirectories       []string                `json:"skillDirectories,omitempty"`
	DisabledSkills         []string                `json:"disabledSkills,omitempty"`
	EnableSkills           *bool                   `json:"enableSkills,omitempty"`
	Discover               bool                    `json:"enableConfigDiscovery,omitempty"` // true to use the project's files for agents
	Agent                  string                  `json:"agent,omitempty"`                 // name of the agent that answers
	InfiniteSessions       *event.InfiniteSessions `json:"infiniteSessions,omitempty"`
	AdditionalDirectories  []string                `json:"additionalDirectories,omitempty"`
	ManagedSettings        json.RawMessage         `json:"managedSettings,omitempty"` // a ManagedSettings, checked strictly
	EnableManagedSettings  bool                    `json:"enableManagedSettings,omitempty"`
	MCPServers             json.RawMessage         `json:"mcpServers,omitempty"` // MCP servers by name
	DisabledMCPServers     []string                `json:"disabledMcpServers,omitempty"`
	AuthDocument           string                  `json:"authClientIdMetadataUrl,omitempty"` // address of the description of the program, for logins to MCP servers
	EnvValueMode           string                  `json:"envValueMode,omitempty"`            // "direct" if ${NAME} in the configuration of MCP servers stands for itself
	OpenUnsupported
}

// OpenUnsupported holds parameters that have no effect. Clients that set them are told.
type OpenUnsupported struct {
	PluginDirectories        json.RawMessage `json:"pluginDirectories,omitempty"`
	SessionLimits            json.RawMessage `json:"sessionLimits,omitempty"`
	OrganizationInstructions json.RawMessage `json:"organizationCustomInstructions,omitempty"`
	Cloud                    json.RawMessage `json:"cloud,omitempty"`
	Canvases                 json.RawMessage `json:"canvases,omitempty"`
	ConfigDir                json.RawMessage `json:"configDir,omitempty"`
}

// ManagedSettings are restrictions of a session that its client sets.
type ManagedSettings struct {
	Permissions *ManagedPermissions `json:"permissions,omitempty"`
}

// ManagedPermissions are the rules of ManagedSettings.
type ManagedPermissions struct {
	DisableBypass string    `json:"disableBypassPermissionsMode,omitempty"` // any value forbids to allow everything
	Deny          []string  `json:"deny,omitempty"`
	Ask           []string  `json:"ask,omitempty"`
	Allow         *[]string `json:"allow,omitempty"` // if given, whatever is not in it is asked about
}

// ModelCapabilities overrides the capabilities of a model.
type ModelCapabilities struct {
	Supports struct {
		Vision *bool `json:"vision,omitempty"`
	} `json:"supports,omitzero"`
	Limits struct {
		MaxContextWindowTokens int `json:"max_context_window_tokens,omitempty"`
	} `json:"limits,omitzero"`
}

// DefaultAgent holds settings of the default agent.
type DefaultAgent struct {
	ExcludedTools []string `json:"excludedTools,omitempty"`
}

// HookParams calls a hook of a client.
type HookParams struct {
	SessionID event.SessionID `json:"sessionId"`
	HookType  string          `json:"hookType"`
	Input     json.RawMessage `json:"input"`
}

// HookResult is the output of a hook; empty if it has none.
type HookResult struct {
	Output json.RawMessage `json:"output,omitempty"`
}

// TransformParams lets a client change sections of the system prompt.
type TransformParams struct {
	SessionID event.SessionID    `json:"sessionId"`
	Sections  map[string]Section `json:"sections"`
}

// TransformResult is the changed sections.
type TransformResult struct {
	Sections map[string]Section `json:"sections"`
}

// A Section is a part of the system prompt.
type Section struct {
	Content string `json:"content"`
}
