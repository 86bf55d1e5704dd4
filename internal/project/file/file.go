// Package file reads files of a project on this machine: the configuration of the user's
// own project, and, for a workspace, what is given to a model.
//
// The project may have been written by others. Its files can be links to anything that
// the user may read: keys, a device without an end, or a pipe that blocks a reader.
//
//   - No link is followed out of the root that the caller names.
//   - Only regular files are read, up to a number of bytes.
//   - Opening a file never blocks.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/abide-run/abide/internal/workspace"
)

// ErrRefused means that a file exists but must not be read.
var ErrRefused = workspace.ErrOutside

// Root returns the folder that links of a project must not leave: the repository that a
// folder is in, or the folder itself if it is in none. A home directory and the root of
// the file system do not count as repositories, because too much is below them.
func Root(dir string) string {
	home, _ := os.UserHomeDir()
	for at := filepath.Clean(dir); at != filepath.Dir(at) && at != filepath.Clean(home); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return dir
}

// Read returns the first bytes of a file below a root, at most most of them, and the size of
// the file.
func Read(root, path string, most int) (data []byte, size int64, err error) {
	f, size, err := open(root, path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if data, err = io.ReadAll(io.LimitReader(f, int64(most)+1)); err != nil {
		return nil, 0, err
	}
	if len(data) <= most {
		return data, int64(len(data)), nil
	}
	return data[:most], max(size, int64(len(data))), nil
}

// Exists reports whether the path leads to something other than a folder. It follows all
// links, so Read may still refuse the file.
func Exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// open opens a regular file below a root, and returns its size.
func open(root, path string) (*os.File, int64, error) {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, 0, err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, 0, err
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w (%w)", path, ErrRefused, err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", path, ErrRefused)
	}
	return f, info.Size(), nil
}
