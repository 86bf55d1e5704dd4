// Package scope decides which files may be read and written, and opens them.
//
//   - What no rule allows is not allowed, and a rule that denies wins over everything.
//   - The rules apply to the file that a path leads to, not to how the path is written,
//     and again when the file is opened. Links, ".." and /proc give no access.
//   - The opened file is the one that the rules allowed: each folder is opened from the
//     one above it, and the system follows no link. If files are renamed meanwhile, an
//     open can fail, but it never opens another file.
//   - A rule covers everything below its target on the same mount. Other mounts below it
//     need a rule of their own.
//   - A denied file or folder stays denied under other names: renamed, mounted
//     elsewhere, or written in another case on a file system that ignores case.
//   - Only regular files and folders are opened, and opening never blocks.
//   - A write leaves the old file or the new one, even after a crash.
//   - A protected path is not written, whatever the rules allow, unless a person was
//     shown it.
//
// Names are bytes. A name that only looks like an allowed one is not allowed.
// A hard link is a file like any other: content that it shares with a file elsewhere can
// be read through it, but a write replaces the link and not that file.
//
// On systems other than Linux, mounts are told apart by their device only.
package scope

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Mode is the kind of access to a file.
type Mode int

// The modes.
const (
	Read Mode = iota
	Write
)

// String returns the name of the mode.
func (m Mode) String() string {
	if m == Write {
		return "write"
	}
	return "read"
}

// A Rule is about a file, or a folder with everything below it.
//
// In a rule that allows, Write includes reading. In a rule that denies, Write denies
// only writing, and Read denies both.
type Rule struct {
	Target string // absolute path; its links are followed once, when the scope is created
	Mode   Mode
}

// A Verdict is the decision of the rules about a path.
type Verdict int

// The verdicts.
const (
	Unlisted Verdict = iota // no rule is about it
	Allowed
	Denied
)

// A Scope is a set of rules. It does not change, and is safe for concurrent use.
type Scope struct {
	allow   []allowance
	deny    []denial
	protect func(path string) (reason string, ok bool) // nil if nothing is protected
}

type allowance struct {
	path string // path without links
	mode Mode
}

type denial struct {
	names    []string // paths of the target: as it was written, and without links
	mode     Mode
	identity identity // identity of the target when the scope was created; zero if it did not exist
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

// target returns the path of a rule's target without links, and its identity.
func target(r Rule) (string, identity, error) {
	t, err := resolve(r.Target)
	if err != nil {
		return "", identity{}, err
	}
	defer t.close()
	found, _ := t.found()
	return t.path(), found.identity, nil
}

// With returns a scope that also allows one path and, if it is a folder, everything
// below it: for a call that a person allowed. The path must have no links, as Judge
// returns it. Rules that deny still apply.
func (s *Scope) With(path string, mode Mode) *Scope {
	allow := append(s.allow[:len(s.allow):len(s.allow)], allowance{filepath.Clean(path), mode})
	with := *s
	with.allow = allow
	return &with
}

// Denying returns a scope that also denies paths and, if they are folders, everything below
// them.
func (s *Scope) Denying(mode Mode, paths ...string) *Scope {
	with := *s
	with.deny = s.deny[:len(s.deny):len(s.deny)]
	for _, path := range paths {
		with.deny = append(with.deny, denial{names: []string{filepath.Clean(path)}, mode: mode})
	}
	return &with
}

// Protecting returns a scope in which no write reaches a path that protect calls
// protected, however wide its rules are. Of a path that a person was shown, the caller's
// protect says that it is not.
func (s *Scope) Protecting(protect func(path string) (reason string, ok bool)) *Scope {
	with := *s
	with.protect = protect
	return &with
}

// protection returns why a path without links is protected from being used in a mode;
// empty if it is not.
func (s *Scope) protection(path string, mode Mode) string {
	if s.protect == nil || mode != Write {
		return ""
	}
	reason, _ := s.protect(path)
	return reason
}

// A Finding is the present decision of the rules about a path.
type Finding struct {
	Verdict Verdict
	Path    string // path that the path leads to, without links
	Rule    string // target of the rule that denies it
	// Protected says why the path is protected, whatever the verdict; empty if it is not.
	Protected string
}

// Judge applies the rules to a path, which need not exist. The result is for asking
// people; the rules are applied again when the path is opened.
func (s *Scope) Judge(path string, mode Mode) (Finding, error) {
	t, err := resolve(path)
	if err != nil {
		return Finding{}, err
	}
	defer t.close()
	verdict, rule := s.judge(t, mode)
	return Finding{verdict, t.path(), rule, s.protection(t.path(), mode)}, nil
}

// A Refusal is the error of using a path that the rules do not allow.
type Refusal struct {
	Finding
	Name string // path as the caller wrote it
	Mode Mode
}

func (r *Refusal) Error() string {
	leads := ""
	if r.Path != r.Name {
		leads = ", which leads to " + r.Path + ","
	}
	if r.Verdict != Denied && r.Protected != "" {
		return fmt.Sprintf("%s%s is protected, and nobody has allowed this change: %s", r.Name, leads, r.Protected)
	}
	if r.Verdict == Denied {
		return fmt.Sprintf("%s%s may not be used to %s: a rule denies %s", r.Name, leads, r.Mode, r.Rule)
	}
	return fmt.Sprintf("%s%s is outside of what this session may %s: add it to scope.allow, or allow the call when asked", r.Name, leads, r.Mode)
}

// resolveAllowed follows a path, and returns a Refusal if the rules do not allow what it leads to.
func (s *Scope) resolveAllowed(path string, mode Mode) (*resolvedPath, error) {
	t, err := resolve(path)
	if err != nil {
		return nil, err
	}
	verdict, rule := s.judge(t, mode)
	if reason := s.protection(t.path(), mode); verdict != Allowed || reason != "" {
		defer t.close()
		return nil, &Refusal{Finding{verdict, t.path(), rule, reason}, path, mode}
	}
	return t, nil
}

func (s *Scope) judge(t *resolvedPath, mode Mode) (Verdict, string) {
	path := t.path()
	if rule := s.denyIndex(mode).ruleDenying(t, path); rule != "" {
		return Denied, rule
	}
	for _, a := range s.allow {
		if mode <= a.mode && beneath(a.path, path) && t.oneMount(depth(a.path)) {
			return Allowed, ""
		}
	}
	return Unlisted, ""
}

// beneath reports whether path is dir or below it, comparing bytes.
func beneath(dir, path string) bool {
	return dir == "/" || strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

// depth returns the number of names in a path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
