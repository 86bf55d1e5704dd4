package approval

import (
	"path/filepath"
	"slices"
	"strings"
)

// Unread returns what rules about reading keep from a tool that reads all files of a folder
// and is judged by the folder: paths, and a function that reports whether a rule with a
// pattern covers a path. The function is nil if there is no such rule. Relative rules are
// relative to the folders dirs.
func Unread(rules, dirs []string) (places []string, covered func(path string) bool) {
	var patterns []rule
	for _, text := range rules {
		u, err := parse(text)
		if err != nil || u.pattern == "" || !pathKind(u.tool) || u.isWrite() || u.tool == "glob" { // names are no content
			continue
		}
		folder := strings.TrimSuffix(strings.TrimSuffix(u.pattern, "/**"), "/*")
		if strings.ContainsAny(folder, `*?[]{}\`) || folder == "" {
			patterns = append(patterns, u)
			continue
		}
		for _, dir := range dirs {
			places = addOnce(places, absolute(dir, filepath.FromSlash(folder)))
		}
	}
	if patterns == nil {
		return places, nil
	}
	return places, func(path string) bool {
		return slices.ContainsFunc(patterns, func(u rule) bool { return u.covers(path, dirs) })
	}
}
