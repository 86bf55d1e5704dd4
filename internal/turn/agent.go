package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// Working returns the agents that work for the session. Each is a session under
// the key of the call that started it.
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

// StartsAgent reports whether calls of the tool of that name are carried out by
// agents.
func (c Catalog) StartsAgent(name string) bool {
	t := c.find(name)
	return t != nil && t.Spec().Agent
}
