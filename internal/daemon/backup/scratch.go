package backup

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// A scratch is a folder for unfinished work. It is locked while its process runs, so that
// the next process can remove what a killed one has left.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch creates a folder whose name begins with the prefix, and removes those that
// killed processes have left.
func newScratch(parent, prefix string) (*scratch, error) {
	removeLeftovers(parent, prefix)
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &scratch{dir, lock}, nil
}

// lockDir locks a folder. It does not wait.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeLeftovers removes the folders of processes that were killed. One that is being
// created has no lock for a moment and is empty, so only folders with something in them
// are removed with their content.
func removeLeftovers(parent, prefix string) {
	entries, _ := os.ReadDir(parent) // the folder is made next, which reports an error
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if len(e.Name()) <= len(prefix) || e.Name()[:len(prefix)] != prefix || !e.IsDir() {
			continue
		}
		content, err := os.ReadDir(dir)
		if err != nil || len(content) == 0 {
			continue
		}
		if lock, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

func (s *scratch) remove() {
	os.RemoveAll(s.dir)
	s.lock.Close()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
