//go:build !linux

package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree writes everything below a folder to disk.
func syncTree(path string) error {
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
