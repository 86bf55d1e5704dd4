package event

import (
	"bytes"
	"strconv"
)

// The types of events about agents: those that a session starts, and custom agents,
// which clients describe.
const (
	SubagentStarted     Type = "subagent.started"
	SubagentCompleted   Type = "subagent.completed"
	SubagentFailed      Type = "subagent.failed"
	SubagentSelected    Type = "subagent.selected"
	SubagentDeselected  Type = "subagent.deselected"
	CustomAgentsUpdated Type = "session.custom_agents_updated"
)

var _ = list(
	Kind{Type: SubagentStarted, body: subagent, Sent: true, Silent: true},
	Kind{Type: SubagentCompleted, body: subagent, Sent: true, Silent: true},
	Kind{Type: SubagentFailed, body: subagent, Sent: true, Silent: true},
	Kind{Type: SubagentSelected, body: body[SubagentSelectedData], Silent: true, Inert: true},
	Kind{Type: SubagentDeselected, body: empty, Silent: true, Inert: true},
	Kind{Type: CustomAgentsUpdated, body: body[CustomAgentsUpdatedData], Sent: true, Silent: true},
)

// SubagentData is the body of subagent.started, subagent.completed and
// subagent.failed: an agent that the session started, has finished or has failed.
type SubagentData struct {
	kind        Type
	ToolCallID  string `json:"toolCallId"`       // tool call that started the agent
	Name        string `json:"agentName"`        // type of the agent
	DisplayName string `json:"agentDisplayName"` // name of the agent for people
	Description string `json:"agentDescription"` // task of the agent, in a few words
	Error       string `json:"error,omitempty"`  // reason of a failure
}

// As returns a body about the same agent for an event of another type.
func (d SubagentData) As(kind Type, failure string) SubagentData {
	d.kind, d.Error = kind, failure
	return d
}

// OfAgent returns an event of an agent's session the way the session that started
// the agent shows it: with an agentId. It has no position, because it is not stored in
// that session.
func (e Event) OfAgent(id SessionID) Event {
	at := bytes.Index(e.Bytes, []byte(`,"data":`))
	if at < 0 {
		return e
	}
	b := make([]byte, 0, len(e.Bytes)+len(id)+16)
	b = append(b, e.Bytes[:at]...)
	b = append(append(b, `,"agentId":`...), strconv.Quote(string(id))...)
	return Event{Type: e.Type, Bytes: append(b, e.Bytes[at:]...)}
}

// A CustomAgent is an agent that a client describes.
type CustomAgent struct {
	Name            string   `json:"name"`                      // unique among the agents of the session
	DisplayName     string   `json:"displayName,omitempty"`     // name for people; Name if empty
	Description     string   `json:"description,omitempty"`     // strengths of the agent, for the model that chooses one
	Prompt          string   `json:"prompt"`                    // system prompt of the agent
	Tools           []string `json:"tools"`                     // names of the tools that the agent has; null for all
	Infer           *bool    `json:"infer,omitempty"`           // see Inferred
	Model           string   `json:"model,omitempty"`           // model of the agent; the session's if empty
	ReasoningEffort string   `json:"reasoningEffort,omitempty"` // the session's if empty
	Skills          []string `json:"skills,omitempty"`          // names of the skills that the agent reads before it answers
}

// Inferred reports whether the model may start the agent without being told to.
func (a CustomAgent) Inferred() bool { return a.Infer == nil || *a.Infer }

// Own is the model and the reasoning effort that a session had before a custom agent
// with a model of its own was selected.
type Own struct {
	Model           string `json:"model,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// SubagentSelectedData is the body of subagent.selected: from here on, a custom agent
// answers in the session.
type SubagentSelectedData struct {
	Name        string   `json:"agentName"`
	DisplayName string   `json:"agentDisplayName"`
	Tools       []string `json:"tools"` // names of the tools that the agent has; null for all
}

// CustomAgentsUpdatedData is the body of session.custom_agents_updated: all custom
// agents of the session.
type CustomAgentsUpdatedData struct {
	Agents   []CustomAgentInfo `json:"agents"`
	Errors   []string          `json:"errors"`
	Warnings []string          `json:"warnings"`
}

// CustomAgentInfo describes a custom agent to clients.
type CustomAgentInfo struct {
	ID            string   `json:"id"` // the same as Name
	Name          string   `json:"name"`
	DisplayName   string   `json:"displayName"`
	Description   string   `json:"description"`
	Source        string   `json:"source"`          // origin of the description: "remote" for a client
	Tools         []string `json:"tools"`           // names of the tools that the agent has; null for all
	UserInvocable bool     `json:"userInvocable"`   // true if a person may select the agent
	Model         string   `json:"model,omitempty"` // model of the agent; the session's if empty
}

func (SubagentSelectedData) Type() Type    { return SubagentSelected }
func (CustomAgentsUpdatedData) Type() Type { return CustomAgentsUpdated }

// Type returns the type of the event, which says what happened to the agent.
func (d SubagentData) Type() Type { return d.kind }

// subagent is the body function of the kinds that SubagentData is the body of.
func subagent(e Event) (Payload, error) {
	d, err := As[SubagentData](e)
	d.kind = e.Type
	return d, err
}
