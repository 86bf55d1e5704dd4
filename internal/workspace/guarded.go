package workspace

import (
	"context"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/process"
)

// Guarded is the protected files of a workspace, which no command changes unasked. Which
// files these are is known only in the workspace: where the homes of its user are, and what
// the repositories around a folder name.
type Guarded interface {
	// Survey looks at the protected files. It returns within one call what is needed to
	// compare them with an earlier look.
	Survey(ctx context.Context, r SurveyRequest) (Survey, error)
	// Restore gives a protected file another state, if it is as now says; else the error
	// is protect.ErrMoved. A second attempt finds that the first has done it. A state
	// whose content is not known is protect.ErrNotKept, unless it was set aside: see
	// protect.Replace.
	Restore(ctx context.Context, path string, now, want protect.State) error
}

// A SurveyRequest says which files are looked at.
type SurveyRequest struct {
	Dirs []string // folders that commands run in
	// Known are the states of files that were looked at before. These files are looked at,
	// too; what has the same marks is not read again.
	Known map[string]protect.State
	Only  bool // true if only the known files are looked at

	// Owner is the owner of the processes that may have changed the files, and Kin are
	// others whose processes count like its own.
	Owner process.Owner
	Kin   []process.Owner
	Since time.Time // time of an earlier look, by the workspace's clock
}

// A Survey is what the protected files are like.
type Survey struct {
	Targets []SurveyTarget           // protected files around the folders, which need not exist
	Folders []string                 // folders of which every file counts, which need not exist
	States  map[string]protect.State // states of the targets and of the known files; a confined workspace leaves out those outside
	Taken   time.Time                // time by the workspace's clock, before the first file was looked at
	Missed  string                   // what is too much to be looked at; empty if there is nothing
	Reasons map[string]string        // why those of the known files are protected that are no targets
	// Busy is true if a process of the owner or of its kin, or one that such a process left
	// behind, was running or may have been just before the files were looked at, or if
	// one of its kin was started since the earlier look.
	Busy bool
}

// A SurveyTarget is a protected file.
type SurveyTarget struct {
	protect.Target
	Reason string // why it is protected
}
