package folder

import (
	"errors"
	"fmt"
	"os"
)

// ErrGone means that the folder at the path is not the one that was opened: it
// was deleted, moved, replaced or unmounted. Whoever went on would use another
// folder, and take its own sessions for lost.
var ErrGone = errors.New("was deleted, moved, replaced or unmounted while abide used it")

// ErrTaken means that another process has the lock that this one held.
var ErrTaken = errors.New("its lock file was replaced, and another process has taken the lock")

// Check fails if the folder at the path is not the one that was opened. One that
// may not be entered for a moment is not gone.
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

// Check fails if the folder is gone or its lock is somebody else's. If the lock
// file was merely removed, it takes the lock of a new one, so that nobody else
// becomes the engine beside this process.
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

// IsListening reports whether the private socket is still where others look for it.
func (l *Lock) IsListening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.ownsSocketLocked()
}

// ownsSocketLocked reports whether the socket at the path is ours: somebody may
// have removed it, and another engine may have put its own there.
func (l *Lock) ownsSocketLocked() bool {
	at, err := os.Lstat(l.socket)
	if err != nil || l.listening == nil || !os.SameFile(at, l.listening) {
		return false
	}
	place, err := l.folder.address()
	return err == nil && place == l.socket
}
