package session

import (
	"context"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window/compact"
)

// handoffs is the activity of summarising the session for whoever takes over.
type handoffs struct {
	running map[*handoff]bool
}

// A handoff is a summary that is asked for in this process.
type handoff struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when no more requests are made
}

func (l *handoffs) busy() bool { return len(l.running) > 0 }

func (l *handoffs) stop(cause error) {
	for run := range l.running {
		run.cancel(cause)
	}
	l.running = nil
}

// abort stops all summaries if somebody has stopped the session: they make requests.
func (l *handoffs) abort(_ *txn, d event.AbortData) error {
	if d.Stops() {
		l.stop(errAborted)
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

// Handoff returns a summary of a session for whoever takes over. It changes nothing but
// the ledger. It ends when somebody stops the session.
func (cx Context) Handoff(ctx context.Context, id event.SessionID) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &handoff{cancel: cancel, over: make(chan struct{})}
	var s *Session
	var c *compaction
	err := cx.host.inspectAny(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		s = tx.s
		c, err = s.planCompaction(tx, occasion{trigger: event.TriggerManual, point: event.PointBackground, limit: s.currentGauge().policy.Limit})
		if err == nil {
			s.handoffs.add(run)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	c.purpose = event.PurposeHandoff
	defer s.post(func(tx *txn) error {
		delete(tx.s.handoffs.running, run)
		return tx.recordRequests(c.asked...)
	})
	defer close(run.over)
	s.summarise(ctx, c, s.headers(ctx, c.inputs, c.config, c.model))
	switch r := c.job.Result(); r.Outcome {
	case compact.Done:
		return r.Summary, nil
	case compact.Skipped:
		return "", nil
	default:
		return "", fmt.Errorf("no summary of session %s could be had: %w", id, r.Err)
	}
}
