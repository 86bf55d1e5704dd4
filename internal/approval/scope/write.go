package scope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrChanged means that a file does not hold what it should.
var ErrChanged = errors.New("it has changed meanwhile")

// A Change is a write of a whole file. After a crash there is the old file or
// the new one; when the write returns, the new one will outlast a power failure.
type Change struct {
	Path string
	// Old is what the file must hold. It is nil if there must be no file.
	Old []byte
	// New is what it holds then. It is nil if there is to be no file then.
	New []byte
	// Key names the attempt: a second one with the same key clears away what the
	// first left behind when it was cut off.
	Key string
}

// Apply makes a change. The file keeps its permissions and, where the system
// lets us, its owner; a new one gets those that new files have.
func (s *Scope) Apply(c Change) error {
	t, err := s.reach(c.Path, Write)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.apply(c); err != nil {
		return &fs.PathError{Op: "write", Path: c.Path, Err: err}
	}
	return nil
}

func (t *trail) apply(c Change) error {
	if err := t.writable(c); err != nil {
		return err
	}
	dir, temp := t.last().fd, tempName(c.Key)
	if c.New != nil {
		defer func() { _ = unix.Unlinkat(dir, temp, 0) }()
		if err := t.prepare(temp, c); err != nil {
			return err
		}
	}
	if err := t.swap(temp, c); err != nil {
		return err
	}
	return syncFolder(dir)
}

// writable checks that there is what should be there, and that we may write it.
func (t *trail) writable(c Change) error {
	switch found, ok := t.found(); {
	case !ok && !t.missing():
		return t.err
	case c.Old == nil && ok:
		return fs.ErrExist
	case c.Old == nil:
		return nil
	case !ok:
		return fs.ErrNotExist
	case t.name == "":
		return unix.EISDIR
	case !found.regular():
		return ErrSpecial
	}
	return unix.Faccessat(t.last().fd, t.name, unix.W_OK, 0)
}

// tempName is where the new content is written: beside the file, so that it can
// take its place in one step.
func tempName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return ".abide-" + hex.EncodeToString(sum[:8]) + ".tmp"
}

// prepare writes the new content under another name.
func (t *trail) prepare(temp string, c Change) error {
	dir := t.last().fd
	_ = unix.Unlinkat(dir, temp, 0) // of an attempt that was cut off
	perm := uint32(0o666)
	if c.Old != nil {
		perm = 0o600
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|stay, perm)
	})
	if err != nil {
		return err
	}
	err = fill(fd, c.New)
	if err == nil && c.Old != nil {
		err = dress(fd, t.there)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	return errors.Join(err, unix.Close(fd))
}

func fill(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := retry(func() (int, error) { return unix.Write(fd, data) })
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// dress gives a file the owner and the permissions of another. Only root can
// give a file away; without that it is ours, and not for others to run as us.
func dress(fd int, like info) error {
	perm := like.mode & 0o7777
	if unix.Fchown(fd, int(like.uid), int(like.gid)) != nil {
		perm &= 0o777
	}
	return unix.Fchmod(fd, perm)
}

// swap puts the new content in place, or takes the file away, after a last look
// at what is there.
func (t *trail) swap(temp string, c Change) error {
	dir := t.last().fd
	if c.Old == nil {
		return moveNew(dir, temp, t.name)
	}
	f, err := t.open()
	if errors.Is(err, errMoved) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	now, err := f.all(t.name, int64(len(c.Old)))
	_ = f.Close()
	switch {
	case errors.Is(err, ErrTooLarge), err == nil && !bytes.Equal(now, c.Old):
		return ErrChanged
	case err != nil:
		return err
	case c.New == nil:
		return unix.Unlinkat(dir, t.name, 0)
	}
	return unix.Renameat(dir, temp, dir, t.name)
}

// linkNew gives a file a name that must be free, where there is no call for it.
func linkNew(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}

// syncFolder makes a new name last. A folder that cannot be read cannot be
// synced, and is left to the system.
func syncFolder(dir int) error {
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|stay)
	if err != nil {
		return nil
	}
	err = unix.Fsync(fd)
	if err == unix.EINVAL { // a file system without it
		err = nil
	}
	return errors.Join(err, unix.Close(fd))
}
