package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// A watch is the protected files of one session, while the session is locked.
type watch struct {
	guard   *Guard
	session event.SessionID
	there   workspace.Guarded // the files, where the commands run
	place   string            // name of the workspace
	kin     []process.Owner   // sessions whose processes count as those of the session
	files   store
	base    *baseline
	pending []change
	notes   []string // outcomes of changes that a person was asked about
}

// open locks a session and reads what is stored of it. The caller closes the watch.
func (g *Guard) open(ctx context.Context, id event.SessionID) (w *watch, unlock func(), err error) {
	if unlock, err = g.locks.lock(ctx, id); err != nil {
		return nil, nil, err
	}
	if w, err = g.read(ctx, id); err != nil {
		unlock()
		return nil, nil, err
	}
	return w, unlock, nil
}

// read reads what is stored of a session, which is locked.
func (g *Guard) read(ctx context.Context, id event.SessionID) (w *watch, err error) {
	w = &watch{guard: g, session: id}
	if w.there, w.place, err = g.Place(ctx, id); err != nil {
		return nil, err
	}
	if w.files, err = g.store(id); err != nil {
		return nil, err
	}
	if w.kin, err = g.kin(ctx, id); err != nil {
		return nil, err
	}
	g.mu.Lock()
	w.base = g.cached[id]
	delete(g.cached, id) // the look changes the baseline; if the look fails, the next one reads the stored baseline
	g.mu.Unlock()
	if w.base == nil {
		if w.base, err = w.files.baseline(); err != nil {
			return nil, err
		}
	}
	w.pending, err = w.files.pending()
	return w, err
}

func (g *Guard) store(id event.SessionID) (store, error) {
	folder, err := g.Folder(id)
	return store(filepath.Join(folder, "protected")), err
}

// kin returns the other sessions that work for the same one and have run commands.
func (g *Guard) kin(ctx context.Context, id event.SessionID) ([]process.Owner, error) {
	root := g.Root(ctx, id)
	files, err := g.store(root)
	if err != nil {
		return nil, err
	}
	members, err := files.members()
	var kin []process.Owner
	for _, other := range append(members, root) {
		if other != id {
			kin = append(kin, process.Owner(other))
		}
	}
	return kin, err
}

// join notes that a session is about to run a command, so that its processes count as
// those of the session that it works for.
func (w *watch) join(ctx context.Context) error {
	root := w.guard.Root(ctx, w.session)
	if root == w.session {
		return nil
	}
	files, err := w.guard.store(root)
	if err != nil {
		return err
	}
	return files.addMember(w.session)
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

// forget makes the next look begin with what is stored of a session.
func (g *Guard) forget(id event.SessionID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.cached, id)
}

// begin looks at the protected files before a call, and carries out the answer to what
// an earlier run of it has asked. It returns what the model is told of that.
func (g *Guard) begin(ctx context.Context, call tool.Call, starts bool) (notes []string, err error) {
	w, unlock, err := g.open(ctx, call.Session)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := w.decide(ctx, call.Review); err != nil {
		return nil, err
	}
	if w.base.Taken.IsZero() && starts { // before the first look nothing is known, and everything is taken as it is
		if err := w.base.addDirs(folders(call)); err != nil {
			return w.notes, err
		}
	}
	if err := w.compare(ctx, call.Attempt > 1 || w.files.marked(), nil); err != nil {
		return w.notes, err
	}
	if !starts {
		return w.notes, w.save()
	}
	return w.notes, w.prepare(ctx, call)
}

// prepare stores what the files are like before a command starts, and that it is about to.
func (w *watch) prepare(ctx context.Context, call tool.Call) error {
	if err := w.cover(ctx, folders(call)); err != nil {
		return err
	}
	if err := w.save(); err != nil {
		return err
	}
	if w.base.missed != "" {
		return errors.New(w.base.missed)
	}
	if err := w.join(ctx); err != nil {
		return err
	}
	return w.files.mark(call.Key)
}

// cover adds the folders that a command is about to run in. The files there are taken as
// they are.
func (w *watch) cover(ctx context.Context, dirs []string) error {
	before := len(w.base.Dirs)
	if err := w.base.addDirs(dirs); err != nil || len(w.base.Dirs) == before {
		return err
	}
	found, err := w.there.Survey(ctx, workspace.SurveyRequest{Dirs: w.base.Dirs, Known: w.base.Files})
	if err != nil {
		return err
	}
	w.base.cover(found)
	return nil
}

// hasBegun reports whether the files were looked at before the command of a call was
// started by an earlier run, whose end was not looked at.
func (g *Guard) hasBegun(call tool.Call) bool {
	files, err := g.store(call.Session)
	return err == nil && files.isMarked(call.Key)
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
func (g *Guard) end(ctx context.Context, call tool.Call, r tool.Result, notes []string) tool.Result {
	if r.Failed && r.Task { // its workspace has just gone away, and the task is watched
		ctx = g.Hurry(ctx)
	}
	more, err := g.lookAfter(ctx, call, &r)
	if notes = append(notes, more...); err != nil {
		g.Log.Error("protected files could not be looked at", "session", call.Session, "err", err)
		notes = append(notes, "The protected files could not be looked at: "+err.Error()+".")
		if workspace.Unusable(err) && !r.Task {
			g.lookLater(lateLook{call.Session, call.Key})
		}
	}
	if len(notes) > 0 {
		r = withNotes(r, notes)
	}
	return r
}

// lookAfter looks at the protected files after a call, adds to its result what a person
// has to be asked, and returns what the model has to know.
func (g *Guard) lookAfter(ctx context.Context, call tool.Call, r *tool.Result) (notes []string, err error) {
	w, unlock, err := g.open(ctx, call.Session) // other calls may have looked meanwhile
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := w.compareAfter(ctx, shownPaths(call)); err != nil {
		return nil, err
	}
	if !r.Task {
		if err := w.files.unmark(call.Key); err != nil {
			return nil, err
		}
	}
	if r.Review, err = w.request(call); err != nil {
		return nil, err
	}
	notes = w.tell(call.Key)
	if w.base.missed != "" {
		notes = append(notes, "The protected files could not all be looked at: "+w.base.missed+".")
	}
	return notes, nil
}

// compareAfter compares the files after a call. What the person was shown to be written
// when permission for the command was asked is no surprise.
func (w *watch) compareAfter(ctx context.Context, shown []string) error {
	if err := w.compare(ctx, true, shown); err != nil {
		return err
	}
	return w.save()
}

// shownPaths returns the files that the question about a command named as protected.
func shownPaths(call tool.Call) []string {
	var asked struct {
		Protected []string `json:"protectedPaths"`
	}
	if call.Asked == nil || json.Unmarshal(call.Asked, &asked) != nil {
		return nil
	}
	return asked.Protected
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

// lookAtTask looks at the files when there is news of a background command. An error means
// that they cannot be looked at now, and that the news must come again.
func (g *Guard) lookAtTask(ctx context.Context, id event.SessionID, news *event.TaskReportedData) error {
	w, unlock, err := g.open(ctx, id)
	if err == nil {
		defer unlock()
		err = w.compareAfter(ctx, nil)
	}
	if err == nil && news.Ended {
		err = w.files.unmark(news.Key)
	}
	if err != nil && (workspace.Unusable(err) || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		g.Log.Error("protected files could not be looked at", "session", id, "err", err)
		return nil
	}
	// News that is lost in a crash is reported again, and so is what belongs to it.
	if notes := w.untold(""); news.Text != "" && len(notes) > 0 {
		news.Text += "\n" + strings.Join(notes, "\n")
	}
	return nil
}

// lookBetween looks at the files while background commands run.
func (g *Guard) lookBetween(ctx context.Context, id event.SessionID) {
	w, unlock, err := g.open(ctx, id)
	if err == nil {
		defer unlock()
		err = w.compareAfter(ctx, nil)
	}
	if err != nil {
		g.Log.Error("protected files could not be looked at", "session", id, "err", err)
	}
}

// compare looks at all files. A change that may be ours is put back and kept for a
// person to decide, unless it was shown before; any other is taken over. It may be ours if
// a command was started or has ended since the last look, which the caller knows, or if a
// process of the session is running or was running at the last look.
func (w *watch) compare(ctx context.Context, ours bool, shown []string) error {
	for range maxLinked {
		if again, err := w.compareOnce(ctx, ours, shown); err != nil || !again {
			return err
		}
	}
	return nil
}

// maxLinked is the maximum number of folders, one in the other, with links in their places.
const maxLinked = 8

// compareOnce looks at all files. It reports true if a link in the place of a folder was put
// back: then the names in the folder are those of other files than the look has found.
func (w *watch) compareOnce(ctx context.Context, ours bool, shown []string) (again bool, err error) {
	defer func() {
		if err != nil {
			w.guard.forget(w.session)
		}
	}()
	since, now := w.base.looked(), time.Now()
	found, err := w.there.Survey(ctx, workspace.SurveyRequest{
		Dirs: w.base.Dirs, Known: w.base.Files, Owner: process.Owner(w.session), Kin: w.kin, Since: w.base.Taken,
	})
	if err != nil {
		return false, err
	}
	ours = ours || found.Busy || w.base.Alive
	var put []string
	var linked []string
	isInLinked := func(path string) bool {
		return slices.ContainsFunc(linked, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	}
	for _, c := range w.base.changes(found) {
		if isInLinked(c.Path) {
			again = true
			continue
		}
		if !ours || slices.Contains(shown, c.Path) || w.guard.isApproved(placedPath{w.place, c.Path}, c.After, since) {
			w.base.set(c.Path, c.After)
			continue
		}
		if err := w.putBack(ctx, c); err != nil {
			return false, err
		}
		put = append(put, c.Path)
		if c.After.Link != "" && (c.After.IsFolder() || c.Before.IsFolder()) {
			linked = append(linked, c.Path)
		}
	}
	w.base.Looked = now
	w.base.setAlive(found.Busy)
	return again, w.refresh(ctx, put)
}

// refresh takes over what files are like now.
func (w *watch) refresh(ctx context.Context, paths []string) error {
	now, err := w.present(ctx, paths)
	for path, state := range now {
		w.base.set(path, state)
	}
	return err
}

// present returns what files are like now.
func (w *watch) present(ctx context.Context, paths []string) (map[string]protect.State, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	known := make(map[string]protect.State)
	for _, path := range paths {
		known[path] = protect.State{}
	}
	found, err := w.there.Survey(ctx, workspace.SurveyRequest{Known: known, Only: true})
	return found.States, err
}

// putBack stores a change, and then undoes it. An error means that nobody knows whether it
// was undone: the next look finds out.
func (w *watch) putBack(ctx context.Context, c change) error {
	if i := slices.IndexFunc(w.pending, c.same); i >= 0 { // a crash came between storing and undoing it
		c.ID, c.After.Aside = w.pending[i].ID, w.pending[i].After.Aside
	} else {
		w.pending = append(w.pending, c)
		if err := w.files.savePending(w.pending); err != nil {
			return fmt.Errorf("keep the change of %s: %w", c.Path, err)
		}
	}
	err := w.there.Restore(ctx, c.Path, c.After, c.Before)
	switch {
	case err == nil:
		w.guard.approve(placedPath{w.place, c.Path}, c.Before) // another session may have seen the change
	case workspace.Unusable(err) || ctx.Err() != nil:
		return err
	default:
		w.guard.Log.Warn("a protected file could not be put back", "session", w.session, "err", err)
		w.setProblem(c, err)
	}
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
