package local

import (
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/workspace/local/walk"
)

// A filter selects files by a pattern and by a type.
type filter struct {
	pattern *glob.Pattern // pattern of the files; nil for all
	deep    bool          // true if the pattern is matched with the path, false with the name
	negated bool          // true if the pattern excludes files
	kind    *glob.Pattern // pattern of the names of a type; nil for all types
}

// newFilter returns the filter for the pattern of a query and the pattern of its type.
func newFilter(pattern, kind string) (*filter, error) {
	f := new(filter)
	var err error
	if kind != "" {
		if f.kind, err = glob.Compile(kind); err != nil {
			return nil, err
		}
	}
	if pattern == "" {
		return f, nil
	}
	text, negated := strings.CutPrefix(pattern, "!")
	f.negated, f.deep = negated, strings.Contains(text, "/")
	f.pattern, err = glob.Compile(strings.TrimPrefix(text, "/"))
	return f, err
}

// in returns the filter for a walk through a folder. A pattern with a slash is relative
// to the working directory, or to the folder.
func (f *filter) in(dir, folder string) func(path, name string, isFolder bool) walk.Choice {
	if f.pattern == nil && f.kind == nil {
		return nil
	}
	prefix := ""
	if rel, err := filepath.Rel(dir, folder); err == nil && filepath.IsLocal(rel) && rel != "." {
		prefix = rel + "/"
	}
	return func(path, name string, isFolder bool) walk.Choice {
		if f.kind != nil && !isFolder && !f.kind.Match(name) {
			return walk.Leave
		}
		return f.choose(prefix, path, name, isFolder)
	}
}

func (f *filter) choose(prefix, path, name string, isFolder bool) walk.Choice {
	if f.pattern == nil {
		return walk.Neither
	}
	matches := f.pattern.Match(name)
	if f.deep {
		matches = f.pattern.Match(path+name) || prefix != "" && f.pattern.Match(prefix+path+name)
	}
	switch {
	case matches && f.negated:
		return walk.Leave
	case matches && !isFolder:
		return walk.Take
	case !matches && !f.negated && !isFolder:
		return walk.Leave
	}
	return walk.Neither
}
