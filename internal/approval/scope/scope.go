// Package scope says which files may be read and written, and opens them.
//
//   - What no rule allows is not allowed, and a denial wins over everything.
//   - A path is judged by where it leads and not by how it is written, and it is
//     judged again when it is opened. Links, ".." and /proc grant nothing.
//   - What is opened is what was judged: the way goes from one open folder to the
//     next, and no step follows a link by itself. Renaming things meanwhile can
//     make an open fail, and nothing else.
//   - A rule reaches what is below its target on the same mount. What is mounted
//     there needs a rule of its own.
//   - A denied file or folder stays denied under other names: renamed, mounted
//     elsewhere, or spelled in another case where the file system does not care.
//   - Only regular files and folders are opened, and no open blocks.
//   - A write leaves the old file or the new one, whatever happens.
//
// Names are bytes. A name that merely looks like an allowed one is not allowed.
// A hard link is a file like any other: what it shares with a file elsewhere can
// be read through it, but a write replaces the link and not that file.
//
// On systems other than Linux a mount is told by its device alone.
package scope

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Mode is what is done with a file.
type Mode int

// The modes.
const (
	Read Mode = iota
	Write
)

// String names the mode.
func (m Mode) String() string {
	if m == Write {
		return "write"
	}
	return "read"
}

// A Rule is about a file, or a folder with all that is below it.
//
// If it allows, Write includes reading. If it denies, Write denies writing alone
// and Read denies both.
type Rule struct {
	Target string // absolute; links in it are followed once, when the scope is made
	Mode   Mode
}

// A Verdict is what the rules say of a path.
type Verdict int

// The verdicts.
const (
	Unlisted Verdict = iota // no rule is about it
	Allowed
	Denied
)

// A Scope is a set of rules. It does not change, and is safe for concurrent use.
type Scope struct {
	allow []allowance
	deny  []denial
}

type allowance struct {
	path string // without links
	mode Mode
}

type denial struct {
	names []string // of the target: as it was written, and without links
	mode  Mode
	was   identity // of the target when the scope was made; zero if there was none
}

// New returns the scope of the given rules.
func New(allow, deny []Rule) (*Scope, error) {
	s := new(Scope)
	for _, r := range allow {
		path, _, err := target(r)
		if err != nil {
			return nil, fmt.Errorf("allow %s %s: %w", r.Mode, r.Target, err)
		}
		s.allow = append(s.allow, allowance{path, r.Mode})
	}
	for _, r := range deny {
		path, id, err := target(r)
		if err != nil {
			return nil, fmt.Errorf("deny %s %s: %w", r.Mode, r.Target, err)
		}
		s.deny = append(s.deny, denial{[]string{filepath.Clean(r.Target), path}, r.Mode, id})
	}
	return s, nil
}

// target says where a rule's target leads and what is there.
func target(r Rule) (string, identity, error) {
	t, err := follow(r.Target)
	if err != nil {
		return "", identity{}, err
	}
	defer t.close()
	found, _ := t.found()
	return t.path(), found.identity, nil
}

// With returns a scope that also allows one path and, if it is a folder, what is
// below it: for a call that somebody said yes to. The path is one that leads
// where it says, as Judge returns it. Denials hold.
func (s *Scope) With(path string, mode Mode) *Scope {
	allow := append(s.allow[:len(s.allow):len(s.allow)], allowance{filepath.Clean(path), mode})
	return &Scope{allow, s.deny}
}

// A Finding is what the rules say of a path as things are now.
type Finding struct {
	Verdict Verdict
	Path    string // where the path leads, without links
	Rule    string // the target of the rule that denies it
}

// Judge says what the rules say of a path, which need not exist. It is for
// asking people; whoever opens the path is judged again.
func (s *Scope) Judge(path string, mode Mode) (Finding, error) {
	t, err := follow(path)
	if err != nil {
		return Finding{}, err
	}
	defer t.close()
	verdict, rule := s.judge(t, mode)
	return Finding{verdict, t.path(), rule}, nil
}

// A Refusal is the error of using a path that the rules do not allow.
type Refusal struct {
	Finding
	Name string // the path as it was given
	Mode Mode
}

func (r *Refusal) Error() string {
	leads := ""
	if r.Path != r.Name {
		leads = ", which leads to " + r.Path + ","
	}
	if r.Verdict == Denied {
		return fmt.Sprintf("%s%s may not be used to %s: a rule denies %s", r.Name, leads, r.Mode, r.Rule)
	}
	return fmt.Sprintf("%s%s is outside of what this session may %s: add it to scope.allow, or allow the call when asked", r.Name, leads, r.Mode)
}

// reach follows a path to what the rules allow to be used.
func (s *Scope) reach(path string, mode Mode) (*trail, error) {
	t, err := follow(path)
	if err != nil {
		return nil, err
	}
	if verdict, rule := s.judge(t, mode); verdict != Allowed {
		defer t.close()
		return nil, &Refusal{Finding{verdict, t.path(), rule}, path, mode}
	}
	return t, nil
}

func (s *Scope) judge(t *trail, mode Mode) (Verdict, string) {
	path := t.path()
	if rule := s.guard(mode).stops(t, path); rule != "" {
		return Denied, rule
	}
	for _, a := range s.allow {
		if mode <= a.mode && beneath(a.path, path) && t.oneMount(depth(a.path)) {
			return Allowed, ""
		}
	}
	return Unlisted, ""
}

// beneath reports whether path is dir or below it, byte by byte.
func beneath(dir, path string) bool {
	return dir == "/" || strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// depth is the number of names in a path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
