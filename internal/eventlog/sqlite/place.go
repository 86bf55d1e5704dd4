package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/abide-run/abide/internal/eventlog"
)

// A place is a file of the store, and which one it was when the store was opened.
type place struct {
	path string
	is   identity
}

// An identity tells a file from every other that exists at the same time.
type identity struct{ device, inode uint64 }

// places finds the files of the store: the database, its write-ahead log, and
// the index of that log.
func places(path string) ([]place, error) {
	var all []place
	for _, side := range []string{"", "-wal", "-shm"} {
		is, err := identify(path + side)
		if err != nil {
			return nil, explain(path, err)
		}
		all = append(all, place{path + side, is})
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

// checkPlaces fails if a file of the store is not at its path any more. It is
// called after each commit and before anything of it is acknowledged. It asks the
// system each time: that takes one or two microseconds for each file, and what
// watches folders tells of a change only after it happened. A folder that may not
// be entered still holds the store.
func (s *Store) checkPlaces() error {
	for _, p := range s.places {
		is, err := identify(p.path)
		if err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && is != p.is {
			return fmt.Errorf("store %s %w: put it back and start abide again, or choose another data folder", p.path, eventlog.ErrGone)
		}
	}
	return nil
}
