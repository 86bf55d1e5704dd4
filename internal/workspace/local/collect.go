package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/project/file"
	"github.com/abide-run/abide/internal/workspace"
)

// Collect implements workspace.Files.
func (w *files) Collect(ctx context.Context, which ...workspace.Selection) ([][]workspace.Collected, error) {
	c := &collector{files: w, left: workspace.MaxCollectBytes}
	all := make([][]workspace.Collected, len(which))
	for i, s := range which {
		if s.Pattern != "" && !filepath.IsLocal(s.Pattern) {
			return nil, &fs.PathError{Op: "collect", Path: s.Pattern, Err: fs.ErrInvalid}
		}
		s.Dir = w.absolute(s.Dir)
		c.Selection, c.found = s, nil
		if err := c.collect(ctx); err != nil {
			return nil, err
		}
		all[i] = c.found
	}
	return all, nil
}

// A collector reads the files of a selection.
type collector struct {
	*files
	workspace.Selection
	left  int // bytes that may still be read
	found []workspace.Collected
}

// collect selects in the folder, and in those above it if they are wanted.
func (c *collector) collect(ctx context.Context) error {
	if c.Pattern != "" {
		return c.addMatches(ctx)
	}
	for dir := c.Dir; ; dir = filepath.Dir(dir) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.addNames(dir)
		if !c.Above || c.isTop(dir) {
			return nil
		}
	}
}

// addNames adds the files of a folder that have the wanted names.
func (c *collector) addNames(dir string) {
	for _, name := range c.Names {
		path := filepath.Join(dir, name)
		if !c.exists(path) {
			continue
		}
		c.add(dir, path)
		if c.First {
			return
		}
	}
}

// addMatches adds the files below a folder that match the pattern.
func (c *collector) addMatches(ctx context.Context) error {
	above, wild, rest := splitPattern(c.Pattern)
	folder := filepath.Join(c.Dir, above)
	entries, err := c.entries(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.found = append(c.found, workspace.Collected{Path: folder, Err: err})
	}
	for _, e := range entries {
		isFolder := e.IsDir() || e.Type() == fs.ModeSymlink
		if !matches(wild, e.Name()) || rest != "" && !isFolder {
			continue
		}
		if len(c.found) == workspace.MaxCollected {
			c.found = append(c.found, workspace.Collected{Path: folder, Err: workspace.ErrTooMany})
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.add(c.Dir, filepath.Join(folder, e.Name(), rest))
	}
	return nil
}

// splitPattern splits a pattern into the folder above the name with a star, that name, and
// the rest.
func splitPattern(pattern string) (above, wild, rest string) {
	names := strings.Split(filepath.Clean(pattern), "/")
	at := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "*") })
	if at < 0 {
		at = len(names) - 1
	}
	return filepath.Join(names[:at]...), names[at], filepath.Join(names[at+1:]...)
}

// matches reports whether a name matches one with at most one star.
func matches(wild, name string) bool {
	before, after, star := strings.Cut(wild, "*")
	if !star {
		return name == wild
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// add reads a file that was selected in a folder. One that does not exist is left out.
func (c *collector) add(dir, path string) {
	f := workspace.Collected{Path: path}
	at, err := c.here(path)
	if err == nil {
		f.Content, f.Size, err = file.Read(c.rootOf(dir, path), at, min(max(c.Most, 0), c.left))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil && f.Cut() && len(f.Content) < c.Most {
		f.Content, err = nil, &fs.PathError{Op: "collect", Path: path, Err: workspace.ErrTooLarge}
	}
	c.left -= len(f.Content)
	f.Err = err
	c.found = append(c.found, f)
}

// here returns the path that is used for a path. It is another one if calls are confined to
// a folder that is reached by a link.
func (w *files) here(path string) (string, error) {
	if w.confined == "" {
		return path, nil
	}
	p, err := w.confine(workspace.At(path))
	if err != nil {
		return "", &fs.PathError{Op: "collect", Path: path, Err: err}
	}
	return filepath.Join(p.Root, p.Name), nil
}

// rootOf returns the folder that links of a file that was selected in a folder must not
// leave.
func (c *collector) rootOf(dir, path string) string {
	for _, within := range c.Within {
		if _, in := relative(within, path); in {
			dir = within
			break
		}
	}
	at, err := c.here(dir)
	if err != nil {
		return c.confined // the folder is above
	}
	root := file.Root(at)
	if _, in := relative(c.confined, root); c.confined != "" && !in {
		return c.confined
	}
	return root
}

// isTop reports whether no folder above is selected in.
func (c *collector) isTop(dir string) bool {
	at, err := c.here(dir)
	if err != nil || at == c.confined || dir == filepath.Dir(dir) {
		return true
	}
	if home, err := os.UserHomeDir(); err == nil && dir == home {
		return true
	}
	_, err = os.Lstat(filepath.Join(at, ".git"))
	return !errors.Is(err, fs.ErrNotExist)
}

// exists reports whether a path leads to something other than a folder, which need not be
// a file that may be read. If calls are confined, a link that leads out counts as
// something: what it leads to is not looked at.
func (w *files) exists(path string) bool {
	if w.confined == "" {
		return file.Exists(path)
	}
	p, err := w.confine(workspace.At(path))
	if err != nil {
		return false
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(p.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_, err = root.Lstat(p.Name)
		return err == nil
	}
	return err == nil && !info.IsDir()
}

// entries returns the entries of a folder, sorted by name. Opening never blocks.
func (w *files) entries(dir string) ([]fs.DirEntry, error) {
	f, err := w.openEntries(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(workspace.MaxEntries + 1)
	if len(list) > workspace.MaxEntries {
		return nil, &fs.PathError{Op: "collect", Path: dir, Err: workspace.ErrTooMany}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(list) > 0 { // at the end of a folder the error is io.EOF
		err = nil
	}
	return list, err
}

func (w *files) openEntries(dir string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	if w.confined == "" {
		return os.OpenFile(dir, flags, 0)
	}
	p, err := w.confine(workspace.At(dir))
	if err != nil {
		return nil, &fs.PathError{Op: "collect", Path: dir, Err: err}
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(p.Name, flags, 0)
}
