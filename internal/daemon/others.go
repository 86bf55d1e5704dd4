package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/relay"
)

// Unfinished returns the number of sessions with an unfinished turn that wait until a
// client uses them. It is zero if the engine is another process.
func (n *Node) Unfinished(ctx context.Context) int {
	e, _ := n.currentEngine()
	if e == nil {
		return 0
	}
	count, err := e.host.Work.Unfinished(ctx)
	if err != nil {
		n.log.Warn("could not count the unfinished sessions", "err", err)
	}
	return count
}

// TryStop stops the engine in this process unless something is under way that is to go
// on, and reports whether this process can be closed. What is under way is to go on if
// other processes are connected; if own is true, also without them. Afterwards nothing
// begins any more that Close would cut.
func (n *Node) TryStop(own bool) bool {
	e, _ := n.currentEngine()
	return e == nil || n.ctx.Err() != nil || !own && e.relays.Load() == 0 || n.stopIfIdle(e)
}

// stopIfIdle stops the host of an engine unless something is under way, after the last jobs of
// memory, which need its sessions.
func (n *Node) stopIfIdle(e *engine) bool {
	if e.host.Work.Busy() {
		return false
	}
	n.lastJobs(e)
	stopped := e.host.Work.StopIfIdle()
	if stopped {
		n.stopped.Store(true)
	}
	return stopped
}

// An engine that stays for others ends when nothing was under way at several checks in a
// row: clients that send one message after the other should not have to change engines
// in between.
const (
	idlePause  = 50 * time.Millisecond
	idleChecks = 6
)

// AwaitIdle stops the engine in this process when nothing has been under way for a moment.
// It returns earlier if ctx is done or this process can no longer serve clients.
func (n *Node) AwaitIdle(ctx context.Context) {
	e, _ := n.currentEngine()
	if e == nil {
		return
	}
	tick := time.NewTicker(idlePause)
	defer tick.Stop()
	for idle := 0; idle < idleChecks || !n.stopIfIdle(e); idle++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-n.ctx.Done():
			return
		}
		if e.host.Work.Busy() {
			idle = 0
		}
	}
}

// continueAll asks the engine that this process is a relay of to continue all unfinished
// turns. The relay asks the next engine again. An engine of an older version does not
// know the request: it continues them by itself.
func (n *Node) continueAll() {
	conn, err := n.Connect(n.ctx)
	if err != nil {
		return
	}
	c := jsonrpc.New(conn, jsonrpc.Options{})
	n.work.Go(func() { _ = c.Run(n.ctx) }) // ends with this process
	if err = c.Call(n.ctx, api.Connect, api.ConnectParams{}, nil); err == nil {
		err = c.Call(n.ctx, api.ContinueAll, struct{}{}, nil)
	}
	if err != nil {
		n.log.Info("the engine does not continue all unfinished turns", "err", err)
	}
}

// ownStore returns the name of this process's store, by which processes on the same folder
// notice that they have different ones.
func (n *Node) ownStore() string { return storeName(n.config.Store, n.folder.Dir()) }

// noteRefusal ends this process if the engine of its folder has another store: neither
// may its clients use that one, nor may it become the engine after it.
func (n *Node) noteRefusal(err error) error {
	if !errors.Is(err, relay.ErrRefused) {
		return err
	}
	n.mu.Lock()
	if n.failed == nil && n.engine == nil {
		n.failed = &FolderError{err}
	}
	n.mu.Unlock()
	n.cancel(err)
	return err
}
