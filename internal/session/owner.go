package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// Owners says which of several servers that share a store works on a session.
type Owners interface {
	// Claim makes this server the owner of a session and its agents, unless the session does
	// not exist: then the append that makes it does. It is called before the log is read. The
	// error is eventlog.ErrNotOwner if that is not possible.
	Claim(ctx context.Context, ids ...event.SessionID) error
	// Owns reports whether this server owns a session, as far as it knows.
	Owns(id event.SessionID) bool
	// Release gives up a session and its agents. From then on this server cannot write to them.
	Release(ctx context.Context, ids ...event.SessionID) error
}

// errHandedOver means that another server goes on with a session.
var errHandedOver = fmt.Errorf("%w: it was handed over", eventlog.ErrNotOwner)

// isShared reports whether other servers work on sessions of the same store.
func (h *Host) isShared() bool { return h.opts.Owners != nil }

// own makes sure that what is in memory of the session is not older than the log. Of a session that
// this server does not own, nothing is. Intents that
// change the session claim it first, and fail with the error if another server works on it. Those
// that only read get what the log says now.
func (s *Session) own(batch []*intent) error {
	owners := s.host.opts.Owners
	if owners == nil {
		return nil
	}
	if s.owned && owners.Owns(s.id) {
		return nil
	}
	if s.owned {
		s.lose(errHandedOver)
	}
	// What nobody waits for is the end of work that was stopped when the session was given up. It must
	// not take the session back.
	wanted := func(in *intent) bool { return !in.readOnly && (in.done != nil || owners.Owns(s.id)) }
	if !slices.ContainsFunc(batch, wanted) {
		return errHandedOver
	}
	if err := owners.Claim(s.host.ctx, s.id); err != nil {
		return fmt.Errorf("session %s: %w", s.id, err)
	}
	s.owned = true
	return nil
}

// checkOwned returns an error if another server has made the session since this one was to own it.
func (s *Session) checkOwned() error {
	if s.owned && s.state.Seq > 0 && !s.host.opts.Owners.Owns(s.id) {
		s.state, s.owned = nil, false
		return fmt.Errorf("session %s: %w: it has just been made", s.id, eventlog.ErrNotOwner)
	}
	return nil
}

// look carries out the intents of a batch that only read, on a session that this server does not
// own. Those that change it fail with the error. Nothing stays in memory, as it would grow old.
func (s *Session) look(batch []*intent, err error) {
	defer func() { s.state = nil }()
	unread := s.load()
	for _, in := range batch {
		switch {
		case !in.readOnly && in.done == nil:
			_ = in.runUnread(s, err) // nobody waits for the error
		case !in.readOnly:
			in.finish(err)
		case unread != nil:
			in.finish(in.runUnread(s, unread))
		default:
			tx := &txn{s: s, State: s.state, now: time.Now()}
			in.err = in.run(tx)
			in.finish(in.err)
			for _, f := range tx.afterCommit {
				f()
			}
		}
	}
}

// lose gives up the session because another server works on it. Its clients are told: they find
// that server.
func (s *Session) lose(cause error) {
	s.host.log.Info("another server works on a session from now on", "session", s.id)
	s.stopWork(cause)
	s.host.outages.drop(s.id)
	s.state, s.calls.fresh, s.held, s.owned = nil, nil, false, false
	s.host.closeMCP(s.id, false)
	for _, told := range s.clients.losers() {
		told()
	}
	s.feed.lose()
}

// losers removes the clients, and returns what tells them that the session is lost.
func (cs *clients) losers() (all []func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if a.view != nil {
			a.view.Close()
		}
		if a.spec.Lost != nil {
			all = append(all, a.spec.Lost)
		}
	}
	cs.list = nil
	return all
}

// A Loser is a Viewer that wants to know when a session is worked on by another server, so that
// nothing more can be shown here.
type Loser interface {
	Lost(id event.SessionID)
}

// lose tells those who follow the session that nothing more is shown here.
func (f *feed) lose() {
	f.mu.Lock()
	views := slices.Clone(f.views)
	f.mu.Unlock()
	for _, v := range views {
		v.Close()
		if viewer, ok := v.viewer.(Loser); ok {
			viewer.Lost(f.session.id)
		}
	}
}

// Continue goes on with sessions that this server has claimed because there is something to do.
func (w Work) Continue(ctx context.Context, claimed []eventlog.Session) {
	h := w.host
	var due []event.SessionID
	for _, s := range claimed {
		h.tasksOf(s)
		if h.resume(s) {
			due = append(due, s.ID)
		}
	}
	if len(due) > 0 {
		h.spawn(func() { h.wakeAll(due) })
	}
	if h.opts.Memory.Wake != nil {
		h.opts.Memory.Wake() // there may be jobs
	}
}

// BusyCount returns the number of sessions in which something is under way.
func (w Work) BusyCount() int {
	w.host.gate.Lock()
	defer w.host.gate.Unlock()
	return w.host.gate.busy
}

// HandOver gives up a session and its agents so that another server can go on with them, unless a
// model request or a call is under way in one of them. If at once is true, it does not wait for
// that: the other server then finds them as after a crash. It reports whether the session was given
// up. related reports whether a session in memory belongs to it.
func (w Work) HandOver(ctx context.Context, id event.SessionID, related func(event.SessionID) bool, atOnce bool) (bool, error) {
	h := w.host
	h.mu.Lock()
	var family []*Session
	for other, s := range h.sessions {
		if other == id || related(other) {
			family = append(family, s)
		}
	}
	h.mu.Unlock()
	for _, s := range family {
		var busy bool
		err := h.submit(ctx, s.id, &intent{readOnly: true, done: make(chan error, 1), do: func(tx *txn) error {
			busy = tx.s.isBusy() || len(tx.s.calls.running) > len(h.opts.Tools.Working(tx.State))
			return nil
		}})
		if err != nil && !errors.Is(err, eventlog.ErrNotOwner) {
			return false, err
		}
		if busy && !atOnce {
			return false, nil
		}
	}
	if err := h.opts.Owners.Release(ctx, id); err != nil {
		return false, err
	}
	for _, s := range family {
		// The session finds out that it is lost. The error is that of reading it.
		_ = h.submit(ctx, s.id, &intent{readOnly: true, done: make(chan error, 1), do: func(*txn) error { return nil }})
	}
	return true, nil
}
