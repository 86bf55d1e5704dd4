package event

import (
	"encoding/json"
	"slices"
)

// The kinds of events about how a session is set up.
const (
	SessionConfigured   Type = "session.configured"
	ClientDeclared      Type = "client.declared"
	ToolsDeclared       Type = "tools.declared"
	InstructionsLoaded  Type = "instructions.loaded"
	CapabilitiesChanged Type = "capabilities.changed"
)

var _ = list(
	Kind{Type: SessionConfigured, body: body[SessionConfiguredData], Hidden: true, Lasting: true},
	Kind{Type: ClientDeclared, body: body[ClientDeclaredData], Hidden: true, Lasting: true},
	Kind{Type: ToolsDeclared, body: body[ToolsDeclaredData], Hidden: true, Lasting: true},
	Kind{Type: InstructionsLoaded, body: body[InstructionsLoadedData], Hidden: true, Lasting: true},
	Kind{Type: CapabilitiesChanged, body: body[CapabilitiesChangedData], Sent: true},
)

// SessionConfiguredData is the whole configuration of a session from here on.
// It has no secrets: those are kept beside the log.
type SessionConfiguredData struct {
	WorkingDirectory string          `json:"workingDirectory"`
	Model            string          `json:"model,omitempty"`
	ReasoningEffort  string          `json:"reasoningEffort,omitempty"`
	Streaming        bool            `json:"streaming,omitempty"`
	SystemMessage    json.RawMessage `json:"systemMessage,omitempty"`
	Instructions     string          `json:"instructions,omitempty"`
	Provider         json.RawMessage `json:"provider,omitempty"`
	Providers        json.RawMessage `json:"providers,omitempty"`  // those that Models name
	Models           json.RawMessage `json:"models,omitempty"`     // selected as "provider/id"
	ClientHTTP       bool            `json:"clientHttp,omitempty"` // a client makes the requests to models
	AvailableTools   []string        `json:"availableTools"`       // null: all
	ExcludedTools    []string        `json:"excludedTools,omitempty"`
	ExtraTools       []string        `json:"extraTools,omitempty"` // offered though they are not by themselves
	ClientName       string          `json:"clientName,omitempty"`
	Approve          string          `json:"approve,omitempty"` // the rule set: "", "workspace" or "all"
	Scope            ScopeRules      `json:"scope,omitzero"`
	Permissions      PermissionRules `json:"permissions,omitzero"`
	MaxSteps         int             `json:"maxSteps,omitempty"`
	// Vision is set if a client knows better than we whether the model sees
	// images, and Window how many tokens fit into a request and its reply.
	Vision *bool `json:"vision,omitempty"`
	Window int   `json:"window,omitempty"`
	// Memory says what is remembered of the session.
	Memory MemoryRules `json:"memory,omitzero"`
	// Compaction is when people want it compacted, and Infinite when its client
	// does.
	Compaction CompactionRules   `json:"compaction,omitzero"`
	Infinite   *InfiniteSessions `json:"infiniteSessions,omitempty"`
	// SkipInstructions means that the project's files tell the model nothing.
	SkipInstructions bool `json:"skipCustomInstructions,omitempty"`
	// InstructionDirs are further folders with instructions.
	InstructionDirs []string `json:"instructionDirectories,omitempty"`
	// AgentExcluded are tools that only agents that the session starts have.
	AgentExcluded []string `json:"defaultAgentExcludedTools,omitempty"`
	// ExcludedAgents are agents that it cannot start.
	ExcludedAgents []string   `json:"excludedBuiltinAgents,omitempty"`
	Skills         SkillRules `json:"skills,omitzero"`
	// Agents are those that a client describes, and Selected the one of them that
	// answers. Before is what the session had before it came.
	Agents   []CustomAgent `json:"customAgents,omitempty"`
	Selected string        `json:"selectedAgent,omitempty"`
	Before   *Own          `json:"beforeAgent,omitempty"`
	// Agent is set if the session is itself an agent that another one started.
	Agent *AgentOf `json:"agent,omitempty"`
}

// InfiniteSessions says when a session is compacted, in shares of what a request
// may have. What is nil was not said.
type InfiniteSessions struct {
	Enabled    *bool    `json:"enabled,omitempty"`
	Background *float64 `json:"backgroundCompactionThreshold,omitempty"`
	Exhaustion *float64 `json:"bufferExhaustionThreshold,omitempty"`
}

// Off reports whether a client wants neither thresholds nor a folder for the
// session's own files.
func (s *InfiniteSessions) Off() bool { return s != nil && s.Enabled != nil && !*s.Enabled }

// AgentOf says whose agent a session is.
type AgentOf struct {
	Session SessionID `json:"sessionId"`
	Type    string    `json:"agentType"`
}

// ScopeRules say which files a session may use. A denial wins.
type ScopeRules struct {
	Allow []ScopeRule `json:"allow,omitempty"`
	Deny  []ScopeRule `json:"deny,omitempty"`
}

// A ScopeRule is about a file, or a folder with all that is below it.
type ScopeRule struct {
	Target     string `json:"target"`     // absolute
	Permission string `json:"permission"` // "read" or "write"
}

// PermissionRules say which calls are made without asking, which are asked about
// whatever else allows them, and which are never made.
type PermissionRules struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// InstructionsLoadedData is what the project's own files tell the model from
// here on.
type InstructionsLoadedData struct {
	Text    string              `json:"text"`
	Sources []InstructionSource `json:"sources"`
}

// An InstructionSource is a file that was read.
type InstructionSource struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of what was read
	Bytes  int    `json:"bytes"`
	Cut    bool   `json:"cut,omitempty"` // there was more
}

// ClientDeclaredData tells which kinds of questions some client of this session
// has said it can answer. It only grows.
type ClientDeclaredData struct {
	Permission bool `json:"permission,omitempty"`
	UserInput  bool `json:"userInput,omitempty"`
	ExitPlan   bool `json:"exitPlanMode,omitempty"`
	Hooks      bool `json:"hooks,omitempty"`
}

// ToolsDeclaredData is the set of client tools that is offered from here on.
type ToolsDeclaredData struct {
	Tools []ExternalTool `json:"tools"`
}

// An ExternalTool is a tool that a client carries out.
type ExternalTool struct {
	Name             string          `json:"name"`
	Description      string          `json:"description,omitempty"`
	Parameters       json.RawMessage `json:"parameters,omitempty"`
	OverridesBuiltIn bool            `json:"overridesBuiltInTool,omitempty"`
	SkipPermission   bool            `json:"skipPermission,omitempty"`
	Terminal         bool            `json:"isTerminal,omitempty"`
}

// Custom returns the agent of that name that a client has described, or nil.
func (c SessionConfiguredData) Custom(name string) *CustomAgent {
	if i := slices.IndexFunc(c.Agents, func(a CustomAgent) bool { return name != "" && a.Name == name }); i >= 0 {
		return &c.Agents[i]
	}
	return nil
}

// Chosen returns the agent that answers in the session, or nil.
func (c SessionConfiguredData) Chosen() *CustomAgent { return c.Custom(c.Selected) }

// CapabilitiesChangedData tells what the clients of a session can do together.
type CapabilitiesChangedData struct {
	UI struct {
		Elicitation bool `json:"elicitation"`
	} `json:"ui"`
}

func (SessionConfiguredData) Type() Type   { return SessionConfigured }
func (ClientDeclaredData) Type() Type      { return ClientDeclared }
func (ToolsDeclaredData) Type() Type       { return ToolsDeclared }
func (InstructionsLoadedData) Type() Type  { return InstructionsLoaded }
func (CapabilitiesChangedData) Type() Type { return CapabilitiesChanged }
