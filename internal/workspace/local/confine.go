package local

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
)

// confine returns the path below the folder that calls are confined to.
func (w *files) confine(p workspace.Path) (workspace.Path, error) {
	path := w.absolute(p.Name)
	if p.Root != "" {
		path = filepath.Join(w.absolute(p.Root), p.Name)
	}
	for _, dir := range []string{w.confined, w.dir} {
		if rel, ok := relative(dir, path); ok {
			return workspace.Below(w.confined, rel), nil
		}
	}
	return p, fmt.Errorf("%w: it is outside of %s, and the workspace is confined to that folder", fs.ErrPermission, w.dir)
}

// relative returns a path relative to a folder that it is in.
func relative(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// scopeHere returns a scope that allows no more than is allowed and in the folder that
// calls are confined to.
func (w *files) scopeHere(s *scope.Scope) *scope.Scope {
	if w.confined == "" {
		return s
	}
	data := s.Data()
	allow := data.Allow
	data.Allow = nil
	for _, a := range allow {
		if a.Path = w.part(a); a.Path != "" {
			data.Allow = append(data.Allow, a)
		}
	}
	return data.Scope()
}

// part returns the path of what is both allowed and in the folder; empty if that is
// nothing.
func (w *files) part(a scope.Allowance) string {
	if _, ok := relative(w.confined, a.Path); ok {
		return filepath.Clean(a.Path)
	}
	// A rule about a folder above does not cover other mounts below it.
	found, err := scope.Data{Allow: []scope.Allowance{a}}.Scope().Judge(w.confined, a.Mode)
	if err != nil || found.Verdict != scope.Allowed {
		return ""
	}
	return w.confined
}

// denyOutside returns the finding about a path, which is denied outside of the folder that
// calls are confined to.
func (w *files) denyOutside(f scope.Finding) scope.Finding {
	if _, ok := relative(w.confined, f.Path); w.confined != "" && !ok {
		f.Verdict, f.Rule = scope.Denied, "everything outside of "+w.confined
	}
	return f
}
