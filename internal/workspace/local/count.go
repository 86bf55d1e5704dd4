package local

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// Count implements workspace.Files.
func (w *files) Count(ctx context.Context, paths ...string) ([]int, error) {
	counts := make([]int, len(paths))
	for i, path := range paths {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n, err := w.count(ctx, workspace.At(path))
		if err != nil {
			n = -1
		}
		counts[i] = n
	}
	return counts, nil
}

// count returns how many lines a file has, or how many entries a folder.
func (w *files) count(ctx context.Context, p workspace.Path) (int, error) {
	info, err := w.Stat(ctx, p)
	if err != nil {
		return 0, err
	}
	if info.Mode.IsDir() {
		return w.countEntries(p)
	}
	if info.Size > workspace.MaxCounted {
		return 0, workspace.ErrTooLarge
	}
	f, err := w.Open(ctx, p, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return countLines(io.LimitReader(f, workspace.MaxCounted))
}

func (w *files) countEntries(p workspace.Path) (int, error) {
	s, err := w.locate(p, false)
	if err != nil {
		return 0, err
	}
	defer s.close()
	flags := unix.O_RDONLY | noWait
	if !s.follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := openFolder(s.dir, s.name, flags)
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), s.name)
	defer f.Close()
	for n := 0; ; {
		names, err := f.Readdirnames(1024)
		n += len(names)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// countLines counts lines. Text after the last newline counts as a line.
func countLines(r io.Reader) (n int, err error) {
	part, last := make([]byte, 64<<10), byte('\n')
	for {
		size, err := r.Read(part)
		n += bytes.Count(part[:size], []byte("\n"))
		if size > 0 {
			last = part[size-1]
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}

// Folders implements workspace.Files. A workspace that is confined to a folder has the
// temporary files there, because the file tools could not read them elsewhere.
func (w *files) Folders(context.Context) (workspace.Folders, error) {
	home, _ := os.UserHomeDir() // there may be none
	found := workspace.Folders{Home: home, Temp: os.TempDir()}
	if w.confined != "" {
		found.Temp = filepath.Join(w.confined, ".abide", "temp")
	}
	return found, nil
}
