package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Lock is the right to be the folder's engine. The operating system releases it when
// the process ends.
type Lock struct {
	folder *Folder
	file   *os.File

	mu        sync.Mutex
	token     string      // token of the private socket; empty before KeepToken
	socket    string      // path of the private socket; empty before Listen
	listening fs.FileInfo // identity of the private socket
	closed    bool
}

// TryLock takes the lock if it is free, and reports whether it did.
func (f *Folder) TryLock() (*Lock, bool, error) {
	lock, err := f.tryLock()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	return lock, err == nil, err
}

// WaitLock takes the lock as soon as it is free, or returns when ctx is done. It does
// not poll. The system call that waits cannot be interrupted: after a cancelled wait it
// continues, one call for the whole folder. It then serves the next WaitLock, or releases
// the lock at once if there is none.
func (f *Folder) WaitLock(ctx context.Context) (*Lock, error) {
	got := make(chan lockResult, 1)
	if err := f.enqueue(got); err != nil {
		return nil, err
	}
	select {
	case w := <-got:
		return w.lock, w.err
	case <-ctx.Done():
	}
	if !f.dequeue(got) { // the lock was handed out at the same moment
		if w := <-got; w.lock != nil {
			w.lock.Close()
		}
	}
	return nil, fmt.Errorf("wait for the lock of %s: %w", f.dir, context.Cause(ctx))
}

// lockResult is the result of a wait for the lock.
type lockResult struct {
	lock *Lock
	err  error
}

// enqueue adds a waiter for the lock.
func (f *Folder) enqueue(got chan lockResult) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.waiting {
		file, err := f.openLock()
		if err != nil {
			return err
		}
		f.waiting = true
		go f.wait(file) // ends when the lock was free and no waiter is left
	}
	f.queue = append(f.queue, got)
	return nil
}

// dequeue reports whether got was still in the queue.
func (f *Folder) dequeue(got chan lockResult) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.queue, got)
	if i < 0 {
		return false
	}
	f.queue = slices.Delete(f.queue, i, i+1)
	return true
}

// wait takes the lock for each waiter in turn.
func (f *Folder) wait(file *os.File) {
	for file != nil {
		err := flock(file, syscall.LOCK_EX)
		file = f.serveQueue(file, err)
	}
}

// serveQueue gives the lock to the first waiter, and returns the file to lock for the next
// one. Without a waiter it does not touch the folder: the folder may be about to be
// removed.
func (f *Folder) serveQueue(file *os.File, err error) (next *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) > 0 {
		f.handOutLocked(file, err)
	} else {
		file.Close()
	}
	for len(f.queue) > 0 {
		if next, err = f.openLock(); err == nil {
			return next
		}
		f.sendLocked(lockResult{err: err})
	}
	f.waiting = false
	return nil
}

// handOutLocked gives the lock to the first waiter, unless the lock file was replaced
// meanwhile.
func (f *Folder) handOutLocked(file *os.File, err error) {
	switch {
	case err != nil:
		file.Close()
		f.sendLocked(lockResult{err: explain(f.dir, err)})
	case f.isCurrent(file):
		f.sendLocked(lockResult{lock: f.newLock(file)})
	default:
		file.Close()
	}
}

func (f *Folder) sendLocked(w lockResult) {
	f.queue[0] <- w
	f.queue = f.queue[1:]
}

// tryLock takes the lock if it is free. If the lock file was replaced meanwhile, it tries
// again with the new file.
func (f *Folder) tryLock() (*Lock, error) {
	for {
		file, err := f.openLock()
		if err != nil {
			return nil, err
		}
		if err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			file.Close()
			return nil, explain(f.dir, err)
		}
		if f.isCurrent(file) {
			return f.newLock(file), nil
		}
		file.Close()
	}
}

// newLock returns the lock of a locked file, and writes the process id to it for people.
// Nothing depends on that text, so errors are ignored.
func (f *Folder) newLock(file *os.File) *Lock {
	file.Truncate(0)
	fmt.Fprintf(file, "pid %d\nsince %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	return &Lock{folder: f, file: file}
}

func (f *Folder) openLock() (*os.File, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	path := f.path("lock")
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("data folder %s: its lock is not a file, but a link or something else: remove it", f.dir)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	return file, explain(f.dir, err)
}

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func (f *Folder) isCurrent(file *os.File) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.path("lock"))
	return err == nil && os.SameFile(held, named)
}

// Close removes the private socket, unless it was replaced, and releases the lock.
func (l *Lock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.ownsSocketLocked() {
		os.Remove(l.socket)
	}
	return l.file.Close()
}
