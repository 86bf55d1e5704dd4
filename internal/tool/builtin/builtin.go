// Package builtin lists the tools of a session that belong to no other part of
// the runtime: skills, agents, questions to a person, plans, and the end of work in
// autopilot mode.
package builtin

import (
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/ask"
	"github.com/abide-run/abide/internal/tool/done"
	"github.com/abide-run/abide/internal/tool/plan"
	"github.com/abide-run/abide/internal/tool/skill"
)

// A Host knows the skills of sessions and runs their agents.
type Host interface {
	agent.Runner
	skill.Library
}

// New returns the tools of the sessions of a host.
func New(h Host) []tool.Tool {
	return []tool.Tool{skill.New(h), agent.New(h), ask.New(), plan.New(), done.New()}
}

// WithoutAgents returns the tools for sessions that start no agents.
func WithoutAgents(h skill.Library) []tool.Tool {
	return []tool.Tool{skill.New(h), ask.New(), plan.New(), done.New()}
}
