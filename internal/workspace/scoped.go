package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"unsafe"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace/text"
)

// ErrMoved means that a path leads elsewhere than when it was judged.
var ErrMoved = errors.New("it leads elsewhere than when it was judged")

// Limits of requests by sessions. A workspace uses them if a request asks for more.
const (
	MaxFound = 1_000   // maximum number of groups, and of items of a group, that a search keeps
	MaxText  = 1 << 20 // maximum bytes of text that a search returns, approximately
	MaxLooks = 5_000   // maximum number of questions about a command at once
)

// Scoped is the files as the tools of a session use them. Paths are absolute. The rules of
// the session apply to the file that a path leads to in the workspace, at the moment when
// the file is used; what they do not allow is a *scope.Refusal.
//
// Each call of a tool needs one call of this interface, or two if it writes.
type Scoped interface {
	// Scope returns the scope of rules. The links of their targets are followed in the
	// workspace, now.
	Scope(ctx context.Context, allow, deny []scope.Rule) (*scope.Scope, error)
	// Judge returns the decisions of the rules about paths, for asking people and for
	// preparing a change.
	Judge(ctx context.Context, s *scope.Scope, asked ...Question) ([]Judgement, error)
	// Look answers questions of the judgement of a command that is to run in the workspace.
	// There are at most MaxLooks of them. A confined workspace knows nothing of what is
	// outside.
	Look(ctx context.Context, asked ...disk.Question) ([]disk.Answer, error)
	// Show returns a file, a part of it, or the names in a folder.
	Show(ctx context.Context, s *scope.Scope, r ShowRequest) (Shown, error)
	// Apply replaces or deletes a whole file that has the expected content, or creates
	// it. After a crash there is the old file or the new one; when the call returns, the
	// new one survives a power failure. If the file has other content the error is
	// scope.ErrChanged, and if the path leads elsewhere it is ErrMoved.
	Apply(ctx context.Context, s *scope.Scope, c Change) error
	// Grep searches the contents of files.
	Grep(ctx context.Context, s *scope.Scope, q GrepQuery) (Found, error)
	// Glob searches for files by name.
	Glob(ctx context.Context, s *scope.Scope, q GlobQuery) (Found, error)
}

// A Question is about a path.
type Question struct {
	Path string
	Mode scope.Mode
	// Most is the maximum size of a file whose content is wanted too, at most MaxFile;
	// zero if only its kind is wanted.
	Most int64
}

// A Judgement is the answer to a question. A path that is not denied is described even if
// the rules do not allow it: a person will be asked.
type Judgement struct {
	scope.Finding            // its path is empty if the path cannot be followed; then Err says why
	Kind          scope.Kind // kind of what the path leads to, if Err is nil
	Content       []byte     // content of the file, if it is wanted; not nil if Err is nil
	Err           error      // reason that the kind or the content is not known, such as fs.ErrNotExist
}

// A ShowRequest says what is shown of a file or a folder.
type ShowRequest struct {
	Path  string
	Lines bool // true to show lines from First to Last, false to show the whole file
	// First and Last are the numbers of the lines, from 1; a Last of 0 is the end.
	First, Last int64

	MaxWhole int64 // maximum size of a file that is returned as a whole, at most MaxFile
	MaxImage int64 // maximum size of an image that is returned, at most MaxFile
	MaxLines int   // approximate maximum bytes of the lines
	MaxNames int   // maximum number of names of a folder
}

// Shown is what Show returns.
type Shown struct {
	Folder bool
	Names  []string // first names in a folder, sorted
	Count  int64    // number of all names

	Size  int64  // size of a file when it was opened
	Image string // MIME type of an image; empty for all other files
	// Content is that of the image or the decoded text: all of it, or the lines. It is
	// nil if the file is larger than the maximum. Nobody changes it.
	Content []byte
	// Checked is true if Content is known to be valid UTF-8. Whoever receives a large text
	// checks each part while the next is on its way.
	Checked bool
	Seen    int64 // number of lines of the file, as far as it was read for the requested lines
	Full    bool  // true if the lines are more than MaxLines; Content has at least one byte more
}

// Text returns the content as valid UTF-8. It is not copied if it is known to be valid.
func (s Shown) Text() string {
	if s.Checked {
		return unsafe.String(unsafe.SliceData(s.Content), len(s.Content))
	}
	return text.Valid(s.Content)
}

// A Change replaces a whole file.
type Change struct {
	Path string
	// Leads is where the path led when it was judged, without links. The change is
	// refused if that is not so any more, because a person may have been shown it.
	Leads string
	// Before is the Digest of the expected content; empty if the file must not exist.
	Before string
	// New is the new content, of at most MaxFile bytes; nil to delete the file.
	New []byte
	// Key names the change: a second attempt with the same key removes the temporary
	// file of a first one that was interrupted.
	Key string
	// Again is true if the same change was requested before and nobody knows whether it
	// was made. A file that has the new content already is then no error.
	Again bool
}

// Digest returns the SHA-256 of the content of a file in hexadecimal digits. It is empty for
// nil, which means no file.
func Digest(content []byte) string {
	if content == nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// A SearchRoot is a file or folder that is searched.
type SearchRoot struct {
	Path  string // absolute path
	Given string // path as it begins the names of results
}

// A GrepQuery says what Grep searches for.
type GrepQuery struct {
	Pattern    string
	IgnoreCase bool
	Multiline  bool // true if a match may cross lines
	Roots      []SearchRoot
	Mode       GrepMode
	Dir        string // folder that Glob may be relative to
	Glob       string // pattern of the files; empty for all
	Type       string // pattern of the names of files; empty for all
	Before     int    // lines of context, in mode GrepLines
	After      int
	Columns    int // maximum bytes of a line that are returned, from around the match
	Limits
}

// Limits say how much of the results is returned. Everything is counted.
type Limits struct {
	Keep     int // maximum number of groups, and of items of a group
	PerGroup int // number of matches of each group that are wanted even if those of the first group fill Text
	Text     int // bytes of text that the caller shows at most; what cannot be shown is not returned
}

// A GrepMode says what Grep returns.
type GrepMode int

// The modes of Grep.
const (
	GrepFiles GrepMode = iota // files that match, grouped by folder
	GrepCount                 // the same with the number of matches
	GrepLines                 // lines, grouped by file
)

// A GlobQuery says what Glob searches for. Rules of .gitignore files do not apply.
type GlobQuery struct {
	Pattern string
	Roots   []SearchRoot
	Limits
}

// Found is the results of a search: lines by file, or paths by folder. The first groups by
// name are returned with their first items.
type Found struct {
	Missing []string // roots that do not exist, as they were given; if there are any, nothing was searched
	Folders []bool   // for each root, whether it is a folder
	Groups  []Group  // sorted by name
	Count   int64    // number of all matches, or of all paths
	Puts    int64    // number of all files or paths with matches
	// Problems is the number of files and folders that could not be searched, and Problem
	// the error of one of them.
	Problems int
	Problem  string
}

// A Group is the results in one file or folder.
type Group struct {
	Name  string // begins with the root as it was given
	Count int64  // number of all matches or paths of the group
	Items []Item
}

// An Item is a line of a file, or a path in a folder.
type Item struct {
	Text    string
	Number  int64 // number of the line, or number of matches in the path
	Context bool  // true if the line does not match and is returned for context
	Counts  bool  // true if the item counts as a match
}
