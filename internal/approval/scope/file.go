package scope

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrSpecial means that a path leads to something that is neither file nor folder.
var ErrSpecial = errors.New("it is a pipe, a socket or a device, and only files and folders can be opened")

// errBusy means that a file was replaced at each attempt to open it.
var errBusy = errors.New("it keeps being replaced; try again")

// errReplaced means that the opened file is not the one that the rules were applied to.
var errReplaced = errors.New("it was replaced meanwhile")

// An Info describes the file or folder that a path leads to.
type Info struct {
	Path string // path without links
	Size int64
	Kind Kind
	Perm fs.FileMode
}

// Stat describes what a path leads to.
func (s *Scope) Stat(path string) (Info, error) {
	t, err := s.resolveAllowed(path, Read)
	if err != nil {
		return Info{}, err
	}
	defer t.close()
	found, ok := t.found()
	if !ok {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: t.err}
	}
	return Info{t.path(), found.size, found.kind(), fs.FileMode(found.mode & 0o777)}, nil
}

func (i info) kind() Kind {
	switch i.mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Folder
	case unix.S_IFLNK:
		return Link
	}
	return Special
}

// A File is a regular file, open for reading.
type File struct {
	fd int
	info
}

// Open opens a regular file for reading.
func (s *Scope) Open(path string) (*File, error) {
	for range 16 {
		f, err := s.open(path)
		if !errors.Is(err, errReplaced) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: errBusy}
}

func (s *Scope) open(path string) (*File, error) {
	t, err := s.resolveAllowed(path, Read)
	if err != nil {
		return nil, err
	}
	defer t.close()
	f, err := t.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// open opens the file that the path leads to.
func (t *resolvedPath) open() (*File, error) {
	switch {
	case t.name == "":
		return nil, unix.EISDIR
	case t.err != nil:
		return nil, t.err
	case !t.info.regular():
		return nil, ErrSpecial
	}
	f, err := openFile(t.last().fd, t.name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP), errors.Is(err, ErrSpecial):
		return nil, errReplaced
	case err != nil:
		return nil, err
	case f.identity != t.info.identity || f.mount != t.info.mount:
		_ = f.Close()
		return nil, errReplaced
	}
	return f, nil
}

// openFile opens a regular file in a folder.
func openFile(dir int, name string) (*File, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY|openFlags)
	if err != nil {
		return nil, err
	}
	i, err := statFD(fd)
	if err == nil && !i.regular() {
		err = ErrSpecial
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &File{fd, i}, nil
}

// Size returns the length of the file when it was opened.
func (f *File) Size() int64 { return f.size }

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(f.fd, p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Close closes the file.
func (f *File) Close() error { return unix.Close(f.fd) }

// OSFile returns the open file for those who need an [os.File]. It takes the place of f, which
// is not used any more.
func (f *File) OSFile() *os.File { return os.NewFile(uintptr(f.fd), "") }

// ReadFile returns the content of a file of at most most bytes.
func (s *Scope) ReadFile(path string, most int64) ([]byte, error) {
	f, err := s.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.all(path, most)
}

// ErrTooLarge means that a file has more bytes than the caller allows.
var ErrTooLarge = errors.New("it is too large")

func (f *File) all(path string, most int64) ([]byte, error) {
	data := make([]byte, 0, min(f.size, most)+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
	}
}
