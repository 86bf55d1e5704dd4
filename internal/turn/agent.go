package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// Working returns the sessions of the agents that work for the session. The id of each
// is the key of the call that started the agent.
func (c Catalog) Working(s *State) []event.SessionID {
	if s.Turn == nil {
		return nil
	}
	var list []event.SessionID
	for _, call := range s.Turn.Calls {
		if call.Stage == Begun && c.StartsAgent(call.Request.Name) {
			list = append(list, event.SessionID(call.Key))
		}
	}
	return list
}

// StartAgents reports whether some tool starts agents.
func (c Catalog) StartAgents() bool {
	return slices.ContainsFunc(c, func(t tool.Tool) bool { return t.Spec().Agent })
}

// StartsAgent reports whether an agent makes the calls of the tool of that name.
func (c Catalog) StartsAgent(name string) bool {
	return slices.ContainsFunc(c, func(t tool.Tool) bool { return t.Spec().Name == name && t.Spec().Agent })
}
