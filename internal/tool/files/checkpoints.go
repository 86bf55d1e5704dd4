package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool/files/checkpoint"
	"github.com/abide-run/abide/internal/workspace"
)

// Checkpoints are the file contents that the calls of one session replaced, and the files
// of the workspace that they can be restored to.
type Checkpoints struct {
	store *checkpoint.Store
	files workspace.Files
}

// NewCheckpoints returns the checkpoints in a folder, below one that exists, of a session
// whose workspace has these files.
func NewCheckpoints(folder string, files workspace.Files) *Checkpoints {
	return &Checkpoints{checkpoint.NewStore(folder), files}
}

// An Outcome is what Restore does with a file.
type Outcome string

// The outcomes.
const (
	Restored Outcome = event.FileRestored // the file gets its old content
	Removed  Outcome = event.FileRemoved  // the file, which a call created, is deleted
	Same     Outcome = event.FileSame     // the file has its old content already
	Skipped  Outcome = event.FileSkipped  // the file is left alone; Reason says why
)

// A Reversal is the effect of Restore on one file.
type Reversal struct {
	Path          string
	Outcome       Outcome
	Reason        string
	Added, Gone   int    // number of lines that are added, and that are removed
	before, after []byte // old content to be restored, and present content
}

// Preview returns what Restore would do.
func (c *Checkpoints) Preview(ctx context.Context, undone func(key string) bool) ([]Reversal, error) {
	list, err := c.store.Records()
	if err != nil {
		return nil, err
	}
	var all []Reversal
	for _, path := range paths(list, undone) {
		all = append(all, c.plan(ctx, path, list, undone))
	}
	return all, nil
}

// paths returns the files that the undone calls have written, sorted.
func paths(list []checkpoint.Record, undone func(key string) bool) []string {
	var all []string
	for _, r := range list {
		if undone(r.Key) {
			all = append(all, r.Path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// plan returns how a file gets the content that it had before the first of the undone
// calls. A file that something else has changed is left alone.
func (c *Checkpoints) plan(ctx context.Context, path string, list []checkpoint.Record, undone func(key string) bool) Reversal {
	v := Reversal{Path: path}
	known, first := map[string]bool{}, (*checkpoint.Record)(nil)
	for i, r := range list {
		if r.Path != path || !undone(r.Key) {
			continue
		}
		if known[r.Before], known[r.After] = true, true; first == nil {
			first = &list[i]
		}
	}
	ctx, cancel := limitedContext(ctx)
	defer cancel()
	var err error
	if v.after, err = contentNow(ctx, c.onlyFile(path), path); err != nil {
		return v.skip(err.Error())
	}
	if !known[workspace.Digest(v.after)] {
		return v.skip("it was changed by something else since")
	}
	if v.before, err = c.store.Load(first.Before); err != nil {
		return v.skip(err.Error())
	}
	return v.withOutcome()
}

func (v Reversal) skip(reason string) Reversal {
	v.Outcome, v.Reason = Skipped, reason
	return v
}

// withOutcome sets the outcome and the numbers of lines.
func (v Reversal) withOutcome() Reversal {
	switch {
	case workspace.Digest(v.before) == workspace.Digest(v.after):
		v.Outcome = Same
	case v.before == nil:
		v.Outcome = Removed
	default:
		v.Outcome = Restored
	}
	v.Added, v.Gone = countChanges(v.after, v.before)
	return v
}

// contentNow returns the content of a file; nil if it does not exist.
func contentNow(ctx context.Context, at access, path string) ([]byte, error) {
	found, err := at.files.Judge(ctx, at.scope, workspace.Question{Path: path, Mode: scope.Write, Most: workspace.MaxFile})
	if err != nil {
		return nil, err
	}
	switch j := found[0]; {
	case j.Path != "" && j.Verdict != scope.Allowed:
		return nil, &scope.Refusal{Finding: j.Finding, Name: path, Mode: scope.Write}
	case errors.Is(j.Err, fs.ErrNotExist):
		return nil, nil
	default:
		return j.Content, j.Err
	}
}

// onlyFile returns access to one file: the calls were allowed to write it, and Restore
// touches nothing else.
func (c *Checkpoints) onlyFile(path string) access {
	return access{c.files, new(scope.Scope).With(path, scope.Write)}
}

// Restore undoes the writes of calls: every file gets the content that it had before the
// first of those calls. A second Restore changes nothing more.
func (c *Checkpoints) Restore(ctx context.Context, undone func(key string) bool) ([]Reversal, error) {
	all, err := c.Preview(ctx, undone)
	for i := range all {
		v := &all[i]
		if v.Outcome != Restored && v.Outcome != Removed {
			continue
		}
		err := c.putBack(ctx, *v)
		if err != nil {
			*v = v.skip(err.Error())
		}
	}
	return all, err
}

// putBack gives a file its old content.
func (c *Checkpoints) putBack(ctx context.Context, v Reversal) error {
	ctx, cancel := limitedContext(ctx)
	defer cancel()
	at := c.onlyFile(v.Path)
	return at.files.Apply(ctx, at.scope, workspace.Change{
		Path: v.Path, Leads: v.Path, Before: workspace.Digest(v.after), New: v.before, Key: "restore " + v.Path,
	})
}

// countChanges returns the numbers of lines that a change adds and removes.
func countChanges(old, now []byte) (added, gone int) {
	for line := range bytes.Lines([]byte(changes("", "", old, now))) {
		switch {
		case bytes.HasPrefix(line, []byte("+++")), bytes.HasPrefix(line, []byte("---")):
		case line[0] == '+':
			added++
		case line[0] == '-':
			gone++
		}
	}
	return added, gone
}
