package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The methods about instructions, and about the options of a session.
const (
	InstructionSources  = "session.instructions.getSources"
	InstructionDiscover = "instructions.discover"
	InstructionPaths    = "instructions.getDiscoveryPaths"
	OptionsUpdate       = "session.options.update"
)

// InstructionsResult lists files with instructions.
type InstructionsResult struct {
	Sources []Instructions `json:"sources"`
}

// Instructions describes a file with instructions for agents.
type Instructions struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Location    string `json:"location"` // "repository", "working-directory" or "user"
	Type        string `json:"type"`     // "repo", "vscode" or "home"
	SourcePath  string `json:"sourcePath"`
	Content     string `json:"content"`
	ProjectPath string `json:"projectPath,omitempty"`
}

// DiscoverParams names the directories to search.
type DiscoverParams struct {
	ProjectPaths []string `json:"projectPaths,omitempty"`
}

// PlacesResult lists the directories that are searched for instructions.
type PlacesResult struct {
	Paths []DiscoveryPath `json:"paths"`
}

// A DiscoveryPath is a directory that is searched for instructions.
type DiscoveryPath struct {
	Path        string `json:"path"`
	Kind        string `json:"kind"`
	Location    string `json:"location"`
	ProjectPath string `json:"projectPath,omitempty"`
	Preferred   bool   `json:"preferredForCreation"`
}

// OptionsParams changes the parameters of a session. Nil fields are not changed.
type OptionsParams struct {
	SessionID        event.SessionID    `json:"sessionId"`
	AvailableTools   *[]string          `json:"availableTools,omitempty"`
	ExcludedTools    *[]string          `json:"excludedTools,omitempty"`
	ExcludedAgents   *[]string          `json:"excludedBuiltinAgents,omitempty"`
	ClientName       *string            `json:"clientName,omitempty"`
	Model            *string            `json:"model,omitempty"`
	ReasoningEffort  *string            `json:"reasoningEffort,omitempty"`
	WorkingDirectory *string            `json:"workingDirectory,omitempty"`
	Streaming        *bool              `json:"enableStreaming,omitempty"`
	SkipInstructions *bool              `json:"skipCustomInstructions,omitempty"`
	AskUserDisabled  *bool              `json:"askUserDisabled,omitempty"`
	Capabilities     *ModelCapabilities `json:"modelCapabilitiesOverrides,omitempty"`
	Provider         json.RawMessage    `json:"provider,omitempty"`
}
