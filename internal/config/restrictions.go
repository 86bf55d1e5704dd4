package config

import (
	"bytes"
	"errors"

	"github.com/pelletier/go-toml/v2"

	"github.com/abide-run/abide/internal/approval"
)

// maxRepairs is the number of lines that Restrictions leaves out before it gives up on a file.
const maxRepairs = 64

// Restrictions returns what the file of a project restricts, for a file that cannot be used as
// it is: a layer with the restrictions that can be read, whatever else is wrong with the file.
// If the file may hold a restriction that cannot be read, the layer says so (Unread) and has
// every call asked about, which is the strictest rule that lets a person work. Of a layer
// without data nothing is known.
//
//   - Lines that are no TOML are left out, and the rest is read.
//   - A rule counts if it is valid by itself, also where a list was meant and one was written.
//   - A rule that is not valid, and any key that this version does not know, may have been
//     meant to restrict.
//   - A wrong value of another key restricts nothing, because such keys of an untrusted
//     project do not apply.
func (l Layer) Restrictions() Layer {
	values, whole := readSome(l.Data)
	s := salvage{doubtful: !whole || len(l.Data) == 0}
	for _, key := range flatten(values, nil) {
		s.doubtful = s.doubtful || !known(key)
	}
	s.permissions(values["permissions"])
	s.scope(values["scope"])
	if s.doubtful {
		s.kept.Permissions.Ask = append(s.kept.Permissions.Ask, "*")
	}
	l.Data, _ = toml.Marshal(s.kept) // a table of texts can always be encoded
	l.Unread = s.doubtful
	return l
}

// readSome returns the values of a file without the lines that are no TOML, and whether it
// needed to leave out none.
func readSome(data []byte) (values map[string]any, whole bool) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for repairs := range maxRepairs {
		values = make(map[string]any)
		err := toml.Unmarshal(bytes.Join(lines, nil), &values)
		if err == nil {
			return values, repairs == 0
		}
		var wrong *toml.DecodeError
		if !errors.As(err, &wrong) {
			return nil, false
		}
		line, _ := wrong.Position()
		if line < 1 || line > len(lines) || len(bytes.TrimSpace(lines[line-1])) == 0 {
			line = lastLine(lines)
		}
		if line == 0 {
			return nil, false
		}
		lines[line-1] = []byte("\n")
	}
	return nil, false
}

// lastLine returns the number of the last line that is not empty; 0 if all are. A text or a
// list that is never closed has its mistake there.
func lastLine(lines [][]byte) int {
	for n := len(lines); n > 0; n-- {
		if len(bytes.TrimSpace(lines[n-1])) > 0 {
			return n
		}
	}
	return 0
}

// A salvage collects the restrictions of a file with mistakes.
type salvage struct {
	kept struct {
		Permissions struct {
			Ask  []string `toml:"ask,omitempty"`
			Deny []string `toml:"deny,omitempty"`
		} `toml:"permissions"`
		Scope struct {
			Deny []Rule `toml:"deny,omitempty"`
		} `toml:"scope"`
	}
	doubtful bool // true if something may be a restriction and cannot be read
}

func (s *salvage) permissions(value any) {
	table, ok := value.(map[string]any)
	s.doubtful = s.doubtful || value != nil && !ok
	s.kept.Permissions.Ask = s.rules(table["ask"])
	s.kept.Permissions.Deny = s.rules(table["deny"])
}

// rules returns the valid rules of a list, or the one that stands in place of a list.
func (s *salvage) rules(value any) (valid []string) {
	for _, entry := range asList(value) {
		rule, ok := entry.(string)
		if !ok || approval.Check(rule) != nil {
			s.doubtful = true
			continue
		}
		valid = append(valid, rule)
	}
	return valid
}

func (s *salvage) scope(value any) {
	table, ok := value.(map[string]any)
	s.doubtful = s.doubtful || value != nil && !ok
	for _, entry := range asList(table["deny"]) {
		rule, _ := entry.(map[string]any)
		target, _ := rule["target"].(string)
		permission, named := rule["permission"]
		s.doubtful = s.doubtful || targetMistake(target, "deny") != "" || !knownRule(rule)
		if target == "" {
			continue
		}
		kept := Rule{Target: target, Permission: "read"} // a rule about reading denies writing, too
		if named && permission == "write" {
			kept.Permission = "write"
		}
		s.kept.Scope.Deny = append(s.kept.Scope.Deny, kept)
	}
}

// knownRule reports whether all keys of a rule about files are known.
func knownRule(rule map[string]any) bool {
	for key := range rule {
		if !known(path{"scope", "deny", key}) {
			return false
		}
	}
	return true
}

// asList returns the entries of a list, or what stands in its place as the only one.
func asList(value any) []any {
	if list, ok := value.([]any); ok || value == nil {
		return list
	}
	return []any{value}
}
