package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// A change is the old and the new content of a file.
type change struct {
	old, new []byte // old is nil if the file does not exist
}

// A writer is a call that changes one file.
type writer struct {
	path      string
	intention string
	done      string // text for the model after the change
	// plan returns the change for the present content of the file, or why it cannot be
	// changed.
	plan func(s *scope.Scope) (change, error)
}

// maxContents is the maximum number of bytes of a new file that are shown beside the
// diff.
const maxContents = 256 << 10

// requestWrite returns the request to write a file. A call that cannot succeed fails without
// asking, unless the error would reveal something about files that the model may not
// read.
func (f *files) requestWrite(call tool.Call, w writer) (*approval.Request, error) {
	s, err := f.Scope(call)
	if err != nil {
		return nil, err
	}
	found, err := judge(s, scope.Write, w.path)
	if err != nil {
		return nil, err
	}
	at := found[0]
	c, err := w.plan(s.With(at.Path, scope.Write))
	if err != nil && (at.Verdict == scope.Allowed || inside(s, call.Dir, at.Path)) {
		return nil, err
	}
	body := writeRequest{
		Kind: approval.Write, ToolCallID: call.ID, Intention: w.intention, FileName: w.path,
		CanOffer: at.Protected == "", LeadsTo: leadsTo([]string{w.path}, found), Protected: at.Protected,
	}
	if body.LeadsTo != nil {
		body.Intention += " (leads to " + at.Path + ")"
	}
	if at.Protected != "" {
		body.Intention += ". This file is protected: " + at.Protected
	}
	if err == nil {
		body.show(w.path, c)
	}
	return request(call, s, approval.Write, []string{w.path}, found, body)
}

// show adds the change to the request.
func (r *writeRequest) show(path string, c change) {
	r.Diff, r.Digest = diff(path, c.old, c.new), digest(c.old)
	if len(c.new) <= maxContents {
		contents := strings.ToValidUTF8(string(c.new), "\ufffd")
		r.Contents = &contents
	}
}

// inside reports whether a path without links is in the working directory.
func inside(s *scope.Scope, dir, path string) bool {
	f, err := s.Judge(dir, scope.Read)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(f.Path, path)
	return err == nil && filepath.IsLocal(rel)
}

// write makes the change of a call once: an attempt after a crash checks whether the one
// before has made it.
func (f *files) write(call tool.Call, w writer) (tool.Result, error) {
	s, err := f.allowed(call, scope.Write, w.path)
	if err != nil {
		return tool.Result{}, err
	}
	at, err := s.Judge(w.path, scope.Write)
	if err != nil {
		return tool.Result{}, unusable(w.path, err)
	}
	protected := at.Protected != ""
	if protected && slices.Contains(shownPaths(call.Asked), at.Path) {
		s, at.Protected = s.WithShown(at.Path), ""
	}
	if at.Verdict != scope.Allowed || at.Protected != "" {
		return tool.Result{}, unusable(w.path, &scope.Refusal{Finding: at, Name: w.path, Mode: scope.Write})
	}
	defer f.lock(at.Path)()
	kept, err := f.Checkpoints(call.Session)
	if err != nil {
		return tool.Result{}, err
	}
	if call.Attempt > 1 {
		if made, err := earlierResult(call, s, kept, w); made != nil || err != nil {
			return *made, err
		}
	}
	c, err := w.plan(s)
	if err != nil {
		return tool.Result{}, err
	}
	if err := checkApproved(call, kept, at.Path, w.path, c); err != nil {
		return tool.Result{}, err
	}
	err = apply(call, s, kept, at.Path, w.path, c)
	if err == nil && protected && f.Approved != nil {
		f.Approved(at.Path, c.new)
	}
	return tool.Result{Text: w.done, Detailed: diff(w.path, c.old, c.new)}, err
}

// earlierResult returns the result of an earlier attempt that has made the change. It returns
// nil if the change is yet to be made.
func earlierResult(call tool.Call, s *scope.Scope, kept *Checkpoints, w writer) (*tool.Result, error) {
	none := new(tool.Result)
	r, found, err := kept.find(call.Key)
	if err != nil {
		return none, err
	}
	if !found {
		return nil, nil
	}
	now, err := s.ReadFile(w.path, maxKept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, unusable(w.path, err)
	}
	switch digest(now) {
	case r.Before:
		return nil, nil
	case r.After:
		old, err := kept.load(r.Before)
		if err != nil {
			return none, err
		}
		return &tool.Result{Text: w.done, Detailed: diff(w.path, old, now)}, nil
	}
	interrupted := fail("", "This change of %s was begun when the runtime stopped, and the file has been changed by something else since: it is not known whether this change was made. View the file before you repeat it.", w.path)
	interrupted.Code = event.CodeInterrupted
	return none, interrupted
}

// checkApproved refuses a change that is not the one that a person approved, because the file
// was changed meanwhile. Changes by other calls of the session do not count: they were
// approved too.
func checkApproved(call tool.Call, kept *Checkpoints, real, path string, c change) error {
	var asked writeRequest
	if call.Asked == nil || json.Unmarshal(call.Asked, &asked) != nil || asked.Digest == "" || asked.Digest == digest(c.old) {
		return nil
	}
	ours, err := kept.wrote(real, digest(c.old))
	if err != nil || ours {
		return err
	}
	return fail("File changed", "File %s has changed since this edit was proposed; no changes made. View it again before you repeat the edit.", path)
}

// apply records a change, and then makes it.
func apply(call tool.Call, s *scope.Scope, kept *Checkpoints, real, path string, c change) error {
	record := record{Key: call.Key, Call: call.ID, Path: real, Before: digest(c.old), After: digest(c.new), Time: time.Now().UTC()}
	if err := kept.save(record, c.old); err != nil {
		return fail("", "File %s was not changed: %v.", path, err)
	}
	err := s.Apply(scope.Change{Path: path, Old: c.old, New: c.new, Key: call.Key})
	if errors.Is(err, scope.ErrChanged) {
		return fail("File changed", "File %s was changed by something else while it was being edited; no changes made. View it again before you repeat the edit.", path)
	}
	if err != nil {
		return unusable(path, err)
	}
	return nil
}
