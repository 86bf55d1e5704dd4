package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/workspace"
)

// WriteFile implements workspace.Files.
func (w *Files) WriteFile(ctx context.Context, p workspace.Path, content []byte, o workspace.WriteOptions) error {
	if len(content) > workspace.MaxFile {
		return wrap("write", p, workspace.ErrTooLarge)
	}
	d, err := w.Create(ctx, p, o)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if _, err := d.Write(content); err != nil {
		return err
	}
	return d.Commit()
}

// Create implements workspace.Files.
func (w *Files) Create(ctx context.Context, p workspace.Path, o workspace.WriteOptions) (workspace.Draft, error) {
	s, err := w.target(p)
	if err != nil {
		return nil, wrap("write", p, err)
	}
	d := &draft{ctx: ctx, path: p, spot: s, options: o}
	if err := d.begin(); err != nil {
		s.close()
		return nil, wrap("write", p, err)
	}
	return d, nil
}

// maxLinks is how many links in a row are followed, as the system does.
const maxLinks = 40

// target is where a file is written: behind the links, where they are followed.
func (w *Files) target(p workspace.Path) (*spot, error) {
	s, err := w.spot(p, true)
	for range maxLinks {
		if err != nil || !s.follow || !isLink(s.dir, s.name) {
			return s, err
		}
		s, err = s.behind()
	}
	s.close()
	return nil, unix.ELOOP
}

// behind is the spot that a link leads to. The link's own is closed.
func (s *spot) behind() (*spot, error) {
	defer s.close()
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(s.dir, s.name, buf)
	if err != nil {
		return nil, err
	}
	above := &Files{dir: s.above}
	return followed(above.absolute(string(buf[:n])), false)
}

// A draft is written beside the file that it becomes.
type draft struct {
	ctx     context.Context
	path    workspace.Path
	options workspace.WriteOptions
	spot    *spot
	temp    string
	file    *os.File // nil when the draft was committed or given up
}

// begin looks at what is there, and makes the file that may take its place.
func (d *draft) begin() error {
	old, err := statAt(d.spot.dir, d.spot.name, unix.AT_SYMLINK_NOFOLLOW)
	there := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case there && d.options.New:
		return fs.ErrExist
	case there && old.readable() != nil:
		return old.readable()
	case there:
		// A file that we may not write is not replaced either.
		if err := unix.Faccessat(d.spot.dir, d.spot.name, unix.W_OK, 0); err != nil {
			return err
		}
	}
	d.temp = ".abide-" + rand.Text() + ".tmp"
	fd, err := openAt(d.spot.dir, d.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	d.file = os.NewFile(uintptr(fd), d.temp)
	if err := d.dress(old, there); err != nil {
		d.drop()
		return err
	}
	return nil
}

// dress gives the new file the owner and the permissions of the old one, where
// the system lets us, or the permissions that are wanted.
func (d *draft) dress(old status, there bool) error {
	if there {
		_ = d.file.Chown(old.uid, old.gid) // only root can give a file away
	}
	switch perm := d.options.Perm.Perm(); {
	case perm != 0:
		return d.file.Chmod(perm)
	case there:
		return d.file.Chmod(old.mode.Perm())
	}
	return nil
}

// Write implements workspace.Draft.
func (d *draft) Write(p []byte) (int, error) {
	if err := d.usable(); err != nil {
		return 0, wrap("write", d.path, err)
	}
	n, err := d.file.Write(p)
	return n, wrap("write", d.path, err)
}

func (d *draft) usable() error {
	if d.file == nil {
		return fs.ErrClosed
	}
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	return nil
}

// Commit implements workspace.Draft.
func (d *draft) Commit() error {
	err := d.usable()
	if err == nil {
		defer d.drop()
		err = d.commit()
	}
	return wrap("write", d.path, err)
}

func (d *draft) commit() error {
	if err := d.file.Sync(); err != nil {
		return err
	}
	if err := d.place(); err != nil {
		return err
	}
	return syncFolder(d.spot.dir)
}

// place gives the file its name.
func (d *draft) place() error {
	if d.options.New {
		return unix.Linkat(d.spot.dir, d.temp, d.spot.dir, d.spot.name, 0)
	}
	err := unix.Renameat(d.spot.dir, d.temp, d.spot.dir, d.spot.name)
	if err == unix.EISDIR {
		return workspace.ErrFolder
	}
	return err
}

// Close implements workspace.Draft.
func (d *draft) Close() error {
	if d.file != nil {
		d.drop()
	}
	return nil
}

// drop takes away what is left of the draft.
func (d *draft) drop() {
	_ = d.file.Close()
	_ = unix.Unlinkat(d.spot.dir, d.temp, 0)
	d.file = nil
	d.spot.close()
}
