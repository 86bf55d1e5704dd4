package rpc

import (
	"cmp"
	"context"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// Workspaces are where the files and commands of sessions can be.
type Workspaces interface {
	// Choose returns the workspace of a choice with its identity, and the folder in which
	// a session works there, which is the wanted one unless that is empty. It returns nil
	// for the machine of the engine.
	Choose(ctx context.Context, choice, wanted string) (w *event.Workspace, dir string, err error)
	// List returns the workspaces of the configuration.
	List() ([]api.Workspace, error)
}

// This method lists the workspaces.
var _ = register(map[string]method{api.WorkspacesList: on((*conn).workspaces)})

func (c *conn) workspaces(context.Context, struct{}) (api.WorkspacesResult, error) {
	usual := c.usualWorkspace()
	r := api.WorkspacesResult{Workspaces: []api.Workspace{{Name: event.LocalWorkspace, Default: usual == event.LocalWorkspace}}}
	if c.server.opts.Workspaces == nil {
		return r, nil
	}
	list, err := c.server.opts.Workspaces.List()
	for _, w := range list {
		w.Default = w.Name == usual
		r.Workspaces = append(r.Workspaces, w)
	}
	return r, err
}

// usualWorkspace returns the workspace of the client's new sessions.
func (c *conn) usualWorkspace() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.defaults.Workspace, event.LocalWorkspace)
}

// wantedWorkspace returns the workspace that a client wants; empty if it does not say.
func wantedWorkspace(p api.OpenParams) string {
	if p.Abide == nil {
		return ""
	}
	return p.Abide.Workspace
}

// place binds a new session to its workspace. What the client says of its own machine is
// not true of another one: its environment, and the files that it may use.
func (c *conn) place(ctx context.Context, spec *session.Spec, p api.OpenParams) error {
	spec.Wanted = wantedWorkspace(p)
	choice := cmp.Or(spec.Wanted, c.usualWorkspace())
	if choice == event.LocalWorkspace || c.server.opts.Workspaces == nil {
		return nil
	}
	if _, err := c.server.host.Info(ctx, p.SessionID); err == nil {
		return nil // a session that exists keeps its workspace
	}
	at, dir, err := c.server.opts.Workspaces.Choose(ctx, choice, p.WorkingDirectory)
	if err != nil || at == nil {
		return err
	}
	if spec.Config.Sealed {
		return errBadParams{errors.New("sealed: only commands on the machine of the engine can be sealed, and the session is to work in another workspace")}
	}
	spec.Env, spec.Config.Scope.Allow, spec.Config.Workspace = nil, nil, at
	spec.Config.WorkingDirectory = dir
	return nil
}
