// Package files has the tools that read, search and write files: view, create,
// edit, grep and glob.
//
//   - What may be used is judged twice: when permission is asked, and when the
//     file is opened (package scope). A person's yes is for what was shown: the
//     path, and where it led then.
//   - Texts are UTF-8 whatever is in the files, and no cut splits a character.
//     What a file holds that is not UTF-8 is shown as U+FFFD and written back as
//     it was.
//   - Answers are bounded. What is left out is counted, exactly.
//   - A write is whole or not at all. What was there before is kept, so that it
//     can be taken back, and so that a call that is made again after a crash
//     finds out whether it was made already.
//   - The same call on the same files gives the same answer: results are in
//     order.
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

// Options are what the tools need from whoever runs the sessions.
type Options struct {
	// Scope says what the session of a call may use.
	Scope func(call tool.Call) (*scope.Scope, error)
	// Checkpoints returns where a session keeps what its calls replace.
	Checkpoints func(id event.SessionID) (*Checkpoints, error)
}

// New returns the tools: view, create, edit, grep and glob.
func New(o Options) []tool.Tool {
	f := &files{Options: o, seed: maphash.MakeSeed()}
	return []tool.Tool{&view{f}, &create{f}, &edit{f}, &grep{f}, &find{f}}
}

// files is what the tools have in common.
type files struct {
	Options
	seed    maphash.Seed
	writers [64]sync.Mutex // by path, so that calls change a file one after the other
}

// lock waits until no other call changes the file; the function returned lets
// the next one go on.
func (f *files) lock(path string) func() {
	mu := &f.writers[maphash.String(f.seed, path)%uint64(len(f.writers))]
	mu.Lock()
	return mu.Unlock
}

// absolute returns a path as the tools show it.
func absolute(call tool.Call, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(call.Dir, path)
}

// allowed returns what a call that is made may use: the scope of its session,
// and what it was allowed beyond that. If a person was asked, that is what was
// shown, and not where a path leads by now.
func (f *files) allowed(call tool.Call, mode scope.Mode, paths ...string) (*scope.Scope, error) {
	s, err := f.Scope(call)
	if err != nil || !call.Granted {
		return s, err
	}
	granted := shown(call.Asked)
	if call.Asked == nil {
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

// shown returns the paths that a request was about: where they led when it was
// made.
func shown(asked json.RawMessage) []string {
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

// fail makes a failure with a short form for people.
func fail(message, format string, args ...any) *tool.Refusal {
	r := tool.Fail(fmt.Sprintf(format, args...))
	r.Message = message
	return &tool.Refusal{Result: r}
}

// succeed makes the result of a call that needs nothing to be done.
func succeed(text string) *tool.Refusal { return &tool.Refusal{Result: tool.Result{Text: text}} }

// unusable says why a path cannot be used.
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

// finish makes a result of what a call came to. Only an error that is not about
// the call goes on.
func finish(r tool.Result, err error) (tool.Result, error) {
	var refused *tool.Refusal
	if errors.As(err, &refused) {
		return refused.Result, nil
	}
	return r, err
}
