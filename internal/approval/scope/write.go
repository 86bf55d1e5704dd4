package scope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrChanged means that the content of a file is not the expected one.
var ErrChanged = errors.New("it has changed meanwhile")

// A Change replaces a whole file. After a crash there is the old file or the new one;
// when the call returns, the new one survives a power failure.
type Change struct {
	Path string
	// Old is the expected content of the file; nil if the file must not exist.
	Old []byte
	// New is the new content of the file; nil to delete it.
	New []byte
	// Key names the change: a second attempt with the same key removes the temporary
	// file of a first one that was interrupted.
	Key string
}

// Apply makes a change. The file keeps its permissions and, if the system allows it, its
// owner; a new file gets the default permissions.
func (s *Scope) Apply(c Change) error {
	t, err := s.resolveAllowed(c.Path, Write)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.apply(c); err != nil {
		return &fs.PathError{Op: "write", Path: c.Path, Err: err}
	}
	return nil
}

func (t *resolvedPath) apply(c Change) error {
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
	if err := t.replace(temp, c); err != nil {
		return err
	}
	return syncFolder(dir)
}

// writable checks that the file exists or not as expected, and that it may be written.
func (t *resolvedPath) writable(c Change) error {
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

// tempName returns the name of the temporary file, which is in the same folder so that
// it can be renamed.
func tempName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return ".abide-" + hex.EncodeToString(sum[:8]) + ".tmp"
}

// prepare writes the new content to the temporary file.
func (t *resolvedPath) prepare(temp string, c Change) error {
	dir := t.last().fd
	_ = unix.Unlinkat(dir, temp, 0) // left by an attempt that was interrupted
	perm := uint32(0o666)
	if c.Old != nil {
		perm = 0o600
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|openFlags, perm)
	})
	if err != nil {
		return err
	}
	err = writeAll(fd, c.New)
	if err == nil && c.Old != nil {
		err = copyOwnerAndMode(fd, t.info)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	return errors.Join(err, unix.Close(fd))
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := retry(func() (int, error) { return unix.Write(fd, data) })
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// copyOwnerAndMode gives a file the owner and the permissions of another. Only root can change the
// owner. If that fails, the set-user-ID bits are dropped, because otherwise others could
// run the file as the present user.
func copyOwnerAndMode(fd int, like info) error {
	perm := like.mode & 0o7777
	if unix.Fchown(fd, int(like.uid), int(like.gid)) != nil {
		perm &= 0o777
	}
	return unix.Fchmod(fd, perm)
}

// replace renames the temporary file, or deletes the file, after it has checked the content
// of the file once more.
func (t *resolvedPath) replace(temp string, c Change) error {
	dir := t.last().fd
	if c.Old == nil {
		return moveNew(dir, temp, t.name)
	}
	f, err := t.open()
	if errors.Is(err, errReplaced) {
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

// linkNew renames a file to a name that must not exist, on systems without a call for
// that.
func linkNew(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}

// syncFolder syncs the names in a folder. A folder that cannot be read cannot be synced;
// then the system writes them later.
func syncFolder(dir int) error {
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|openFlags)
	if err != nil {
		return nil
	}
	err = unix.Fsync(fd)
	if err == unix.EINVAL { // the file system does not support it
		err = nil
	}
	return errors.Join(err, unix.Close(fd))
}
