package workspace

import (
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/abide-run/abide/internal/approval/scope"
)

// WithFolder returns the files of a workspace, with a folder of this machine at its own path:
// what the workspace has at that path is not used. It is for the own folder of a session
// whose workspace is elsewhere. The plan and the files in it belong to the engine, and the
// model is told their paths, so that the file tools must find them; commands do not.
//
// The files of this machine must be confined to the folder, because the rules of the session
// are about the workspace.
func WithFolder(files Files, folder string, here Files) Files {
	return &withFolder{files, filepath.Clean(folder), here}
}

type withFolder struct {
	Files
	folder string
	here   Files
}

// isHere reports whether a path is in the folder, by its letters.
func (w *withFolder) isHere(path string) bool {
	rel, err := filepath.Rel(w.folder, filepath.Clean(path))
	return err == nil && filepath.IsLocal(rel)
}

// at returns the files that a path is one of.
func (w *withFolder) at(p Path) Files {
	if w.isHere(filepath.Join(p.Root, p.Name)) {
		return w.here
	}
	return w.Files
}

// scoped returns the files that a path is one of, and the scope for them. The identity of a
// denied file makes sense only where the file is.
func (w *withFolder) scoped(s *scope.Scope, path string) (Files, *scope.Scope) {
	here, data := w.isHere(path), s.Data()
	for i, d := range data.Deny {
		if w.isHere(d.Names[0]) != here {
			data.Deny[i].Dev, data.Deny[i].Ino = 0, 0
		}
	}
	if here {
		return w.here, data.Scope()
	}
	return w.Files, data.Scope()
}

// Scope implements Files. The links of each target are followed where the target is.
func (w *withFolder) Scope(ctx context.Context, allow, deny []scope.Rule) (*scope.Scope, error) {
	isHere := func(r scope.Rule) bool { return w.isHere(r.Target) }
	isThere := func(r scope.Rule) bool { return !w.isHere(r.Target) }
	own, err := w.here.Scope(ctx, slices.DeleteFunc(slices.Clone(allow), isThere), slices.DeleteFunc(slices.Clone(deny), isThere))
	if err != nil {
		return nil, err
	}
	there, err := w.Files.Scope(ctx, slices.DeleteFunc(slices.Clone(allow), isHere), slices.DeleteFunc(slices.Clone(deny), isHere))
	if err != nil {
		return nil, err
	}
	data := own.Data()
	data.Allow, data.Deny = append(data.Allow, there.Data().Allow...), append(data.Deny, there.Data().Deny...)
	return data.Scope(), nil
}

// Judge implements Files.
func (w *withFolder) Judge(ctx context.Context, s *scope.Scope, asked ...Question) ([]Judgement, error) {
	list := make([]Judgement, len(asked))
	for _, here := range []bool{true, false} {
		var some []Question
		var places []int
		for i, q := range asked {
			if w.isHere(q.Path) == here {
				some, places = append(some, q), append(places, i)
			}
		}
		if len(some) == 0 {
			continue
		}
		files, limited := w.scoped(s, some[0].Path)
		found, err := files.Judge(ctx, limited, some...)
		if err != nil {
			return nil, err
		}
		for i, j := range found {
			if !here && w.isHere(j.Path) { // nothing of the workspace is in the folder, whatever it says
				j = Judgement{Finding: scope.Finding{Verdict: scope.Denied}, Err: &fs.PathError{Op: "use", Path: some[i].Path, Err: fs.ErrPermission}}
			}
			if j.Path != "" && j.Protected == "" { // what the session protects is not in the limited scope
				j.Protected = s.Protection(j.Path, some[i].Mode)
			}
			list[places[i]] = j
		}
	}
	return list, nil
}

// Show implements Files.
func (w *withFolder) Show(ctx context.Context, s *scope.Scope, r ShowRequest) (Shown, error) {
	files, s := w.scoped(s, r.Path)
	return files.Show(ctx, s, r)
}

// Apply implements Files.
func (w *withFolder) Apply(ctx context.Context, s *scope.Scope, c Change) error {
	files, s := w.scoped(s, c.Path)
	return files.Apply(ctx, s, c)
}

// Grep implements Files. A search in the folder and elsewhere at once finds only what is
// elsewhere.
func (w *withFolder) Grep(ctx context.Context, s *scope.Scope, q GrepQuery) (Found, error) {
	files, s := w.scoped(s, w.searched(q.Roots))
	return files.Grep(ctx, s, q)
}

// Glob implements Files.
func (w *withFolder) Glob(ctx context.Context, s *scope.Scope, q GlobQuery) (Found, error) {
	files, s := w.scoped(s, w.searched(q.Roots))
	return files.Glob(ctx, s, q)
}

// searched returns a root that all roots are with, on this machine or in the workspace.
func (w *withFolder) searched(roots []SearchRoot) string {
	for _, r := range roots {
		if !w.isHere(r.Path) {
			return r.Path
		}
	}
	if len(roots) == 0 {
		return "/"
	}
	return roots[0].Path
}

// Count implements Files.
func (w *withFolder) Count(ctx context.Context, paths ...string) ([]int, error) {
	counts := make([]int, len(paths))
	for i, path := range paths {
		found, err := w.at(At(path)).Count(ctx, path)
		if err != nil {
			return nil, err
		}
		counts[i] = found[0]
	}
	return counts, nil
}

// Stat implements Files.
func (w *withFolder) Stat(ctx context.Context, p Path) (Info, error) { return w.at(p).Stat(ctx, p) }

// List implements Files.
func (w *withFolder) List(ctx context.Context, p Path, o ListOptions) (Listing, error) {
	return w.at(p).List(ctx, p, o)
}

// ReadFile implements Files.
func (w *withFolder) ReadFile(ctx context.Context, p Path) ([]byte, error) {
	return w.at(p).ReadFile(ctx, p)
}

// WriteFile implements Files.
func (w *withFolder) WriteFile(ctx context.Context, p Path, content []byte, o WriteOptions) error {
	return w.at(p).WriteFile(ctx, p, content, o)
}

// Open implements Files.
func (w *withFolder) Open(ctx context.Context, p Path, offset int64) (io.ReadCloser, error) {
	return w.at(p).Open(ctx, p, offset)
}

// Create implements Files.
func (w *withFolder) Create(ctx context.Context, p Path, o WriteOptions) (Draft, error) {
	return w.at(p).Create(ctx, p, o)
}

// Mkdir implements Files.
func (w *withFolder) Mkdir(ctx context.Context, p Path) error { return w.at(p).Mkdir(ctx, p) }

// Delete implements Files.
func (w *withFolder) Delete(ctx context.Context, p Path, everything bool) error {
	return w.at(p).Delete(ctx, p, everything)
}

// Rename implements Files. Nothing is moved into the folder or out of it.
func (w *withFolder) Rename(ctx context.Context, from, to Path) error {
	if w.at(from) != w.at(to) {
		return &fs.PathError{Op: "rename", Path: from.String(), Err: fs.ErrInvalid}
	}
	return w.at(from).Rename(ctx, from, to)
}
