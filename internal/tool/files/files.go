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
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// Options are the settings of the tools.
type Options struct {
	// Scope returns the scope of the session of a call.
	Scope func(call tool.Call) (*scope.Scope, error)
	// Checkpoints returns the checkpoints of a session.
	Checkpoints func(id event.SessionID) (*Checkpoints, error)
	// Approved is called when a call has written a protected file, which a person has
	// allowed. It may be nil.
	Approved func(path string, content []byte)
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
	writers [64]sync.Mutex // locks by hash of the path, so that calls change a file one after the other
}

// lock locks a file for writing by other calls, and returns the function that unlocks it.
func (f *files) lock(path string) func() {
	mu := &f.writers[maphash.String(f.seed, path)%uint64(len(f.writers))]
	mu.Lock()
	return mu.Unlock
}

// absolute returns the absolute path of a path in a call.
func absolute(call tool.Call, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(call.Dir, path)
}

// allowed returns the scope of a call that runs: that of its session, and what the call
// was allowed beyond that: the path that a person was shown, or that a rule or grant was
// judged by, and not what the path leads to now.
func (f *files) allowed(call tool.Call, mode scope.Mode, paths ...string) (*scope.Scope, error) {
	s, err := f.Scope(call)
	if err != nil || !call.Granted {
		return s, err
	}
	granted := shownPaths(call.Asked)
	switch {
	case call.Asked != nil:
	case call.Decision != nil && len(call.Decision.Paths) > 0:
		granted = call.Decision.Paths
	default:
		for _, path := range paths {
			found, err := s.Judge(path, mode)
			if err != nil {
				return nil, unusable(path, err)
			}
			granted = append(granted, found.Path)
		}
	}
	for _, path := range granted {
		s = s.With(path, mode)
	}
	return s, nil
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
