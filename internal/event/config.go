package event

import (
	"encoding/json"
	"slices"
)

// The types of events about the configuration of a session.
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
	Kind{Type: CapabilitiesChanged, body: body[CapabilitiesChangedData], Sent: true, Silent: true},
)

// SessionConfiguredData is the body of session.configured: the whole configuration of
// a session from here on. It contains no secrets: those are stored outside the log.
type SessionConfiguredData struct {
	WorkingDirectory string          `json:"workingDirectory"`
	Model            string          `json:"model,omitempty"`           // model that the client asked for; the default if empty
	ReasoningEffort  string          `json:"reasoningEffort,omitempty"` // amount of reasoning that is wanted of the model; the provider's default if empty
	Streaming        bool            `json:"streaming,omitempty"`       // true if the client wants answers in pieces while they arrive
	SystemMessage    json.RawMessage `json:"systemMessage,omitempty"`   // changes that the client makes to the system prompt, in the protocol's form
	Instructions     string          `json:"instructions,omitempty"`    // instructions of the client, which become part of the system prompt
	Provider         json.RawMessage `json:"provider,omitempty"`        // provider of the model, if the client names its own, in the protocol's form
	Providers        json.RawMessage `json:"providers,omitempty"`       // providers of the models in Models, in the protocol's form
	Models           json.RawMessage `json:"models,omitempty"`          // further models, which are selected as "provider/id", in the protocol's form
	ClientHTTP       bool            `json:"clientHttp,omitempty"`      // true if a client makes the HTTP requests to models
	AvailableTools   []string        `json:"availableTools"`            // names of the only tools to offer; null for all
	ExcludedTools    []string        `json:"excludedTools,omitempty"`   // names of tools not to offer
	ExtraTools       []string        `json:"extraTools,omitempty"`      // names of tools to offer although they are not offered by default
	ClientName       string          `json:"clientName,omitempty"`
	Approve          string          `json:"approve,omitempty"` // calls that are made without asking: "", "workspace" or "all"
	Scope            ScopeRules      `json:"scope,omitzero"`
	Permissions      PermissionRules `json:"permissions,omitzero"`
	Managed          *ManagedRules   `json:"managed,omitempty"`               // restrictions of a client; they stay for the life of the session
	Directories      []string        `json:"additionalDirectories,omitempty"` // further folders that the session may use like its working directory
	MaxSteps         int             `json:"maxSteps,omitempty"`              // model requests that a turn may make; the default if zero

	// Vision and Window override what is known of the model: whether it can see
	// images, and how many tokens a request and its answer may have together.
	Vision *bool `json:"vision,omitempty"`
	Window int   `json:"window,omitempty"`

	Memory           MemoryRules       `json:"memory,omitzero"`
	Compaction       CompactionRules   `json:"compaction,omitzero"`                 // set by configuration files and command-line options
	Outage           OutageRules       `json:"outage,omitzero"`                     // set by configuration files
	Budget           BudgetRules       `json:"budget,omitzero"`                     // set by configuration files
	Limit            BudgetRules       `json:"limit,omitzero"`                      // limits of this session that override those of Budget; set by command-line options
	Infinite         *InfiniteSessions `json:"infiniteSessions,omitempty"`          // set by the client
	SkipInstructions bool              `json:"skipCustomInstructions,omitempty"`    // true if the instruction files of the project are not read
	InstructionDirs  []string          `json:"instructionDirectories,omitempty"`    // further folders with instruction files
	AgentExcluded    []string          `json:"defaultAgentExcludedTools,omitempty"` // names of tools that only agents have, not the session itself
	ExcludedAgents   []string          `json:"excludedBuiltinAgents,omitempty"`     // names of built-in agents that the session cannot start
	Skills           SkillRules        `json:"skills,omitzero"`
	MCP              MCPRules          `json:"mcp,omitzero"`

	Agents   []CustomAgent `json:"customAgents,omitempty"`  // agents that a client describes
	Selected string        `json:"selectedAgent,omitempty"` // name of the custom agent that answers; empty if the session itself does
	Before   *Own          `json:"beforeAgent,omitempty"`   // model of the session before the agent was selected, if the agent has one of its own

	Agent *AgentOf `json:"agent,omitempty"` // set if the session is an agent that another session started

	Workspace *Workspace `json:"workspace,omitempty"` // where the files and processes are; nil if that is the machine of the engine
	Sealed    bool       `json:"sealed,omitempty"`    // true if commands are sealed, and need no permission; a session keeps it for life
}

// A Workspace is where the files and the processes of a session are, if that is not the
// machine of the engine. A session keeps its workspace for life.
type Workspace struct {
	Name     string `json:"name,omitempty"`     // name in the configuration; empty if it was chosen by its address
	Address  string `json:"address"`            // "unix:PATH" or "tcp:HOST:PORT"; for one with a name, the address that it had when it was chosen
	Identity string `json:"identity,omitempty"` // identity that it had when it was chosen
}

// LocalDirectory returns the working directory if it is on the machine of the engine, and
// otherwise nothing: a folder of the same name there is another one.
func (c SessionConfiguredData) LocalDirectory() string {
	if c.Workspace != nil {
		return ""
	}
	return c.WorkingDirectory
}

// Elsewhere is how the names of folders in other workspaces begin, among those of the
// machine of the engine.
const Elsewhere = "/abide-workspace/"

// Location returns the folder by whose name it is remembered what people allow there. That
// of another workspace is told apart from all folders of the machine of the engine.
func (c SessionConfiguredData) Location() string {
	if c.Workspace != nil {
		return Elsewhere + c.Workspace.Identity + c.WorkingDirectory
	}
	return c.WorkingDirectory
}

// Is reports whether a choice, which is a name or an address, means the workspace. A nil
// workspace is the machine of the engine.
func (w *Workspace) Is(choice string) bool {
	if w == nil {
		return choice == LocalWorkspace
	}
	return choice == w.Name || choice == w.Address
}

// LocalWorkspace is the name of the machine of the engine as a workspace.
const LocalWorkspace = "local"

// Label returns what people call the workspace.
func (w *Workspace) Label() string {
	switch {
	case w == nil:
		return LocalWorkspace
	case w.Name != "":
		return w.Name
	}
	return w.Address
}

// InfiniteSessions says when a session is compacted, in the protocol's form. The
// thresholds are shares, from 0 to 1, of the tokens that a request may have. A field
// that is nil was not set by the client.
type InfiniteSessions struct {
	Enabled    *bool    `json:"enabled,omitempty"`
	Background *float64 `json:"backgroundCompactionThreshold,omitempty"` // compaction starts, and the turn goes on
	Exhaustion *float64 `json:"bufferExhaustionThreshold,omitempty"`     // the turn waits for the compaction
}

// Off reports whether the client wants neither compaction at these thresholds nor a
// folder for the session's own files.
func (s *InfiniteSessions) Off() bool { return s != nil && s.Enabled != nil && !*s.Enabled }

// AgentOf identifies the session that started an agent, and the type of the agent.
type AgentOf struct {
	Session SessionID `json:"sessionId"`
	Type    string    `json:"agentType"`
	Root    SessionID `json:"rootSessionId,omitempty"` // session that started the first of the agents between; empty if that is Session
}

// ScopeRules say which files a session may use. Where both lists have a rule for a
// file, Deny wins.
type ScopeRules struct {
	Allow []ScopeRule `json:"allow,omitempty"`
	Deny  []ScopeRule `json:"deny,omitempty"`
}

// A ScopeRule applies to a file, or to a folder and everything below it.
type ScopeRule struct {
	Target     string `json:"target"`     // absolute path
	Permission string `json:"permission"` // "read" or "write"
}

// PermissionRules are patterns of tool calls. Deny wins over Ask, and Ask over Allow.
type PermissionRules struct {
	Allow []string `json:"allow,omitempty"` // calls that are made without asking
	Ask   []string `json:"ask,omitempty"`   // calls that a person is asked about, unless an approval for the session covers them
	Deny  []string `json:"deny,omitempty"`  // calls that are never made
	// Unread is true if there may be rules that deny and that could not be read. A person is
	// asked about every call, whatever allows it.
	Unread bool `json:"unread,omitempty"`
}

// InstructionsLoadedData is the body of instructions.loaded: the instructions that
// the model gets from the files of the project, from here on.
type InstructionsLoadedData struct {
	Text    string              `json:"text"` // the instructions as they stand in the system prompt
	Sources []InstructionSource `json:"sources"`
}

// An InstructionSource is an instruction file that was read.
type InstructionSource struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`        // hash of the bytes that were read, in hexadecimal
	Bytes  int    `json:"bytes"`         // number of bytes that were read
	Cut    bool   `json:"cut,omitempty"` // true if the file was longer than that
}

// ClientDeclaredData is the body of client.declared: the kinds of questions that at
// least one client of the session, now or earlier, said that it can answer. What was
// true once stays true.
type ClientDeclaredData struct {
	Permission bool `json:"permission,omitempty"`
	UserInput  bool `json:"userInput,omitempty"`
	ExitPlan   bool `json:"exitPlanMode,omitempty"`
	Hooks      bool `json:"hooks,omitempty"`
}

// ToolsDeclaredData is the body of tools.declared: all tools that clients carry out,
// from here on.
type ToolsDeclaredData struct {
	Tools []ExternalTool `json:"tools"`
}

// An ExternalTool is a tool that a client carries out.
type ExternalTool struct {
	Name             string          `json:"name"`
	Description      string          `json:"description,omitempty"`          // description for the model
	Parameters       json.RawMessage `json:"parameters,omitempty"`           // JSON schema of the arguments
	OverridesBuiltIn bool            `json:"overridesBuiltInTool,omitempty"` // true if it replaces our tool of the same name
	SkipPermission   bool            `json:"skipPermission,omitempty"`       // true if calls of it are made without asking
	Terminal         bool            `json:"isTerminal,omitempty"`           // true if a successful call of it ends the turn
}

// Custom returns the custom agent of that name, or nil if there is none.
func (c SessionConfiguredData) Custom(name string) *CustomAgent {
	if i := slices.IndexFunc(c.Agents, func(a CustomAgent) bool { return name != "" && a.Name == name }); i >= 0 {
		return &c.Agents[i]
	}
	return nil
}

// Chosen returns the custom agent that answers in the session, or nil if the session
// itself does.
func (c SessionConfiguredData) Chosen() *CustomAgent { return c.Custom(c.Selected) }

// CapabilitiesChangedData is the body of capabilities.changed: what at least one of the
// clients of the session can do.
type CapabilitiesChangedData struct {
	UI struct {
		Elicitation bool `json:"elicitation"` // show a form to a person
	} `json:"ui"`
}

func (SessionConfiguredData) Type() Type   { return SessionConfigured }
func (ClientDeclaredData) Type() Type      { return ClientDeclared }
func (ToolsDeclaredData) Type() Type       { return ToolsDeclared }
func (InstructionsLoadedData) Type() Type  { return InstructionsLoaded }
func (CapabilitiesChangedData) Type() Type { return CapabilitiesChanged }
