package approval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
)

// A rule names a tool or a kind of request, and may have a pattern: "bash",
// "bash(git *)", "write(docs/**)", "url(https://example.org/*)", "read-only".
//
// A pattern for paths covers the paths that it matches and everything below them; a
// relative one is relative to the working directory. In other patterns a star matches
// any text, and " *" at the end also matches nothing.
type rule struct {
	tool    string
	pattern string // empty if the rule is about all calls
}

// Check returns an error if a rule is not valid.
func Check(text string) error {
	_, err := parse(text)
	return err
}

// Expand replaces ~ by the home directory in the pattern of a rule.
func Expand(text, home string) string {
	if tool, rest, ok := strings.Cut(text, "(~/"); ok {
		return tool + "(" + home + "/" + rest
	}
	return text
}

func parse(text string) (rule, error) {
	tool, rest, patterned := strings.Cut(text, "(")
	r := rule{tool: strings.ToLower(tool)}
	switch {
	case tool == "" || strings.ContainsAny(tool, " \t)"):
		return r, fmt.Errorf("rule %q: it begins with the name of a tool or kind, like bash, edit, read or write", text)
	case !patterned:
		return r, nil
	}
	pattern, closed := strings.CutSuffix(rest, ")")
	if !closed || pattern == "" {
		return r, fmt.Errorf("rule %q: the pattern stands in parentheses, like %s(docs/**)", text, tool)
	}
	if _, err := glob.Compile(strings.TrimPrefix(pattern, "/")); err != nil && pathKind(r.tool) {
		return r, fmt.Errorf("rule %q: %w", text, err)
	}
	if start, ok := strings.CutSuffix(pattern, ":*"); ok { // the form that other agents use
		pattern = start + " *"
	}
	r.pattern = pattern
	return r, nil
}

// pathKind reports whether a rule with this name is about paths.
func pathKind(name string) bool {
	return slices.Contains([]string{Read, Write, "view", "create", "edit", "grep", "glob"}, name)
}

// urlKind reports whether a rule with this name is about URLs.
func urlKind(name string) bool { return name == URL || name == "web_fetch" }

// concerns reports whether the rule is about the tool or kind of a request.
func (u rule) concerns(r *Request) bool {
	switch u.tool {
	case "*", strings.ToLower(r.Tool), r.Kind:
		return true
	case readOnly:
		return r.Kind == Read || (r.ReadOnly && !r.Unclear)
	}
	return false
}

// namedInCommand reports whether the text of a command has a path or URL that the rule is about.
func (u rule) namedInCommand(r *Request) bool {
	switch {
	case r.Kind != Shell || u.pattern == "":
		return false
	case pathKind(u.tool):
		return slices.ContainsFunc(r.Paths, func(path string) bool { return u.covers(path, r.Dirs) })
	case urlKind(u.tool):
		return slices.ContainsFunc(r.URLs, func(url string) bool { return wildcard(u.pattern, url) })
	}
	return false
}

// matchedBy reports whether a rule is about any part of a request. An invalid rule is
// about everything, because it was meant to stop something.
func (r *Request) matchedBy(text string) bool {
	u, err := parse(text)
	if err != nil {
		return true
	}
	if u.namedInCommand(r) {
		return true
	}
	matches := func(detail string) bool { return u.matches(detail, r) }
	return u.concerns(r) && (u.pattern == "" || slices.ContainsFunc(r.Details, matches) || slices.ContainsFunc(r.Aliases, matches))
}

// allowedBy reports whether rules allow every part of a request.
func (r *Request) allowedBy(rules []string) bool {
	var about []rule
	for _, text := range rules {
		if u, err := parse(text); err == nil && u.concerns(r) {
			about = append(about, u)
		}
	}
	if slices.ContainsFunc(about, func(u rule) bool { return u.pattern == "" }) {
		return true
	}
	if r.Unclear || len(r.Details) == 0 {
		return false
	}
	for _, detail := range r.Details {
		if !slices.ContainsFunc(about, func(u rule) bool { return u.matches(detail, r) }) {
			return false
		}
	}
	return true
}

// matches reports whether the pattern matches one detail of a request.
func (u rule) matches(detail string, r *Request) bool {
	if u.pattern == "" {
		return true
	}
	if r.Kind != Read && r.Kind != Write {
		return wildcard(u.pattern, detail)
	}
	return u.covers(detail, r.Dirs)
}

// covers reports whether the pattern covers a path. A relative pattern is relative to
// the folders dirs.
func (u rule) covers(path string, dirs []string) bool {
	if filepath.IsAbs(u.pattern) {
		return covers(u.pattern, path)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel) && covers(u.pattern, rel)
	})
}

// covers reports whether a pattern matches a path or a folder above it.
func covers(pattern, path string) bool {
	p, err := glob.Compile(strings.TrimPrefix(filepath.ToSlash(filepath.Clean(pattern)), "/"))
	if err != nil {
		return false
	}
	for path = strings.TrimPrefix(path, "/"); path != "." && path != "/" && path != ""; path = filepath.Dir(path) {
		if p.Match(filepath.ToSlash(path)) {
			return true
		}
	}
	return filepath.Clean(pattern) == "." // the working directory itself
}

// wildcard reports whether a pattern, in which a star matches any text, matches a text.
func wildcard(pattern, text string) bool {
	if start, ok := strings.CutSuffix(pattern, " *"); ok && !strings.Contains(start, "*") {
		return text == start || strings.HasPrefix(text, start+" ")
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
