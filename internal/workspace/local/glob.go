package local

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local/walk"
)

// Glob implements workspace.Files.
func (w *files) Glob(ctx context.Context, s *scope.Scope, q workspace.GlobQuery) (workspace.Found, error) {
	pattern, err := glob.Compile(q.Pattern)
	if err != nil {
		return workspace.Found{}, invalidQuery(err)
	}
	s = w.scopeHere(s)
	j := newSearched(q.Limits)
	return j.in(ctx, s, q.Roots, func(p searchRoot) (walk.Problems, error) {
		return globRoot(ctx, s, q.Pattern, pattern, p, j.found)
	})
}

// globRoot searches for files in one place.
func globRoot(ctx context.Context, s *scope.Scope, text string, pattern *glob.Pattern, p searchRoot, found *results) (walk.Problems, error) {
	if !p.folder {
		if name := filepath.Base(p.Path); pattern.Match(name) {
			found.putPath(strings.TrimSuffix(p.Given, name), name, 0)
		}
		return walk.Problems{}, nil
	}
	dir, err := s.OpenDir(p.Path)
	if err != nil {
		return walk.Problems{}, err
	}
	deep, prefix := strings.Contains(text, "/"), p.prefix()
	return walk.Tree(ctx, dir, walk.Options{Filter: prune(text)}, func(_ int, f walk.File) error {
		subject := f.Name
		if deep {
			subject = f.Path + f.Name
		}
		if pattern.Match(subject) {
			found.putPath(prefix+f.Path, f.Name, 0)
		}
		return nil
	})
}

// prune returns a filter that skips the folders in which nothing can match, and enters
// .git if the pattern names it.
func prune(pattern string) func(path, name string, isFolder bool) walk.Choice {
	fixed := fixedFolders(pattern)
	git := strings.Contains(pattern, ".git")
	return func(path, name string, isFolder bool) walk.Choice {
		depth := strings.Count(path, "/")
		switch {
		case isFolder && depth < len(fixed) && name != fixed[depth]:
			return walk.Leave
		case git && name == ".git":
			return walk.Take
		}
		return walk.Neither
	}
}

// fixedFolders returns the folders that a pattern begins with.
func fixedFolders(pattern string) []string {
	names := strings.Split(pattern, "/")
	for i, name := range names {
		if i == len(names)-1 || name == "" || strings.ContainsAny(name, `*?[]{}\`) {
			return names[:i]
		}
	}
	return nil
}
