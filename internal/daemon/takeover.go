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

// A FolderError is the reason why no process can use a data folder until a person has
// repaired it.
type FolderError struct{ Err error }

func (e *FolderError) Error() string { return e.Err.Error() }

func (e *FolderError) Unwrap() error { return e.Err }

// The pause between attempts to become the engine: the first one, and the longest one.
const (
	takeoverPause    = 10 * time.Millisecond
	maxTakeoverPause = time.Second
)

// takeoverGrace is the time that a relay that can never become the engine waits for a
// process that can: after an upgrade the newer program may be starting.
const takeoverGrace = 3 * time.Second

// takeOver waits until the engine has ended, and makes this process the engine. After a
// temporary error it tries again; while another process is the engine, this one is its
// relay. After a permanent error this process ends.
func (n *Node) takeOver() {
	var first time.Time // time of the first failed attempt in a row
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
	close(n.promoted)
	n.mu.Unlock()
	n.run(e) // whoever is answered finds that this process is the engine
	return nil
}

// isTemporary reports whether an error that keeps this process from becoming the engine may
// pass without a repair of the data folder.
func isTemporary(err error) bool {
	return stores.IsTemporary(err) || slices.ContainsFunc([]syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EPERM,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR,
		syscall.EADDRINUSE,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// fail ends this process: it cannot become the engine, and no other process is. Its
// clients get the error before their connections are closed.
func (n *Node) fail(err error) {
	err = &FolderError{err}
	n.log.Error("could not take over from the engine that ended", "err", err)
	n.mu.Lock()
	n.failed = err
	close(n.promoted)
	n.mu.Unlock()
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

// clientErrorTime is the time that clients get to receive the error before their connections
// are closed.
const clientErrorTime = 5 * time.Second

// recordTakeoverError records why this process is not the engine yet, and since when.
func (n *Node) recordTakeoverError(err error) {
	n.log.Warn("could not take over from the engine that ended; trying again", "err", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.takeoverError == nil {
		n.takeoverFailing = time.Now()
	}
	n.takeoverError = err
}

// currentTakeoverError returns the reason why there is no engine for now; nil if there is one.
func (n *Node) currentTakeoverError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.takeoverError
}

// clearTakeoverError records that another process is the engine.
func (n *Node) clearTakeoverError() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.takeoverError = nil
}

// refuseAfter is the time that requests wait for an engine before they are refused.
// Only requests that no engine has seen are refused; clients can send them again.
const refuseAfter = 10 * time.Second

// delay returns the error for clients if there has been no engine for a long time.
func (n *Node) delay() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.takeoverError == nil || time.Since(n.takeoverFailing) < refuseAfter {
		return nil
	}
	return &relay.Delay{Reason: n.takeoverError}
}
