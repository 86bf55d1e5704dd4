package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files/text"
	"github.com/abide-run/abide/internal/tool/files/walk"
)

// A place is a file or folder that is searched.
type place struct {
	given  string // path as the model wrote it
	path   string // absolute path
	folder bool   // true if it is a folder
}

// prefix returns the beginning of the paths of the files that are found.
func (p place) prefix() string {
	if !p.folder {
		return filepath.Dir(p.given) + "/"
	}
	if strings.HasSuffix(p.given, "/") {
		return p.given
	}
	return p.given + "/"
}

// places returns the places of a call; the working directory if it names none.
func places(call tool.Call, given []string) []place {
	if len(given) == 0 {
		given = []string{"."}
	}
	list := make([]place, len(given))
	for i, path := range given {
		if path == "" {
			path = "."
		}
		list[i] = place{given: path, path: absolute(call, path)}
	}
	return list
}

func pathsOf(list []place) []string {
	var paths []string
	for _, p := range list {
		paths = append(paths, p.path)
	}
	return paths
}

// look sets which places are folders, and returns those that do not exist.
func look(s *scope.Scope, list []place) (missing []string, err error) {
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

// under returns the places as text for a heading.
func under(list []place) string {
	var names []string
	for _, p := range list {
		names = append(names, strings.TrimSuffix(p.prefix(), "/"))
	}
	return strings.Join(names, ", ")
}

// trouble returns a note about the files that could not be searched.
func trouble(p walk.Problems) string {
	if p.Count == 0 {
		return ""
	}
	return fmt.Sprintf("\n\n[%d path(s) could not be searched, for instance: %s]", p.Count, brief(text.Valid([]byte(p.First.Error())), 400))
}
