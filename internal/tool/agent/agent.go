// Package agent has the tool task, with which a model gives work to an agent.
//
// An agent is a session like any other, with the key of the call that started it as its
// ID: it is stored, it continues after a crash, and a repeated call finds it. A [Runner]
// runs it.
package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

// A Runner runs agents.
type Runner interface {
	// Run gives work to an agent and returns the result. The call is the one that
	// starts the agent.
	Run(ctx context.Context, call tool.Call, work tool.AgentWork) (tool.Result, error)
}

// A kind is an agent that every session can start.
type kind struct {
	name  string
	brief string   // instructions for the agent in addition to its prompt
	tools []string // names of its tools; nil for all
}

// kinds are the built-in agents.
var kinds = []kind{
	{name: "explore", brief: "You find out how things are, and say so. You change nothing.", tools: []string{"view", "grep", "glob"}},
	{name: "task", brief: "You carry out one task, and say what came of it."},
	{name: "general-purpose", brief: "You work on your own until what was asked for is done."},
	{name: "code-review", brief: "You review changes: look for what is wrong in them, and name each place."},
	{name: "research", brief: "You gather what is known about a question, and name where it comes from."},
	{name: "security-review", brief: "You look for ways in which the code can be abused, and name each place."},
}

// Names returns the names of the agents that every session can start.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Briefs returns the instructions of each of these agents, by name.
func Briefs() map[string]string {
	briefs := make(map[string]string, len(kinds))
	for _, k := range kinds {
		briefs[k.name] = k.brief
	}
	return briefs
}

// New returns the tool. Its agents are run by r.
func New(r Runner) tool.Tool { return agentTool{r} }

type agentTool struct{ runner Runner }

func (agentTool) Spec() tool.Spec { return spec(Names()) }

// Offer offers the tool with the agents that the session can start.
func (agentTool) Offer(s tool.State) (tool.Spec, bool) {
	agents := offered(s)
	return spec(agents), len(agents) > 0
}

// offered returns the names of the agents that a session can start: the built-in ones,
// without those that its configuration excludes, and those that its configuration
// describes. An agent cannot start agents.
func offered(s tool.State) []string {
	session, ok := s.(interface {
		Settings() event.SessionConfiguredData
	})
	if !ok {
		return nil
	}
	c := session.Settings()
	if c.Agent != nil {
		return nil
	}
	list := slices.DeleteFunc(Names(), func(name string) bool {
		return slices.Contains(c.ExcludedAgents, name) || c.Custom(name) != nil
	})
	for _, a := range c.Agents {
		if a.Inferred() && a.Name != c.Selected {
			list = append(list, a.Name)
		}
	}
	return list
}

// Permission refuses a call that names no agent of the session. Starting an agent needs
// no permission, because the calls of the agent do.
func (agentTool) Permission(_ context.Context, call tool.Call) (*approval.Request, error) {
	work, err := read(call.Arguments)
	if valid := offered(call.State); err == nil && !slices.Contains(valid, work.Type) {
		err = &tool.Refusal{Result: tool.Fail(fmt.Sprintf("Unknown agent_type: %s. Valid types are: %s", work.Type, strings.Join(valid, ", ")))}
	}
	return nil, err
}

// Run runs the agent until it has an answer.
func (t agentTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	work, err := read(call.Arguments)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	return t.runner.Run(ctx, call, work)
}

// read parses the arguments of a call.
func read(raw json.RawMessage) (tool.AgentWork, error) {
	args := argument.Read(raw)
	work := tool.AgentWork{
		Description: args.Needed("description"), Prompt: args.Needed("prompt"),
		Type: args.Needed("agent_type"), Name: args.Needed("name"),
	}
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == work.Type }); i >= 0 {
		work.Brief, work.Tools = kinds[i].brief, kinds[i].tools
	}
	return work, args.Err()
}

// spec returns the description of the tool, with the agents that it can start.
func spec(agents []string) tool.Spec {
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
	if err != nil { // cannot happen: the value is plain data
		panic(err)
	}
	return tool.Spec{
		Name: "task", Parameters: schema, Replay: tool.Keyed, Agent: true,
		Description: "Give work to an agent with a conversation of its own, and wait for its answer. Use it for work whose details you need not see, such as a search through many files, and for several pieces of work at once. Do not use it for what you can do with one or two calls, or for work that needs this conversation.\n\nExample: {\"description\": \"Find the callers\", \"prompt\": \"List all callers of turn.Next with file and line.\", \"agent_type\": \"explore\", \"name\": \"callers\"}",
	}
}
