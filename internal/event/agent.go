package event

import (
	"bytes"
	"strconv"
)

// The kinds of events about agents.
const (
	SubagentStarted     Type = "subagent.started"
	SubagentCompleted   Type = "subagent.completed"
	SubagentFailed      Type = "subagent.failed"
	SubagentSelected    Type = "subagent.selected"
	SubagentDeselected  Type = "subagent.deselected"
	CustomAgentsUpdated Type = "session.custom_agents_updated"
)

var _ = list(
	Kind{Type: SubagentStarted, body: subagent, Sent: true},
	Kind{Type: SubagentCompleted, body: subagent, Sent: true},
	Kind{Type: SubagentFailed, body: subagent, Sent: true},
	Kind{Type: SubagentSelected, body: body[SubagentSelectedData]},
	Kind{Type: SubagentDeselected, body: empty},
	Kind{Type: CustomAgentsUpdated, body: body[CustomAgentsUpdatedData], Sent: true},
)

// SubagentData tells of an agent: that it was started, has finished, or failed.
type SubagentData struct {
	kind        Type
	ToolCallID  string `json:"toolCallId"` // the call that started it
	Name        string `json:"agentName"`
	DisplayName string `json:"agentDisplayName"`
	Description string `json:"agentDescription"`
	Error       string `json:"error,omitempty"`
}

// As returns the same agent with another thing to tell of it.
func (d SubagentData) As(kind Type, failure string) SubagentData {
	d.kind, d.Error = kind, failure
	return d
}

// OfAgent returns an event of an agent's session as the session that started the
// agent shows it. It has no position there.
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

func (SubagentSelectedData) Type() Type    { return SubagentSelected }
func (CustomAgentsUpdatedData) Type() Type { return CustomAgentsUpdated }

// Type is what is told.
func (d SubagentData) Type() Type { return d.kind }

// subagent decodes what is told of an agent.
func subagent(e Event) (Payload, error) {
	d, err := As[SubagentData](e)
	d.kind = e.Type
	return d, err
}
