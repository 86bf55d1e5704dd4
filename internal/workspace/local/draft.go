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
func (w *files) WriteFile(ctx context.Context, p workspace.Path, content []byte, o workspace.WriteOptions) error {
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
func (w *files) Create(ctx context.Context, p workspace.Path, o workspace.WriteOptions) (workspace.Draft, error) {
	s, err := w.target(p)
	if err != nil {
		return nil, wrap("write", p, err)
	}
	d := &draft{ctx: ctx, path: p, at: s, options: o}
	if err := d.begin(); err != nil {
		s.close()
		return nil, wrap("write", p, err)
	}
	return d, nil
}

// maxLinks is the maximum number of links that are followed in a row, as in the kernel.
const maxLinks = 40

// target returns the location where a file is written. If links are followed, that is where
// the last link points.
func (w *files) target(p workspace.Path) (*location, error) {
	s, err := w.locate(p, true)
	for range maxLinks {
		if err != nil || !s.follow || !isLink(s.dir, s.name) {
			return s, err
		}
		s, err = s.followLink()
	}
	s.close()
	return nil, unix.ELOOP
}

// followLink returns the location that a link points to, and closes the location of the link.
func (s *location) followLink() (*location, error) {
	defer s.close()
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(s.dir, s.name, buf)
	if err != nil {
		return nil, err
	}
	above := &files{dir: s.above}
	return locateFollowing(above.absolute(string(buf[:n])), false)
}

// A draft is a temporary file in the folder of the file that it replaces.
type draft struct {
	ctx     context.Context
	path    workspace.Path
	options workspace.WriteOptions
	at      *location
	temp    string
	file    *os.File // nil after the draft was committed or discarded
}

// begin checks the old file and creates the temporary one.
func (d *draft) begin() error {
	old, err := statAt(d.at.dir, d.at.name, unix.AT_SYMLINK_NOFOLLOW)
	there := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case there && d.options.New:
		return fs.ErrExist
	case there && old.readable() != nil:
		return old.readable()
	case there:
		// A file that may not be written must not be replaced either.
		if err := unix.Faccessat(d.at.dir, d.at.name, unix.W_OK, 0); err != nil {
			return err
		}
	}
	d.temp = ".abide-" + rand.Text() + ".tmp"
	fd, err := openAt(d.at.dir, d.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	d.file = os.NewFile(uintptr(fd), d.temp)
	if err := d.setOwnerAndMode(old, there); err != nil {
		d.discard()
		return err
	}
	return nil
}

// setOwnerAndMode gives the new file the owner of the old one, if the system allows that, and
// the permissions of the options or else of the old file.
func (d *draft) setOwnerAndMode(old status, there bool) error {
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
		defer d.discard()
		err = d.commit()
	}
	return wrap("write", d.path, err)
}

func (d *draft) commit() error {
	if err := d.file.Sync(); err != nil {
		return err
	}
	if err := d.rename(); err != nil {
		return err
	}
	return syncFolder(d.at.dir)
}

// rename gives the temporary file its final name.
func (d *draft) rename() error {
	if d.options.New {
		return unix.Linkat(d.at.dir, d.temp, d.at.dir, d.at.name, 0)
	}
	err := unix.Renameat(d.at.dir, d.temp, d.at.dir, d.at.name)
	if err == unix.EISDIR {
		return workspace.ErrFolder
	}
	return err
}

// Close implements workspace.Draft.
func (d *draft) Close() error {
	if d.file != nil {
		d.discard()
	}
	return nil
}

// discard closes and removes the temporary file.
func (d *draft) discard() {
	_ = d.file.Close()
	_ = unix.Unlinkat(d.at.dir, d.temp, 0)
	d.file = nil
	d.at.close()
}
