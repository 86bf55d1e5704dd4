package daemon

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/relay"
)

// A FolderError is why a data folder cannot be used as it is: somebody has to do
// something about it before any process can.
type FolderError struct{ Err error }

func (e *FolderError) Error() string { return e.Err.Error() }

func (e *FolderError) Unwrap() error { return e.Err }

// How long to wait before the place of the engine is tried to be taken again: at
// first, and at most.
const (
	takeoverPause    = 10 * time.Millisecond
	maxTakeoverPause = time.Second
)

// takeoverGrace is how long a relay that can never be the engine itself waits
// for a process that can: after an upgrade the newer one may be starting again.
const takeoverGrace = 3 * time.Second

// takeOver waits until the engine is no more, and takes its place. What stands in
// the way may pass, so it is tried again; and while another process is the engine,
// this one is its relay. If it cannot pass, the process has no future.
func (n *Node) takeOver() {
	var first time.Time // when the first of a row of attempts failed
	for pause := takeoverPause; ; pause = min(2*pause, maxTakeoverPause) {
		asked := time.Now()
		lock, err := n.folder.WaitLock(n.ctx)
		if first.IsZero() || time.Since(asked) > takeoverGrace { // another process had the lock
			first, pause = time.Now(), takeoverPause
		}
		if err == nil {
			err = n.promote(n.ctx, lock)
		}
		switch {
		case err == nil || n.ctx.Err() != nil:
			return
		case !isTemporary(err) && time.Since(first) > takeoverGrace:
			n.fail(err)
			return
		}
		n.recordTakeoverError(err)
		if time.Since(first) > noticeAfter {
			n.reportNoEngine()
		}
		select {
		case <-time.After(pause):
		case <-n.ctx.Done():
			return
		}
	}
}

// promote makes this process the engine.
func (n *Node) promote(ctx context.Context, lock *folder.Lock) error {
	e, err := startEngine(ctx, n, lock)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.engine, n.takeoverError = e, nil
	n.mu.Unlock()
	close(n.promoted)
	return nil
}

// isTemporary reports whether what keeps this process from being the engine may end
// without anybody touching the data folder itself.
func isTemporary(err error) bool {
	return stores.IsTemporary(err) || slices.ContainsFunc([]syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EPERM,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR,
		syscall.EADDRINUSE,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// fail ends this process: it cannot be the engine, and no other process is. Its
// clients are told before their connections are closed.
func (n *Node) fail(err error) {
	err = &FolderError{err}
	n.log.Error("could not take over from the engine that ended", "err", err)
	n.mu.Lock()
	n.failed = err
	n.mu.Unlock()
	close(n.promoted)
	told := make(chan struct{})
	go func() { // ends with the relays, which end with n.ctx at the latest
		defer close(told)
		n.relays.Wait()
	}()
	select {
	case <-told:
	case <-time.After(clientErrorTime):
	case <-n.ctx.Done():
	}
	n.cancel(err)
}

// clientErrorTime is how long clients have to take in that nobody serves them any more.
const clientErrorTime = 5 * time.Second

// recordTakeoverError remembers why this process is not the engine yet, and since when.
func (n *Node) recordTakeoverError(err error) {
	n.log.Warn("could not take over from the engine that ended; it is tried again", "err", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.takeoverError == nil {
		n.takeoverFailing = time.Now()
	}
	n.takeoverError = err
}

// currentTakeoverError returns why there is no engine for now; nil if there is one.
func (n *Node) currentTakeoverError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.takeoverError
}

// clearTakeoverError notes that another process is the engine.
func (n *Node) clearTakeoverError() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeoverError = nil
}

// refuseAfter is how long requests wait for an engine before clients are told
// what the matter is. What no engine has seen is not begun then, and can be tried
// again.
const refuseAfter = 10 * time.Second

// delay returns what clients are told if there has been no engine for long.
func (n *Node) delay() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.takeoverError == nil || time.Since(n.takeoverFailing) < refuseAfter {
		return nil
	}
	return &relay.Delay{Reason: n.takeoverError}
}
