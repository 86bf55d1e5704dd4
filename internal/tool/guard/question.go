package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/workspace"
)

// A request is the permission request that clients show for changes that were put back.
type request struct {
	Kind       string   `json:"kind"`
	ToolCallID string   `json:"toolCallId"`
	Intention  string   `json:"intention"`
	FileName   string   `json:"fileName"`
	Diff       string   `json:"diff"`
	CanOffer   bool     `json:"canOfferSessionApproval"`
	Protected  string   `json:"protected"`         // an addition of abide: why the files are protected
	PutBack    bool     `json:"putBack"`           // an addition of abide: true if the question is about changes that were put back
	Changes    []string `json:"changes"`           // an addition of abide: ids of the changes
	Command    string   `json:"command,omitempty"` // an addition of abide: the command of the call during which the changes were found; empty if the call has none, or if they are older
	Omitted    string   `json:"omitted,omitempty"` // an addition of abide: what of the changes Diff does not show
}

// request returns the question about all changes that nobody has decided about; nil if
// there are none.
func (w *watch) request(call tool.Call) (json.RawMessage, error) {
	if len(w.pending) == 0 {
		return nil, nil
	}
	r := request{Kind: approval.Write, ToolCallID: call.ID, PutBack: true}
	if !slices.ContainsFunc(w.pending, func(c change) bool { return c.Told != "" && c.Told != call.Key }) {
		r.Command = commandOf(call)
	}
	var names, reasons, omitted []string
	for _, c := range w.pending {
		names = append(names, c.Path)
		reasons = append(reasons, c.Reason)
		r.Changes = append(r.Changes, c.ID)
		shown, left := c.diff()
		r.Diff += shown
		if left != "" {
			omitted = append(omitted, c.Path+": "+left)
		}
	}
	slices.Sort(reasons)
	r.FileName, r.Protected = strings.Join(names, ", "), strings.Join(slices.Compact(reasons), "; ")
	r.Intention = "A command has changed what is protected. The change was put back; a yes makes it again. Protected: " + r.Protected
	if r.Omitted = strings.Join(omitted, "; "); r.Omitted != "" {
		r.Intention += ". It is too large to be shown whole: " + r.Omitted
	}
	return json.Marshal(r)
}

// commandOf returns the command that a call runs; empty if it runs none.
func commandOf(call tool.Call) string {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(call.Arguments, &a) != nil {
		return ""
	}
	return a.Command
}

// diff returns the change as text for people, and what of it is not shown.
func (c change) diff() (text, omitted string) {
	if c.Before.Crowd || c.After.Crowd {
		return fmt.Sprintf("%s [files in the folder have changed; there are too many to show or keep them: it could not be put back]\n", c.Path), ""
	}
	text, omitted = files.Diff(c.Path, content(c.Before), content(c.After))
	switch {
	case c.Before.Link != c.After.Link:
		text += fmt.Sprintf("[link to %q becomes link to %q]\n", c.Before.Link, c.After.Link)
	case c.Before.Exists && !c.After.Exists:
		text += "[the file is removed]\n"
	case c.Before.Mode != c.After.Mode && c.Before.Exists:
		text += fmt.Sprintf("[mode %o becomes %o]\n", c.Before.Mode, c.After.Mode)
	}
	if c.Problem != "" {
		text += "[it could not be put back: " + c.Problem + "]\n"
	}
	return text, omitted
}

// content returns what a file held; nil if there was none.
func content(s protect.State) []byte {
	if s.Exists && s.Content == nil {
		return []byte("[too large to be shown]\n")
	}
	return s.Content
}

// untold returns what the model has to know of changes that no result of another call has
// told.
func (w *watch) untold(key string) []string {
	var notes []string
	for _, c := range w.pending {
		if c.Told == "" || c.Told == key {
			notes = append(notes, c.note())
		}
	}
	return notes
}

// tell returns what is untold, for the result of a call. The same call tells it again if
// it is repeated after a crash.
func (w *watch) tell(key string) []string {
	notes := w.untold(key)
	for i := range w.pending {
		w.pending[i].Told = cmp.Or(w.pending[i].Told, key)
	}
	if len(notes) > 0 {
		if err := w.files.savePending(w.pending); err != nil {
			w.guard.Log.Error("the change of a protected file could not be kept", "session", w.session, "err", err)
		}
	}
	return notes
}

func (c change) note() string {
	if c.Problem != "" {
		return fmt.Sprintf("%s was changed while a command ran. It is protected, because %s, but it could not be put back: %s.", c.Path, c.Reason, c.Problem)
	}
	return fmt.Sprintf("%s was changed while a command ran, and the change was put back: the file is protected, because %s. "+
		"Only a person can allow the change; do not try to make it in another way.", c.Path, c.Reason)
}

// decide carries out a person's answer. If the workspace is away, the changes stay
// undecided: they are asked about again.
func (w *watch) decide(ctx context.Context, r *tool.Review) error {
	if r == nil {
		return nil
	}
	var shown request
	if err := json.Unmarshal(r.Shown, &shown); err != nil {
		return fmt.Errorf("read the question about protected files: %w", err)
	}
	var left, decided []change
	var paths []string
	for _, c := range w.pending {
		if !slices.Contains(shown.Changes, c.ID) {
			left = append(left, c)
			continue
		}
		decided, paths = append(decided, c), append(paths, c.Path)
	}
	if len(decided) == 0 {
		return nil
	}
	now, err := w.present(ctx, paths)
	if err != nil {
		return err
	}
	for _, c := range decided {
		note, err := w.carryOut(ctx, c, now[c.Path], r)
		if err != nil {
			return err
		}
		w.notes = append(w.notes, note)
	}
	if r.Approved {
		if err := w.refresh(ctx, paths); err != nil {
			return err
		}
	}
	if err := w.save(); err != nil {
		return err
	}
	w.pending = left
	return w.files.savePending(left)
}

// carryOut makes a change again in a file that is as now says, or leaves it put back, and
// returns what the model is told. An error means that the workspace is away.
func (w *watch) carryOut(ctx context.Context, c change, now protect.State, r *tool.Review) (string, error) {
	if !r.Approved {
		text := fmt.Sprintf("%s was changed while the command ran. The user did not allow the change, and it was put back.", c.Path)
		if r.Feedback != "" {
			text += " User feedback: " + r.Feedback
		}
		return text, w.dropAside(ctx, c)
	}
	if !c.target().Same(now, c.After) {
		err := protect.ErrMoved
		if c.target().Same(now, c.Before) {
			err = w.there.Restore(ctx, c.Path, now, c.After)
		}
		if err != nil && (workspace.Unusable(err) || ctx.Err() != nil) {
			return "", err
		}
		if err != nil {
			return fmt.Sprintf("%s was changed while the command ran, and the change was put back. The user allowed it, but it could not be made again: %v.", c.Path, err), nil
		}
	}
	w.guard.approve(placedPath{w.place, c.Path}, c.After)
	return fmt.Sprintf("%s was changed while the command ran. The user allowed the change.", c.Path), nil
}

// dropAside removes a file that was set aside and that nobody wants back. If that fails,
// it is left: nothing runs it.
func (w *watch) dropAside(ctx context.Context, c change) error {
	if c.After.Aside == "" {
		return nil
	}
	now := c.After
	now.Aside = ""
	err := w.there.Restore(ctx, filepath.Join(filepath.Dir(c.Path), c.After.Aside), now, protect.State{})
	if err != nil && (workspace.Unusable(err) || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		w.guard.Log.Warn("a file that was set aside could not be removed", "session", w.session, "path", c.Path, "err", err)
	}
	return nil
}
