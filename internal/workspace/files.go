package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// The errors of files, beside those of io/fs.
var (
	ErrLink      = errors.New("there is a link on the way, and links are not followed here")
	ErrFolder    = errors.New("it is a folder")
	ErrNotFolder = errors.New("it is not a folder")
	ErrNotEmpty  = errors.New("the folder is not empty; delete it with all that is in it, or empty it first")
	ErrSpecial   = errors.New("it is a pipe, a socket or a device, and only files can be read and written")
	ErrTooLarge  = errors.New("it is too large to be handled at once; read or write it as a stream")
	ErrTooMany   = errors.New("there is too much in it to be listed; list its folders one by one")
)

// The limits of a single answer.
const (
	MaxFile    = 16 << 20 // bytes that ReadFile and WriteFile handle
	MaxEntries = 50_000   // entries that List looks at
	MaxPage    = 5_000    // entries that List returns at once
)

// A Path names a file or a folder.
//
// Without a root it is absolute or starts at the workspace's folder, and links
// are followed as everywhere. With a root it goes down from there by plain names,
// and no link below the root is followed: a link on the way is ErrLink, and one at
// the end is what the path names.
type Path struct {
	Root string
	Name string
}

// At is the path without a root.
func At(name string) Path { return Path{Name: name} }

// Below is the path that never leaves its root.
func Below(root, name string) Path { return Path{root, name} }

func (p Path) String() string {
	if p.Root == "" {
		return p.Name
	}
	return p.Root + "/" + p.Name
}

// An Info says what a path names.
type Info struct {
	Name    string      // as it was asked for; in a listing, from the listed folder on
	Mode    fs.FileMode // type and permissions
	Size    int64
	ModTime time.Time
}

// ListOptions say what of a folder is listed. The zero value is its first MaxPage
// entries.
type ListOptions struct {
	Recursive bool // also what is in its folders; links are not followed
	Offset    int  // entries left out at the beginning
	Limit     int  // entries returned at most; MaxPage if zero or more than that
}

// A Listing is a part of a folder's entries, which are sorted by their names'
// bytes. It may be less than was asked for, but not nothing if there is more.
type Listing struct {
	Entries []Info
	Total   int // entries there are
}

// WriteOptions say how a file is written. The zero value replaces a file, which
// keeps its permissions, or makes one with those that new files have.
type WriteOptions struct {
	New  bool        // there must be nothing of that name yet; else fs.ErrExist
	Perm fs.FileMode // permissions of the file; zero for those it has
}

// Files is the part of a workspace that has files.
type Files interface {
	// Stat says what a path names.
	Stat(ctx context.Context, p Path) (Info, error)
	// List returns entries of a folder.
	List(ctx context.Context, p Path, o ListOptions) (Listing, error)
	// ReadFile returns the content of a file of at most MaxFile bytes.
	ReadFile(ctx context.Context, p Path) ([]byte, error)
	// WriteFile writes a file of at most MaxFile bytes, as Create does.
	WriteFile(ctx context.Context, p Path, content []byte, o WriteOptions) error
	// Open opens a file for reading from an offset on. The context is that of all
	// that is read.
	Open(ctx context.Context, p Path, offset int64) (io.ReadCloser, error)
	// Create prepares a file of any size. Folders that are missing are made.
	Create(ctx context.Context, p Path, o WriteOptions) (Draft, error)
	// Mkdir makes a folder and the ones above it that are missing. A folder that
	// is there already is fine.
	Mkdir(ctx context.Context, p Path) error
	// Rename gives a file or a folder another name; a file that has that name is
	// replaced.
	Rename(ctx context.Context, from, to Path) error
	// Delete deletes a file, a link or a folder; a folder that has something in it
	// only if everything is to go.
	Delete(ctx context.Context, p Path, everything bool) error
}

// A Draft is a file that is being written. Until Commit returns, and after a
// crash before that, there is the old file or none.
type Draft interface {
	io.Writer
	// Commit puts the file in its place, so that it outlasts a power failure.
	Commit() error
	// Close gives up what was not committed.
	Close() error
}
