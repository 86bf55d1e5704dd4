package folder

import (
	"errors"
	"fmt"
	"os"
)

// ErrGone means that the folder at the path is not the one that was opened: it was
// deleted, moved, replaced or unmounted. A process that continued would use another
// folder, without its sessions.
var ErrGone = errors.New("was deleted, moved, replaced or unmounted while abide used it")

// ErrTaken means that another process has the lock that this one held.
var ErrTaken = errors.New("its lock file was replaced, and another process has taken the lock")

// Check returns an error if the folder at the path is not the one that was opened. A
// folder that cannot be accessed for a moment does not count as gone.
func (f *Folder) Check() error {
	info, err := os.Stat(f.dir)
	switch {
	case err == nil && os.SameFile(info, f.opened), errors.Is(err, os.ErrPermission):
		return nil
	case err == nil:
		return fmt.Errorf("data folder %s %w: put it back, or start abide again to use what is there now", f.dir, ErrGone)
	}
	return fmt.Errorf("data folder %s %w: put it back, or choose another with ABIDE_HOME (%w)", f.dir, ErrGone, err)
}

// Check returns an error if the folder is gone or another process has its lock. If only
// the lock file was removed, it locks a new one, so that no second process becomes the
// engine.
func (l *Lock) Check() error {
	if err := l.folder.Check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.folder.isCurrent(l.file) {
		return nil
	}
	fresh, free, err := l.folder.TryLock()
	if err != nil {
		return err
	}
	if !free {
		return fmt.Errorf("data folder %s: %w (%s)", l.folder.dir, ErrTaken, l.folder.Holder())
	}
	l.file.Close()
	l.file = fresh.file
	return nil
}

// IsListening reports whether the private socket is still in its place.
func (l *Lock) IsListening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.ownsSocketLocked()
}

// ownsSocketLocked reports whether the socket at the path is the one of this lock: it may
// have been removed, and another engine may have created its own.
func (l *Lock) ownsSocketLocked() bool {
	at, err := os.Lstat(l.socket)
	if err != nil || l.listening == nil || !os.SameFile(at, l.listening) {
		return false
	}
	place, err := l.folder.address()
	return err == nil && place == l.socket
}
