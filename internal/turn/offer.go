package turn

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/tool"
)

// AskUser is the built-in tool by which the model asks a person. It is not run:
// a call of it is an open question.
const AskUser = "ask_user"

var askUserSpec = tool.Spec{
	Name:        AskUser,
	Description: "Ask the user a question and wait for the answer. Use it when you cannot go on without a decision or a fact that only the user has.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"question":{"type":"string","description":"The question, complete in itself."},` +
		`"choices":{"type":"array","items":{"type":"string"},"description":"Answers to choose from, if there are some."}},` +
		`"required":["question"]}`),
}

// A Catalog knows the tools of this runtime.
type Catalog []tool.Tool

// find returns the runtime's own tool of that name.
func (c Catalog) find(name string) tool.Tool {
	for _, t := range c {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// Offer returns the tools that the model is told of, the runtime's own first.
func (c Catalog) Offer(s *State) []model.Tool {
	var list []model.Tool
	add := func(source string, spec tool.Spec) {
		if spec.OnDemand && !named(s.Config, source, spec.Name) {
			return
		}
		if allowed(s.Config, source, spec.Name) {
			list = append(list, model.Tool{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
		}
	}
	for _, t := range c {
		spec := t.Spec()
		if _, hidden := s.external(spec.Name); hidden {
			continue
		}
		if spec.Name == StartAgent {
			agents := s.Agents()
			if len(agents) == 0 {
				continue
			}
			spec = TaskSpec(agents)
		}
		if spec.Name == UseSkill {
			usable := s.Usable()
			if len(usable) == 0 {
				continue
			}
			spec = SkillSpec(usable)
		}
		add("builtin", spec)
	}
	if _, hidden := s.external(AskUser); s.Declared.UserInput && !hidden {
		add("builtin", askUserSpec)
	}
	if _, hidden := s.external(ExitPlanMode); s.plans() && !hidden {
		add("builtin", exitPlanSpec)
	}
	if _, hidden := s.external(TaskComplete); s.alone() && !hidden {
		add("builtin", taskCompleteSpec)
	}
	for _, x := range s.Tools {
		add("custom", tool.Spec{Name: x.Name, Description: x.Description, Parameters: x.Parameters})
	}
	return list
}

// offers reports whether a tool of that name may be called, and lists those
// that may.
func (c Catalog) offers(s *State, name string) (bool, []string) {
	var names []string
	found := false
	for _, t := range c.Offer(s) {
		names = append(names, t.Name)
		found = found || t.Name == name
	}
	return found, names
}

// allowed applies a session's tool filters. What is excluded is out, whatever
// else is said.
func allowed(c event.SessionConfiguredData, source, name string) bool {
	for _, list := range [][]string{c.ExcludedTools, c.AgentExcluded} {
		for _, pattern := range list {
			if filterMatches(pattern, source, name) {
				return false
			}
		}
	}
	if a := c.Chosen(); a != nil && !listed(a.Tools, source, name) {
		return false
	}
	return listed(c.AvailableTools, source, name)
}

// listed reports whether a filter lets a tool pass. One that is nil lets all pass.
func listed(filter []string, source, name string) bool {
	return filter == nil || slices.ContainsFunc(filter, func(pattern string) bool { return filterMatches(pattern, source, name) })
}

// named reports whether a session asks for a tool by its own name.
func named(c event.SessionConfiguredData, source, name string) bool {
	return slices.Contains(c.ExtraTools, name) || slices.Contains(c.AvailableTools, name) || slices.Contains(c.AvailableTools, source+":"+name)
}

// filterMatches understands a name, "source:name" and "source:*".
func filterMatches(pattern, source, name string) bool {
	if from, rest, ok := strings.Cut(pattern, ":"); ok && from == source {
		return rest == "*" || rest == name
	}
	return pattern == name || pattern == "*"
}
