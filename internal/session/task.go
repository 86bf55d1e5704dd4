package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// A TaskSource knows the background tasks of sessions, each by the key of the call
// that began it.
type TaskSource interface {
	// Watch waits until a task has ended or has another status than the last one. For
	// a key without a task, the status is TaskNone.
	Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error)
	// News returns the end of a task, and reports whether it has ended. It may take its time
	// for a session in another workspace, which does not wait for it.
	News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool)
	// Summary describes to the model which of the tasks are running; empty if none
	// is.
	Summary(ctx context.Context, id event.SessionID, keys []string) (string, error)
	// Seen says that the model was told of a task's end.
	Seen(ctx context.Context, id event.SessionID, key string)
}

// Tasks knows the background tasks of sessions.
type Tasks struct{ host *Host }

// Awaits reports whether a session still waits for the task of a call: the call is
// under way, or the end of its task was not recorded yet.
func (ts Tasks) Awaits(ctx context.Context, id event.SessionID, key string) (bool, error) {
	awaits := false
	err := ts.host.inspect(ctx, id, func(tx *txn) error {
		awaits = slices.ContainsFunc(tx.State.Tasks.Open, func(t turn.Task) bool { return t.Key == key }) ||
			slices.ContainsFunc(tx.State.Tasks.Reports, func(r turn.Report) bool { return r.Key == key })
		awaits = awaits || tx.State.Calling(key)
		return nil
	})
	ts.host.Unload(id) // the caller asks about many sessions
	return awaits, err
}

// taskKey identifies a task of a session.
type taskKey struct {
	session event.SessionID
	key     string
}

// tasking is what a host knows of the tasks of its sessions, which may be out of memory.
type tasking struct {
	sync.Mutex
	watched  map[taskKey]bool                             // the tasks that are watched, or whose news is gathered
	stopping map[taskKey]chan struct{}                    // the tasks that are ended because their turns were stopped; closed when they have ended
	orphans  atomic.Pointer[chan struct{}]                // closed when the agents were stopped that an engine before this one has left; nil if there were none
	gathered map[event.SessionID][]event.TaskReportedData // news that waits for more news
}

// watchTasks makes the host watch every open task of the session, unless nobody has
// asked for the session: its news would make it go on. What was stopped is stopped in
// any case. The host remembers which tasks are watched, because the session may be out
// of memory meanwhile.
func (s *Session) watchTasks() {
	if s.host.opts.Tasks == nil || len(s.state.Tasks.Open) == 0 {
		return
	}
	goesOn := s.host.Work.GoesOn(s.id)
	for _, t := range s.state.Tasks.Open {
		k, left := taskKey{s.id, t.Key}, s.calls.stopped[t.Key]
		if t.Stop {
			s.host.stopTask(k, left)
		}
		if goesOn {
			s.host.watchTask(k, t.Last, left)
		}
	}
}

// watchTask waits for news of a task and records it. If the call that began the task
// was stopped, it first waits until the tool has returned, because only then it is
// known whether there is a task.
func (h *Host) watchTask(k taskKey, last string, left <-chan struct{}) {
	if h.opts.Tasks == nil {
		return
	}
	h.tasking.Lock()
	defer h.tasking.Unlock()
	if h.tasking.watched[k] {
		return
	}
	h.tasking.watched[k] = h.spawn(func() {
		if left != nil {
			<-left
		}
		var news event.TaskReportedData
		err := h.contained(k.session, func() (err error) {
			news, err = h.opts.Tasks.Watch(h.ctx, k.session, k.key, last)
			return err
		})
		if h.ctx.Err() != nil {
			return
		}
		if err != nil {
			h.log.Error("a task cannot be watched", "session", k.session, "key", k.key, "err", err)
			news = event.TaskReportedData{Key: k.key, Status: event.TaskLost, Ended: true, Text: "A background task was lost: " + err.Error()}
		}
		if news.Ended && !h.awaitStop(k) {
			return
		}
		h.gatherNews(k.session, news)
	})
}

// GiveUp records that an open task is lost, because a person no longer waits for its
// workspace. What is heard of it later is no news.
func (ts Tasks) GiveUp(ctx context.Context, id event.SessionID, news event.TaskReportedData) error {
	news.Status, news.Ended = event.TaskLost, true
	return ts.host.change(ctx, id, func(tx *txn) error {
		if !tx.isNews(news) {
			return nil
		}
		tx.send(event.Empty(event.TasksChanged))
		return tx.record(news)
	})
}

// FinishStops ends the tasks whose turns were stopped by an engine that ended before
// the tasks did, and stops the agents whose calls were stopped. Every engine does that
// when it starts, also one that goes on with nothing.
func (ts Tasks) FinishStops(ctx context.Context) error {
	if ts.host.isShared() {
		return nil // that is done for each session when it is claimed
	}
	var agents []event.SessionID
	for s, err := range ts.host.store.Active(ctx) {
		if err != nil {
			return fmt.Errorf("find tasks that are to be ended: %w", err)
		}
		ts.host.tasksOf(s)
		if s.Info.Due() && !s.Info.Listed { // the session of an agent, or a new one
			agents = append(agents, s.ID)
		}
	}
	if len(agents) == 0 {
		return nil
	}
	dropped := make(chan struct{})
	ts.host.tasking.orphans.Store(&dropped)
	ts.host.spawn(func() {
		defer close(dropped)
		ts.host.dropOrphans(agents)
	})
	return nil
}

// tasksOf ends the tasks of a session whose turns were stopped, as its entry in the index says.
func (h *Host) tasksOf(s eventlog.Session) {
	for _, t := range s.Info.Watch {
		if t.Stop {
			h.stopTask(taskKey{s.ID, t.Key}, nil)
		}
	}
}

// inheritedStops waits until the agents that an engine before this one has left are
// stopped, and returns the calls whose commands this engine is ending.
func (h *Host) inheritedStops(ctx context.Context) (calls []StoppedCall) {
	if dropped := h.tasking.orphans.Load(); dropped != nil {
		select {
		case <-*dropped:
		case <-ctx.Done():
		case <-h.ctx.Done():
		}
	}
	h.tasking.Lock()
	defer h.tasking.Unlock()
	for k, done := range h.tasking.stopping {
		select {
		case <-done:
		default:
			calls = append(calls, StoppedCall{k.session, k.key})
		}
	}
	return calls
}

// dropOrphans reads the sessions of agents. That stops those whose call is over, and
// nothing goes on in the others.
func (h *Host) dropOrphans(agents []event.SessionID) {
	for _, id := range agents {
		leave, ok := h.enterWaking()
		if !ok {
			return
		}
		if err := h.inspectAny(h.ctx, id, func(*txn) error { return nil }); err != nil && h.ctx.Err() == nil {
			h.log.Error("an agent could not be read", "session", id, "err", err)
		}
		leave()
		h.Unload(id)
	}
}

// stopTask ends a task whose turn was stopped, beside the session. It first waits
// until the tool of the call has returned, because the tool may be about to start
// something. If the engine ends meanwhile, the next one tries again.
func (h *Host) stopTask(k taskKey, left <-chan struct{}) {
	h.tasking.Lock()
	defer h.tasking.Unlock()
	if h.opts.StopTask == nil || h.tasking.stopping[k] != nil {
		return
	}
	done := make(chan struct{})
	spawned := h.spawn(func() {
		defer close(done)
		if left != nil {
			<-left
		}
		stop := func() error { return h.opts.StopTask(h.ctx, k.session, k.key) }
		if err := h.contained(k.session, stop); err != nil && h.ctx.Err() == nil {
			h.log.Error("a command of a turn that was stopped could not be ended; it is tried again when the session is next used", "session", k.session, "key", k.key, "err", err)
			h.forgetStop(k)
		}
	})
	if spawned {
		h.tasking.stopping[k] = done
	}
}

// awaitStop waits until a task that is being ended has ended with all its children, which
// can outlive its command. Only then its end may be recorded: a task whose end is recorded
// is not stopped again by an engine after this one. It reports false if this engine ends
// before that.
func (h *Host) awaitStop(k taskKey) bool {
	h.tasking.Lock()
	done := h.tasking.stopping[k]
	h.tasking.Unlock()
	if done != nil {
		<-done // the stop ends with the engine
	}
	return h.ctx.Err() == nil
}

// isStopping reports whether a task is being ended and has not ended yet.
func (h *Host) isStopping(k taskKey) bool {
	h.tasking.Lock()
	done := h.tasking.stopping[k]
	h.tasking.Unlock()
	return done != nil && !h.hasStopped(k)
}

// hasStopped reports whether this engine has ended a task.
func (h *Host) hasStopped(k taskKey) bool {
	h.tasking.Lock()
	defer h.tasking.Unlock()
	select {
	case <-h.tasking.stopping[k]: // the channel of a task that is not there is nil and never ready
		return true
	default:
		return false
	}
}

func (h *Host) forgetStop(k taskKey) {
	h.tasking.Lock()
	defer h.tasking.Unlock()
	delete(h.tasking.stopping, k)
}

// stopTime is how long an abort waits for the commands that it ends.
const stopTime = 10 * time.Second

// awaitStopped waits until the commands of calls have ended.
func (h *Host) awaitStopped(ctx context.Context, calls []StoppedCall) error {
	timeout := time.After(stopTime)
	for _, c := range calls {
		// A session begins to end its tasks after it has answered, and before it takes
		// the next request.
		if err := h.inspectAny(ctx, c.Session, func(*txn) error { return nil }); err != nil {
			return err
		}
		h.tasking.Lock()
		done := h.tasking.stopping[taskKey{c.Session, c.Key}]
		h.tasking.Unlock()
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-timeout:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// gatherPause is how long news of a task waits for news of others, so that tasks that
// end together wake the session once. A crash meanwhile loses nothing, because the
// next engine watches the tasks again.
const gatherPause = 100 * time.Millisecond

// gatherNews adds news to what is gathered for a session. Whoever brings the first
// news waits for gatherPause and records all.
func (h *Host) gatherNews(id event.SessionID, news event.TaskReportedData) {
	h.tasking.Lock()
	first := len(h.tasking.gathered[id]) == 0
	h.tasking.gathered[id] = append(h.tasking.gathered[id], news)
	h.tasking.Unlock()
	if !first {
		return
	}
	select {
	case <-time.After(gatherPause):
	case <-h.ctx.Done():
		return
	}
	leave, ok := h.enterWaking() // the tasks of many sessions may end together
	if !ok {
		return
	}
	defer leave()
	h.recordTaskNews(id, h.takeGathered(id))
	h.Unload(id)
}

// takeGathered returns what was gathered. These tasks can be watched again from now
// on.
func (h *Host) takeGathered(id event.SessionID) []event.TaskReportedData {
	h.tasking.Lock()
	defer h.tasking.Unlock()
	list := h.tasking.gathered[id]
	delete(h.tasking.gathered, id)
	for _, news := range list {
		delete(h.tasking.watched, taskKey{id, news.Key})
		if news.Ended {
			delete(h.tasking.stopping, taskKey{id, news.Key})
		}
	}
	return list
}

// recordTaskNews records news of tasks.
func (h *Host) recordTaskNews(id event.SessionID, list []event.TaskReportedData) {
	err := h.maintain(h.ctx, id, func(tx *txn) error {
		for _, news := range list {
			if !tx.isNews(news) {
				continue
			}
			tx.send(event.Empty(event.TasksChanged))
			if err := tx.record(news); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && h.ctx.Err() == nil && !errors.Is(err, ErrNotFound) {
		h.log.Error("news of a task could not be recorded; the session watches it again when it is next used", "session", id, "err", err)
	}
}

// recordTaskNews records the news of tasks that is there already, so that a step
// begins with everything that happened before it. It reports whether there was any.
func (tx *txn) recordTaskNews() (found bool, err error) {
	list, err := tx.findTaskNews()
	if err != nil {
		return false, err
	}
	for _, news := range list {
		if !tx.isNews(news) {
			continue
		}
		tx.send(event.Empty(event.TasksChanged))
		if err := tx.record(news); err != nil {
			return found, err
		}
		found = true
	}
	return found, nil
}

// findTaskNews returns the ends of open tasks that are known. Those in another workspace are
// looked for beside the session, each once in the life of this process: a task may have ended
// while no engine was there, and a short turn would be over before whoever watches it knows.
func (tx *txn) findTaskNews() ([]event.TaskReportedData, error) {
	s, elsewhere := tx.s, tx.State.Setup.Config.Workspace != nil
	var keys []string
	for _, t := range tx.State.Tasks.Open {
		switch {
		case s.calls.stopped[t.Key] != nil: // the tool has not returned: nothing is known yet
		case s.host.isStopping(taskKey{s.id, t.Key}): // see awaitStop
		case elsewhere && s.looked[t.Key]: // whoever watches it reports it
		default:
			keys = append(keys, t.Key)
		}
	}
	if len(keys) == 0 || s.host.opts.Tasks == nil {
		return nil, nil
	}
	if !elsewhere {
		return s.host.taskNews(s.host.ctx, s.id, keys), nil
	}
	h, id := s.host, s.id
	list, err := lookAt(s, "tasks", keys, func(ctx context.Context) []event.TaskReportedData { return h.taskNews(ctx, id, keys) })
	if err != nil {
		return nil, err
	}
	if s.looked == nil {
		s.looked = make(map[string]bool)
	}
	for _, key := range keys {
		s.looked[key] = true
	}
	return list, nil
}

// taskNews returns the ends of those tasks that have ended.
func (h *Host) taskNews(ctx context.Context, id event.SessionID, keys []string) (list []event.TaskReportedData) {
	for _, key := range keys {
		if news, ended := h.opts.Tasks.News(ctx, id, key); ended {
			list = append(list, news)
		}
	}
	return list
}

// isNews reports whether a report of a task was not recorded before.
func (tx *txn) isNews(d event.TaskReportedData) bool {
	return slices.ContainsFunc(tx.State.Tasks.Open, func(t turn.Task) bool {
		return t.Key == d.Key && (d.Ended || t.Last != d.Status)
	})
}

// recordNotifications records what the model is told about tasks, in a turn of its
// own if none is running.
func (tx *txn) recordNotifications(step turn.Notify) error {
	interaction := ""
	if tx.State.Turn != nil {
		interaction = tx.State.Turn.InteractionID
	} else {
		interaction = event.NewID()
		if err := tx.openTurn(interaction); err != nil {
			return err
		}
	}
	for _, r := range step.Reports {
		if r.Kind == nil { // nothing is known of a lost task
			r.Kind = json.RawMessage(`{"type":"unclassified"}`)
		}
		err := tx.record(event.SystemNotificationData{Content: "<system_notification>\n" + r.Text + "\n</system_notification>", Kind: r.Kind, InteractionID: interaction, Report: r.Seq})
		if err != nil {
			return err
		}
		if r.Ended && tx.s.host.opts.Tasks != nil {
			tx.afterCommit = append(tx.afterCommit, func() { tx.s.host.opts.Tasks.Seen(tx.s.host.ctx, tx.s.id, r.Key) })
		}
	}
	return nil
}

// summariseTasks describes the running tasks to the model.
func (s *Session) summariseTasks(ctx context.Context, keys []string) string {
	if len(keys) == 0 || s.host.opts.Tasks == nil {
		return ""
	}
	text, err := s.host.opts.Tasks.Summary(ctx, s.id, keys)
	if err != nil {
		s.host.log.Warn("the running tasks could not be listed", "session", s.id, "err", err)
	}
	return text
}

func taskKeys(tasks []turn.Task) []string {
	keys := make([]string, len(tasks))
	for i, t := range tasks {
		keys[i] = t.Key
	}
	return keys
}
