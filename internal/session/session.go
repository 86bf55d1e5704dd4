package session

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// A Session is one session in memory. Its state belongs to the goroutine that drains
// its mailbox; there is at most one.
type Session struct {
	host *Host
	id   event.SessionID
	feed feed

	// These parts may be used by any goroutine.
	mailbox mailbox
	clients clients
	secrets secrets
	asks    atomic.Bool // true while a question to a person is open
	waits   atomic.Bool // true while any question is open, or an agent works that may ask one
	bare    atomic.Bool // true if its clients want it to have no folder

	// The rest is owned by the draining goroutine.
	state       *turn.State                 // nil if not in memory
	log         logged                      // the stored end and index row of the session
	underWay    turn.Now                    // the constant part of what now returns
	waiting     map[chan event.Event]string // those who wait for the answer to a question, with its id
	looked      map[string]bool             // the tasks elsewhere whose ends were looked for, by key
	warned      map[string]bool             // the warnings about files of the project that were given
	offer       offer
	gauge       gauge
	told        atomic.Int64 // window that the provider told when the model was last asked; zero if it was not yet
	busy        bool         // true while something is under way; see isBusy
	recordedMCP recordedMCP
	another     string // model that has answered instead of the one that was asked, as people were told
	earlier     string // time of the last event of an earlier engine, while its turn was not gone on with; empty if there is none
	owned       bool   // true if the state in memory was read after this server had claimed the session
	held        bool   // true while another session is asked whether this one goes on; see budgets

	// These are what the session does beside its own goroutine: see activities.
	asking     asking
	calls      calls
	hooks      hookRuns
	compacting compacting
	handoffs   handoffs
	samplings  samplings
	prompt     preparing
	restoring  restoring
	looking    looking
}

// logged is what the store has of a session in memory.
type logged struct {
	end  eventlog.End
	info eventlog.Info
}

func newSession(h *Host, id event.SessionID) *Session {
	s := &Session{host: h, id: id}
	s.underWay = turn.Now{
		Running: func(id string) bool { return s.calls.running[id] != nil },
		Fresh:   func(id string) bool { return s.calls.fresh[id] },
		Asked:   func(id string) bool { return s.hooks.running[id] != nil },
	}
	s.feed.session = s
	return s
}

// isNeeded reports whether the session must stay in the host's list while its state
// is not in memory. The mailbox's mutex is held.
func (s *Session) isNeeded() bool {
	return s.state != nil || s.clients.any() || len(s.waiting) > 0 || s.feed.watched()
}

// transact makes one transaction of a batch of intents and of everything that follows
// from them.
func (s *Session) transact(batch []*intent) {
	if s.host.isShared() {
		if err := s.own(batch); !s.owned {
			s.look(batch, err)
			return
		}
	}
	found := s.state == nil
	err := s.load()
	if err == nil {
		err = s.checkOwned()
	}
	if err != nil {
		for _, in := range batch {
			in.finish(in.runUnread(s, err))
		}
		return
	}
	tx := &txn{s: s, State: s.state, now: time.Now(), headed: headed(s.state)}
	if found {
		_ = tx.dropOrphan() // the transaction has the error
	}
	looked := len(tx.stored) == 0
	for _, in := range batch {
		if !in.readOnly && !in.upkeep {
			s.host.broken.Delete(s.id)
			s.host.attended.add(s.id)
		}
		in.err = in.run(tx)
		looked = looked && in.readOnly
	}
	err = tx.err
	if err == nil && s.state.Seq > 0 && !looked && !tx.stays && s.host.Work.GoesOn(s.id) {
		err = s.advance(tx)
	}
	if err == nil && len(tx.stored) > 0 {
		err = tx.recordTakeover()
	}
	err = s.commitOrDiscard(tx, err)
	s.countBusy()
	for _, in := range batch {
		if in.err == nil {
			in.err = err
		}
		in.finish(in.err)
	}
	if err == nil {
		s.followUp(tx)
	}
	if s.state != nil && (s.state.Seq == 0 || (tx.unload && s.isQuiet())) {
		s.owned = s.owned && s.state.Seq > 0 // the append that makes a session claims it
		s.state = nil
		s.secrets.keys.Store(nil)
	}
}

// commitOrDiscard stores what a transaction has recorded. If that fails, or if something in the
// transaction has, the state in memory is given up.
func (s *Session) commitOrDiscard(tx *txn, err error) error {
	if err == nil {
		if err = tx.commit(); err == nil {
			return nil
		}
		if errors.Is(err, eventlog.ErrNotOwner) {
			s.lose(err)
			for _, f := range tx.onFailure {
				f()
			}
			return err
		}
		s.retryLater()
	}
	s.discard(err)
	for _, f := range tx.onFailure {
		f()
	}
	return err
}

// followUp does what has to wait until a transaction is stored.
func (s *Session) followUp(tx *txn) {
	s.unpark()
	s.asks.Store(s.state.Asks() || s.state.Exchanges.Queued() != nil)
	s.waits.Store(len(s.state.Questions()) > 0 || len(s.state.Exchanges.Forms()) > 0 || len(s.host.opts.Tools.Working(s.state)) > 0)
	s.finishExchanges()
	s.freeHeld()
	s.watchTasks()
	s.host.settleMCPCalls(s.id, tx.stored)
	for _, f := range tx.afterCommit {
		f()
	}
}

// reread loads the log again, with the events that are not stored yet, if the model
// is to see more of the conversation than the state holds.
func (s *Session) reread(tx *txn) error {
	if !s.state.History.Short() {
		return nil
	}
	state, _, err := s.host.read(s.host.ctx, s.id, tx.stored...)
	if err == nil {
		s.state, tx.State = state, state
	}
	return err
}

// load reads and verifies the session's log, if the state is not in memory. A session
// that does not exist has an empty state.
func (s *Session) load() error {
	if s.state != nil {
		return nil
	}
	state, index, err := s.host.read(s.host.ctx, s.id)
	if err != nil {
		return err
	}
	s.state, s.log.end, s.log.info = state, index.End, index.Info
	s.feed.reached(s.log.end)
	s.foundTurn(index)
	s.offer, s.recordedMCP = offer{}, recordedMCP{}
	return nil
}

// discard drops the state after a transaction that could not be stored, and stops
// what is under way. The log decides what is done again.
func (s *Session) discard(err error) {
	s.host.log.Error("could not record what happened; the session is read again", "session", s.id, "err", err)
	s.stopWork(err)
	s.state, s.calls.fresh, s.held = nil, nil, false
}

// recordPause is how long the session waits before it uses the store again after an
// append failed.
const recordPause = 500 * time.Millisecond

// retryLater makes the session do what is due after a pause, so that the turn does
// not wait for the next request of a client. If the store is closed, so is the host.
func (s *Session) retryLater() {
	time.AfterFunc(recordPause, func() {
		s.post(func(tx *txn) error { tx.afterCommit = append(tx.afterCommit, tx.s.askOpenQuestions); return nil })
	})
}

// advance takes one step of the turn after the other, until the session has to wait
// for something. A test makes sure that it has a case for every step.
func (s *Session) advance(tx *txn) error {
	var size window.Verdict     // verdict on the size of the next request
	var verdict *window.Verdict // the same, for the one decision after it was measured
	for {
		if err := s.reread(tx); err != nil {
			return err
		}
		var err error
		now := s.now()
		now.Due = tx.permit != nil
		now.Verdict, verdict = verdict, nil
		step := turn.Next(s.state, now)
		if s.takesOver(step) {
			if err := tx.recordTakeover(); err != nil {
				return err
			}
			continue
		}
		switch step := step.(type) {
		case turn.Wait:
			return nil
		case turn.Measure:
			size = s.judgeSize(tx)
			verdict = &size
		case turn.Compact:
			err = tx.compactFor(step)
		case turn.Interrupted:
			err = tx.endInterruptedCompaction()
		case turn.Rest:
			err = tx.recordIdle()
		case turn.Deliver:
			err = tx.deliver(step)
		case turn.Command:
			err = tx.startCommand(step)
		case turn.StartStep:
			err = tx.startStep(step)
		case turn.AskModel:
			s.startAsking(tx, step.TurnID)
		case turn.Park:
			s.park(tx, step.Parked)
			return nil
		case turn.Intend:
			err = tx.recordIntents(step)
		case turn.Judge:
			err = tx.judgeCall(step.Call)
		case turn.Begin:
			err = tx.beginCall(step.Call, s.host.opts.Tools.Begin(s.state, step.Call))
		case turn.Recover:
			err = tx.beginCall(step.Call, s.host.opts.Tools.Recover(s.state, step.Call))
		case turn.RunTool:
			s.startCall(tx, step.Call)
		case turn.Notify:
			err = tx.recordNotifications(step)
		case turn.Restore:
			s.startRestoring(tx, step.Hidden)
		case turn.StartHook:
			err = tx.startHook(step)
		case turn.AskHook:
			s.askHook(tx, step.Hook)
		case turn.Conclude:
			err = tx.record(*step.Call.Hook.Outcome)
		case turn.Say:
			err = tx.recordHookMessage(step)
		case turn.Prepare:
			err = s.startPreparing(tx)
		case turn.Fail:
			err = tx.failTurn(step.Failure)
		case turn.EndStep:
			err = tx.record(event.AssistantTurnEndData{TurnID: step.TurnID})
		case turn.GiveUp:
			err = tx.failTurn(event.SessionErrorData{ErrorType: step.ErrorType, Message: step.Reason})
		}
		switch {
		case errors.Is(err, errLooking): // the session goes on when it was found
			return nil
		case err != nil:
			return err
		}
	}
}

// now describes what is under way in this process.
func (s *Session) now() turn.Now {
	now := s.underWay
	s.held = s.held && s.state.Turn != nil
	now.Held = s.held
	now.Asking, now.Restoring = s.asking.busy(), s.restoring.busy()
	now.Hooks, now.Compacting = s.hasHooks(), s.compacting.busy()
	now.Prepare, now.Preparing = len(s.state.Setup.Config.SystemMessage) > 0 && s.unprepared(), s.prompt.busy()
	return now
}
