package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// List implements workspace.Files.
func (w *files) List(ctx context.Context, p workspace.Path, o workspace.ListOptions) (workspace.Listing, error) {
	s, err := w.locate(p, false)
	if err != nil {
		return workspace.Listing{}, wrap("list", p, err)
	}
	defer s.close()
	all := listing{ctx: ctx, recursive: o.Recursive}
	if err := all.addRoot(s); err != nil {
		return workspace.Listing{}, wrap("list", p, err)
	}
	slices.SortFunc(all.entries, func(a, b workspace.Info) int { return strings.Compare(a.Name, b.Name) })
	return page(all.entries, o), nil
}

// maxNames is the approximate maximum number of bytes of the names of one page.
const maxNames = 8 << 20

// page returns the requested entries, as many as fit into one answer.
func page(entries []workspace.Info, o workspace.ListOptions) workspace.Listing {
	limit := o.Limit
	if limit <= 0 || limit > workspace.MaxPage {
		limit = workspace.MaxPage
	}
	from := min(max(o.Offset, 0), len(entries))
	to, names := from, 0
	for to < len(entries) && to-from < limit && names < maxNames {
		names += len(entries[to].Name)
		to++
	}
	return workspace.Listing{Entries: entries[from:to], Total: len(entries)}
}

// A listing collects the entries of a folder.
type listing struct {
	ctx       context.Context
	recursive bool
	entries   []workspace.Info
}

// addRoot adds the entries of the folder that a path names.
func (l *listing) addRoot(s *location) error {
	if s.follow {
		fd, err := openFolder(s.dir, s.name, unix.O_RDONLY|noWait)
		if err != nil {
			return err
		}
		return l.addAll(os.NewFile(uintptr(fd), s.name), "")
	}
	folder, err := openDir(s.dir, s.name)
	if err != nil {
		return err
	}
	return l.addAll(folder, "")
}

// openDir opens a folder for reading. A link is not followed.
func openDir(dir int, name string) (*os.File, error) {
	fd, err := openFolder(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|noWait)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// addAll adds the entries of a folder, and closes it. Files that are deleted meanwhile
// are left out.
func (l *listing) addAll(folder *os.File, prefix string) error {
	defer func() { _ = folder.Close() }()
	for {
		names, err := folder.Readdirnames(256)
		for _, name := range names {
			if err := l.add(folder, prefix, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err != nil {
			return ignoreEOF(err)
		}
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func (l *listing) add(folder *os.File, prefix, name string) error {
	found, err := statAt(int(folder.Fd()), name, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	if len(l.entries) == workspace.MaxEntries {
		return workspace.ErrTooMany
	}
	l.entries = append(l.entries, found.info(prefix+name))
	if !l.recursive || !found.mode.IsDir() {
		return nil
	}
	below, err := openDir(int(folder.Fd()), name)
	if errors.Is(err, workspace.ErrLink) || errors.Is(err, workspace.ErrNotFolder) || errors.Is(err, fs.ErrPermission) {
		return nil // replaced meanwhile, or not readable: it is listed without its entries
	}
	if err != nil {
		return err
	}
	return l.addAll(below, prefix+name+"/")
}
