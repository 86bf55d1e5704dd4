package event

import "slices"

// A CustomAgent is an agent that a client describes.
type CustomAgent struct {
	Name            string   `json:"name"`
	DisplayName     string   `json:"displayName,omitempty"`
	Description     string   `json:"description,omitempty"`
	Prompt          string   `json:"prompt"`
	Tools           []string `json:"tools"` // null: all
	Infer           *bool    `json:"infer,omitempty"`
	Model           string   `json:"model,omitempty"`
	ReasoningEffort string   `json:"reasoningEffort,omitempty"`
	Skills          []string `json:"skills,omitempty"` // that it is told before it answers
}

// Inferred reports whether the model may give it work by itself.
func (a CustomAgent) Inferred() bool { return a.Infer == nil || *a.Infer }

// Own is the model that a session had before an agent with one of its own was
// chosen.
type Own struct {
	Model           string `json:"model,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
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

// The events that tell which agent answers.
const (
	SubagentSelected    Type = "subagent.selected"
	SubagentDeselected  Type = "subagent.deselected"
	CustomAgentsUpdated Type = "session.custom_agents_updated"
)

// SubagentSelectedData tells that a custom agent answers from here on.
type SubagentSelectedData struct {
	Name        string   `json:"agentName"`
	DisplayName string   `json:"agentDisplayName"`
	Tools       []string `json:"tools"` // null: all
}

// CustomAgentsUpdatedData lists the agents that there are. It is only sent.
type CustomAgentsUpdatedData struct {
	Agents   []CustomAgentInfo `json:"agents"`
	Errors   []string          `json:"errors"`
	Warnings []string          `json:"warnings"`
}

// CustomAgentInfo is one of them.
type CustomAgentInfo struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	DisplayName   string   `json:"displayName"`
	Description   string   `json:"description"`
	Source        string   `json:"source"`
	Tools         []string `json:"tools"`
	UserInvocable bool     `json:"userInvocable"`
	Model         string   `json:"model,omitempty"`
}

// Type is the kind of the event.
func (SubagentSelectedData) Type() Type { return SubagentSelected }

// Type is the kind of the event.
func (CustomAgentsUpdatedData) Type() Type { return CustomAgentsUpdated }
