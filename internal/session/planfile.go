package session

import (
	"os"
	"path/filepath"
)

// planFile returns the file with the session's plan; empty if there is none.
func (s *Session) planFile() string {
	if s.host.opts.Folder == nil {
		return ""
	}
	path := filepath.Join(s.host.opts.Folder(s.id), "plan.md")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
