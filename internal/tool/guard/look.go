package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// A watch is the protected files of one session, while the session is locked.
type watch struct {
	guard   *Guard
	session event.SessionID
	files   store
	base    *baseline
	pending []change
	notes   []string // outcomes of changes that a person was asked about
}

// open reads what is stored of a session. The session must be locked.
func (g *Guard) open(id event.SessionID) (*watch, error) {
	folder, err := g.Folder(id)
	if err != nil {
		return nil, err
	}
	w := &watch{guard: g, session: id, files: store(filepath.Join(folder, "protected"))}
	g.mu.Lock()
	w.base = g.cached[id]
	g.mu.Unlock()
	if w.base == nil {
		if w.base, err = w.files.baseline(); err != nil {
			return nil, err
		}
	}
	w.pending, err = w.files.pending()
	return w, err
}

// maxCached is the maximum number of sessions whose files are kept in memory.
const maxCached = 256

// save stores what the files are like now.
func (w *watch) save() error {
	if w.base.dirty {
		if err := w.files.saveBaseline(w.base); err != nil {
			return err
		}
		w.base.dirty = false
	}
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	if len(w.guard.cached) >= maxCached {
		clear(w.guard.cached)
	}
	w.guard.cached[w.session] = w.base
	return nil
}

// begin looks at the protected files before a call, and carries out the answer to what
// an earlier run of it has asked.
func (g *Guard) begin(ctx context.Context, call tool.Call, starts bool) (*watch, error) {
	defer g.lock(call.Session)()
	w, err := g.open(call.Session)
	if err != nil {
		return nil, err
	}
	if err := w.decide(call.Review); err != nil {
		return nil, err
	}
	if err := w.compare(ctx, call.Attempt > 1 || w.files.marked()); err != nil {
		return nil, err
	}
	if !starts {
		return w, w.save()
	}
	if err := errors.Join(w.base.cover(g.List, folders(call)), w.save()); err != nil {
		return nil, err
	}
	return w, w.files.mark(call.Key)
}

// folders returns the folders that a call runs its command in.
func folders(call tool.Call) []string {
	dirs := []string{call.Dir}
	var arguments map[string]any
	_ = json.Unmarshal(call.Arguments, &arguments) // a call with other arguments is refused
	for _, name := range []string{"cwd", "work_dir", "workdir", "working_directory"} {
		dir, ok := arguments[name].(string)
		switch {
		case !ok || dir == "":
		case filepath.IsAbs(dir):
			dirs = append(dirs, filepath.Clean(dir))
		default:
			dirs = append(dirs, filepath.Join(call.Dir, dir))
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// end looks at the protected files after a call, and adds to its result what a person
// has to be asked and what the model has to know.
func (w *watch) end(ctx context.Context, call tool.Call, r tool.Result, starts bool) tool.Result {
	g := w.guard
	defer g.lock(call.Session)()
	notes := w.notes
	w, err := g.open(call.Session) // other calls may have looked meanwhile
	if err == nil {
		err = w.compareAfter(ctx, call)
	}
	if err == nil && starts && !r.Task {
		err = w.files.unmark(call.Key)
	}
	if err != nil {
		g.Log.Error("protected files could not be looked at", "session", call.Session, "err", err)
		notes = append(notes, "The protected files could not be looked at: "+err.Error()+".")
	} else if r.Review, err = w.request(call); err == nil {
		notes = append(notes, w.tell(call.Key)...)
	}
	if w != nil && w.base.missed != nil {
		notes = append(notes, "The protected files could not all be looked at: "+w.base.missed.Error()+".")
	}
	if len(notes) > 0 {
		r = withNotes(r, notes)
	}
	return r
}

// compareAfter compares the files after a call. What the person was shown to be written
// when permission for the command was asked is no surprise.
func (w *watch) compareAfter(ctx context.Context, call tool.Call) error {
	w.shown(call)
	if err := w.compare(ctx, true); err != nil {
		return err
	}
	return w.save()
}

// shown takes over the files that the question about the command named as protected.
func (w *watch) shown(call tool.Call) {
	var asked struct {
		Protected []string `json:"protectedPaths"`
	}
	if call.Asked == nil || json.Unmarshal(call.Asked, &asked) != nil {
		return
	}
	for _, path := range asked.Protected {
		if before, ok := w.base.Files[path]; ok {
			w.base.set(path, protect.Look(path, before))
		}
	}
}

// withNotes adds notes to what the model reads.
func withNotes(r tool.Result, notes []string) tool.Result {
	text := strings.Join(notes, "\n")
	if json.Valid([]byte(r.Text)) && strings.HasPrefix(r.Text, "{") { // the answer of exec is an object
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(r.Text), &object) == nil {
			object["protected_files"], _ = json.Marshal(text) // a text can always be encoded
			encoded, _ := json.Marshal(object)
			r.Text = string(encoded)
			return r
		}
	}
	r.Text = strings.TrimRight(r.Text, "\n") + "\n\n" + text
	return r
}

// lookAtTask looks at the files when there is news of a background command.
func (g *Guard) lookAtTask(ctx context.Context, id event.SessionID, news *event.TaskReportedData) {
	defer g.lock(id)()
	w, err := g.open(id)
	if err == nil {
		err = w.compareAfter(ctx, tool.Call{})
	}
	if err == nil && news.Ended {
		err = w.files.unmark(news.Key)
	}
	if err != nil {
		g.Log.Error("protected files could not be looked at", "session", id, "err", err)
		return
	}
	// News that is lost in a crash is reported again, and so is what belongs to it.
	if notes := w.untold(""); news.Text != "" && len(notes) > 0 {
		news.Text += "\n" + strings.Join(notes, "\n")
	}
}

// lookBetween looks at the files while background commands run.
func (g *Guard) lookBetween(ctx context.Context, id event.SessionID) {
	defer g.lock(id)()
	w, err := g.open(id)
	if err == nil {
		err = w.compareAfter(ctx, tool.Call{})
	}
	if err != nil {
		g.Log.Error("protected files could not be looked at", "session", id, "err", err)
	}
}

// compare looks at all files. A change that may be ours is put back and kept for a
// person to decide; any other is taken over. It may be ours if a command was started or
// has ended since the last look, which the caller knows, or if a process of the session is
// running or was running at the last look.
func (w *watch) compare(ctx context.Context, ours bool) error {
	// The processes are looked at before the files: one that ends between the two must not
	// be taken for gone, because it may change files until then.
	since := w.base.Taken
	alive, err := w.guard.Busy(ctx, w.session, since)
	if err != nil {
		return err
	}
	ours = ours || alive || w.base.Alive
	for _, c := range w.base.changes(w.guard.List) {
		if !ours || w.guard.isApproved(c.Path, c.After, since) {
			w.base.set(c.Path, c.After)
			continue
		}
		if err := w.putBack(c); err != nil {
			return err
		}
	}
	w.base.setAlive(alive)
	return nil
}

// putBack stores a change, and then undoes it.
func (w *watch) putBack(c change) error {
	c.Reason = w.guard.List.Reason(c.target())
	if i := slices.IndexFunc(w.pending, c.same); i >= 0 { // a crash came between storing and undoing it
		c.ID = w.pending[i].ID
	} else {
		w.pending = append(w.pending, c)
		if err := w.files.savePending(w.pending); err != nil {
			return fmt.Errorf("keep the change of %s: %w", c.Path, err)
		}
	}
	if err := w.files.undo(c); err != nil {
		w.guard.Log.Warn("a protected file could not be put back", "session", w.session, "err", err)
		w.setProblem(c, err)
	} else {
		w.guard.approve(c.Path, c.Before) // another session may have seen the change
	}
	w.base.set(c.Path, protect.Look(c.Path, protect.State{}))
	return nil
}

func (w *watch) setProblem(c change, err error) {
	for i := range w.pending {
		if w.pending[i].same(c) {
			w.pending[i].Problem = err.Error()
		}
	}
	if err := w.files.savePending(w.pending); err != nil {
		w.guard.Log.Error("the change of a protected file could not be kept", "session", w.session, "err", err)
	}
}
