package files

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files/checkpoint"
	"github.com/abide-run/abide/internal/workspace"
)

// A change is the old and the new content of a file.
type change struct {
	old, new []byte // old is nil if the file does not exist
}

// A place is what the workspace says about a file that is to be changed, the folder above
// it, and the working directory.
type place struct {
	file, above, dir workspace.Judgement
}

// A writer is a call that changes one file.
type writer struct {
	path      string
	intention string
	done      string // text for the model after the change
	most      int64  // maximum size of the present content; zero if the content is not needed
	// plan returns the change for the present content of the file, or why it cannot be
	// changed.
	plan func(p place) (change, error)
}

// look asks the workspace about the file.
func (w writer) look(ctx context.Context, call tool.Call, at access) (place, error) {
	found, err := at.judge(ctx,
		workspace.Question{Path: filepath.Dir(w.path), Mode: scope.Read},
		workspace.Question{Path: call.Dir, Mode: scope.Read},
		workspace.Question{Path: w.path, Mode: scope.Write, Most: w.most})
	if err != nil {
		return place{}, err
	}
	return place{above: found[0], dir: found[1], file: found[2]}, nil
}

// maxContents is the maximum number of bytes of a new file that are shown beside the
// diff.
const maxContents = 256 << 10

// requestWrite returns the request to write a file. A call that cannot succeed fails without
// asking, unless the error would reveal something about files that the model may not
// read.
func (f *files) requestWrite(ctx context.Context, call tool.Call, w writer) (*approval.Request, error) {
	ctx, cancel := limitedContext(ctx)
	defer cancel()
	access, err := f.access(ctx, call)
	if err != nil {
		return nil, err
	}
	p, err := w.look(ctx, call, access)
	if err != nil {
		return nil, err
	}
	at := p.file
	if err := checkAskable(at, w.path, scope.Write); err != nil {
		return nil, err
	}
	c, err := w.plan(p)
	if err != nil && (at.Verdict == scope.Allowed || inside(p.dir, at.Path)) {
		return nil, err
	}
	body := writeRequest{
		Kind: approval.Write, ToolCallID: call.ID, Intention: w.intention, FileName: w.path,
		CanOffer: at.Protected == "", LeadsTo: leadsTo([]string{w.path}, []workspace.Judgement{at}), Protected: at.Protected,
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
	r, err := request(call, approval.Write, []string{w.path}, []workspace.Judgement{at}, p.dir, body)
	if err == nil {
		r.Omitted = body.Omitted
	}
	return r, err
}

// show adds the change to the request.
func (r *writeRequest) show(path string, c change) {
	r.Diff, r.Omitted = Diff(path, c.old, c.new)
	r.Digest = workspace.Digest(c.old)
	if r.Omitted != "" {
		r.CanOffer = false
		r.Intention += ". It is too large to be shown whole: " + r.Omitted
	}
	if len(c.new) <= maxContents {
		contents := strings.ToValidUTF8(string(c.new), "\ufffd")
		r.Contents = &contents
	}
}

// inside reports whether a path without links is in the working directory.
func inside(dir workspace.Judgement, path string) bool {
	if dir.Path == "" {
		return false
	}
	rel, err := filepath.Rel(dir.Path, path)
	return err == nil && filepath.IsLocal(rel)
}

// write makes the change of a call once: an attempt after a crash checks whether the one
// before has made it.
func (f *files) write(ctx context.Context, call tool.Call, w writer) (tool.Result, error) {
	access, err := f.allowed(ctx, call, scope.Write, w.path)
	if err != nil {
		return tool.Result{}, err
	}
	since := f.writes.Load()
	p, err := w.look(ctx, call, access)
	if err == nil {
		err = checkWritable(call, w.path, p.file)
	}
	if err != nil {
		return tool.Result{}, err
	}
	at := p.file
	stale, unlock := f.lock(at.Path, since)
	defer unlock()
	if stale {
		if p, err = w.look(ctx, call, access); err != nil {
			return tool.Result{}, err
		}
		if p.file.Path != at.Path {
			return tool.Result{}, unusable(w.path, workspace.ErrMoved)
		}
	}
	return f.change(ctx, call, access, w, p)
}

// checkWritable refuses a file that the call may not write: a protected file must be the
// one that a person was shown.
func checkWritable(call tool.Call, path string, at workspace.Judgement) error {
	if at.Path == "" {
		return unusable(path, at.Err)
	}
	if at.Protected != "" && slices.Contains(shownPaths(call.Asked), at.Path) {
		at.Protected = ""
	}
	if at.Verdict != scope.Allowed || at.Protected != "" {
		return unusable(path, &scope.Refusal{Finding: at.Finding, Name: path, Mode: scope.Write})
	}
	return nil
}

// change makes the change of a call to a file that is locked.
func (f *files) change(ctx context.Context, call tool.Call, at access, w writer, p place) (tool.Result, error) {
	kept, err := f.Checkpoints(call.Session)
	if err != nil {
		return tool.Result{}, err
	}
	if call.Attempt > 1 {
		if made, err := earlierResult(ctx, call, at, kept, w); made != nil || err != nil {
			return *made, err
		}
	}
	c, err := w.plan(p)
	if err != nil {
		return tool.Result{}, err
	}
	if err := checkApproved(call, kept, p.file.Path, w.path, c); err != nil {
		return tool.Result{}, err
	}
	err = apply(ctx, call, at, kept, p.file.Path, w.path, c)
	if err == nil && p.file.Protected != "" && f.Approved != nil {
		f.Approved(call, p.file.Path, c.new)
	}
	return tool.Result{Text: w.done, Detailed: resultDiff(w.path, c.old, c.new)}, err
}

// earlierResult returns the result of an earlier attempt that has made the change. It returns
// nil if the change is yet to be made.
func earlierResult(ctx context.Context, call tool.Call, at access, kept *Checkpoints, w writer) (*tool.Result, error) {
	none := new(tool.Result)
	r, found, err := kept.store.Find(call.Key)
	if err != nil {
		return none, err
	}
	if !found {
		return nil, nil
	}
	now, err := contentNow(ctx, at, w.path)
	if err != nil {
		return none, unusable(w.path, err)
	}
	switch workspace.Digest(now) {
	case r.Before:
		return nil, nil
	case r.After:
		old, err := kept.store.Load(r.Before)
		if err != nil {
			return none, err
		}
		return &tool.Result{Text: w.done, Detailed: resultDiff(w.path, old, now)}, nil
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
	if call.Asked == nil || json.Unmarshal(call.Asked, &asked) != nil || asked.Digest == "" || asked.Digest == workspace.Digest(c.old) {
		return nil
	}
	ours, err := kept.store.Wrote(real, workspace.Digest(c.old))
	if err != nil || ours {
		return err
	}
	return fail("File changed", "File %s has changed since this edit was proposed; no changes made. View it again before you repeat the edit.", path)
}

// apply records a change, and then makes it.
func apply(ctx context.Context, call tool.Call, at access, kept *Checkpoints, real, path string, c change) error {
	record := checkpoint.Record{Key: call.Key, Call: call.ID, Path: real, Before: workspace.Digest(c.old), After: workspace.Digest(c.new), Time: time.Now().UTC()}
	if err := kept.store.Save(record, c.old); err != nil {
		return fail("", "File %s was not changed: %v.", path, err)
	}
	err := at.files.Apply(ctx, at.scope, workspace.Change{Path: path, Leads: real, Before: record.Before, New: c.new, Key: call.Key})
	if errors.Is(err, scope.ErrChanged) {
		return fail("File changed", "File %s was changed by something else while it was being edited; no changes made. View it again before you repeat the edit.", path)
	}
	if err != nil {
		return unusable(path, err)
	}
	return nil
}
