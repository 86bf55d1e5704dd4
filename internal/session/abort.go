package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// Stopped is what an abort has stopped, and what it has not.
type Stopped struct {
	Turn       bool          // true if a turn was stopped
	Queued     int           // number of inputs that were kept and wait
	Dropped    int           // number of inputs that were dropped
	Calls      []StoppedCall // the calls whose commands are ended with the turn, also those of agents
	Background int           // number of tasks that go on, also those of agents
	Compaction bool          // true if a compaction was stopped, also one of an agent

	before   bool              // true if the same request has stopped it before
	sessions []event.SessionID // the sessions that were stopped: that of the abort and its agents
	requests []<-chan struct{} // closed when the requests to models that were under way are over
	tools    []<-chan struct{} // closed when the tools that were under way have returned
}

// over returns what is closed when nothing of what was stopped is under way any more, but for
// commands.
func (s *Stopped) over() []<-chan struct{} { return slices.Concat(s.requests, s.tools) }

// add adds what was stopped of an agent.
func (s *Stopped) add(agent Stopped) {
	s.Calls = append(s.Calls, agent.Calls...)
	s.Background += agent.Background
	s.Compaction = s.Compaction || agent.Compaction
	s.sessions = append(s.sessions, agent.sessions...)
	s.requests, s.tools = append(s.requests, agent.requests...), append(s.tools, agent.tools...)
}

// A StoppedCall is a call that was under way when its turn was stopped.
type StoppedCall struct {
	Session event.SessionID
	Key     string
}

// Abort stops the turn and clears the queue. It is no error if no turn is running.
func (h *Host) Abort(ctx context.Context, id event.SessionID, reason string) error {
	_, err := h.Stop(ctx, id, event.AbortFor(reason))
	return err
}

// Stop stops the turn of a session, the turns of the agents that work or worked for it,
// their compactions and their commands. It is no error if no turn is running. The abort is stored before
// anything is stopped, and from then on it is carried out by whatever engine there is.
// Stop returns when the requests to models, the tools and the commands have ended, or after stopTime.
//
// An abort that holds is also stored if the session is at rest and has tasks: their news
// begins no turn until somebody speaks to the session. The same holds for its agents.
//
// An abort with the key of one that is stored is the same request again. It waits like the
// first one, and stops nothing: what runs by now is a later turn.
func (h *Host) Stop(ctx context.Context, id event.SessionID, d event.AbortData) (Stopped, error) {
	defer h.keepBusy()()
	stopped, err := h.stopWorking(ctx, id, d)
	if err == nil && d.Stops() && !stopped.before {
		err = h.stopFormerAgents(ctx, &stopped, d.Hold || stopped.Turn)
	}
	if err != nil {
		return stopped, err
	}
	await := stopped.Calls
	if !stopped.Turn { // an engine before this one may have stored the abort, and left what it stops to this one
		await = append(slices.Clip(await), h.inheritedStops(ctx)...)
	}
	if err := awaitOver(ctx, stopped.over()); err != nil {
		return stopped, err
	}
	return stopped, h.awaitStopped(ctx, await)
}

// keepBusy makes the host busy until the returned function is called: an engine that ends
// when it is idle does not end while somebody waits to be told what was stopped.
func (h *Host) keepBusy() (release func()) {
	add := func(n int) {
		h.gate.Lock()
		defer h.gate.Unlock()
		h.gate.busy += n
	}
	add(1)
	return func() { add(-1) }
}

// awaitOver waits until nothing is sent to models any more and no tool works, for at most
// stopTime.
func awaitOver(ctx context.Context, all []<-chan struct{}) error {
	timeout := time.After(stopTime)
	for _, over := range all {
		select {
		case <-over:
		case <-timeout:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// stopWorking stores the aborts of a session and of the agents that work for it.
func (h *Host) stopWorking(ctx context.Context, id event.SessionID, d event.AbortData) (Stopped, error) {
	stopped := Stopped{sessions: []event.SessionID{id}}
	var agents []event.SessionID
	err := h.change(ctx, id, func(tx *txn) error {
		if tx.State.Sent(d.Key) != "" {
			stopped.before = true
			return nil
		}
		agents = h.opts.Tools.Working(tx.State)
		waited := len(tx.State.Queue.Inputs)
		if err := tx.stopAll(d, &stopped); err != nil {
			return err
		}
		stopped.Queued = len(tx.State.Queue.Inputs)
		stopped.Dropped = waited - stopped.Queued
		h.countTasks(id, tx.State.Tasks.Open, &stopped)
		return nil
	})
	if err != nil {
		return Stopped{}, err
	}
	for _, agent := range agents {
		its, err := h.stopWorking(ctx, agent, event.AbortFor(stoppedWithCall))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return stopped, err
		}
		stopped.add(its)
	}
	return stopped, nil
}

// awaitWork adds what has to be over before an abort is answered: what is under way, and what
// somebody else has stopped a moment ago.
func (s *Stopped) awaitWork(tx *txn, d event.AbortData) {
	s.requests = append(s.requests, tx.s.asking.requests()...)
	if d.Stops() { // otherwise summaries for whoever takes over go on
		s.requests = append(s.requests, tx.s.handoffs.requests()...)
		s.requests = append(s.requests, tx.s.samplings.requests()...)
		s.tools = append(s.tools, tx.s.calls.tools()...) // one may be about to write
	}
}

// stopAll stops the turn, and a compaction of the session: without a turn, too, it makes
// requests.
func (tx *txn) stopAll(d event.AbortData, stopped *Stopped) error {
	compaction, open, broken := tx.s.compacting.now, tx.State.Context.Compaction, len(tx.State.Context.Broken)
	stopped.awaitWork(tx, d)
	abort := func(tx *txn, d event.AbortData) error {
		return errors.Join(tx.s.compacting.abort(tx, d), tx.s.handoffs.abort(tx, d))
	}
	if tx.State.Active() || d.Hold && tx.State.Wakes() {
		stopped.Turn = tx.State.Turn != nil
		abort = func(tx *txn, d event.AbortData) error { return tx.abort(d) }
	}
	if err := abort(tx, d); err != nil {
		return err
	}
	now := tx.State.Context
	stopped.Compaction = open != nil && now.Compaction == nil || len(now.Broken) < broken
	if compaction != nil && tx.s.compacting.now != compaction {
		stopped.requests = append(stopped.requests, compaction.over)
	}
	return nil
}

// countTasks adds the open tasks of a session to those that are ended or go on.
func (h *Host) countTasks(id event.SessionID, open []turn.Task, stopped *Stopped) {
	for _, t := range open {
		switch {
		case !t.Stop:
			stopped.Background++
		case stopped.Turn || !h.hasStopped(taskKey{id, t.Key}): // otherwise an earlier abort has ended it
			stopped.Calls = append(stopped.Calls, StoppedCall{id, t.Key})
		}
	}
}

// stopFormerAgents stops what the agents of a session that was stopped still do although their
// calls are over: a compaction, or a turn that began later. If hold is true, tasks that they
// have left begin no turn either.
func (h *Host) stopFormerAgents(ctx context.Context, stopped *Stopped, hold bool) error {
	var left []event.SessionID
	for s, err := range h.store.Sessions(ctx, eventlog.Query{Busy: true}) { // also those that only wait for an answer
		if err != nil {
			return fmt.Errorf("find the agents of a session: %w", err)
		}
		if s.Damage == nil && !s.Info.Listed && !slices.Contains(stopped.sessions, s.ID) {
			left = append(left, s.ID)
		}
	}
	d := event.AbortFor(stoppedWithCall)
	d.KeepQueue, d.Hold = hold, hold
	session := stopped.sessions[0]
	for _, id := range left {
		if !h.Agents.WorksFor(ctx, id, session) {
			continue
		}
		its, err := h.stopWorking(ctx, id, d)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		stopped.add(its)
		h.Unload(id)
	}
	return nil
}

// stoppedWithCall is the reason of the abort of an agent.
const stoppedWithCall = "the call that started it was stopped"

// Interrupt stops the turn, and reports whether one was running. With keepQueue, the
// next turn begins with what waits in the queue, and the commands of the turn go on.
// Interrupt returns when the requests to models and the commands that it stops have
// ended, or after stopTime.
func (h *Host) Interrupt(ctx context.Context, id event.SessionID, keepQueue bool) (interrupted bool, err error) {
	var cut interruption
	err = h.change(ctx, id, func(tx *txn) error {
		interrupted = tx.State.Turn != nil
		return tx.interrupt(event.AbortData{Reason: "user_initiated", KeepQueue: keepQueue}, &cut)
	})
	if err != nil {
		return interrupted, err
	}
	return interrupted, h.awaitInterrupted(ctx, &cut)
}

// An interruption is what has to end before an interrupt is acknowledged.
type interruption struct {
	stopped Stopped           // what was stopped of the turn
	agents  []event.SessionID // the agents that work for the turn, which are to be stopped
}

// none reports whether there is nothing to wait for, as after nearly every message.
func (c *interruption) none() bool {
	return len(c.agents) == 0 && len(c.stopped.over()) == 0 && len(c.stopped.Calls) == 0
}

// interrupt stops the turn, if one is running.
func (tx *txn) interrupt(d event.AbortData, cut *interruption) error {
	if tx.State.Turn == nil {
		if d.Stops() {
			cut.stopped.awaitWork(tx, d)
		}
		return nil
	}
	cut.agents = tx.s.host.opts.Tools.Working(tx.State)
	if err := tx.stopAll(d, &cut.stopped); err != nil {
		return err
	}
	tx.s.host.countTasks(tx.s.id, tx.State.Tasks.Open, &cut.stopped)
	return nil
}

// awaitInterrupted stops the agents of a turn that was interrupted, and waits until
// nothing is sent to models any more for the turn and for them, and what they run has
// ended.
func (h *Host) awaitInterrupted(ctx context.Context, cut *interruption) error {
	if cut.none() {
		return nil
	}
	defer h.keepBusy()()
	stopped := cut.stopped
	for _, agent := range cut.agents {
		its, err := h.stopWorking(ctx, agent, event.AbortFor(stoppedWithCall))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		stopped.add(its)
	}
	if err := awaitOver(ctx, stopped.over()); err != nil {
		return err
	}
	return h.awaitStopped(ctx, stopped.Calls)
}

func (tx *txn) abort(d event.AbortData) error {
	if err := tx.abortWork(d); err != nil {
		return err
	}
	if err := tx.keepAnswer(); err != nil {
		return err
	}
	if err := tx.record(turn.Abort(tx.State, d)...); err != nil {
		return err
	}
	if tx.State.Queue.Held || tx.State.Life.Idle { // no session.idle is recorded, and nothing goes on
		tx.send(event.AssistantIdleData{Aborted: true})
		tx.send(event.SessionIdleData{Aborted: true, Totals: tx.State.About.Totals})
	}
	return nil
}

var errAborted = errors.New("the turn was aborted")

// dropOrphan stops the turn of an agent that was read from the log if the call that
// started the agent is over: somebody has stopped the session of that call, and the
// engine ended before it had stopped the agent. A later turn of the agent is the work
// of somebody who has spoken to it.
func (tx *txn) dropOrphan() error {
	of := tx.State.Setup.Config.Agent
	if of == nil || !tx.State.Active() || tx.State.About.Totals.Turns > 1 {
		return nil
	}
	parent, _, err := tx.s.host.read(tx.s.host.ctx, of.Session)
	if err != nil || parent.Calling(string(tx.s.id)) {
		return nil // an error of the parent is reported when the parent is used
	}
	return tx.abort(event.AbortFor(stoppedWithCall))
}

// Suspend stops the turn without ending it, until somebody resumes the session or
// sends it something. Open permission questions are cancelled; other questions stay
// open.
func (h *Host) Suspend(ctx context.Context, id event.SessionID) error {
	return h.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil || !tx.State.Active() || tx.State.Life.Suspended {
			return err
		}
		tx.s.asking.stop(errSuspended)
		if err := tx.record(turn.Suspend(tx.State)...); err != nil {
			return err
		}
		tx.send(event.AssistantIdleData{Aborted: true})
		tx.send(event.SessionIdleData{Aborted: true, Totals: tx.State.About.Totals})
		return nil
	})
}

var errSuspended = errors.New("the session was suspended")

// unsuspend records that a suspended session goes on.
func (tx *txn) unsuspend() error {
	if !tx.State.Life.Suspended {
		return nil
	}
	return tx.record(event.SessionSuspendedData{})
}

// End ends the use of a session for all its clients, and returns when they have left it.
// Its turn is suspended until somebody resumes the session.
func (h *Host) End(ctx context.Context, id event.SessionID, d event.ShutdownData) error {
	removed := make(chan struct{})
	err := h.change(ctx, id, func(tx *txn) error {
		s := tx.State
		d.Started, d.APIDuration, d.Model = s.About.Started.UnixMilli(), s.About.Totals.DurationMs, s.Setup.Model
		d.Changes.Files, d.Metrics = []string{}, map[string]struct{}{}
		if err := tx.record(d); err != nil {
			return err
		}
		if s.Active() && !s.Life.Suspended {
			tx.s.asking.stop(errSuspended)
			if err := tx.record(event.SessionSuspendedData{Suspended: true}); err != nil {
				return err
			}
		}
		tx.afterCommit = append(tx.afterCommit, func() { tx.s.clients.removeAll(); close(removed) })
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-removed:
	case <-ctx.Done():
	}
	return nil
}
