package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// wrap adds the operation and the path to an error.
func wrap(op string, p workspace.Path, err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &fs.PathError{Op: op, Path: p.String(), Err: err}
}

// Stat implements workspace.Files.
func (w *files) Stat(_ context.Context, p workspace.Path) (workspace.Info, error) {
	s, err := w.locate(p, false)
	if err != nil {
		return workspace.Info{}, wrap("stat", p, err)
	}
	defer s.close()
	found, err := statAt(s.dir, s.name, s.flags())
	return found.info(p.Name), wrap("stat", p, err)
}

// Open implements workspace.Files.
func (w *files) Open(ctx context.Context, p workspace.Path, offset int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, wrap("open", p, fmt.Errorf("%w: the offset is negative", fs.ErrInvalid))
	}
	f, _, err := w.open(p)
	if err != nil {
		return nil, wrap("open", p, err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, wrap("open", p, err)
	}
	return &contextFile{ctx, f}, nil
}

// A contextFile is a file that is read until its context ends.
type contextFile struct {
	ctx context.Context
	*os.File
}

func (r *contextFile) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.File.Read(p)
}

// open opens a regular file.
func (w *files) open(p workspace.Path) (*os.File, status, error) {
	s, err := w.locate(p, false)
	if err != nil {
		return nil, status{}, err
	}
	defer s.close()
	flags := unix.O_RDONLY | noWait
	if !s.follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := openAt(s.dir, s.name, flags, 0)
	switch {
	case err == unix.ELOOP && !s.follow:
		return nil, status{}, workspace.ErrLink
	case err == unix.ENXIO: // a socket
		return nil, status{}, workspace.ErrSpecial
	case err != nil:
		return nil, status{}, err
	}
	found, err := statFD(fd)
	if err == nil {
		err = found.readable()
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, status{}, err
	}
	_ = unix.SetNonblock(fd, false)
	return os.NewFile(uintptr(fd), p.String()), found, nil
}

// ReadFile implements workspace.Files.
func (w *files) ReadFile(_ context.Context, p workspace.Path) ([]byte, error) {
	f, found, err := w.open(p)
	if err != nil {
		return nil, wrap("read", p, err)
	}
	defer func() { _ = f.Close() }()
	content, err := readAll(f, found.size)
	return content, wrap("read", p, err)
}

// readAll reads a file whose size is about size.
func readAll(f *os.File, size int64) ([]byte, error) {
	if size > workspace.MaxFile {
		return nil, workspace.ErrTooLarge
	}
	content := make([]byte, 0, size+1)
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := f.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case len(content) > workspace.MaxFile:
			return nil, workspace.ErrTooLarge
		case err == io.EOF:
			return content, nil
		case err != nil:
			return nil, err
		}
	}
}

// Mkdir implements workspace.Files.
func (w *files) Mkdir(_ context.Context, p workspace.Path) error {
	s, err := w.locate(p, true)
	if err != nil {
		return wrap("make", p, err)
	}
	defer s.close()
	if s.name == "." {
		return nil
	}
	if err := makeFolder(s.dir, s.name); err != nil {
		return wrap("make", p, err)
	}
	found, err := statAt(s.dir, s.name, s.flags())
	switch {
	case err != nil:
		return wrap("make", p, err)
	case found.mode&fs.ModeSymlink != 0:
		return wrap("make", p, workspace.ErrLink)
	case !found.mode.IsDir():
		return wrap("make", p, workspace.ErrNotFolder)
	}
	return wrap("make", p, syncFolder(s.dir))
}

// Rename implements workspace.Files.
func (w *files) Rename(_ context.Context, from, to workspace.Path) error {
	old, err := w.locate(from, false)
	if err != nil {
		return wrap("rename", from, err)
	}
	defer old.close()
	target, err := w.locate(to, false)
	if err != nil {
		return wrap("rename", to, err)
	}
	defer target.close()
	if old.name == "." || target.name == "." {
		return wrap("rename", from, fmt.Errorf("%w: a root cannot be renamed", fs.ErrInvalid))
	}
	if err := move(old, target); err != nil {
		return wrap("rename", from, err)
	}
	return wrap("rename", to, errors.Join(syncFolder(target.dir), syncFolder(old.dir)))
}

func move(old, target *location) error {
	switch err := unix.Renameat(old.dir, old.name, target.dir, target.name); err {
	case unix.EISDIR:
		return workspace.ErrFolder
	case unix.ENOTDIR:
		return workspace.ErrNotFolder
	case unix.ENOTEMPTY, unix.EEXIST:
		return workspace.ErrNotEmpty
	default:
		return err
	}
}

// syncFolder syncs the names in a folder. A folder that cannot be read cannot be
// synced; then the system writes them later.
func syncFolder(dir int) error {
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|noWait, 0)
	if err != nil {
		return nil
	}
	err = unix.Fsync(fd)
	if err == unix.EINVAL { // the file system does not support it
		err = nil
	}
	return errors.Join(err, unix.Close(fd))
}
