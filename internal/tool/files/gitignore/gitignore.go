// Package gitignore says which files git would leave alone because a .gitignore
// file says so.
//
// Whoever walks a tree makes rules of the files it comes by, from the top down,
// and asks about each name in a folder before it goes on: what lies in an
// ignored folder is ignored, whatever the rules say of it.
package gitignore

import (
	"bytes"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
)

// Rules are what the .gitignore files from some folder upwards say. They do not
// change. Nil has no rules.
type Rules struct {
	above *Rules
	base  string // the folder that the file is in, with a slash at its end
	rules []rule // the last one that matches decides
}

// A rule is one line of a file.
type rule struct {
	start   string // of the path, where the pattern has nothing special yet
	pattern *glob.Pattern
	path    bool // the pattern is about the path from the base, not about the name alone
	folder  bool // only folders are meant
	negated bool
}

// Below adds the rules of a .gitignore file in a folder. They come before those
// above it.
func (r *Rules) Below(folder string, text []byte) *Rules {
	rules := parse(text)
	if len(rules) == 0 {
		return r
	}
	return &Rules{r, strings.TrimSuffix(folder, "/") + "/", rules}
}

// parse reads a .gitignore file.
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
		// Git compares this part first and the rest as a pattern of its own, in
		// which stars that follow are at the start.
		r.start = line[:special(line)]
	}
	r.pattern = glob.Git(line[len(r.start):])
	return r, line != ""
}

// special returns where the first character is that means something.
func special(line string) int {
	if i := strings.IndexAny(line, `*?[\`); i >= 0 {
		return i
	}
	return len(line)
}

// trimSpaces takes away the spaces at the end of a line that are not escaped.
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

// Ignored reports whether a name in a folder is ignored. The folder is written
// as those of the files are.
func (r *Rules) Ignored(folder, name string, isFolder bool) bool {
	for ; r != nil; r = r.above {
		if negated, ok := r.match(folder, name, isFolder); ok {
			return !negated
		}
	}
	return false
}

// match returns what the last rule that matches says.
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
