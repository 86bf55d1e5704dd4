package local

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"sync"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
)

// pathLocks are locks by hash of a path, so that changes of a file are made one after the
// other: a request that is repeated while the first attempt is still running would remove
// the temporary file of that attempt.
type pathLocks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

func newPathLocks() *pathLocks { return &pathLocks{seed: maphash.MakeSeed()} }

// lock locks a path and returns the function that unlocks it.
func (l *pathLocks) lock(path string) func() {
	mu := &l.locks[maphash.String(l.seed, path)%uint64(len(l.locks))]
	mu.Lock()
	return mu.Unlock
}

// Apply implements workspace.Files.
func (w *files) Apply(ctx context.Context, s *scope.Scope, c workspace.Change) error {
	if len(c.New) > workspace.MaxFile {
		return &fs.PathError{Op: "write", Path: c.Path, Err: workspace.ErrTooLarge}
	}
	defer w.writers.lock(c.Leads)()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s, moved := pinTo(w.scopeHere(s), c.Leads)
	old, done, err := expected(s, c)
	if err == nil && !done {
		err = s.Apply(scope.Change{Path: c.Path, Old: old, New: c.New, Key: c.Key})
	}
	if *moved {
		return &fs.PathError{Op: "write", Path: c.Path, Err: workspace.ErrMoved}
	}
	return err
}

// expected returns the present content of a file that has the content that a change
// expects; nil if it expects no file. It reports whether the change was made before.
func expected(s *scope.Scope, c workspace.Change) (old []byte, done bool, err error) {
	if c.Before == "" && !c.Again {
		return nil, false, nil // creating the file fails if it exists
	}
	old, err = s.ReadFile(c.Path, workspace.MaxFile)
	missing := errors.Is(err, fs.ErrNotExist)
	switch now := workspace.Digest(old); {
	case err != nil && !missing:
		return nil, false, err
	case c.Again && missing == (c.New == nil) && now == workspace.Digest(c.New):
		return nil, true, nil
	case c.Before == "":
		return nil, false, nil
	case missing:
		return nil, false, &fs.PathError{Op: "write", Path: c.Path, Err: fs.ErrNotExist}
	case now != c.Before:
		return nil, false, &fs.PathError{Op: "write", Path: c.Path, Err: scope.ErrChanged}
	}
	return old, false, nil
}

// pinTo returns a scope in which only one path without links can be written, and sets
// moved when another one was refused. The caller has judged whether that path is
// protected.
func pinTo(s *scope.Scope, path string) (pinned *scope.Scope, moved *bool) {
	moved = new(bool)
	return s.Data().Scope().Protecting(func(leads string) (string, bool) {
		if *moved = leads != path; *moved {
			return workspace.ErrMoved.Error(), true
		}
		return "", false
	}), moved
}
