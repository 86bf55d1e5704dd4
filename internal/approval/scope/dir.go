package scope

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Kind is the type of an entry of a folder.
type Kind int

// The kinds of entries.
const (
	unknown Kind = iota
	Regular
	Folder
	Link    // a symbolic link, which is not followed
	Special // a pipe, a socket or a device
)

// errMount means that a path is on another mount, which no rule allows.
var errMount = errors.New("it is on another mount, which no rule of this session is about")

// A Dir is an open folder. The rule that allows it allows everything below it that is
// on the same mount and not denied.
type Dir struct {
	fd          int
	path        string
	mount       uint64
	denied      denyIndex
	deniedBelow bool // true if a path below this folder is denied
}

// OpenDir opens a folder for reading.
func (s *Scope) OpenDir(path string) (*Dir, error) {
	t, err := s.resolveAllowed(path, Read)
	if err != nil {
		return nil, err
	}
	defer t.close()
	err = t.err
	if err == nil && t.name != "" {
		err = unix.ENOTDIR
	}
	d := &Dir{path: t.path(), mount: t.last().mount, denied: s.denyIndex(Read)}
	if err == nil {
		d.fd, err = openAt(t.last().fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|openFlags)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d.deniedBelow = d.denied.hasBelow(d.path)
	return d, nil
}

// Path returns the path of the folder, without links.
func (d *Dir) Path() string { return d.path }

// Each calls visit with the entries of the folder, in any order, until visit returns
// false. The name is only valid during the call. Each can be called once.
func (d *Dir) Each(buf []byte, visit func(name []byte, kind Kind) bool) error {
	err := each(d.fd, buf, func(name []byte, kind Kind) bool {
		if kind == unknown {
			i, err := statAt(d.fd, string(name))
			if err != nil {
				return true // the entry was deleted meanwhile
			}
			kind = i.kind()
		}
		return visit(name, kind)
	})
	if err != nil {
		return &fs.PathError{Op: "read", Path: d.path, Err: err}
	}
	return nil
}

// Dir opens a folder inside the folder.
func (d *Dir) Dir(name string) (*Dir, error) {
	fd, err := openAt(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|openFlags)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: err}
	}
	i, err := statFD(fd)
	if err == nil {
		err = d.check(name, i)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	below := &Dir{fd: fd, path: d.below(name), mount: d.mount, denied: d.denied}
	below.deniedBelow = d.deniedBelow && d.denied.hasBelow(below.path)
	return below, nil
}

// Open opens a regular file in the folder.
func (d *Dir) Open(name string) (*File, error) {
	f, err := openFile(d.fd, name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.below(name), Err: err}
	}
	if err := d.check(name, f.info); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile returns the content of a file in the folder of at most most bytes.
func (d *Dir) ReadFile(name string, most int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.all(d.below(name), most)
}

// Has reports whether the folder has an entry with this name.
func (d *Dir) Has(name string) bool {
	_, err := statAt(d.fd, name)
	return err == nil
}

// check returns an error if the opened entry of the folder is not allowed.
func (d *Dir) check(name string, i info) error {
	if i.mount != d.mount {
		return &fs.PathError{Op: "open", Path: d.below(name), Err: errMount}
	}
	if rule := d.denies(name, i); rule != "" {
		path := d.below(name)
		return &Refusal{Finding{Verdict: Denied, Path: path, Rule: rule}, path, Read}
	}
	return nil
}

func (d *Dir) denies(name string, i info) string {
	if rule := d.denied.ids[i.identity]; rule != "" || !d.deniedBelow {
		return rule
	}
	return d.denied.ruleAbove(d.below(name))
}

func (d *Dir) below(name string) string {
	if d.path == "/" {
		return "/" + name
	}
	return d.path + "/" + name
}

// Close closes the folder.
func (d *Dir) Close() error { return unix.Close(d.fd) }
