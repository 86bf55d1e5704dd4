package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/eventlog"
)

// watchStore stops this process when the store can no longer be written. There is
// nothing to retry: the stored data is sound, and the next engine verifies it.
func (n *Node) watchStore(e *engine) {
	select {
	case <-e.disk.Closed():
		if e.shared != nil && errors.Is(e.disk.Err(), eventlog.ErrFenced) && n.ctx.Err() == nil {
			n.rejoin(e)
			return
		}
		n.noteFailure(e)
	case <-n.ctx.Done():
	}
}

// noteFailure ends this process with the error of the store, if there is one.
func (n *Node) noteFailure(e *engine) {
	err := e.disk.Err()
	if errors.Is(err, eventlog.ErrGone) {
		err = &FolderError{err}
	}
	if err != nil {
		n.cancel(err)
	}
}

// folderPause is the interval at which the engine checks that its folder is still there.
// An engine that writes notices at once; this check is for one that does not.
const folderPause = time.Second

// watchFolder stops this process when its folder is gone or another process has
// the lock. If only the socket or its token was removed, it makes it again.
func (n *Node) watchFolder(e *engine) {
	tick := time.NewTicker(folderPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		err := e.lock.Check()
		if errors.Is(err, folder.ErrGone) || errors.Is(err, folder.ErrTaken) {
			n.cancel(&FolderError{fmt.Errorf("%w: %w", eventlog.ErrClosed, err)})
			return
		}
		if err == nil {
			_, err = e.lock.KeepToken()
		}
		if err == nil && !e.lock.IsListening() {
			err = n.listenAgain(e)
		}
		if err != nil {
			n.log.Warn("other processes cannot reach this engine; trying again", "err", err)
		}
	}
}

// listenAgain creates the private socket again.
func (n *Node) listenAgain(e *engine) error {
	l, err := e.lock.Listen()
	if err != nil {
		return err
	}
	e.socket.Close() // existing connections stay open
	e.socket = l
	e.running.Go(func() { n.serveSocket(e, l) })
	return nil
}
