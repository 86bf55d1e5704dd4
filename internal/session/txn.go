package session

import (
	"fmt"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// A txn collects what one pass of a session records. The state has it at once; the
// log gets it in one append. If the append fails, the state is dropped.
type txn struct {
	s     *Session
	State *turn.State
	now   time.Time

	stored      []event.Event        // the events that are appended
	sent        []event.Event        // the events that clients are sent, stored or not, in order
	jobs        []eventlog.JobChange // changes of jobs, stored together with the events
	secrets     []eventlog.Secret    // values beside the log, stored together with the events
	headed      []string             // the inputs with headers before the transaction
	env         []string             // the environment that is among the secrets; nil if there is none
	afterCommit []func()             // called when everything is stored, acknowledged and sent
	onFailure   []func()             // called if the transaction could not be stored
	permit      *permit              // lets a parked turn ask its model; nil if it is to wait
	unload      bool
	stays       bool  // true if the turn is not to go on
	err         error // the first failure to record; the whole transaction fails
}

// record applies events to the state and adds them to what is appended to the log.
func (tx *txn) record(payloads ...event.Payload) error {
	for _, p := range payloads {
		e, err := event.Encode(tx.head(), p)
		if err == nil {
			e.Seq = tx.State.Seq + 1
			err = tx.State.Fold(e)
		}
		if err != nil {
			tx.err = err
			return err
		}
		tx.stored = append(tx.stored, e)
		tx.sent = append(tx.sent, e)
	}
	return nil
}

// send sends clients an event that is not stored.
func (tx *txn) send(p event.Payload) {
	head := tx.head()
	head.Ephemeral = true
	if e, err := event.Encode(head, p); err == nil {
		tx.sent = append(tx.sent, e)
	}
}

func (tx *txn) head() event.Head {
	return event.Head{ID: event.NewID(), Time: tx.now, Parent: tx.State.Parent}
}

// exists returns an error if there is no such session.
func (tx *txn) exists() error {
	if tx.State.Seq == 0 {
		return fmt.Errorf("session %s: %w", tx.s.id, ErrNotFound)
	}
	return nil
}

// commit appends what was recorded, and sends it to the clients.
func (tx *txn) commit() error {
	if err := tx.endHeaders(); err != nil {
		return fmt.Errorf("session %s: %w", tx.s.id, err)
	}
	if len(tx.stored) > 0 {
		batch := eventlog.Batch{After: tx.s.log.end, Events: tx.stored, Jobs: tx.jobs, Secrets: tx.secrets}
		info := indexed(tx.State)
		if !info.Equal(&tx.s.log.info) {
			batch.Info = &info
		}
		end, err := tx.s.host.store.Append(tx.s.host.ctx, tx.s.id, batch)
		if err != nil {
			return fmt.Errorf("session %s: %w", tx.s.id, err)
		}
		if tx.State.TodosAt() > tx.s.log.end.Seq {
			tx.send(event.Empty(event.TodosChanged))
		}
		tx.s.log.end, tx.s.log.info = end, info
		tx.announce()
		tx.wakeJobs()
	} else if len(tx.secrets) > 0 {
		if err := tx.s.host.store.PutSecrets(tx.s.host.ctx, tx.s.id, tx.secrets...); err != nil {
			return fmt.Errorf("session %s: %w", tx.s.id, err)
		}
	}
	tx.s.secrets.replace(tx.secrets, tx.env)
	tx.s.bare.Store(tx.State.Setup.Config.Infinite.Off()) // the caller may ask Bare as soon as it is answered
	tx.s.feed.publish(tx.s.log.end, tx.sent)
	return nil
}

// announce tells the watchers of the list of sessions about the change.
func (tx *txn) announce() {
	kind := Updated
	if tx.stored[0].Seq == 1 {
		kind = Created
	}
	tx.s.host.watchers.notify(Notice{kind, eventlog.Session{ID: tx.s.id, End: tx.s.log.end, Created: tx.State.About.Started, Modified: tx.now, Info: tx.s.log.info}})
}

// indexed returns what the index says of a session.
func indexed(s *turn.State) eventlog.Info {
	info := eventlog.Info{
		Name: s.About.Name, Summary: s.About.Summary, Dir: s.Setup.Config.WorkingDirectory, Client: s.Setup.Config.ClientName,
		Listed: s.Setup.Config.Agent == nil && (s.About.Summary != "" || s.About.Totals.Turns > 0), Active: s.Active() || s.Context.Compaction != nil, Questions: len(s.Questions()) + len(s.Exchanges.Forms()), Tasks: len(s.Tasks.Open),
		Workspace: s.Setup.Config.Workspace,
	}
	if info.Waiting = info.Active && s.Waits(); s.OnlyParked() {
		info.Parked = parkedInfo(s.Parked())
	}
	for _, t := range s.Tasks.Open {
		info.Watch = append(info.Watch, eventlog.Task{Key: t.Key, Last: t.Last, Stop: t.Stop})
	}
	return info
}

// reindex corrects the session's entry in the index if an older version wrote it, so
// that the next start need not read the log of a session that only waits.
func (tx *txn) reindex() error {
	info := indexed(tx.State)
	if tx.State.Seq == 0 || info.Equal(&tx.s.log.info) {
		return nil
	}
	err := tx.s.host.store.Reindex(tx.s.host.ctx, tx.s.id, tx.s.log.end, info)
	if err == nil {
		tx.s.log.info = info
	}
	return err
}

// recordIdle records that the turn is over and nothing waits in the queue.
func (tx *txn) recordIdle() error {
	tx.s.calls.fresh, tx.s.looking.seen = nil, nil
	tx.send(event.AssistantIdleData{Aborted: tx.State.Life.Aborted})
	defer tx.scheduleExtraction()
	return tx.record(event.SessionIdleData{Aborted: tx.State.Life.Aborted, Totals: tx.State.About.Totals})
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// startStep records that the model is about to be asked. Tools of clients that came
// during the turn are added; no tool is removed before the turn ends.
func (tx *txn) startStep(step turn.StartStep) error {
	if news, err := tx.recordTaskNews(); news || err != nil {
		return err // the turn first takes the steps that follow from the news
	}
	if tools, ok := tx.s.clients.tools(tx.State.Setup.Tools); ok && !sameTools(tools, tx.State.Setup.Tools) {
		if err := tx.record(event.ToolsDeclaredData{Tools: tools}); err != nil {
			return err
		}
	}
	if err := tx.recordChangedMCPTools(); err != nil {
		return err
	}
	return tx.record(event.AssistantTurnStartData{TurnID: step.TurnID, InteractionID: tx.State.Turn.InteractionID})
}

// recordIntents records that the calls of an answer are going to be made.
func (tx *txn) recordIntents(step turn.Intend) error {
	for _, c := range step.Calls {
		err := tx.record(event.ToolStartData{
			ToolCallID: c.Request.ToolCallID, ToolName: c.Request.Name, Arguments: c.Request.Arguments,
			TurnID: strconv.Itoa(tx.State.Turn.Step), Model: tx.State.Setup.Model, MCPServer: c.Request.MCPServer, MCPTool: c.Request.MCPTool,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// beginCall records the next stage of a call, and asks a person if the call needs
// one.
func (tx *txn) beginCall(c *turn.Call, record []event.Payload) error {
	if err := tx.recordOutcome(record...); err != nil {
		return err
	}
	switch c.Stage {
	case turn.Begun:
		tx.s.calls.markFresh(c.Request.ToolCallID)
	case turn.WaitingUser:
		tx.afterCommit = append(tx.afterCommit, func() { tx.s.askPerson(c) })
	case turn.WaitingPlan:
		tx.afterCommit = append(tx.afterCommit, func() { tx.s.askPlan(c) })
	}
	return nil
}

// failTurn ends the turn with an error.
func (tx *txn) failTurn(d event.SessionErrorData) error {
	d.EndsTurn = true
	if err := tx.keepAnswer(); err != nil {
		return err
	}
	if t := tx.State.Turn; t.Phase == turn.Asking || t.Phase == turn.Answered {
		if err := tx.record(event.AssistantTurnEndData{TurnID: strconv.Itoa(t.Step)}); err != nil {
			return err
		}
	}
	return tx.record(d)
}
