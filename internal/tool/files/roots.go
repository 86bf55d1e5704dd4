package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files/walk"
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

// statRoots sets which roots are folders, and returns those that do not exist.
func statRoots(s *scope.Scope, list []searchRoot) (missing []string, err error) {
	for i := range list {
		info, err := s.Stat(list[i].path)
		switch refused := unusable(list[i].path, err); {
		case err == nil:
			list[i].folder = info.Kind == scope.Folder
		case refused.Message == "Path does not exist":
			missing = append(missing, list[i].given)
		default:
			return nil, refused
		}
	}
	return missing, nil
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
func problemNote(p walk.Problems) string {
	if p.Count == 0 {
		return ""
	}
	return fmt.Sprintf("\n\n[%d path(s) could not be searched, for instance: %s]", p.Count, brief(text.Valid([]byte(p.First.Error())), 400))
}
