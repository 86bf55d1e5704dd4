package protect

import (
	"cmp"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// ledTo returns why a path without links is protected: because a protected name is a link
// to it, or is below one. People keep their settings in a folder of their own, with such
// links to it. The argument has the files that are protected for certain.
func (l List) ledTo(path string, known []string) string {
	names, seen := components(path), make(follower)
	for _, other := range known {
		if real := seen.follow(other); real != other && slices.Equal(components(real), names) {
			return cmp.Or(l.named(other), reasonGit)
		}
	}
	for _, home := range l.homes {
		if reason := seen.isBelow(names, inHome.paths(home, "")); reason != "" {
			return reason
		}
	}
	for _, config := range l.configs {
		if reason := seen.isBelow(names, inHome.paths(config, ".config")); reason != "" {
			return reason
		}
	}
	return ""
}

// paths returns the paths of the rules, which begin at a folder. If base is not empty, only
// the rules below it count, and the folder stands in its place.
func (x index) paths(dir, base string) iter.Seq2[string, indexed] {
	return func(yield func(string, indexed) bool) {
		for _, rules := range x {
			for _, r := range rules {
				if path, err := filepath.Rel(base, r.path); err == nil && filepath.IsLocal(path) && !yield(filepath.Join(dir, path), r) {
					return
				}
			}
		}
	}
}

// A follower follows many paths in few folders. It has where the folders lead.
type follower map[string]string

// follow returns where a path leads. In a folder that does not exist there are no links.
func (f follower) follow(path string) string {
	dir, name := filepath.Split(path)
	real, ok := f[dir]
	if !ok {
		if _, err := os.Stat(dir); err == nil {
			real = follow(dir)
		}
		f[dir] = real
	}
	if real == "" {
		return path
	}
	at := filepath.Join(real, name)
	if _, err := os.Readlink(at); err == nil {
		return follow(at)
	}
	return at
}

// isBelow returns the reason of a rule about a folder that leads to one above a path; empty
// if there is none.
func (f follower) isBelow(names []string, rules iter.Seq2[string, indexed]) string {
	for path, r := range rules {
		if !r.folder {
			continue
		}
		if real := f.follow(path); real != path {
			if _, ok := below(components(real), names); ok {
				return r.reason
			}
		}
	}
	return ""
}
