package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/eventlog"
)

// watchStore stops this process when nothing can be written any more. What is
// stored is sound, and the next engine verifies it: there is nothing to retry.
func (n *Node) watchStore(e *engine) {
	select {
	case <-e.disk.Closed():
		n.noteFailure(e)
	case <-n.ctx.Done():
	}
}

// noteFailure makes it the reason of the end if nothing can be written any more.
func (n *Node) noteFailure(e *engine) {
	err := e.disk.Err()
	if errors.Is(err, eventlog.ErrGone) {
		err = &FolderError{err}
	}
	if err != nil {
		n.cancel(err)
	}
}

// folderPause is how often the engine looks whether its folder is still there.
// An engine that stores something notices at once; this is for one that does not.
const folderPause = time.Second

// watchFolder stops this process when its folder is gone or another process has
// the lock, and listens again when only the socket was removed.
func (n *Node) watchFolder(e *engine) {
	tick := time.NewTicker(folderPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			return
		}
		err := e.lock.Check()
		if errors.Is(err, folder.ErrGone) || errors.Is(err, folder.ErrTaken) {
			n.cancel(&FolderError{fmt.Errorf("%w: %w", eventlog.ErrClosed, err)})
			return
		}
		if err == nil && !e.lock.IsListening() {
			err = n.listenAgain(e)
		}
		if err != nil {
			n.log.Warn("others cannot reach this engine; it is tried again", "err", err)
		}
	}
}

// listenAgain puts the socket back where others look for it.
func (n *Node) listenAgain(e *engine) error {
	l, err := e.lock.Listen()
	if err != nil {
		return err
	}
	e.socket.Close() // connections that were made are not touched
	e.socket = l
	n.work.Go(func() { n.serveSocket(e, l) })
	return nil
}
