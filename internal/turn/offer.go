package turn

import (
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/tool"
)

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
		if spec.OnDemand && !named(s.Setup.Config, source, spec.Name) {
			return
		}
		if allowed(s.Setup.Config, source, spec.Name) {
			list = append(list, model.Tool{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
		}
	}
	for _, t := range c {
		spec, useful := offered(t, s)
		if _, hidden := s.external(spec.Name); useful && !hidden {
			add("builtin", spec)
		}
	}
	for _, x := range s.Setup.Tools {
		add("custom", tool.Spec{Name: x.Name, Description: x.Description, Parameters: x.Parameters})
	}
	return list
}

// offered is what the model of a session is told of a tool. It reports false if
// the tool is of no use there.
func offered(t tool.Tool, s *State) (tool.Spec, bool) {
	if o, ok := t.(tool.Offerer); ok {
		return o.Offer(s)
	}
	return t.Spec(), true
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
