package workspace

import (
	"context"
	"errors"
)

// ErrOutside means that a file exists but must not be read for a model.
var ErrOutside = errors.New("it is not a file of the project: links out of it and special files are not followed")

// Limits of Collect. A workspace uses them if a request asks for more.
const (
	MaxCollected    = 1_000   // maximum number of files of a selection
	MaxCollectBytes = 8 << 20 // maximum bytes of the contents of all files
)

// MaxCounted is the size of the largest file whose lines Count counts.
const MaxCounted = 10 << 20

// Projects is the files that a runtime reads by itself, and not because a model called a
// tool: what a project tells agents, and what people attach to messages. No rules of a
// session apply.
type Projects interface {
	// Collect reads files whose content is given to a model, in the order of the
	// selections. The project may have been written by others: only regular files are
	// read, opening never blocks, and no link is followed out of the project.
	Collect(ctx context.Context, which ...Selection) ([][]Collected, error)
	// Count returns how many lines each file has, and how many entries each folder; -1 if
	// that is not known, or if a file is larger than MaxCounted.
	Count(ctx context.Context, paths ...string) ([]int, error)
	// Folders returns where some folders of the workspace are.
	Folders(ctx context.Context) (Folders, error)
}

// A Selection says which files in a folder are collected: those with certain names, or
// those that match a pattern.
type Selection struct {
	Dir string // absolute path of the folder
	// Names are paths relative to the folder. Names that lead to nothing, or to a folder,
	// are left out.
	Names []string
	First bool // true if only the first of the names counts that leads to something
	Above bool // true to select in the folders above, too, up to the root of the repository or the home directory
	// Pattern is a path relative to the folder, in which one name may have one "*" for any
	// characters. What cannot be read is returned with the reason.
	Pattern string

	// Within are folders whose projects links may lead to: a file in one of them may be a
	// link to a file of the project that this folder is in. All other files may only be
	// links to files of the project of the folder that they are selected in. A project is
	// the repository that a folder is in, or the folder itself if it is in none, or only in
	// one that is a home directory.
	Within []string
	Most   int // maximum bytes of the content of each file
}

// A Collected is a file that was selected.
type Collected struct {
	Path    string // begins with the folder of the selection as it was given, or with one above it
	Content []byte // first bytes of the file
	Size    int64  // size of the file
	Err     error  // reason that the file, or the folder of a pattern, was not read; nil if there is none
}

// Cut reports whether the file has more bytes than were read.
func (c Collected) Cut() bool { return c.Size > int64(len(c.Content)) }

// Folders are paths in a workspace.
type Folders struct {
	Home string // home directory of the user who runs the workspace; empty if there is none
	Temp string // folder for files that need not be kept, which the file tools can read; it need not exist
}
