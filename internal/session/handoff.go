package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window/compact"
)

// handoffs is the activity of summarising the session for whoever takes over.
type handoffs struct {
	running map[*handoff]bool
}

// A handoff is a summary that is asked for in this process.
type handoff struct {
	id         string // id in the log; empty if the request cannot be repeated
	session    *Session
	compaction *compaction // compaction whose summary is used; the rest of it is not
	cancel     context.CancelCauseFunc
	over       chan struct{} // closed when no more requests are made
}

func (l *handoffs) busy() bool { return len(l.running) > 0 }

func (l *handoffs) stop(cause error) {
	for run := range l.running {
		run.cancel(cause)
	}
	l.running = nil
}

// abort stops all summaries if somebody has stopped the session: they make requests. Those
// that an earlier engine has begun are stopped too, because their clients may ask again.
func (l *handoffs) abort(tx *txn, d event.AbortData) error {
	if !d.Stops() {
		return nil
	}
	l.stop(errAborted)
	for _, open := range slices.Clone(tx.State.Context.Handoffs) {
		if err := tx.record(event.HandoffCompletedData{HandoffID: open.HandoffID, Error: errAborted.Error(), Stopped: true}); err != nil {
			return err
		}
	}
	return nil
}

// requests returns what is closed when the requests under way are over.
func (l *handoffs) requests() (list []<-chan struct{}) {
	for run := range l.running {
		list = append(list, run.over)
	}
	return list
}

func (l *handoffs) add(run *handoff) {
	if l.running == nil {
		l.running = make(map[*handoff]bool)
	}
	l.running[run] = true
}

// Handoff returns a summary of a session for whoever takes over. It does not change the
// conversation. It ends when somebody stops the session. The key is that of a request that may
// be repeated, and empty if there is none: a repeated request gets the same summary, and none
// if the first one was stopped.
func (cx Context) Handoff(ctx context.Context, id event.SessionID, key string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &handoff{cancel: cancel, over: make(chan struct{})}
	ended, err := cx.beginHandoff(ctx, id, key, run)
	if err != nil {
		return "", err
	}
	if ended == nil {
		s, c := run.session, run.compaction
		c.purpose = event.PurposeHandoff
		s.summarise(ctx, c, s.headers(ctx, c.inputs, &c.config, c.model))
		close(run.over)
		if ended, err = cx.endHandoff(ctx, id, run); err != nil {
			return "", err
		}
	}
	if ended.Error == "" {
		return ended.Summary, nil
	}
	cause := errors.New(ended.Error)
	if run.compaction != nil && !ended.Stopped {
		cause = run.compaction.job.Result().Err // it says more than its text
	}
	return "", fmt.Errorf("no summary of session %s could be had: %w", id, cause)
}

// beginHandoff records that a summary is asked for, or returns how the one ended that the
// request with the key has begun.
func (cx Context) beginHandoff(ctx context.Context, id event.SessionID, key string, run *handoff) (ended *event.HandoffCompletedData, err error) {
	err = cx.host.maintain(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		if run.id = tx.State.Sent(key); run.id != "" {
			if ended, err = cx.host.handoffEnd(ctx, tx, run.id); ended != nil || err != nil {
				return err
			}
		}
		run.session = tx.s
		run.compaction, err = tx.s.planCompaction(tx, occasion{trigger: event.TriggerManual, point: event.PointBackground, limit: tx.s.currentGauge().policy.Limit})
		if err != nil {
			return err
		}
		if key != "" && run.id == "" {
			run.id = event.NewID()
			if err := tx.record(event.HandoffRequestedData{HandoffID: run.id, Key: key}); err != nil {
				return err
			}
		}
		tx.s.handoffs.add(run)
		tx.onFailure = append(tx.onFailure, func() { delete(tx.s.handoffs.running, run) })
		return nil
	})
	return ended, err
}

// handoffEnd returns how a summary ended; nil if it has not ended.
func (h *Host) handoffEnd(ctx context.Context, tx *txn, id string) (*event.HandoffCompletedData, error) {
	for e, err := range h.store.Read(ctx, tx.s.id, 0) {
		if err != nil {
			return nil, err
		}
		if e.Type != event.HandoffCompleted {
			continue
		}
		if d, err := event.As[event.HandoffCompletedData](e); err == nil && d.HandoffID == id {
			return &d, nil
		}
	}
	return nil, nil
}

// endHandoff records what a summary has cost, and how it ended if its request may be
// repeated. A summary whose client or engine is leaving has not ended. One that was stopped
// meanwhile has.
func (cx Context) endHandoff(ctx context.Context, id event.SessionID, run *handoff) (*event.HandoffCompletedData, error) {
	ended := &event.HandoffCompletedData{HandoffID: run.id}
	switch r := run.compaction.job.Result(); {
	case r.Outcome == compact.Done:
		ended.Summary = r.Summary
	case r.Outcome != compact.Skipped:
		ended.Error = r.Err.Error()
	}
	left := ctx.Err()
	err := cx.host.maintain(context.WithoutCancel(ctx), id, func(tx *txn) error {
		delete(tx.s.handoffs.running, run)
		if err := tx.recordRequests(run.compaction.asked...); err != nil || run.id == "" {
			return err
		}
		isOpen := slices.ContainsFunc(tx.State.Context.Handoffs, func(d event.HandoffRequestedData) bool { return d.HandoffID == run.id })
		switch {
		case !isOpen:
			ended.Summary, ended.Error, ended.Stopped = "", errAborted.Error(), true
		case left == nil:
			return tx.record(*ended)
		}
		return nil
	})
	return ended, err
}
