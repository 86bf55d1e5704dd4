package local

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local/walk"
)

// A searchRoot is a file or folder that is searched.
type searchRoot struct {
	workspace.SearchRoot
	folder bool // true if it is a folder
}

// prefix returns the beginning of the paths of the files that are found in a folder.
func (p searchRoot) prefix() string { return strings.TrimSuffix(p.Given, "/") + "/" }

// A searched is the state of one search in all places.
type searched struct {
	found    *results
	limits   workspace.Limits
	problems walk.Problems
}

func newSearched(l workspace.Limits) *searched {
	l.Keep, l.PerGroup, l.Text = clamp(l.Keep, workspace.MaxFound), clamp(l.PerGroup, workspace.MaxFound), clamp(l.Text, workspace.MaxText)
	return &searched{found: &results{groupsKept: l.Keep, itemsKept: l.Keep}, limits: l}
}

// in searches in all roots, unless some of them do not exist.
func (j *searched) in(ctx context.Context, s *scope.Scope, given []workspace.SearchRoot, search func(searchRoot) (walk.Problems, error)) (workspace.Found, error) {
	roots, missing, err := statRoots(s, given)
	if err != nil || len(missing) > 0 {
		return workspace.Found{Missing: missing}, err
	}
	found := workspace.Found{}
	for _, p := range roots {
		more, err := search(p)
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		if err != nil {
			return found, rootError(p.Path, err)
		}
		j.problems.Join(more)
		found.Folders = append(found.Folders, p.folder)
	}
	found.Groups, found.Count, found.Puts = j.found.bounded(j.limits), j.found.count, j.found.puts
	if found.Problems = j.problems.Count; found.Problems > 0 {
		found.Problem = j.problems.First.Error()
	}
	return found, nil
}

// statRoots returns the roots that exist, and the names of the others.
func statRoots(s *scope.Scope, given []workspace.SearchRoot) (roots []searchRoot, missing []string, err error) {
	for _, p := range given {
		info, err := s.Stat(p.Path)
		switch {
		case err == nil:
			roots = append(roots, searchRoot{p, info.Kind == scope.Folder})
		case errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*scope.Refusal)):
			missing = append(missing, p.Given)
		default:
			return nil, nil, rootError(p.Path, err)
		}
	}
	return roots, missing, nil
}

// rootError returns an error that names the root which cannot be searched.
func rootError(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &fs.PathError{Op: "search", Path: path, Err: err}
}
