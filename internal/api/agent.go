package api

import "github.com/abide-run/abide/internal/event"

// The methods about agents.
const (
	AgentList       = "session.agent.list"
	AgentGetCurrent = "session.agent.getCurrent"
	AgentSelect     = "session.agent.select"
	AgentDeselect   = "session.agent.deselect"
	AgentReload     = "session.agent.reload"
	AgentSetPrompt  = "session.agent.setPrompt"
)

// AgentListParams asks for the agents of a session.
type AgentListParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Builtin   bool            `json:"includeBuiltInAgents,omitempty"`
	Prompt    bool            `json:"includePrompt,omitempty"`
}

// AgentsResult lists agents.
type AgentsResult struct {
	Agents []AgentInfo `json:"agents"`
}

// AgentInfo describes an agent.
type AgentInfo struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	DisplayName   string    `json:"displayName"`
	Description   string    `json:"description"`
	Source        string    `json:"source,omitempty"`
	Prompt        string    `json:"prompt,omitempty"`
	Model         string    `json:"model,omitempty"`
	Tools         *[]string `json:"tools,omitempty"`
	NoInference   bool      `json:"disableModelInvocation,omitempty"`
	UserInvocable bool      `json:"userInvocable"`
}

// AgentParams names an agent.
type AgentParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name"`
}

// AgentResult is the current agent of a session.
type AgentResult struct {
	Agent *AgentInfo `json:"agent"` // nil if there is none
}

// AgentPromptParams replaces the prompt of an agent.
type AgentPromptParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ID        string          `json:"id"`
	Prompt    *string         `json:"prompt"`
}
