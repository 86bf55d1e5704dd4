package turn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/tool"
)

// A Catalog is the tools of this runtime.
type Catalog []tool.Tool

// find returns the tool of that name that the runtime carries out.
func (c Catalog) find(s *State, name string) tool.Tool {
	for _, t := range c {
		if family, ok := t.(tool.Family); ok {
			if found := family.Member(s, name); found != nil {
				return found
			}
		} else if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// Reserves reports whether a name is that of a tool that every session can have.
func (c Catalog) Reserves(name string) bool {
	return slices.ContainsFunc(c, func(t tool.Tool) bool { return strings.EqualFold(t.Spec().Name, name) })
}

// Offer returns the tools that the model may call, the runtime's own first.
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
	for _, t := range c.members(s) {
		spec, useful := offered(t, s)
		if _, hidden := s.external(spec.Name); useful && !hidden {
			add(cmp.Or(spec.Source, "builtin"), spec)
		}
	}
	for _, x := range s.Setup.Tools {
		add("custom", tool.Spec{Name: x.Name, Description: x.Description, Parameters: x.Parameters})
	}
	return list
}

// members returns the tools of the catalog, with those that families stand for.
func (c Catalog) members(s *State) []tool.Tool {
	var list []tool.Tool
	for i, t := range c {
		family, ok := t.(tool.Family)
		switch {
		case ok && list == nil:
			list = append(slices.Clip(c[:i:i]), family.Members(s)...)
		case ok:
			list = append(list, family.Members(s)...)
		case list != nil:
			list = append(list, t)
		}
	}
	if list == nil {
		return c
	}
	return list
}

// offered returns the description of a tool for the model of a session. It reports
// false if the tool is of no use in that session.
func offered(t tool.Tool, s *State) (tool.Spec, bool) {
	if o, ok := t.(tool.Offerer); ok {
		return o.Offer(s)
	}
	return t.Spec(), true
}

// offers reports whether the tool of that name may be called, and returns the names of
// all tools that may.
func (c Catalog) offers(s *State, name string) (bool, []string) {
	var names []string
	found := false
	for _, t := range c.Offer(s) {
		names = append(names, t.Name)
		found = found || t.Name == name
	}
	return found, names
}

// allowed reports whether the tool filters of a session let a tool pass. An excluded
// tool never passes.
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

// listed reports whether a filter lets a tool pass. A nil filter lets all tools pass.
func listed(filter []string, source, name string) bool {
	return filter == nil || slices.ContainsFunc(filter, func(pattern string) bool { return filterMatches(pattern, source, name) })
}

// named reports whether the configuration lists a tool by its own name, not by a
// pattern.
func named(c event.SessionConfiguredData, source, name string) bool {
	return slices.Contains(c.ExtraTools, name) || slices.Contains(c.AvailableTools, name) || slices.Contains(c.AvailableTools, source+":"+name)
}

// filterMatches reports whether a pattern matches a tool. A pattern is a name, "*",
// "source:name" or "source:*".
func filterMatches(pattern, source, name string) bool {
	if from, rest, ok := strings.Cut(pattern, ":"); ok && from == source {
		return rest == "*" || rest == name
	}
	return pattern == name || pattern == "*"
}
