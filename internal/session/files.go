package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// errNoFiles means that sessions have no files.
var errNoFiles = errors.New("sessions have no files here")

// Files returns the files of the workspace of a session, or those of this machine if the id
// is empty.
func (w Work) Files(id event.SessionID) (workspace.Files, error) {
	if w.host.opts.Files == nil {
		return nil, errNoFiles
	}
	return w.host.opts.Files(id)
}

// workspaceTime is the time that a workspace has to answer what the runtime asks it by
// itself.
const workspaceTime = 30 * time.Second

// errSilent means that a workspace has not answered in time.
var errSilent = fmt.Errorf("%w: it has not answered in time", workspace.ErrLost)

// withFiles lets f use the files of a session for a limited time, and returns its error.
func (h *Host) withFiles(ctx context.Context, id event.SessionID, f func(context.Context, workspace.Files) error) error {
	files, err := h.Work.Files(id)
	if err != nil {
		return &noWorkspace{err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, workspaceTime, errSilent)
	defer cancel()
	return f(ctx, files)
}

// noWorkspace is the error of a session whose workspace cannot be used.
type noWorkspace struct{ error }

func (n *noWorkspace) Unwrap() error { return n.error }

// isAway reports whether an error means that nothing is known about the files of a
// workspace: what was known before stays true.
func isAway(err error) bool {
	return errors.As(err, new(*noWorkspace)) || workspace.Unusable(err)
}
