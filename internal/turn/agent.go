package turn

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// StartAgent is the built-in tool by which the model gives work to an agent of its own.
const StartAgent = "task"

// AgentTypes are the agents that can be started.
var AgentTypes = []string{"explore", "task", "general-purpose", "code-review", "research", "security-review"}

// Agents are the agents that a session can start. An agent starts none.
func (s *State) Agents() []string {
	if s.Config.Agent != nil {
		return nil
	}
	list := slices.DeleteFunc(slices.Clone(AgentTypes), func(name string) bool {
		return slices.Contains(s.Config.ExcludedAgents, name) || s.Config.Custom(name) != nil
	})
	for _, a := range s.Config.Agents {
		if a.Inferred() && a.Name != s.Config.Selected {
			list = append(list, a.Name)
		}
	}
	return list
}

// Working are the agents that work for the session. Each is a session under the
// key of the call that started it.
func (s *State) Working() []event.SessionID {
	if s.Turn == nil {
		return nil
	}
	var list []event.SessionID
	for _, c := range s.Turn.Calls {
		if c.Stage == Begun && c.Request.Name == StartAgent {
			list = append(list, event.SessionID(c.Key))
		}
	}
	return list
}

// TaskSpec is what the model is told of the tool, with the agents that it can
// start.
func TaskSpec(agents []string) tool.Spec {
	type property struct {
		Type        string   `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum,omitempty"`
	}
	schema, err := json.Marshal(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}{"object", map[string]property{
		"description": {Type: "string", Description: "What it is about, in a few words."},
		"prompt":      {Type: "string", Description: "What the agent is to do. It knows nothing of this conversation, so say all that it needs."},
		"agent_type":  {Type: "string", Description: "Which agent: explore only reads; the others can do what you can.", Enum: agents},
		"name":        {Type: "string", Description: "A short name for this agent."},
	}, []string{"description", "prompt", "agent_type", "name"}})
	if err != nil { // plain data
		panic(err)
	}
	return tool.Spec{
		Name: StartAgent, Parameters: schema, Replay: tool.Keyed,
		Description: "Give work to an agent with a conversation of its own, and wait for its answer. Use it for work whose details you need not see.",
	}
}
