package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window/compact"
)

// Context looks after what the models of sessions see, and how full their windows are.
type Context struct{ host *Host }

// A Squeeze says how a session is compacted by hand.
type Squeeze struct {
	Instructions string
	Limit        int    // number of tokens that a request may have afterwards; the model's limit if zero
	Key          string // idempotency key of the request; empty if there is none
}

// Compact compacts a session by hand and returns the outcome. The compaction goes on
// if ctx is done first. A request that is repeated gets the outcome of the compaction that
// it has begun: one that somebody has stopped stays stopped.
func (cx Context) Compact(ctx context.Context, id event.SessionID, how Squeeze) (event.CompactionCompleteData, error) {
	done := make(chan event.CompactionCompleteData, 1)
	err := cx.host.maintain(ctx, id, func(tx *txn) error {
		if err := tx.endOrphanedCompaction(); err != nil {
			return err
		}
		if tx.State.Context.Compaction != nil {
			return fmt.Errorf("session %s: %w", id, ErrCompacting)
		}
		if d, err := cx.host.compactedFor(ctx, tx, how.Key); d != nil || err != nil {
			if d != nil {
				done <- *d
			}
			return err
		}
		g := tx.s.currentGauge()
		limit := g.policy.Limit
		if how.Limit > 0 {
			limit = min(limit, how.Limit)
		}
		return tx.compact(occasion{
			trigger: event.TriggerManual, point: event.PointBackground, retain: max(0, g.policy.Retained), limit: limit,
			instructions: how.Instructions, key: how.Key, done: done,
		})
	})
	if err != nil {
		return event.CompactionCompleteData{}, err
	}
	select {
	case d := <-done:
		return d, nil
	case <-ctx.Done():
		return event.CompactionCompleteData{}, context.Cause(ctx)
	case <-cx.host.ctx.Done():
		return event.CompactionCompleteData{}, context.Cause(cx.host.ctx)
	}
}

// compactedFor returns how the compaction ended that the request with a key has begun; nil if
// there is none, or if it ended with the engine, so that it is due again. A stop after that end
// has recorded another compaction for the request, which was stopped.
func (h *Host) compactedFor(ctx context.Context, tx *txn, key string) (*event.CompactionCompleteData, error) {
	if tx.State.Sent(key) == "" {
		return nil, nil
	}
	var begun string // id of the last compaction for the request
	var ended *event.CompactionCompleteData
	for e, err := range h.store.Read(ctx, tx.s.id, 0) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case event.CompactionStart:
			if d, err := event.As[event.CompactionStartData](e); err == nil && d.Key == key {
				begun, ended = d.CompactionID, nil
			}
		case event.CompactionComplete:
			if d, err := event.As[event.CompactionCompleteData](e); err == nil && begun != "" && d.CompactionID == begun {
				ended = &d
			}
		}
	}
	if ended == nil || ended.Cause == event.CauseInterrupted {
		return nil, nil
	}
	return ended, nil
}

// endOrphanedCompaction ends a compaction that the log says is under way and this
// process does not run.
func (tx *txn) endOrphanedCompaction() error {
	if err := tx.exists(); err != nil || tx.State.Context.Compaction == nil || tx.s.compacting.busy() {
		return err
	}
	return tx.endInterruptedCompaction()
}

// CancelCompaction stops the compaction under way, either one that was asked for by
// hand or one that was not. It reports whether it did.
func (cx Context) CancelCompaction(ctx context.Context, id event.SessionID, manual bool) (cancelled bool, err error) {
	err = cx.host.changeAny(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		cancelled, err = tx.stopCompaction(errors.New("it was cancelled"), func(c *turn.Compaction) bool {
			return !c.Waited() && manual == (c.Trigger == event.TriggerManual)
		})
		return err
	})
	return cancelled, err
}

// ErrNoEpoch means that a session was never compacted.
var ErrNoEpoch = errors.New("the session was not compacted: there is nothing to go back to")

// ErrBusy means that a turn is under way.
var ErrBusy = errors.New("a turn is under way: wait for its end, or stop it")

// Uncompact opens an epoch that shows the model what it saw before the last
// compaction, and what was said since. Uncompacting twice restores the compaction.
func (cx Context) Uncompact(ctx context.Context, id event.SessionID) (event.ContextEpochData, error) {
	var opened event.ContextEpochData
	err := cx.host.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.endOrphanedCompaction(); err != nil {
			return err
		}
		is, ok := tx.State.History.Epoch()
		switch {
		case !ok:
			return fmt.Errorf("session %s: %w", id, ErrNoEpoch)
		case tx.State.Turn != nil || tx.State.Context.Compaction != nil:
			return fmt.Errorf("session %s: %w", id, ErrBusy)
		}
		base, tokens, err := cx.host.epochBefore(ctx, id, is)
		if err != nil {
			return err
		}
		opened = event.ContextEpochData{
			EpochID: event.NewID(), Number: tx.State.Context.Epochs + 1, Kind: event.EpochUndo, BaseEpochID: is.EpochID,
			From: base.From, Through: base.Through, Most: base.Most, Earlier: base.Earlier, Head: base.Head, Tokens: tokens,
		}
		return tx.record(opened)
	})
	return opened, err
}

// epochBefore returns the epoch that another one is based on, and the number of
// tokens before the compaction. Before the first epoch, the whole conversation is
// shown.
func (h *Host) epochBefore(ctx context.Context, id event.SessionID, is event.ContextEpochData) (base event.ContextEpochData, tokens int, err error) {
	found := is.BaseEpochID == ""
	for e, err := range h.store.Read(ctx, id, 0) {
		if err != nil {
			return base, 0, err
		}
		switch e.Type {
		case event.ContextEpoch:
			if d, err := event.As[event.ContextEpochData](e); err == nil && d.EpochID == is.BaseEpochID {
				base, found = d, true
			}
		case event.CompactionComplete:
			if d, err := event.As[event.CompactionCompleteData](e); err == nil && d.EpochID == is.EpochID && d.Success {
				tokens = d.PreTokens
			}
		}
	}
	if !found {
		return base, 0, fmt.Errorf("session %s: epoch %s is not in its log", id, is.BaseEpochID)
	}
	return base, tokens, nil
}

// reminder describes the open work of the session to the model. It is built from the
// log, not from the summary.
func (s *Session) reminder() string {
	st := s.openTodos()
	if s.state.EpochID() != "" { // before the first epoch the model sees all this in the conversation
		if mode := s.state.Mode(); mode != event.ModeInteractive {
			st.Mode = mode
		}
		st.Plan, st.Skills = s.planFile(), s.state.Skills.Invoked()
		for _, f := range s.state.Exchanges.Forms() {
			if d, err := event.As[event.ElicitationAskedData](f.Asked); err == nil {
				st.Questions = append(st.Questions, compact.Question{ID: f.RequestID, Text: d.Message})
			}
		}
	}
	return st.Reminder()
}

// openTodos returns the open items of the list that the model keeps.
func (s *Session) openTodos() (st compact.State) {
	for _, t := range s.state.OpenTodos() {
		st.Tasks = append(st.Tasks, compact.Task{ID: t.ID, Status: t.Status, Subject: t.Subject})
	}
	return st
}
