package session

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// askPlan asks one of the clients whether a plan may be carried out. If that
// client goes away the question stays open for the next.
func (s *Session) askPlan(c *turn.Call) {
	a := s.clients.find(func(c *Client) bool { return c.ExitPlan != nil })
	if a == nil || c.Stage != turn.WaitingPlan {
		return
	}
	question, err := event.As[event.ExitPlanAskedData](c.Asked)
	if err != nil {
		return
	}
	a.asked[question.RequestID] = true
	s.host.spawn(func() {
		reply, err := a.spec.ExitPlan(s.host.ctx, s.id, question)
		if err != nil {
			return
		}
		s.post(func(tx *txn) error {
			tx.undo = append(tx.undo, func() { delete(a.asked, question.RequestID) })
			record, ok, err := turn.Answer{RequestID: question.RequestID, Plan: &reply}.Give(tx.State)
			if !ok || err != nil {
				return err
			}
			return tx.settle(record...)
		})
	})
}

// find returns a client that can do something.
func (cs *clients) find(can func(*Client) bool) *attachment {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if can(a.spec) {
			return a
		}
	}
	return nil
}

// change records something about a session that exists.
func (h *Host) change(ctx context.Context, id event.SessionID, f func(*txn) error) error {
	return h.do(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return f(tx)
	})
}

// Settings reads and changes what sessions are configured with.
type Settings struct{ host *Host }

// SetMode says in which mode the agent of a session works.
func (set Settings) SetMode(ctx context.Context, id event.SessionID, mode string) error {
	return set.host.change(ctx, id, func(tx *txn) error {
		if was := tx.State.Mode(); was != mode {
			return tx.Record(event.ModeChangedData{NewMode: mode, PreviousMode: was})
		}
		return nil
	})
}

// SuggestName gives a session a name unless a person has given it one.
func (set Settings) SuggestName(ctx context.Context, id event.SessionID, name string) (taken bool, err error) {
	err = set.host.change(ctx, id, func(tx *txn) error {
		if taken = tx.State.About.Name == "" || tx.State.About.AutoNamed; !taken {
			return nil
		}
		tx.Tell(event.TitleChangedData{Title: name})
		return tx.Record(event.SessionNamedData{Name: name, Auto: true})
	})
	return taken, err
}

// Configure changes the configuration of a session.
func (h *Host) Configure(ctx context.Context, id event.SessionID, f func(*event.SessionConfiguredData) error) error {
	return h.change(ctx, id, func(tx *txn) error {
		to := tx.State.Setup.Config
		if err := f(&to); err != nil {
			return err
		}
		return tx.Record(to)
	})
}

// AddProviders adds to the providers and models that a session has. The secrets
// are those of all that it has then; add makes them of those it had.
func (set Settings) AddProviders(ctx context.Context, id event.SessionID, add func(config *event.SessionConfiguredData, secret []byte) ([]byte, error)) error {
	return set.host.change(ctx, id, func(tx *txn) error {
		had, err := tx.secret()
		if err != nil {
			return err
		}
		to := tx.State.Setup.Config
		secret, err := add(&to, had)
		if err != nil {
			return err
		}
		if err := tx.keepKeys(secret, to); err != nil {
			return err
		}
		return tx.Record(to)
	})
}

// Provider returns the provider of one of a session's models, or of the one it
// uses, and its secrets.
func (set Settings) Provider(ctx context.Context, id event.SessionID, name string) (json.RawMessage, []byte, error) {
	var as choice
	err := set.host.look(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		secret, err := tx.secret()
		if err != nil {
			return err
		}
		as, err = choose(tx.State.Setup.Config, cmp.Or(name, tx.State.Setup.Model), secret)
		return err
	})
	return as.config.Provider, as.secret, err
}

// Interrupt stops the turn, and reports whether there was one. What waits in the
// queue comes next if it is kept.
func (h *Host) Interrupt(ctx context.Context, id event.SessionID, keepQueue bool) (interrupted bool, err error) {
	err = h.change(ctx, id, func(tx *txn) error {
		if interrupted = tx.State.Turn != nil; !interrupted {
			return nil
		}
		return tx.abort("user_initiated", keepQueue)
	})
	return interrupted, err
}

// End ends the use of a session for everybody. What it does rests until somebody
// resumes it.
func (h *Host) End(ctx context.Context, id event.SessionID, d event.ShutdownData) error {
	return h.change(ctx, id, func(tx *txn) error {
		s := tx.State
		d.Started, d.APIDuration, d.Model = s.About.Started.UnixMilli(), s.About.Totals.DurationMs, s.Setup.Model
		d.Changes.Files, d.Metrics = []string{}, map[string]struct{}{}
		if err := tx.Record(d); err != nil {
			return err
		}
		if s.Active() && !s.Life.Suspended {
			tx.s.asking.stop(errSuspended)
			if err := tx.Record(event.SessionSuspendedData{Suspended: true}); err != nil {
				return err
			}
		}
		tx.then = append(tx.then, tx.s.clients.removeAll)
		return nil
	})
}

// OfferedTools returns the tools that the model of a session is told of; without a
// session, those of the runtime.
func (set Settings) OfferedTools(ctx context.Context, id event.SessionID) ([]model.Tool, error) {
	if id == "" {
		return set.host.opts.Tools.Offer(turn.New(id)), nil
	}
	var list []model.Tool
	err := set.host.look(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		list = set.host.opts.Tools.Offer(tx.State)
		return nil
	})
	return list, err
}
