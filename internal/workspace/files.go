package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Errors of files, in addition to those of io/fs.
var (
	ErrLink      = errors.New("there is a link on the way, and links are not followed here")
	ErrFolder    = errors.New("it is a folder")
	ErrNotFolder = errors.New("it is not a folder")
	ErrNotEmpty  = errors.New("the folder is not empty; delete it with all that is in it, or empty it first")
	ErrSpecial   = errors.New("it is a pipe, a socket or a device, and only files can be read and written")
	ErrTooLarge  = errors.New("it is too large to be handled at once; read or write it as a stream")
	ErrTooMany   = errors.New("there is too much in it to be listed; list its folders one by one")
)

// Limits of a single request.
const (
	MaxFile    = 16 << 20 // maximum bytes of ReadFile and WriteFile
	MaxEntries = 50_000   // maximum number of entries that List reads
	MaxPage    = 5_000    // maximum number of entries that List returns
)

// A Path names a file or a folder.
//
// Without a root the name is absolute, or relative to the workspace's folder, and
// links are followed as usual. With a root the name is relative to it, without "..",
// and no link below the root is followed: a link inside the path is ErrLink, and a
// path that ends with a link names the link itself.
type Path struct {
	Root string
	Name string
}

// At returns a path without a root.
func At(name string) Path { return Path{Name: name} }

// Below returns a path that never leaves its root.
func Below(root, name string) Path { return Path{root, name} }

func (p Path) String() string {
	if p.Root == "" {
		return p.Name
	}
	return p.Root + "/" + p.Name
}

// An Info describes the file or folder that a path names.
type Info struct {
	Name    string      // name as in the request; in a listing, relative to the listed folder
	Mode    fs.FileMode // type and permissions
	Size    int64
	ModTime time.Time
}

// ListOptions say which entries of a folder are listed. The zero value means the first
// MaxPage entries.
type ListOptions struct {
	Recursive bool // true to list the folders below too; links are not followed
	Offset    int  // number of entries to skip
	Limit     int  // maximum number of entries; MaxPage if zero or larger than MaxPage
}

// A Listing is a part of a folder's entries, sorted by the bytes of their names. It may
// have fewer entries than requested, but at least one if there are more.
type Listing struct {
	Entries []Info
	Total   int // number of entries of the folder
}

// WriteOptions say how a file is written. The zero value replaces a file and keeps its
// permissions, or creates one with the default permissions.
type WriteOptions struct {
	New  bool        // true if the file must not exist; if it does, the error is fs.ErrExist
	Perm fs.FileMode // permissions of the file; zero keeps those it has
}

// Files is the part of a workspace that handles files.
type Files interface {
	Scoped
	Projects
	Guarded
	Repositories
	// Stat describes what a path names.
	Stat(ctx context.Context, p Path) (Info, error)
	// List returns entries of a folder.
	List(ctx context.Context, p Path, o ListOptions) (Listing, error)
	// ReadFile returns the content of a file of at most MaxFile bytes.
	ReadFile(ctx context.Context, p Path) ([]byte, error)
	// WriteFile writes a file of at most MaxFile bytes, as Create does.
	WriteFile(ctx context.Context, p Path, content []byte, o WriteOptions) error
	// Open opens a file for reading from an offset on. Reading fails when the context
	// ends.
	Open(ctx context.Context, p Path, offset int64) (io.ReadCloser, error)
	// Create begins to write a file of any size. It creates missing folders.
	Create(ctx context.Context, p Path, o WriteOptions) (Draft, error)
	// Mkdir creates a folder and the missing folders above it. It is no error if the
	// folder exists.
	Mkdir(ctx context.Context, p Path) error
	// Rename renames a file or a folder. It replaces a file that has the new name.
	Rename(ctx context.Context, from, to Path) error
	// Delete deletes a file, a link or a folder. A folder that is not empty is deleted
	// only if everything is true.
	Delete(ctx context.Context, p Path, everything bool) error
}

// A Draft is a file that is being written. Until Commit is called, and after a crash
// before that, the path names the old file, or nothing if there was none.
type Draft interface {
	io.Writer
	// Commit gives the file its name, and syncs it so that it survives a power failure.
	Commit() error
	// Close discards a file that was not committed.
	Close() error
}
