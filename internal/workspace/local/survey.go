package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// Survey implements workspace.Files.
func (w *files) Survey(ctx context.Context, r workspace.SurveyRequest) (workspace.Survey, error) {
	s := workspace.Survey{Taken: time.Now(), States: make(map[string]protect.State), Reasons: make(map[string]string)}
	// The processes are looked at before the files: one that ends between the two must not
	// be taken for gone, because it may change files until then.
	s.Busy = w.isBusy(r)
	if !r.Only {
		w.addTargets(&s, r.Dirs)
	}
	var paths []string
	found, isParent := make(map[string]bool), make(map[string]bool)
	for _, t := range s.Targets {
		paths, found[t.Path], isParent[t.Path] = append(paths, t.Path), true, t.Parent
	}
	for path := range r.Known {
		if !found[path] && w.isConfined(path) {
			known := r.Known[path]
			isParent[path] = known.IsFolder() && !known.Crowd
			paths, s.Reasons[path] = append(paths, path), w.list.Reason(protect.Target{Path: path, Parent: isParent[path]})
		}
	}
	for _, path := range paths {
		if ctx.Err() != nil {
			return workspace.Survey{}, context.Cause(ctx)
		}
		if _, done := s.States[path]; !done {
			if isParent[path] {
				s.States[path] = protect.LookAtParent(path)
			} else {
				s.States[path] = protect.Look(path, r.Known[path])
			}
		}
	}
	return s, nil
}

// isBusy reports whether processes of a request's owners may be changing files.
func (w *files) isBusy(r workspace.SurveyRequest) bool {
	if w.manager == nil || r.Owner == "" {
		return false
	}
	return slices.ContainsFunc(w.manager.All(), func(p process.Info) bool {
		running := !p.State.Ended() || p.Lingering && !p.Gone || p.Unkept
		return p.Owner == r.Owner && running || slices.Contains(r.Kin, p.Owner) && (running || p.Created.After(r.Since))
	})
}

// addTargets adds the protected files around folders.
func (w *files) addTargets(s *workspace.Survey, dirs []string) {
	targets, folders, err := w.list.Watched(dirs...)
	for _, t := range targets {
		if w.isConfined(t.Path) {
			s.Targets = append(s.Targets, workspace.SurveyTarget{Target: t, Reason: w.list.Reason(t)})
		}
	}
	for _, dir := range folders {
		if w.isConfined(dir) {
			s.Folders = append(s.Folders, dir)
		}
	}
	if err != nil {
		s.Missed = err.Error()
	}
}

// isConfined reports whether a path neither is nor leads out of the folder that calls are
// confined to; always if there is none. A path with ".." after a link leads elsewhere than its
// letters say, so that only a clean path is inside.
func (w *files) isConfined(path string) bool {
	if w.confined == "" {
		return true
	}
	if filepath.Clean(path) != path {
		return false
	}
	for at := path; ; at = filepath.Dir(at) { // neither the file nor its folder need exist
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			_, in := relative(w.confined, real)
			return in
		}
		if _, isLink := os.Lstat(at); isLink == nil || !errors.Is(err, fs.ErrNotExist) {
			return false // nobody knows where it leads
		}
	}
}

// Restore implements workspace.Files.
func (w *files) Restore(ctx context.Context, path string, now, want protect.State) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !filepath.IsAbs(path) {
		return &fs.PathError{Op: "restore", Path: path, Err: fs.ErrInvalid}
	}
	if !w.isConfined(path) || want.Link != "" && !w.staysConfined(path, want.Link) {
		return &fs.PathError{Op: "restore", Path: path, Err: fs.ErrPermission}
	}
	err := protect.Replace(path, now, want)
	if errors.Is(err, protect.ErrMoved) && isState(protect.Look(path, protect.State{}), want) {
		return nil // an earlier attempt has done it
	}
	return err
}

// staysConfined reports whether a link at a path would not lead out of the folder that calls
// are confined to. What it leads to is written with it.
func (w *files) staysConfined(path, link string) bool {
	if w.confined == "" || filepath.IsAbs(link) {
		return w.isConfined(link)
	}
	above, err := filepath.EvalSymlinks(filepath.Dir(path))
	for up := true; up; { // the rest must be clean, because names in it may be links
		if link, up = strings.CutPrefix(link, "../"); up {
			above = filepath.Dir(above)
		}
	}
	return err == nil && w.isConfined(above+"/"+link)
}

// isState reports whether a file is as another state says.
func isState(is, want protect.State) bool {
	return is.Exists == want.Exists && is.Link == want.Link && is.Digest == want.Digest && is.Mode&0o777 == want.Mode&0o777
}
