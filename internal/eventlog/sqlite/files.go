package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/abide-run/abide/internal/eventlog"
)

// A storeFile is the path of a file of the store, and the identity that the file had when
// the store was opened.
type storeFile struct {
	path string
	is   identity
}

// An identity is different for any two files that exist at the same time.
type identity struct{ device, inode uint64 }

// storeFiles returns the files of the store: the database, its write-ahead log, and the
// shared-memory index of that log.
func storeFiles(path string) ([]storeFile, error) {
	var all []storeFile
	for _, side := range []string{"", "-wal", "-shm"} {
		is, err := identify(path + side)
		if err != nil {
			return nil, explain(path, err)
		}
		all = append(all, storeFile{path + side, is})
	}
	return all, nil
}

func identify(path string) (identity, error) {
	var stat syscall.Stat_t
	err := syscall.Stat(path, &stat)
	for err == syscall.EINTR {
		err = syscall.Stat(path, &stat)
	}
	return identity{uint64(stat.Dev), uint64(stat.Ino)}, err
}

// checkFiles fails if a file of the store is not at its path any more. It is called
// after each commit, before any append of it returns. It calls stat(2) each time, which
// takes one or two microseconds for each file; watching the folder instead would report
// a change only some time after it happened. A folder that this process may not enter
// any more still contains the store, so it is not an error.
func (s *Store) checkFiles() error {
	for _, p := range s.files {
		is, err := identify(p.path)
		if err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && is != p.is {
			return fmt.Errorf("store %s %w: put it back and start abide again, or choose another data folder", p.path, eventlog.ErrGone)
		}
	}
	return nil
}
