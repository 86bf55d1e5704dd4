package walk

import (
	"path/filepath"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace/local/gitignore"
)

// Above returns the ignore rules that apply to a folder from the folders above it, up to
// the root of its repository. The walk adds the rules of the folder itself. Files that
// the scope does not allow to read have no rules.
func Above(s *scope.Scope, folder string) *gitignore.Rules {
	var dirs []*scope.Dir
	defer func() {
		for _, d := range dirs {
			_ = d.Close()
		}
	}()
	for at := folder; ; at = filepath.Dir(at) {
		d, err := s.OpenDir(at)
		if err != nil {
			return nil
		}
		if dirs = append(dirs, d); d.Has(".git") {
			break
		}
		if at == "/" {
			return nil
		}
	}
	var rules *gitignore.Rules
	for i := len(dirs) - 1; i > 0; i-- {
		rules = rulesOf(dirs[i], rules, func(string) bool { return true })
	}
	return rules
}
