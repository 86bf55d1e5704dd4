package event

import (
	"bytes"
	"strconv"
)

// The events that tell of an agent that a call has started. They are only sent.
const (
	SubagentStarted   Type = "subagent.started"
	SubagentCompleted Type = "subagent.completed"
	SubagentFailed    Type = "subagent.failed"
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

// Type is what is told.
func (d SubagentData) Type() Type { return d.kind }

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
