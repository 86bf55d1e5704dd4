package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/text"
)

// A searchRoot is a file or folder that is searched.
type searchRoot struct {
	given  string // path as the model wrote it
	path   string // absolute path
	folder bool   // true if it is a folder
}

// prefix returns the beginning of the paths of the files that are found.
func (p searchRoot) prefix() string {
	if !p.folder {
		return filepath.Dir(p.given) + "/"
	}
	if strings.HasSuffix(p.given, "/") {
		return p.given
	}
	return p.given + "/"
}

// searchRoots returns the roots of a call; the working directory if it names none.
func searchRoots(call tool.Call, given []string) []searchRoot {
	if len(given) == 0 {
		given = []string{"."}
	}
	list := make([]searchRoot, len(given))
	for i, path := range given {
		if path == "" {
			path = "."
		}
		list[i] = searchRoot{given: path, path: absolute(call, path)}
	}
	return list
}

func pathsOf(list []searchRoot) []string {
	var paths []string
	for _, p := range list {
		paths = append(paths, p.path)
	}
	return paths
}

// queryRoots returns the roots for a workspace.
func queryRoots(list []searchRoot) []workspace.SearchRoot {
	var roots []workspace.SearchRoot
	for _, p := range list {
		roots = append(roots, workspace.SearchRoot{Path: p.path, Given: p.given})
	}
	return roots
}

// limits returns how much of the results an answer can show.
func limits(keep int) workspace.Limits {
	return workspace.Limits{Keep: keep, PerGroup: perGroup, Text: maxShown}
}

// setFolders sets which roots are folders.
func setFolders(list []searchRoot, found workspace.Found) {
	for i := range min(len(list), len(found.Folders)) {
		list[i].folder = found.Folders[i]
	}
}

// unsearchable returns the error of a search. The workspace names the root that cannot be
// used.
func unsearchable(ctx context.Context, err error) error {
	var p *fs.PathError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &p):
		return unusable(p.Path, p.Err)
	}
	return fail("", "The search failed: %v.", err)
}

// rootNames returns the roots as text for a heading.
func rootNames(list []searchRoot) string {
	var names []string
	for _, p := range list {
		names = append(names, strings.TrimSuffix(p.prefix(), "/"))
	}
	return strings.Join(names, ", ")
}

// problemNote returns a note about the files that could not be searched.
func problemNote(found workspace.Found) string {
	if found.Problems == 0 {
		return ""
	}
	return fmt.Sprintf("\n\n[%d path(s) could not be searched, for instance: %s]", found.Problems, brief(text.Valid([]byte(found.Problem)), 400))
}
