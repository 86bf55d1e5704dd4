// Package builtin lists the tools of a session that belong to no other part of
// the runtime: skills, agents, questions to a person, plans, and the end of work in
// autopilot mode.
package builtin

import (
	"slices"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/ask"
	"github.com/abide-run/abide/internal/tool/done"
	"github.com/abide-run/abide/internal/tool/plan"
	"github.com/abide-run/abide/internal/tool/skill"
)

// New returns the tools for sessions that know skills and start agents.
func New(skills skill.Library, agents agent.Runner) []tool.Tool {
	return slices.Insert(WithoutAgents(skills), 1, agent.New(agents))
}

// WithoutAgents returns the tools for sessions that start no agents.
func WithoutAgents(skills skill.Library) []tool.Tool {
	return []tool.Tool{
		skill.New(skills),
		ask.New(),
		plan.New(),
		done.New(),
	}
}
