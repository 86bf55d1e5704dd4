// Package files has the tools that read, search and write files: view, create,
// edit, grep and glob.
//
//   - Permission is checked twice: when it is asked, and when the file is opened
//     (package scope). An approval is for what was shown: the path, and where it led
//     then.
//   - Texts for the model are UTF-8 whatever is in the files, and no cut splits a
//     character. Bytes that are not UTF-8 are shown as U+FFFD and written back
//     unchanged.
//   - Answers are limited in length. What is left out is counted exactly.
//   - A write is atomic. The old content is kept, so that the write can be undone, and
//     so that a call that is repeated after a crash can check whether it was made.
//   - The same call on the same files gives the same answer: results are sorted.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// Options are the settings of the tools.
type Options struct {
	// Files returns the files of the workspace of a call's session.
	Files func(call tool.Call) (workspace.Files, error)
	// Scope returns the scope of the session of a call.
	Scope func(ctx context.Context, call tool.Call) (*scope.Scope, error)
	// Checkpoints returns the checkpoints of a session.
	Checkpoints func(id event.SessionID) (*Checkpoints, error)
	// Approved is called when a call has written a protected file, which a person has
	// allowed. It may be nil.
	Approved func(call tool.Call, path string, content []byte)
}

// New returns the tools: view, create, edit, grep and glob.
func New(o Options) []tool.Tool {
	f := &files{Options: o, seed: maphash.MakeSeed()}
	return []tool.Tool{&view{f}, &create{f}, &edit{f}, &grep{f}, &find{f}}
}

// files is the common part of the tools.
type files struct {
	Options
	seed    maphash.Seed
	writers [64]writerLock // locks by hash of the path, so that calls change a file one after the other
	writes  atomic.Int64   // number of locks that were released
}

// A writerLock is held while a file is changed.
type writerLock struct {
	sync.Mutex
	released int64 // number of the last release
}

// lock locks a file for writing by other calls, and returns the function that unlocks it.
// It reports whether another call may have changed the file since the number of releases
// was read.
func (f *files) lock(path string, since int64) (stale bool, unlock func()) {
	mu := &f.writers[maphash.String(f.seed, path)%uint64(len(f.writers))]
	mu.Lock()
	return mu.released > since, func() {
		mu.released = f.writes.Add(1)
		mu.Unlock()
	}
}

// An access is the files of a session and what the session may do with them.
type access struct {
	files workspace.Files
	scope *scope.Scope
}

// access returns the access of a call.
func (f *files) access(ctx context.Context, call tool.Call) (access, error) {
	s, err := f.Scope(ctx, call)
	if err != nil {
		return access{}, err
	}
	files, err := f.Files(call)
	return access{files, s}, err
}

// judge asks the workspace about paths.
func (a access) judge(ctx context.Context, asked ...workspace.Question) ([]workspace.Judgement, error) {
	found, err := a.files.Judge(ctx, a.scope, asked...)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, unusable(asked[len(asked)-1].Path, err)
	}
	return found, nil
}

// answerLimit is the time that a workspace has to answer before anybody is asked about a
// call, and when files are restored.
const answerLimit = 30 * time.Second

// limitedContext returns a context that ends with ctx, or after answerLimit. Its cause is a result for
// the model.
func limitedContext(ctx context.Context) (context.Context, context.CancelFunc) {
	late := fail("The workspace does not answer", "The workspace has not answered within %d seconds. Try again later.", answerLimit/time.Second)
	return context.WithTimeoutCause(ctx, answerLimit, late)
}

// absolute returns the absolute path of a path in a call.
func absolute(call tool.Call, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(call.Dir, path)
}

// allowed returns the access of a call that runs: that of its session, and what the call
// was allowed beyond that: the path that a person was shown, or that a rule or grant was
// judged by, and not what the path leads to now.
func (f *files) allowed(ctx context.Context, call tool.Call, mode scope.Mode, paths ...string) (access, error) {
	at, err := f.access(ctx, call)
	if err != nil || !call.Granted {
		return at, err
	}
	granted := shownPaths(call.Asked)
	switch {
	case call.Asked != nil:
	case call.Decision != nil && len(call.Decision.Paths) > 0:
		granted = call.Decision.Paths
	default:
		if granted, err = at.leadTo(ctx, mode, paths); err != nil {
			return at, err
		}
	}
	for _, path := range granted {
		at.scope = at.scope.With(path, mode)
	}
	return at, nil
}

// leadTo returns where paths lead now, without links.
func (a access) leadTo(ctx context.Context, mode scope.Mode, paths []string) ([]string, error) {
	asked := make([]workspace.Question, len(paths))
	for i, path := range paths {
		asked[i] = workspace.Question{Path: path, Mode: mode}
	}
	found, err := a.judge(ctx, asked...)
	if err != nil {
		return nil, err
	}
	real := make([]string, len(found))
	for i, j := range found {
		if j.Path == "" {
			return nil, unusable(paths[i], j.Err)
		}
		real[i] = j.Path
	}
	return real, nil
}

// shownPaths returns the paths of a request, without links, as they were when it was shown.
func shownPaths(asked json.RawMessage) []string {
	var r struct {
		Path     string   `json:"path"`
		FileName string   `json:"fileName"`
		LeadsTo  []string `json:"leadsTo"`
	}
	if json.Unmarshal(asked, &r) != nil {
		return nil
	}
	switch {
	case r.LeadsTo != nil:
		return r.LeadsTo
	case r.Path != "":
		return []string{r.Path}
	case r.FileName != "":
		return []string{r.FileName}
	}
	return nil
}

// fail returns an error for the model, with a short message for people.
func fail(message, format string, args ...any) *tool.Refusal {
	r := tool.Fail(fmt.Sprintf(format, args...))
	r.Message = message
	return &tool.Refusal{Result: r}
}

// succeed returns the result of a call that has nothing to do, as an error.
func succeed(text string) *tool.Refusal { return &tool.Refusal{Result: tool.Result{Text: text}} }

// unusable returns the error that a path cannot be used.
func unusable(path string, err error) *tool.Refusal {
	var refused *scope.Refusal
	switch {
	case errors.As(err, &refused):
		r := fail("", "Permission denied: %v", err)
		r.Code = event.CodeDenied
		return r
	case errors.Is(err, fs.ErrNotExist):
		return fail("Path does not exist", "Path %s does not exist. Please provide a valid path.", path)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fail("", "Path %s cannot be used: %v.", path, err)
}

// finish returns the result of a call. It converts a refusal to a result; other errors
// are returned.
func finish(r tool.Result, err error) (tool.Result, error) {
	var refused *tool.Refusal
	if errors.As(err, &refused) {
		return refused.Result, nil
	}
	return r, err
}
