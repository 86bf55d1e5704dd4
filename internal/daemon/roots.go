package daemon

import (
	"context"
	"path/filepath"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

// rootsFile is the name of the file with the working directories of a session, in its own
// folder. The agents of a session have the file of the session.
const rootsFile = "roots.json"

// place returns what a command of a call may change: the working directory of its session
// with its repository, and the session's own files.
func (t *toolbox) place(ctx context.Context, call tool.Call) (bash.Place, error) {
	if t.workspaces.isRemote(ctx, call.Session) { // the workspace finds out where the folder leads to there
		return bash.Place{Root: call.Dir, Family: process.Owner(t.family.root(ctx, call.Session))}, nil
	}
	real, err := filepath.EvalSymlinks(call.Dir)
	if err != nil {
		return bash.Place{}, nil // the start says what is wrong with the folder
	}
	dir, err := t.makeFolder(call.Session)
	if err != nil {
		return bash.Place{}, err
	}
	repository, err := t.pin(ctx, call.Session, call.Dir, real)
	if err != nil {
		return bash.Place{}, err
	}
	return bash.Place{Root: real, Repository: repository, Writable: []string{filepath.Join(dir, "files")}}, nil
}

// settle sets what a command of a client may change, which belongs to a session: the folder
// that it runs in, with its repository. A workspace elsewhere finds out itself what that is.
func (t *toolbox) settle(ctx context.Context, spec *process.Spec) error {
	if id := event.SessionID(spec.Owner); t.workspaces.isRemote(ctx, id) {
		spec.Family = process.Owner(t.family.root(ctx, id))
		return nil
	}
	real, err := filepath.EvalSymlinks(spec.Dir)
	if err != nil {
		return nil // the start says what is wrong with the folder
	}
	roots, err := t.roots(ctx, event.SessionID(spec.Owner))
	if err != nil {
		return err
	}
	spec.Root = real
	spec.Repository, err = roots.PinAny(spec.Dir, real)
	return err
}

// pin returns the repository that a working directory of a session had first, and fails if
// the directory led elsewhere before.
func (t *toolbox) pin(ctx context.Context, id event.SessionID, dir, real string) (*sandbox.Repository, error) {
	key := string(id) + "\x00" + dir + "\x00" + real
	if known, ok := t.pinned.Load(key); ok {
		return known.(*sandbox.Repository), nil
	}
	roots, err := t.roots(ctx, id)
	if err != nil {
		return nil, err
	}
	repository, err := roots.Pin(dir, real)
	if err != nil {
		return nil, err
	}
	t.pinned.Store(key, repository)
	return repository, nil
}

// roots returns the working directories of a session.
func (t *toolbox) roots(ctx context.Context, id event.SessionID) (*sandbox.Roots, error) {
	dir, err := t.makeFolder(t.family.root(ctx, id))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, rootsFile)
	known, _ := t.rootFiles.LoadOrStore(file, &sandbox.Roots{File: file})
	return known.(*sandbox.Roots), nil
}
