package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// noWait are the flags for opening files: opening never blocks, and commands do not
// inherit the descriptor.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// A location is the last element of a path and the open folder that it is in.
type location struct {
	dir    int    // descriptor of the folder
	name   string // name in the folder; "." if the path is the root
	follow bool   // true if a link with that name is followed
	above  string // path of the folder
}

func (s *location) close() { _ = unix.Close(s.dir) }

// flags returns the flags of an *at system call that follows links or does not.
func (s *location) flags() int {
	if s.follow {
		return 0
	}
	return unix.AT_SYMLINK_NOFOLLOW
}

// locate opens the folder of a path. With make, it creates missing folders.
func (w *files) locate(p workspace.Path, make bool) (*location, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	if w.confined != "" {
		var err error
		if p, err = w.confine(p); err != nil {
			return nil, err
		}
	}
	if p.Root == "" {
		return locateFollowing(w.absolute(p.Name), make)
	}
	return locateBelow(w.absolute(p.Root), p.Name, make)
}

func check(p workspace.Path) error {
	switch {
	case p.Name == "":
		return fmt.Errorf("%w: the path is empty", fs.ErrInvalid)
	case strings.ContainsRune(p.Root+p.Name, 0):
		return fmt.Errorf("%w: the path contains a NUL byte", fs.ErrInvalid)
	case p.Root != "" && !filepath.IsLocal(p.Name):
		return fmt.Errorf("%w: a path with a root must be relative to it and must not contain \"..\"", fs.ErrInvalid)
	}
	return nil
}

func (w *files) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(w.dir, name)
}

// locateFollowing returns the location of a path whose links are followed.
func locateFollowing(path string, make bool) (*location, error) {
	above := filepath.Dir(path)
	if make {
		err := os.MkdirAll(above, 0o777)
		if errors.Is(err, unix.ENOTDIR) {
			err = workspace.ErrNotFolder
		}
		if err != nil {
			return nil, err
		}
	}
	dir, err := openFolder(unix.AT_FDCWD, above, stepFlags)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if name == "/" {
		name = "."
	}
	return &location{dir, name, true, above}, nil
}

// locateBelow returns the location of a path whose links are not followed.
func locateBelow(root, name string, make bool) (*location, error) {
	dir, err := openFolder(unix.AT_FDCWD, root, stepFlags)
	if err != nil {
		return nil, err
	}
	s := &location{dir: dir, name: ".", above: root}
	for _, next := range strings.Split(filepath.Clean(name), "/") {
		if err := s.descend(make); err != nil {
			s.close()
			return nil, err
		}
		s.name = next
	}
	return s, nil
}

// descend moves the location into the folder that it names.
func (s *location) descend(make bool) error {
	if s.name == "." {
		return nil
	}
	if make {
		if err := makeFolder(s.dir, s.name); err != nil {
			return err
		}
	}
	dir, err := openFolder(s.dir, s.name, stepFlags|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	s.close()
	s.dir, s.above = dir, filepath.Join(s.above, s.name)
	return nil
}

func makeFolder(dir int, name string) error {
	err := unix.Mkdirat(dir, name, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// openFolder opens a folder. If it is something else, the error says what.
func openFolder(dir int, name string, flags int) (int, error) {
	fd, err := openAt(dir, name, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != unix.ENOTDIR && err != unix.ELOOP {
		return fd, err
	}
	if flags&unix.O_NOFOLLOW != 0 && isLink(dir, name) {
		return -1, workspace.ErrLink
	}
	return -1, workspace.ErrNotFolder
}

func isLink(dir int, name string) bool {
	s, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && s.mode&fs.ModeSymlink != 0
}

// openAt opens a file, and tries again if a signal interrupted it.
func openAt(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, perm)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
