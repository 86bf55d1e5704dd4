package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
)

// rootsFile is the name of the file with the working directories of a session, in its own
// folder: where each led to, and which repository it had, when the first command was started
// in it. A command can put a link in the place of a folder that it may change, and remove
// the repository in it: what the link leads to, and the repository above, would be writable
// for the next one. The agents of a session have the file of the session.
const rootsFile = "roots.json"

// A root is what confined commands in a working directory may change.
type root struct {
	Path       string              `json:"path"`                 // folder without links
	Repository *sandbox.Repository `json:"repository,omitempty"` // nil if it was not decided
}

// UnmarshalJSON reads a root. It can be a path alone: then its repository was not decided.
func (r *root) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) {
		return json.Unmarshal(data, &r.Path)
	}
	type plain root
	return json.Unmarshal(data, (*plain)(r))
}

// place returns what a command of a call may change: the working directory of its session
// with its repository, and the session's own files.
func (t *toolbox) place(ctx context.Context, call tool.Call) (bash.Place, error) {
	if t.workspaces.isRemote(ctx, call.Session) {
		return bash.Place{}, nil
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
// that it runs in, with its repository. A client may name any folder, also by a link that
// leads elsewhere now; a working directory that commands of the session have used may not.
func (t *toolbox) settle(ctx context.Context, spec *process.Spec) error {
	real, err := filepath.EvalSymlinks(spec.Dir)
	if err != nil {
		return nil // the start says what is wrong with the folder
	}
	id := event.SessionID(spec.Owner)
	roots, _, err := t.readRoots(ctx, id)
	if err != nil {
		return err
	}
	name := real
	if _, known := roots[spec.Dir]; known {
		name = spec.Dir
	}
	spec.Root = real
	spec.Repository, err = t.pin(ctx, id, name, real)
	return err
}

// settledProcesses are processes of clients on this machine.
type settledProcesses struct {
	workspace.Processes
	tools *toolbox
}

func (p settledProcesses) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	if !filepath.IsAbs(spec.Dir) {
		spec.Dir = filepath.Join(homeFolder(), spec.Dir)
	}
	if err := p.tools.settle(ctx, &spec); err != nil {
		return process.Info{}, false, err
	}
	return p.Processes.Start(ctx, spec)
}

// pin records where a working directory of a session leads to and which repository it has,
// and fails if it led elsewhere before. It returns the repository that it had first.
func (t *toolbox) pin(ctx context.Context, id event.SessionID, dir, real string) (*sandbox.Repository, error) {
	key := string(id) + "\x00" + dir + "\x00" + real
	if known, ok := t.pinned.Load(key); ok {
		return known.(*sandbox.Repository), nil
	}
	t.pinning.Lock()
	defer t.pinning.Unlock()
	roots, file, err := t.readRoots(ctx, id)
	if err != nil {
		return nil, err
	}
	was, known := roots[dir]
	if known && was.Path != real {
		return nil, fmt.Errorf("the working directory %s leads to %s now, and led to %s when the session began: no command is started in it; start a new session if that is right", dir, real, was.Path)
	}
	if was.Repository == nil {
		was = root{real, decideRepository(roots, real)}
		roots[dir] = was
		data, err := json.Marshal(roots)
		if err == nil {
			err = writeSynced(file, data)
		}
		if err != nil {
			return nil, fmt.Errorf("record where the working directory of the session leads: %w", err)
		}
	}
	t.pinned.Store(key, was.Repository)
	return was.Repository, nil
}

// readRoots returns the working directories of a session, and the file that they are in.
func (t *toolbox) readRoots(ctx context.Context, id event.SessionID) (map[string]root, string, error) {
	dir, err := t.makeFolder(t.family.root(ctx, id))
	if err != nil {
		return nil, "", err
	}
	roots, file := map[string]root{}, filepath.Join(dir, rootsFile)
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &roots)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("read where the working directories of the session led: %w", err)
	}
	return roots, file, nil
}

// decideRepository returns the repository of a folder in which no command was started yet. In
// a folder below one in which commands were, it is one that they could change before:
// they may have removed a nearer one.
func decideRepository(roots map[string]root, real string) *sandbox.Repository {
	found := sandbox.FindRepository(real)
	for _, known := range roots {
		if known.Repository == nil || !isIn(real, known.Path) || found == (sandbox.Repository{}) || isIn(found.Path, known.Path) {
			continue
		}
		if found != *known.Repository {
			return known.Repository
		}
	}
	return &found
}

// isIn reports whether a path is a folder or below it.
func isIn(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}
