package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// ErrNobody means that no client of the session can do what is asked.
var ErrNobody = errors.New("no client of this session can do that")

// exchange asks clients something and waits until it is answered. What open
// records may have been recorded before, by a request whose reply was lost. If
// ctx is done first, what drop returns is recorded: the caller has left for good.
func (h *Host) exchange(ctx context.Context, id event.SessionID, open func(*txn) (string, error), drop func(*turn.State, string) []event.Payload) (event.Event, error) {
	var requestID string
	done := make(chan event.Event, 1)
	err := h.do(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		if requestID, err = open(tx); err != nil {
			return err
		}
		if tx.s.waiting == nil {
			tx.s.waiting = make(map[chan event.Event]string)
		}
		tx.s.waiting[done] = requestID
		tx.undo = append(tx.undo, func() { delete(tx.s.waiting, done) })
		return nil
	})
	if err != nil {
		return event.Event{}, err
	}
	select {
	case e, ok := <-done:
		if !ok {
			return e, fmt.Errorf("session %s: %w", id, ErrNotFound)
		}
		return e, nil
	case <-h.ctx.Done():
		return event.Event{}, ErrClosed
	case <-ctx.Done():
	}
	h.get(id).post(func(tx *txn) error {
		delete(tx.s.waiting, done)
		if tx.State.Seq == 0 || drop == nil {
			return nil
		}
		return tx.Record(drop(tx.State, requestID)...)
	})
	return event.Event{}, context.Cause(ctx)
}

// tellWaiting tells those who wait how what they asked ended. If it is not known
// any more, neither will it ever be.
func (s *Session) tellWaiting() {
	for done, requestID := range s.waiting {
		e, ended := s.state.Exchanges.Closed(requestID)
		switch {
		case ended:
			done <- e
		case s.state.Exchanges.Find(requestID) == nil:
			close(done)
		default:
			continue
		}
		delete(s.waiting, done)
	}
}

// Elicit puts a form to a person behind one of the clients, and waits. The form
// stays open, whatever becomes of this process, until somebody answers it. If
// the caller leaves first, it is cancelled unless keep says that the caller will
// ask again.
func (qs Questions) Elicit(ctx context.Context, id event.SessionID, d event.ElicitationAskedData, keep func() bool) (turn.Filled, error) {
	d.RequestID = event.NewID()
	e, err := qs.host.exchange(ctx, id, func(tx *txn) (string, error) {
		if before := tx.State.Sent(d.Key); before != "" {
			return before, nil
		}
		if can, _ := tx.s.clients.abilities(); !can {
			return "", fmt.Errorf("elicitation is not supported: %w", ErrNobody)
		}
		return d.RequestID, tx.Record(d)
	}, func(s *turn.State, requestID string) []event.Payload {
		if keep() {
			return nil
		}
		record, _, _ := s.FillIn(requestID, "", turn.Filled{Action: turn.Cancel})
		return record
	})
	if err != nil {
		return turn.Filled{}, err
	}
	done, err := event.As[event.ElicitationDoneData](e)
	return turn.Filled{Action: done.Action, Content: done.Content}, err
}

// FillIn answers a form, and reports whether this answer won.
func (qs Questions) FillIn(ctx context.Context, id event.SessionID, requestID, key string, f turn.Filled) (won bool, err error) {
	err = qs.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		record, ok, err := tx.State.FillIn(requestID, key, f)
		if err != nil {
			return err
		}
		won = ok || tx.State.Won(requestID, key)
		return tx.Record(record...)
	})
	return won, err
}

// Suspend lets a session rest in the middle of what it does, until somebody
// resumes it or sends it something. Open permissions are cancelled; everything
// else stays as it is.
func (h *Host) Suspend(ctx context.Context, id event.SessionID) error {
	return h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil || !tx.State.Active() || tx.State.Life.Suspended {
			return err
		}
		tx.s.asking.stop(errSuspended)
		if err := tx.Record(turn.Suspend(tx.State)...); err != nil {
			return err
		}
		tx.Tell(event.AssistantIdleData{Aborted: true})
		tx.Tell(event.SessionIdleData{Aborted: true, Totals: tx.State.About.Totals})
		return nil
	})
}

var errSuspended = errors.New("the session was suspended")

// unsuspend lets a session go on.
func (tx *txn) unsuspend() error {
	if !tx.State.Life.Suspended {
		return nil
	}
	return tx.Record(event.SessionSuspendedData{})
}

// abilities is what the clients of the session can do together.
func (cs *clients) abilities() (forms bool, commands []event.Command) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		forms = forms || a.spec.Forms
		for _, c := range a.spec.Commands {
			if !slices.ContainsFunc(commands, func(o event.Command) bool { return o.Name == c.Name }) {
				commands = append(commands, c)
			}
		}
	}
	return forms, commands
}

// Abilities is what the clients of a session can do together: whether they can
// put a form to a person, and the commands that they carry out.
func (cs Clients) Abilities(id event.SessionID) (forms bool, commands []event.Command) {
	if s := cs.host.peek(id); s != nil {
		return s.clients.abilities()
	}
	return false, nil
}

// tellAbilities tells the clients what has changed in what they can do together.
func (tx *txn) tellAbilities(forms bool, commands []event.Command) {
	can, has := tx.s.clients.abilities()
	if can != forms {
		var d event.CapabilitiesChangedData
		d.UI.Elicitation = can
		tx.Tell(d)
	}
	if !slices.Equal(has, commands) {
		tx.Tell(event.CommandsChangedData{Commands: notNil(has)})
	}
}

// InUse reports whether a session has clients, or had one a moment ago.
func (cs Clients) InUse(id event.SessionID) bool {
	s := cs.host.peek(id)
	return s != nil && s.clients.attached()
}

// Follow shows a viewer what happens after a position, without making it a
// client. The function returned ends that.
func (cs Clients) Follow(ctx context.Context, id event.SessionID, at event.Seq, viewer Viewer) (*View, func(), error) {
	var view *View
	var s *Session
	err := cs.host.look(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		s = tx.s
		view = s.feed.open(viewer, at)
		view.pieces = true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return view, func() { view.Close(); cs.host.forget(s) }, nil
}

// Permissions changes what sessions may do without asking.
type Permissions struct{ host *Host }

// ChangeRules changes what clients have said about permissions.
func (ps Permissions) ChangeRules(ctx context.Context, id event.SessionID, change func(*event.ClientRules) error) error {
	return ps.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		to := tx.State.Permission.Rules
		if err := change(&to); err != nil {
			return err
		}
		return tx.Record(to)
	})
}

// AllowAll says whether anybody is asked for permission, and tells how it was.
func (ps Permissions) AllowAll(ctx context.Context, id event.SessionID, all bool) error {
	return ps.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		was := tx.State.AllowsAll()
		if was == all {
			return nil
		}
		to := tx.State.Permission.Rules
		to.AllowAll = all
		if err := tx.Record(to); err != nil {
			return err
		}
		if config := tx.State.Setup.Config; !all && tx.State.AllowsAll() {
			config.Approve = ""
			if err := tx.Record(config); err != nil {
				return err
			}
		}
		return tx.Record(event.PermissionsChangedData{Mode: turn.PermissionMode(all), PreviousMode: turn.PermissionMode(was)})
	})
}

// ResetGrants takes back what was allowed for the rest of a session.
func (ps Permissions) ResetGrants(ctx context.Context, id event.SessionID, location bool) error {
	return ps.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		to := tx.State.Permission.Rules
		if location && to.FromThere != nil {
			to.Location, to.FromThere = "", nil
			if err := tx.Record(to); err != nil {
				return err
			}
		}
		if len(tx.State.Permission.Grants) == 0 {
			return nil
		}
		return tx.Record(event.GrantsResetData{})
	})
}

// Declare declares that a client of the session can be asked.
func (ps Permissions) Declare(ctx context.Context, id event.SessionID) error {
	return ps.host.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return tx.declare(&Client{Permission: true})
	})
}
