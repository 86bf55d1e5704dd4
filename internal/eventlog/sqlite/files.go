package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

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

// storeFiles are the files of a store. They belong to whoever commits.
type storeFiles struct {
	dir   string // the folder of the files; empty if they may be in several
	files []storeFile
	seen  dirState // the folder when all files were found at their paths
	quiet bool     // true if the folder had not changed for a while at that time
}

// A dirState changes whenever a file of a folder is added, removed or replaced, unless
// the last change was a moment ago.
type dirState struct {
	identity
	changed syscall.Timespec
}

// quietTime is how long ago a folder must have changed for the next change to give it
// another time: file systems count in milliseconds.
const quietTime = time.Second

// sides are what is added to the path of the store for its files: the database, its
// write-ahead log, and the shared-memory index of that log.
var sides = [...]string{"", "-wal", "-shm"}

// findFiles returns the files of the store.
func findFiles(path string) (storeFiles, error) {
	all := storeFiles{dir: filepath.Dir(path)}
	if at, err := os.Lstat(path); err != nil || !at.Mode().IsRegular() {
		all.dir = "" // a link leads to another folder
	}
	for _, side := range sides {
		is, err := stat(path + side)
		if err != nil {
			return all, explain(path, err)
		}
		all.files = append(all.files, storeFile{path + side, is.identity})
	}
	return all, nil
}

func stat(path string) (dirState, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	for err == syscall.EINTR {
		err = syscall.Stat(path, &st)
	}
	return dirState{identity{uint64(st.Dev), uint64(st.Ino)}, changeTime(&st)}, err
}

// check fails if a file of the store is not at its path any more. It is called after
// each commit, before any append of it returns. It asks the system each time; watching
// the folder instead would report a change only some time after it happened. While the
// folder itself has not changed, its files have not moved, and one look is enough.
func (f *storeFiles) check() error {
	now, err := stat(f.dir)
	if f.quiet && err == nil && now == f.seen {
		return nil
	}
	if err := f.checkEach(); err != nil {
		return err
	}
	f.seen = now
	f.quiet = err == nil && time.Since(time.Unix(now.changed.Unix())) > quietTime
	return nil
}

// checkEach looks at every file. A folder that this process may not enter any more
// still contains the store, so it is not an error.
func (f *storeFiles) checkEach() error {
	for _, p := range f.files {
		is, err := stat(p.path)
		if err != nil && !errors.Is(err, fs.ErrPermission) || err == nil && is.identity != p.is {
			return fmt.Errorf("store %s %w: put it back and start abide again, or choose another data folder", p.path, eventlog.ErrGone)
		}
	}
	return nil
}
