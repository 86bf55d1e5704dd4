package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Deletion is a session that is to be deleted, with the sessions of the agents that
// it has ever started.
type Deletion struct {
	Session event.SessionID   `json:"session"`
	Agents  []event.SessionID `json:"agents,omitempty"`

	Workspace *event.Workspace `json:"workspace,omitempty"` // where its processes are; nil for the machine of the engine
}

// Deletions remembers deletions until everything of their sessions is removed. A
// session has files outside of the store, and an engine can be killed between the
// two.
type Deletions interface {
	// Begin writes a deletion down. It is on the disk when Begin returns.
	Begin(Deletion) error
	// End forgets the deletion of a session.
	End(event.SessionID) error
	// Unfinished returns the deletions that have begun and not ended.
	Unfinished() ([]Deletion, error)
}

// Delete removes a session with the agents that it has started. Its work is stopped;
// what forks share stays. An error means that the session still exists, or that there
// was none. Without an error it is gone for good: what is left outside of the store
// and cannot be removed now is removed when the next engine starts, or when its workspace
// is back.
func (h *Host) Delete(ctx context.Context, id event.SessionID) error {
	return h.delete(ctx, id, func() error { return nil })
}

// delete is Delete, unless check fails. Nothing changes the session between the two, and
// check finds everything in the store that the session has accepted before. The deletion
// has a transaction of its own, because the store cannot take it back: it would be
// reported as a failure if anything else in the transaction failed.
func (h *Host) delete(ctx context.Context, id event.SessionID, check func() error) error {
	var d Deletion
	remove := func(s *Session) (err error) {
		if err = check(); err != nil {
			return err
		}
		s.stopWork(errAborted)
		if d, err = h.deleteStored(id); err == nil {
			s.resetAfterDeletion()
		}
		return err
	}
	err := h.submit(ctx, id, &intent{
		alone: true, done: make(chan error, 1),
		do: func(tx *txn) error {
			if err := tx.exists(); err != nil {
				return err
			}
			err := remove(tx.s)
			if err == nil {
				tx.resetAfterDeletion()
			}
			return err
		},
		unread: func(s *Session, err error) error {
			var damage *eventlog.Damage
			if !errors.As(err, &damage) {
				return err
			}
			return remove(s)
		},
	})
	switch {
	case err == nil:
		h.finishDeletion(d)
	case errors.Is(err, ErrNotFound):
		if left := h.removeRest(id); left != nil { // an earlier attempt may have left something
			h.log.Warn("what is left of a deleted session could not be removed", "session", id, "err", left)
		}
	}
	return err
}

// deleteStored writes the deletion down, deletes the session from the store and tells the
// watchers, before they can be told of a new session with the same id. It is carried out
// even if the caller leaves meanwhile.
func (h *Host) deleteStored(id event.SessionID) (Deletion, error) {
	ctx := context.WithoutCancel(h.ctx)
	d := Deletion{Session: id, Agents: h.agentsOf(ctx, id)}
	if s, err := h.store.Session(ctx, id); err == nil {
		d.Workspace = s.Info.Workspace
	}
	if h.opts.Deletions != nil {
		if err := h.opts.Deletions.Begin(d); err != nil {
			return d, fmt.Errorf("delete session %s: %w", id, err)
		}
	}
	if err := h.store.Delete(ctx, id); err != nil {
		_, exists := h.store.Session(ctx, id)
		if exists == nil {
			h.endDeletion(id)
		}
		if !errors.Is(exists, ErrNotFound) || errors.Is(err, ErrNotFound) {
			return d, err
		} // otherwise the session is deleted, although the store reported an error
	}
	h.watchers.notify(Notice{Deleted, eventlog.Session{ID: id}})
	return d, nil
}

// resetAfterDeletion makes the session in memory look like one that never existed.
func (s *Session) resetAfterDeletion() {
	s.clients.removeAll()
	s.feed.reached(eventlog.End{})
	s.secrets.forget()
	s.restoring.endWaiting(errDeleted)
	s.log = logged{}
}

// resetAfterDeletion drops all that the transaction has to do, such as to stop the turn
// of an agent that nobody waits for.
func (tx *txn) resetAfterDeletion() {
	tx.State.Reset()
	*tx = txn{s: tx.s, State: tx.State, now: tx.now}
}

var errDeleted = errors.New("the session was deleted")

// finishDeletion removes what a deleted session has outside of the store, and its
// agents. What fails is tried again when the next engine starts.
func (h *Host) finishDeletion(d Deletion) {
	errs := []error{h.removeRest(d.Session)}
	for _, agent := range d.Agents {
		if err := h.Delete(h.ctx, agent); !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		h.log.Warn("a session is deleted, but not all that belongs to it; the next start tries again", "session", d.Session, "err", err)
		return
	}
	h.release(d)
}

// release ends what a deleted session has left in another workspace, and then the deletion. It
// is not a part of the session, which would wait with it for a workspace that is away: a new
// session may have the id. After one attempt the others are made while nobody waits.
func (h *Host) release(d Deletion) {
	if err := h.tryRelease(d); err != nil && h.ctx.Err() == nil {
		h.log.Warn("a session is deleted; what is left of it in its workspace is removed when that is back", "session", d.Session, "err", err)
		h.spawn(func() { h.releaseLater(d) })
	}
}

func (h *Host) tryRelease(d Deletion) error {
	if d.Workspace != nil && h.opts.Release != nil {
		if err := h.contained(d.Session, func() error { return h.opts.Release(h.ctx, d) }); err != nil {
			return err
		}
	}
	h.endDeletion(d.Session)
	return nil
}

// The pauses between two attempts to end what is left in a workspace that is away: the first
// one, and the longest one.
const (
	releasePause    = 100 * time.Millisecond
	maxReleasePause = 5 * time.Second
)

// releaseLater tries to end what is left in a workspace until it is back, or this engine ends;
// the next engine finds the deletion, and tries again.
func (h *Host) releaseLater(d Deletion) {
	for pause := releasePause; ; pause = min(2*pause, maxReleasePause) {
		select {
		case <-time.After(pause):
		case <-h.ctx.Done():
			return
		}
		if h.tryRelease(d) == nil {
			return
		}
	}
}

// removeRest removes the files of a session that is not in the store. It runs in the
// session's own goroutine, so that the files of a new session with the same id stay, and in
// a transaction of its own, so that it does not fail with a new one that cannot be made.
func (h *Host) removeRest(id event.SessionID) error {
	if h.opts.Forget == nil {
		return nil
	}
	return h.submit(h.ctx, id, &intent{readOnly: true, alone: true, done: make(chan error, 1), do: func(tx *txn) error {
		if tx.State.Seq > 0 {
			return nil
		}
		h.closeMCP(id, true)
		return h.opts.Forget(h.ctx, id)
	}})
}

func (h *Host) endDeletion(id event.SessionID) {
	if h.opts.Deletions == nil {
		return
	}
	if err := h.opts.Deletions.End(id); err != nil {
		h.log.Warn("a deletion that is over could not be forgotten", "session", id, "err", err)
	}
}

// interruptedDeletions returns the deletions that an earlier engine began and did not
// finish. A session that is still in the store was not deleted, and stays.
func (h *Host) interruptedDeletions(ctx context.Context) (gone []Deletion) {
	if h.opts.Deletions == nil {
		return nil
	}
	list, err := h.opts.Deletions.Unfinished()
	if err != nil {
		h.log.Warn("unfinished deletions could not be read", "err", err)
	}
	for _, d := range list {
		switch _, err := h.store.Session(ctx, d.Session); {
		case err == nil:
			h.endDeletion(d.Session)
		case errors.Is(err, ErrNotFound):
			gone = append(gone, d)
		default:
			h.log.Warn("a deletion could not be finished", "session", d.Session, "err", err)
		}
	}
	return gone
}

// agentsOf lists the sessions of all agents that a session has started, as far as its
// log can be read. The agents in the events that a fork shares belong to its parent.
func (h *Host) agentsOf(ctx context.Context, id event.SessionID) (agents []event.SessionID) {
	if !h.opts.Tools.StartAgents() {
		return nil
	}
	index, err := h.store.Session(ctx, id)
	if err != nil {
		return nil
	}
	calls := map[string]bool{}
	for e, err := range h.store.Read(ctx, id, index.Shared) {
		if err != nil {
			break // events after the damage cannot be read
		}
		switch e.Type {
		case event.ToolStart:
			if d, err := event.As[event.ToolStartData](e); err == nil && h.opts.Tools.StartsAgent(d.ToolName) {
				calls[d.ToolCallID] = true
			}
		case event.ToolBegun:
			if d, err := event.As[event.ToolBegunData](e); err == nil && calls[d.ToolCallID] {
				agents = append(agents, event.SessionID(d.Key))
			}
		}
	}
	return agents
}
