package workspace

import "context"

// Repositories is what git knows about the files of a workspace. Nothing that the
// configuration of a repository names is run, and nothing is written.
type Repositories interface {
	// Changes returns what has changed in a folder. There is nothing if git does not know
	// the folder, or if there is no git.
	Changes(ctx context.Context, r ChangesRequest) (Changes, error)
}

// A ChangesRequest says which changes are wanted.
type ChangesRequest struct {
	Dir         string // absolute path
	Branch      bool   // true for all changes since the default branch, if there is one; false for those since the last commit
	IgnoreSpace bool   // true if changes of white space do not count
}

// Changes are the changes in a folder.
type Changes struct {
	Base  string // name of the default branch, if it was asked for and there is one
	Files []FileChange
}

// A FileChange is the change of a file. Its texts are UTF-8.
type FileChange struct {
	Path    string // relative to the folder
	OldPath string // former path, if the file was renamed
	Kind    string // "added", "modified", "deleted" or "renamed"
	Diff    string
	Cut     bool // true if the diff is too long, and left out
}
