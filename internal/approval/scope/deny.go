package scope

import "strings"

// A denyIndex has all that is denied, by path and by identity.
type denyIndex struct {
	names map[string]string   // targets of the rules by denied path
	ids   map[identity]string // targets of the rules by denied file or folder
}

// Denied returns the paths that are denied in a mode, as they were written and without
// links: for what cannot be judged path by path.
func (s *Scope) Denied(mode Mode) []string {
	var all []string
	for _, d := range s.deny {
		if d.mode <= mode {
			all = append(all, d.names...)
		}
	}
	return all
}

// denyIndex returns what is denied now. A denied target that was renamed is recognised by
// its identity, and a file that has taken its place is denied too.
func (s *Scope) denyIndex(mode Mode) denyIndex {
	if len(s.deny) == 0 {
		return denyIndex{}
	}
	g := denyIndex{make(map[string]string), make(map[identity]string)}
	for _, d := range s.deny {
		if d.mode > mode {
			continue
		}
		rule := d.names[0]
		for _, name := range d.names {
			g.names[name] = rule
			g.add(name, rule)
		}
		if d.identity != (identity{}) {
			g.ids[d.identity] = rule
		}
	}
	return g
}

func (g denyIndex) add(name, rule string) {
	t, err := resolve(name)
	if err != nil {
		return
	}
	defer t.close()
	if found, ok := t.found(); ok {
		g.ids[found.identity] = rule
	}
}

// ruleDenying returns the target of the rule that denies what a path leads to, or a folder or
// link on its way. It is empty if there is none.
func (g denyIndex) ruleDenying(t *resolvedPath, path string) string {
	if len(g.names) == 0 {
		return ""
	}
	for _, name := range append(t.links[:len(t.links):len(t.links)], path) {
		if rule := g.ruleAbove(name); rule != "" {
			return rule
		}
	}
	for _, s := range t.steps {
		if rule := g.ids[s.identity]; rule != "" {
			return rule
		}
	}
	found, _ := t.found()
	return g.ids[found.identity]
}

// ruleAbove returns the rule whose target is the path or a folder above it.
func (g denyIndex) ruleAbove(path string) string {
	for name, rule := range g.names {
		if beneathFold(name, path) {
			return rule
		}
	}
	return ""
}

// beneathFold reports whether path is dir or below it, ignoring case, because some
// file systems ignore case.
func beneathFold(dir, path string) bool {
	above, names := components(dir), components(path)
	if len(names) < len(above) {
		return false
	}
	for i, name := range above {
		if !strings.EqualFold(name, names[i]) {
			return false
		}
	}
	return true
}

// hasBelow reports whether a denied path is below a folder.
func (g denyIndex) hasBelow(folder string) bool {
	for name := range g.names {
		if beneathFold(folder, name) {
			return true
		}
	}
	return false
}
