// Package durable replaces files so that what they hold is not lost.
//
//   - Whoever reads the file has the old content or the new one, never a part of it.
//   - When [Replace] has returned without an error, the new content survives a power failure.
//   - A process that is killed in Replace leaves the old content, and perhaps a file beside it
//     whose name begins with a dot.
//   - The file is private: only its owner can read it.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace replaces the content of a file, or makes the file. Its folder has to exist. Of two
// calls at the same time for the same file, one comes last as a whole.
func Replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes the names in a folder survive a power failure.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
