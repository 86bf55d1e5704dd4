// Package gitignore decides which files git ignores because of .gitignore files.
//
// A walk through a tree adds the rules of each folder, from the top down, and asks about
// each name before it enters a folder: everything in an ignored folder is ignored,
// whatever the rules say about it.
package gitignore

import (
	"bytes"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
)

// Rules are the rules of the .gitignore files of a folder and the folders above it. They
// do not change. Nil has no rules.
type Rules struct {
	above *Rules
	base  string // folder of the file, with a slash at its end
	rules []rule // rules of the file; the last one that matches decides
}

// A rule is one line of a file.
type rule struct {
	start   string // literal beginning of the pattern
	pattern *glob.Pattern
	path    bool // true if the pattern is matched with the path from the base, false with the name
	folder  bool // true if the rule is only about folders
	negated bool
}

// Below returns the rules with those of a .gitignore file in a folder. They have
// precedence over the rules from above.
func (r *Rules) Below(folder string, text []byte) *Rules {
	rules := parse(text)
	if len(rules) == 0 {
		return r
	}
	return &Rules{r, strings.TrimSuffix(folder, "/") + "/", rules}
}

// parse parses a .gitignore file.
func parse(text []byte) []rule {
	var rules []rule
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if rule, ok := parseLine(strings.TrimSuffix(string(line), "\r")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

func parseLine(line string) (rule, bool) {
	var r rule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.folder = strings.CutSuffix(line, "/")
	r.path = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if r.path {
		// Git compares the literal beginning first, and the rest as a pattern of its own.
		// So stars after the beginning are at the start of a pattern.
		r.start = line[:special(line)]
	}
	r.pattern = glob.Git(line[len(r.start):])
	return r, line != ""
}

// special returns the position of the first special character.
func special(line string) int {
	if i := strings.IndexAny(line, `*?[\`); i >= 0 {
		return i
	}
	return len(line)
}

// trimSpaces removes the spaces at the end of a line that are not escaped.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if line[i] == ' ' {
			continue
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// Ignored reports whether a name in a folder is ignored. The folder has the same form as
// in Below.
func (r *Rules) Ignored(folder, name string, isFolder bool) bool {
	for ; r != nil; r = r.above {
		if negated, ok := r.match(folder, name, isFolder); ok {
			return !negated
		}
	}
	return false
}

// match returns the decision of the last rule that matches, and whether there is one.
func (r *Rules) match(folder, name string, isFolder bool) (negated, ok bool) {
	path := ""
	for i := len(r.rules) - 1; i >= 0; i-- {
		rule := &r.rules[i]
		if rule.folder && !isFolder {
			continue
		}
		subject := name
		if rule.path {
			if path == "" {
				path = strings.TrimPrefix(strings.TrimSuffix(folder, "/")+"/"+name, r.base)
			}
			subject = path
		}
		if rest, ok := strings.CutPrefix(subject, rule.start); ok && rule.pattern.Match(rest) {
			return rule.negated, true
		}
	}
	return false, false
}
