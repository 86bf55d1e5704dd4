package audit

import "github.com/abide-run/abide/internal/audit/stored"

// agents looks at sessions that work for another one: an agent is a session under
// the key of the call that started it.
type agents struct {
	keys map[string]int64 // positions at which calls have reported what an agent found, by key
}

func newAgents() *agents { return &agents{make(map[string]int64)} }

func (a *agents) fold(s *scene, e *stored.Event, b *body) {
	if e.Type != "tool.execution_complete" || !b.Success {
		return
	}
	if c := s.call(b.ToolCallID); c != nil && c.name == "task" && c.begun > s.session.Shared {
		a.keys[c.key] = e.Seq
	}
}

// related looks at the sessions that a session refers to.
func (a *auditor) related(s *scene, known *agents) error {
	for key, at := range known.keys {
		exists, err := a.exists(key)
		if err != nil {
			return err
		}
		if !exists {
			a.left(Finding{Rule: "agent.missing", Session: s.session.Name, Seq: at, Text: "the call that event " + number(at) + " finishes was made by the agent " + key + ", and there is no such session"})
		}
	}
	if s.config.Agent == nil {
		return nil
	}
	exists, err := a.exists(s.config.Agent.SessionID)
	if err == nil && !exists {
		a.left(Finding{Rule: "agent.orphaned", Session: s.session.Name, Seq: s.session.Seq, Text: "the session works for the session " + s.config.Agent.SessionID + ", which does not exist"})
	}
	return err
}
