package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The requests that clients with hooks and transforms are sent.
const (
	HooksInvoke     = "hooks.invoke"
	SystemTransform = "systemMessage.transform"
)

// OpenMore is what else a client can say about a session that it creates or
// resumes.
type OpenMore struct {
	Hooks                  bool                    `json:"hooks,omitempty"` // it has some
	ModelCapabilities      ModelCapabilities       `json:"modelCapabilities,omitzero"`
	InstructionDirectories []string                `json:"instructionDirectories,omitempty"`
	SkipInstructions       bool                    `json:"skipCustomInstructions,omitempty"`
	DefaultAgent           DefaultAgent            `json:"defaultAgent,omitzero"`
	ExcludedBuiltinAgents  []string                `json:"excludedBuiltinAgents,omitempty"`
	CustomAgents           []event.CustomAgent     `json:"customAgents,omitempty"`
	SkillDirectories       []string                `json:"skillDirectories,omitempty"`
	DisabledSkills         []string                `json:"disabledSkills,omitempty"`
	EnableSkills           *bool                   `json:"enableSkills,omitempty"`
	Discover               bool                    `json:"enableConfigDiscovery,omitempty"` // what the project keeps for agents
	Agent                  string                  `json:"agent,omitempty"`                 // the one of them that answers
	InfiniteSessions       *event.InfiniteSessions `json:"infiniteSessions,omitempty"`
}

// ModelCapabilities is what a client knows better of a model than its name tells.
type ModelCapabilities struct {
	Supports struct {
		Vision *bool `json:"vision,omitempty"`
	} `json:"supports,omitzero"`
	Limits struct {
		MaxContextWindowTokens int `json:"max_context_window_tokens,omitempty"`
	} `json:"limits,omitzero"`
}

// DefaultAgent is what is special about the agent that answers first.
type DefaultAgent struct {
	ExcludedTools []string `json:"excludedTools,omitempty"`
}

// HookParams asks a client's hook.
type HookParams struct {
	SessionID event.SessionID `json:"sessionId"`
	HookType  string          `json:"hookType"`
	Input     json.RawMessage `json:"input"`
}

// HookResult is what the hook says; nothing if it has nothing to say.
type HookResult struct {
	Output json.RawMessage `json:"output,omitempty"`
}

// TransformParams lets a client look over sections of the system prompt.
type TransformParams struct {
	SessionID event.SessionID    `json:"sessionId"`
	Sections  map[string]Section `json:"sections"`
}

// TransformResult is what it makes of them.
type TransformResult struct {
	Sections map[string]Section `json:"sections"`
}

// A Section is a part of the system prompt.
type Section struct {
	Content string `json:"content"`
}
