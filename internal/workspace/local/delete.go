package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// Delete implements workspace.Files.
func (w *files) Delete(ctx context.Context, p workspace.Path, everything bool) error {
	s, err := w.locate(p, false)
	if err != nil {
		return wrap("delete", p, err)
	}
	defer s.close()
	if s.name == "." {
		return wrap("delete", p, fmt.Errorf("%w: a root cannot be deleted", fs.ErrInvalid))
	}
	if everything {
		err = removeAll(ctx, s.dir, s.name)
	} else {
		err = remove(s.dir, s.name)
	}
	if err != nil {
		return wrap("delete", p, err)
	}
	return wrap("delete", p, syncFolder(s.dir))
}

// remove removes a file, a link or an empty folder.
func remove(dir int, name string) error {
	found, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	if !found.mode.IsDir() {
		return unix.Unlinkat(dir, name, 0)
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err == unix.ENOTEMPTY || err == unix.EEXIST {
		return workspace.ErrNotEmpty
	}
	return err
}

// removeAll removes a folder and everything below it. It opens each folder from the one
// above it and never by a path, so that a folder that is replaced by a link meanwhile
// does no harm.
func removeAll(ctx context.Context, dir int, name string) error {
	for {
		err := remove(dir, name)
		if !errors.Is(err, workspace.ErrNotEmpty) {
			return err
		}
		if err := removeEntries(ctx, dir, name); err != nil {
			return err
		}
	}
}

func removeEntries(ctx context.Context, dir int, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	folder, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for {
		names, err := folder.Readdirnames(256)
		for _, name := range names {
			if err := removeAll(ctx, int(folder.Fd()), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err != nil {
			return ignoreEOF(err)
		}
	}
}
