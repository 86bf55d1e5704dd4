package scope

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of a path.
const (
	maxLinks = 40   // maximum number of links, as in Linux
	maxDepth = 256  // maximum number of folders; each is kept open while the path is followed
	maxPath  = 4096 // maximum length in bytes
)

// An identity tells files and folders apart, independent of their names.
type identity struct{ dev, ino uint64 }

// An info is what the system reports about a file or folder.
type info struct {
	identity
	mount    uint64
	mode     uint32 // permissions and type, as in a system call
	uid, gid uint32
	size     int64
}

func (i info) regular() bool { return i.mode&unix.S_IFMT == unix.S_IFREG }

// A step is an open folder of a resolved path.
type step struct {
	info
	name string
	fd   int
}

// A resolvedPath is the result of following a path: the open folders of the path, and the last
// name in it.
type resolvedPath struct {
	steps []step   // open folders, from the root on
	name  string   // last name of the path; empty if the path is the last folder itself
	info  info     // info of name, if err is nil
	err   error    // reason that name could not be opened
	rest  []string // names after name, if the path could not be followed further
	links []string // paths of the links that were followed
}

// resolve follows a path. Each folder is opened from the one before it, and links are
// read here and not followed by the system, so that nobody can lead the path elsewhere
// meanwhile. A path that cannot be followed to its end is no error: the field err says why.
func resolve(path string) (*resolvedPath, error) {
	if err := wellFormed(path); err != nil {
		return nil, err
	}
	t := new(resolvedPath)
	err := t.openRoot()
	for todo := components(filepath.Clean(path)); err == nil && len(todo) > 0 && t.name == ""; {
		todo, err = t.next(todo)
	}
	if err != nil {
		t.close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return t, nil
}

func wellFormed(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("%q is not an absolute path", path)
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%q has a NUL byte in it", path)
	case len(path) > maxPath:
		return &fs.PathError{Op: "open", Path: path[:40] + "…", Err: unix.ENAMETOOLONG}
	}
	return nil
}

// components returns the names in a path.
func components(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

func (t *resolvedPath) openRoot() error {
	fd, err := openAt(unix.AT_FDCWD, "/", stepFlags)
	if err != nil {
		return err
	}
	return t.push(fd, "/")
}

// push appends an open folder.
func (t *resolvedPath) push(fd int, name string) error {
	i, err := statFD(fd)
	if err == nil && len(t.steps) > maxDepth {
		err = unix.ENAMETOOLONG
	}
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	t.steps = append(t.steps, step{i, name, fd})
	return nil
}

// truncate closes all but the first n folders.
func (t *resolvedPath) truncate(n int) {
	for _, s := range t.steps[n:] {
		_ = unix.Close(s.fd)
	}
	t.steps = t.steps[:n]
}

func (t *resolvedPath) close() { t.truncate(0) }

func (t *resolvedPath) last() step { return t.steps[len(t.steps)-1] }

// next follows the first of the names and returns those that remain.
func (t *resolvedPath) next(todo []string) ([]string, error) {
	name, todo := todo[0], todo[1:]
	if name == ".." {
		t.truncate(max(1, len(t.steps)-1))
		return todo, nil
	}
	fd, err := openAt(t.last().fd, name, stepFlags)
	switch err {
	case nil:
		return todo, t.push(fd, name)
	case unix.ENOTDIR, unix.ELOOP, unix.EMLINK: // the errors for a link on different systems
		link, err := readLink(t.last().fd, name)
		if err == nil {
			return t.followLink(name, link, todo)
		}
		t.stopAt(name, todo)
	default:
		t.name, t.rest, t.err = name, todo, err
	}
	return todo, nil
}

// followLink continues where a link points to.
func (t *resolvedPath) followLink(name, link string, todo []string) ([]string, error) {
	t.links = append(t.links, filepath.Join(t.path(), name))
	if len(t.links) > maxLinks || len(link)+len(todo) > maxPath {
		return nil, unix.ELOOP
	}
	if filepath.IsAbs(link) {
		t.truncate(1)
	}
	return append(components(link), todo...), nil
}

// stopAt stops at a name that is neither a folder nor a link.
func (t *resolvedPath) stopAt(name string, todo []string) {
	t.name, t.rest = name, todo
	t.info, t.err = statAt(t.last().fd, name)
	if t.err == nil && len(todo) > 0 {
		t.err = unix.ENOTDIR
	}
}

// path returns the path without links.
func (t *resolvedPath) path() string {
	var b strings.Builder
	for _, s := range t.steps[1:] {
		b.WriteString("/" + s.name)
	}
	for _, name := range append([]string{t.name}, t.rest...) {
		if name != "" {
			b.WriteString("/" + name)
		}
	}
	return filepath.Clean("/" + b.String())
}

// found returns the info of what the path leads to, if it exists.
func (t *resolvedPath) found() (info, bool) {
	switch {
	case t.name == "":
		return t.last().info, true
	case t.err != nil:
		return info{}, false
	}
	return t.info, true
}

// missing reports whether the path leads to a name that does not exist in a folder that
// does.
func (t *resolvedPath) missing() bool {
	return t.name != "" && len(t.rest) == 0 && errors.Is(t.err, fs.ErrNotExist)
}

// oneMount reports whether the path leads to something on the mount of its nth folder.
func (t *resolvedPath) oneMount(n int) bool {
	if n >= len(t.steps) {
		return true // the rule is about this very file
	}
	at := t.last().mount
	if t.name != "" && t.err == nil {
		at = t.info.mount
	}
	return at == t.steps[n].mount
}
