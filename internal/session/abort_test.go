package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// holdStop is an abort that keeps the queue, as Ctrl-C does.
var holdStop = event.AbortData{Reason: "user_initiated", KeepQueue: true, Hold: true}

// taskEnder ends tasks when the test lets it.
type taskEnder struct {
	asked chan string // gets the keys of the tasks that are to be ended
	free  chan struct{}
}

func newTaskEnder() *taskEnder {
	return &taskEnder{asked: make(chan string, 8), free: make(chan struct{})}
}

func (e *taskEnder) stop(ctx context.Context, _ event.SessionID, key string) error {
	e.asked <- key
	select {
	case <-e.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runningJob is a session with a task in the background and a call that is under way.
func runningJob(t *testing.T, e *taskEnder) (*sessiontest.Fixture, *taskTool) {
	b, _, _, j, _ := background(t)
	b.Options.StopTask = e.stop
	b.Restart()
	v := b.Resume("s", session.Resume{}, &session.Client{})
	j.mu.Lock()
	j.begun = make(chan struct{})
	j.mu.Unlock()
	b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'y'"})
	<-j.begun
	v.Await(t, 0, event.ToolStart)
	return b, j
}

func TestAnAbortEndsWhatItsCallsHaveBegunAndNothingElse(t *testing.T) {
	for name, d := range map[string]event.AbortData{"abort": event.AbortFor("test"), "Ctrl-C": holdStop} {
		t.Run(name, func(t *testing.T) {
			e := newTaskEnder()
			b, j := runningJob(t, e)
			type reply struct {
				stopped session.Stopped
				err     error
			}
			done := make(chan reply, 1)
			go func() {
				stopped, err := b.Host.Stop(t.Context(), "s", d)
				done <- reply{stopped, err}
			}()
			if key := <-e.asked; key != j.key(1) {
				t.Errorf("the task %s was ended, want %s", key, j.key(1))
			}
			if !slices.Contains(kindsOf(b.Verify("s")), event.Abort) {
				t.Error("the task is ended before the abort is stored")
			}
			select {
			case r := <-done:
				t.Errorf("the abort is answered before its task has ended: %+v", r)
			default:
			}
			close(e.free)
			r := <-done
			if r.err != nil || !r.stopped.Turn || r.stopped.Background != 1 || !slices.Equal(r.stopped.Calls, []session.StoppedCall{{Session: "s", Key: j.key(1)}}) {
				t.Errorf("%+v, %v", r.stopped, r.err)
			}
			if len(e.asked) != 0 {
				t.Errorf("the task %s is ended, too", <-e.asked)
			}
		})
	}
}

// abortStore tells when an abort is about to be stored, and fails if it is told to.
type abortStore struct {
	eventlog.Store
	before func() error
}

func (s abortStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	if slices.ContainsFunc(batch.Events, func(e event.Event) bool { return e.Type == event.Abort }) {
		if err := s.before(); err != nil {
			return eventlog.End{}, err
		}
	}
	return s.Store.Append(ctx, id, batch)
}

// waitTool works until it is stopped.
type waitTool struct{ begun chan context.Context }

func (waitTool) Spec() tool.Spec {
	return tool.Spec{Name: "wait", Replay: tool.Keyed}
}

func (waitTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (w waitTool) Run(ctx context.Context, _ tool.Call) (tool.Result, error) {
	w.begun <- ctx
	<-ctx.Done()
	return tool.Result{}, ctx.Err()
}

// A tool that is stopped may store something about that, as the abort of an agent. So it
// is not stopped before the abort is stored, and it is stopped also if that fails.
func TestAToolIsStoppedWhenTheAbortIsStored(t *testing.T) {
	for name, failure := range map[string]error{"stored": nil, "failed": errBroken} {
		t.Run(name, func(t *testing.T) {
			w := waitTool{make(chan context.Context, 8)}
			b := sessiontest.New(t, offline.Model{}, w)
			var running context.Context
			b.Store = abortStore{b.Store, func() error {
				if running.Err() != nil {
					t.Error("the tool is stopped before the abort is stored")
				}
				return failure
			}}
			b.Restart()
			b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "Use wait with value 'x'"})
			running = <-w.begun
			if err := b.Host.Abort(t.Context(), "s", "test"); !errors.Is(err, failure) {
				t.Error(err)
			}
			<-running.Done()
		})
	}
}

// A message that interrupts wants the turn to make room, and not its command to end.
func TestAMessageThatInterruptsEndsNoTask(t *testing.T) {
	e := newTaskEnder()
	b, _ := runningJob(t, e)
	end, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OTHER", Mode: event.ModeInterrupt})
	b.AwaitStored("s", end.End, event.SessionIdle)
	if len(e.asked) != 0 {
		t.Error("the task is ended")
	}
}

// The engine ends between the abort and the end of the task. The next one ends the task,
// also one that goes on with nothing.
func TestTheNextEngineEndsWhatAnAbortHasLeft(t *testing.T) {
	e := newTaskEnder()
	b, j := runningJob(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Host.Abort(ctx, "s", "test") }()
	<-e.asked
	cancel()
	<-done
	for range 2 {
		b.Host.Close()
		b.Open()
		if err := b.Host.Tasks.FinishStops(t.Context()); err != nil {
			t.Fatal(err)
		}
		if key := <-e.asked; key != j.key(1) {
			t.Errorf("the task %s is ended, want %s", key, j.key(1))
		}
	}
	close(e.free)
}

// deliveries returns the prompts that were delivered.
func deliveries(t *testing.T, events []event.Event) (prompts []string) {
	t.Helper()
	for _, e := range events {
		if e.Type == event.UserMessage {
			d, err := event.As[event.UserMessageData](e)
			if err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, d.Content)
		}
	}
	return prompts
}

func TestAHeldQueueWaitsForAMessageOrAResume(t *testing.T) {
	const first, queued, later = "Use a with value 'x', then reply with the result", "Reply with exactly: QUEUED", "Reply with exactly: LATER"
	for name, c := range map[string]struct {
		goOn func(b *sessiontest.Fixture)
		want []string
	}{
		"message": {func(b *sessiontest.Fixture) { b.Send("s", event.InputAcceptedData{Prompt: later}) }, []string{first, queued, later}},
		"resume":  {func(b *sessiontest.Fixture) { b.Resume("s", session.Resume{}, &session.Client{}) }, []string{first, queued}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &recordingModel{}
			b := sessiontest.New(t, m)
			v := b.Create("s", &session.Client{Permission: true, Tools: external("a")})
			b.Send("s", event.InputAcceptedData{Prompt: first})
			v.Await(t, 0, event.PermissionAsked)
			b.Send("s", event.InputAcceptedData{Prompt: queued})
			stopped, err := b.Host.Stop(t.Context(), "s", holdStop)
			if err != nil || stopped.Queued != 1 {
				t.Fatalf("%+v, %v", stopped, err)
			}
			v.Await(t, 0, event.SessionIdle) // whoever waits for the end of the turn is told
			b.Restart()
			info, err := b.Store.Session(t.Context(), "s")
			if err != nil || info.Info.Due() {
				t.Errorf("the session is due: %+v, %v", info.Info, err)
			}
			if st, err := b.Host.Status(t.Context(), "s"); err != nil || len(st.Queue) != 1 {
				t.Errorf("the queue is %+v, %v", st.Queue, err)
			}
			if got := deliveries(t, b.Verify("s")); !slices.Equal(got, []string{first}) || len(m.reqs) != 1 {
				t.Errorf("%d requests, and these were delivered: %q", len(m.reqs), got)
			}
			c.goOn(b)
			b.AwaitStored("s", info.End, event.SessionIdle)
			if got := deliveries(t, b.Verify("s")); !slices.Equal(got, c.want) {
				t.Errorf("these were delivered: %q, want %q", got, c.want)
			}
		})
	}
}

// agentlessModel answers the session s, and no agent.
type agentlessModel struct {
	recordingModel
	mu    sync.Mutex
	asked []string // the sessions that it was asked for, except the first one
}

func (m *agentlessModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if req.Session == "s" {
		return m.recordingModel.Ask(ctx, req, on)
	}
	m.mu.Lock()
	m.asked = append(m.asked, req.Session)
	m.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *agentlessModel) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// The engine dies when the abort of the session is stored and that of its agent is not.
// The next one stops the agent, also one that goes on with nothing.
func TestAnAgentWhoseCallWasStoppedDoesNotGoOn(t *testing.T) {
	for name, start := range map[string]func(b *sessiontest.Fixture) error{
		"goes on":              func(b *sessiontest.Fixture) error { return b.Host.Start(t.Context()) },
		"goes on with nothing": func(b *sessiontest.Fixture) error { return b.Host.Tasks.FinishStops(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) { checkOrphan(t, start) })
	}
}

func checkOrphan(t *testing.T, start func(b *sessiontest.Fixture) error) {
	m := &agentlessModel{}
	b, agent := leaveOrphan(t, m)
	asked := m.count()
	b.Open()
	if err := start(b); err != nil {
		t.Fatal(err)
	}
	b.AwaitStored(agent, eventlog.End{}, event.SessionIdle)
	if kinds := kindsOf(b.Verify(agent)); !slices.Contains(kinds, event.Abort) || m.count() != asked {
		t.Errorf("the agent made %d more requests: %v", m.count()-asked, kinds)
	}
}

// leaveOrphan leaves a session whose turn was aborted and its agent, which was not told.
// No host runs.
func leaveOrphan(t *testing.T, m *agentlessModel) (b *sessiontest.Fixture, agent event.SessionID) {
	t.Helper()
	b = withAgents(t, m)
	v := b.Create("s", &session.Client{})
	b.Send("s", delegate("task", "Reply with exactly: X"))
	v.Await(t, 0, event.SubagentStarted)
	agent = child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	b.AwaitStored(agent, eventlog.End{}, event.AssistantTurnStart)
	b.Host.Close()

	state := turn.New("s")
	for e, err := range b.Store.Read(t.Context(), "s", 0) {
		if err == nil {
			err = state.Fold(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var record []event.Event
	for i, p := range turn.Abort(state, event.AbortFor("test")) {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Parent: state.Parent}, p)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = state.Seq + event.Seq(i) + 1
		record = append(record, e)
	}
	parent, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store.Append(t.Context(), "s", eventlog.Batch{After: parent.End, Events: record}); err != nil {
		t.Fatal(err)
	}
	return b, agent
}

// slowStore is a store that does not read one session before it is let.
type slowStore struct {
	eventlog.Store
	slow event.SessionID
	free chan struct{}
}

func (s *slowStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	if id == s.slow {
		<-s.free
	}
	return s.Store.Read(ctx, id, after)
}

// A client whose abort the dead engine did not answer repeats it. The next engine may not
// answer before it has stopped the agent that the dead one left.
func TestARepeatedAbortWaitsForTheAgentsOfADeadEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, agent := leaveOrphan(t, &agentlessModel{})
		slow := &slowStore{Store: b.Store, slow: agent, free: make(chan struct{})}
		b.Host = session.New(slow, b.Options)
		if err := b.Host.Tasks.FinishStops(t.Context()); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := b.Host.Stop(t.Context(), "s", holdStop)
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the abort is answered (%v) while the agent may go on", err)
		default:
		}
		close(slow.free)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if st, err := b.Host.Status(t.Context(), agent); err != nil || st.Active {
			t.Errorf("the agent works on: %v, %v", st.Active, err)
		}
		b.Host.Close()
	})
}

func TestTheTurnOfAnAgentIsOverWhenTheAbortIsAnswered(t *testing.T) {
	m := &agentlessModel{}
	b := withAgents(t, m)
	v := b.Create("s", &session.Client{})
	b.Send("s", delegate("task", "Reply with exactly: X"))
	v.Await(t, 0, event.SubagentStarted)
	agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	b.AwaitStored(agent, eventlog.End{}, event.AssistantTurnStart)
	if _, err := b.Host.Stop(t.Context(), "s", holdStop); err != nil {
		t.Fatal(err)
	}
	if st, err := b.Host.Status(t.Context(), agent); err != nil || st.Active {
		t.Errorf("the agent works on: %v, %v", st.Active, err)
	}
}

// A reluctantModel still sends for a moment after its request was cancelled.
type reluctantModel struct {
	cancelled chan struct{} // closed when the request was cancelled
	over      chan struct{} // the request ends when it is closed
}

func (m reluctantModel) Ask(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	<-ctx.Done()
	close(m.cancelled)
	<-m.over
	return nil, ctx.Err()
}

// A stop is not acknowledged while the request that it cancels may still reach the model.
func TestAStopWaitsForTheRequestThatItCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := reluctantModel{cancelled: make(chan struct{}), over: make(chan struct{})}
		b := sessiontest.New(t, m)
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Hello"})
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() {
			_, err := b.Host.Stop(t.Context(), "s", holdStop)
			stopped <- err
		}()
		<-m.cancelled
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Errorf("the stop was acknowledged while its request was under way: %v", err)
			close(m.over)
		default:
			close(m.over)
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAStopEndsACompactionBesideTheTurn(t *testing.T) {
	share := 0.001
	m := &scriptedModel{
		lines:     []scriptedReply{{text: "hi"}, {wait: make(chan struct{})}},
		summaries: []scriptedReply{{wait: make(chan struct{})}},
	}
	s := squeeze(t, m, event.SessionConfiguredData{Window: 100_000, Infinite: &event.InfiniteSessions{Background: &share}})
	s.say("first")
	at := s.end()
	s.Send("s", event.InputAcceptedData{Prompt: "second"})
	_, s.n = s.v.Await(t, s.n, event.CompactionStart)
	if err := s.Host.Abort(t.Context(), "s", "enough"); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if done := s.compactions(at); len(done) != 1 || done[0].Cause != event.CauseAborted {
		t.Errorf("compactions = %+v", done)
	}
}

// idleStops are the stops of a session that rests while its task goes on: what they are
// called, and whether the end of the task still begins a turn afterwards.
var idleStops = map[string]struct {
	abort event.AbortData
	wakes bool
}{
	"stop":                  {holdStop, false},
	"the protocol's abort":  {event.AbortFor("user_initiated"), true},
	"a message that waited": {event.AbortData{Reason: "user_initiated", KeepQueue: true}, true},
}

// A person stops a session that rests while its task goes on. The end of the task begins
// no turn, in this engine and in the next one; the next message brings the news.
func TestASessionThatWasStoppedAtRestIsNotWokenByItsTask(t *testing.T) {
	for name, c := range idleStops {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restarts=%v", name, restarts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkIdleStop(t, c.abort, c.wakes, restarts) })
			})
		}
	}
}

func checkIdleStop(t *testing.T, d event.AbortData, wakes, restarts bool) {
	b, _, tasks, j, m := background(t)
	defer b.Host.Close()
	stopped, err := b.Host.Stop(t.Context(), "s", d)
	if err != nil || stopped.Turn || stopped.Background != 1 {
		t.Errorf("%+v, %v", stopped, err)
	}
	if restarts {
		b.Restart()
	}
	asked := len(m.reqs)
	tasks.of(j.key(0)) <- ended(j.key(0), "NEWS")
	time.Sleep(time.Minute)
	synctest.Wait()
	if woken := len(m.reqs) > asked; woken != wakes {
		t.Errorf("the end of the task begins a turn: %v, want %v", woken, wakes)
	}
	if restarts {
		b.Restart() // the end of the task is in the log now
		synctest.Wait()
	}
	if woken := len(m.reqs) > asked; woken != wakes {
		t.Errorf("the next engine begins a turn: %v, want %v", woken, wakes)
	}
	v := b.Resume("s", session.Resume{}, &session.Client{})
	synctest.Wait()
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	v.Await(t, 0, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 {
		t.Errorf("after the next message the model reads the news %d times", got)
	}
	b.Verify("s")
}

// Whoever follows the session sees that it was stopped, and the mark is made once.
func TestAStopAtRestIsMarkedOnce(t *testing.T) {
	b, v, _, _, _ := background(t)
	n := len(v.Kinds())
	for range 2 {
		if _, err := b.Host.Stop(t.Context(), "s", holdStop); err != nil {
			t.Fatal(err)
		}
	}
	idle, _ := v.Await(t, n, event.SessionIdle)
	if d, err := event.As[event.SessionIdleData](idle); err != nil || !d.Aborted {
		t.Errorf("%+v, %v", d, err)
	}
	if got := countKinds(b.Verify("s"), event.Abort); got != 1 {
		t.Errorf("the log has %d aborts", got)
	}
}

// A session without tasks has nothing that could wake it: a stop leaves no mark.
func TestAStopOfASessionWithoutTasksRecordsNothing(t *testing.T) {
	b := sessiontest.New(t, &recordingModel{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	v.Await(t, 0, event.SessionIdle)
	if _, err := b.Host.Stop(t.Context(), "s", holdStop); err != nil {
		t.Fatal(err)
	}
	if got := countKinds(b.Verify("s"), event.Abort); got != 0 {
		t.Errorf("the log has %d aborts", got)
	}
}

func countKinds(events []event.Event, kind event.Type) (n int) {
	for _, k := range kindsOf(events) {
		if k == kind {
			n++
		}
	}
	return n
}

// The task of an agent goes on after the agent's call. A stop of the session that started
// the agent holds the agent, too, whether that session rests or works.
func TestAStopHoldsTheAgentsWhoseTasksGoOn(t *testing.T) {
	for _, works := range []bool{false, true} {
		t.Run(fmt.Sprintf("works=%v", works), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkAgentHeld(t, works) })
		})
	}
}

func checkAgentHeld(t *testing.T, works bool) {
	m, tasks, j := &recordingModel{}, newChores(), &taskTool{}
	b := withAgents(t, m, j)
	b.Options.Tasks = tasks
	b.Restart()
	defer func() { b.Host.Close() }()
	v := b.Create("s", &session.Client{Permission: true, Tools: external("a")})
	b.Send("s", delegate("task", "Use job with value 'x'"))
	_, n := v.Await(t, 0, event.SessionIdle)
	if works {
		b.Send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
		v.Await(t, n, event.PermissionAsked)
	}
	stopped, err := b.Host.Stop(t.Context(), "s", holdStop)
	if err != nil || stopped.Turn != works || stopped.Background != 1 {
		t.Errorf("%+v, %v", stopped, err)
	}
	asked := len(m.reqs)
	tasks.of(j.key(0)) <- ended(j.key(0), "NEWS")
	time.Sleep(time.Minute)
	b.Restart()
	synctest.Wait()
	if n := len(m.reqs) - asked; n != 0 {
		t.Errorf("the agent makes %d requests after the stop", n)
	}
}

// TestAStopEndsAHandoff: a stop of a session at rest ends a summary for whoever takes over, and
// is answered when its request is over.
func TestAStopEndsAHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, gone := make(chan struct{}), make(chan struct{})
		m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{wait: make(chan struct{}), asked: asked, gone: gone}}}
		s := squeeze(t, m, event.SessionConfiguredData{})
		s.say("first")
		made, stopped := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := s.Host.Context.Handoff(t.Context(), "s", "")
			made <- err
		}()
		<-asked
		go func() {
			_, err := s.Host.Stop(t.Context(), "s", holdStop)
			stopped <- err
		}()
		synctest.Wait()
		if len(stopped) > 0 {
			t.Error("the stop is answered while the request is under way")
		}
		close(gone)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if err := <-made; err == nil {
			t.Error("the summary was not stopped")
		}
		s.Host.Close()
	})
}

// TestARepeatedRequestMakesNoHandoffThatWasStopped: the reply to a request for a summary is
// lost with the engine, and the request comes again. What somebody has stopped stays stopped,
// whether the stop came before the crash or after it; a summary that was made is returned
// again.
func TestARepeatedRequestMakesNoHandoffThatWasStopped(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after bool // stops
		made          bool // the summary is there before the crash
		want          string
		summed        int
	}{
		{"stopped before the crash", true, false, false, "", 1},
		{"stopped after the crash", false, true, false, "", 1},
		{"not stopped", false, false, false, "They said hi.", 2},
		{"made", false, false, true, "They said hi.", 1},
		{"made, and stopped after the crash", false, true, true, "They said hi.", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := make(chan struct{})
			m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{wait: make(chan struct{}), asked: asked}, {text: "They said hi."}, {text: "Twice."}}}
			if test.made {
				m.summaries = m.summaries[1:]
			}
			s := squeeze(t, m, event.SessionConfiguredData{})
			s.say("first")
			stop := func() {
				if _, err := s.Host.Stop(t.Context(), "s", event.AbortFor("enough")); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = s.Host.Context.Handoff(context.Background(), "s", "k") // the reply is lost
			}()
			if test.made {
				<-done
			} else {
				<-asked
			}
			if test.before {
				stop()
			}
			s.Restart()
			if test.after {
				stop()
				s.Restart()
			}
			for range 2 {
				if got, err := s.Host.Context.Handoff(t.Context(), "s", "k"); got != test.want || (err != nil) != (test.want == "") {
					t.Errorf("the repeated request got %q, %v", got, err)
				}
			}
			if _, n := m.counts(); n != test.summed {
				t.Errorf("%d summaries were asked for, want %d", n, test.summed)
			}
			if got, err := s.Host.Context.Handoff(t.Context(), "s", "other"); err != nil || got == "" {
				t.Errorf("another request got %q, %v", got, err)
			}
		})
	}
}

// A message that interrupts is acknowledged when the request that it cancels is over, and
// so is an interrupt: until then the request may still reach the model.
func TestAnInterruptWaitsForTheRequestThatItCancels(t *testing.T) {
	for name, interrupt := range map[string]func(ctx context.Context, b *sessiontest.Fixture) error{
		"message": func(ctx context.Context, b *sessiontest.Fixture) error {
			_, err := b.Host.Send(ctx, "s", event.InputAcceptedData{Prompt: "Other", Mode: event.ModeInterrupt})
			return err
		},
		"interrupt": func(ctx context.Context, b *sessiontest.Fixture) error {
			done, err := b.Host.Interrupt(ctx, "s", true)
			if err == nil && !done {
				err = errors.New("no turn was running")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &reluctantOnce{reluctantModel: reluctantModel{cancelled: make(chan struct{}), over: make(chan struct{})}}
				b := sessiontest.New(t, m)
				b.Create("s", &session.Client{})
				b.Send("s", event.InputAcceptedData{Prompt: "Hello"})
				synctest.Wait()
				checkAcknowledged(t, m.reluctantModel, func() error { return interrupt(t.Context(), b) })
			})
		})
	}
}

// The same holds for the request of an agent that works for the session.
func TestAnInterruptWaitsForTheRequestsOfAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &reluctantAgents{reluctantModel: reluctantModel{cancelled: make(chan struct{}), over: make(chan struct{})}}
		b := withAgents(t, m)
		v := b.Create("s", &session.Client{})
		b.Send("s", delegate("task", "Reply with exactly: X"))
		v.Await(t, 0, event.SubagentStarted)
		synctest.Wait()
		checkAcknowledged(t, m.reluctantModel, func() error {
			_, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "Reply with exactly: OTHER", Mode: event.ModeInterrupt})
			return err
		})
		b.Host.Close()
	})
}

// A summary for whoever takes over goes on when a message interrupts the turn, which does
// not wait for it.
func TestAnInterruptDoesNotWaitForAHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, wait := make(chan struct{}), make(chan struct{})
		m := &scriptedModel{
			lines:     []scriptedReply{{text: "hi"}, {wait: make(chan struct{})}, {text: "there"}},
			summaries: []scriptedReply{{wait: wait, asked: asked, text: "They said hi."}},
		}
		s := squeeze(t, m, event.SessionConfiguredData{})
		s.say("first")
		made := make(chan error, 1)
		go func() {
			_, err := s.Host.Context.Handoff(t.Context(), "s", "")
			made <- err
		}()
		<-asked
		s.Send("s", event.InputAcceptedData{Prompt: "second"})
		synctest.Wait()
		began := time.Now()
		s.Send("s", event.InputAcceptedData{Prompt: "third", Mode: event.ModeInterrupt})
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the message was acknowledged after %v", waited)
		}
		close(wait)
		if err := <-made; err != nil {
			t.Errorf("the summary was stopped: %v", err)
		}
		s.Host.Close()
	})
}

// An interrupt that drops the queue ends the commands of the turn, and waits for them.
func TestAnInterruptThatDropsTheQueueWaitsForCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTaskEnder()
		b, j := runningJob(t, e)
		done := make(chan error, 1)
		go func() {
			_, err := b.Host.Interrupt(t.Context(), "s", false)
			done <- err
		}()
		if key := <-e.asked; key != j.key(1) {
			t.Errorf("the task %s was ended, want %s", key, j.key(1))
		}
		synctest.Wait()
		if len(done) > 0 {
			t.Error("the interrupt was acknowledged before the task had ended")
		}
		close(e.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.Host.Close()
	})
}

// Somebody stops what somebody else has stopped a moment ago. Nobody is told that it is
// over while the request is under way.
func TestASecondStopWaitsForTheRequestToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := reluctantModel{cancelled: make(chan struct{}), over: make(chan struct{})}
		b := sessiontest.New(t, m)
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Hello"})
		synctest.Wait()
		stop := func() error {
			_, err := b.Host.Stop(t.Context(), "s", holdStop)
			return err
		}
		first := make(chan error, 1)
		go func() { first <- stop() }()
		<-m.cancelled
		checkAcknowledged(t, m, stop)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// checkAcknowledged checks that what cancels a request returns when the request is over,
// and not before.
func checkAcknowledged(t *testing.T, m reluctantModel, cancel func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cancel() }()
	<-m.cancelled
	synctest.Wait()
	if len(done) > 0 {
		t.Error("it was acknowledged while the request was under way")
	}
	close(m.over)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A reluctantOnce answers every request but the first at once.
type reluctantOnce struct {
	reluctantModel
	recordingModel
	asked atomic.Int32
}

func (m *reluctantOnce) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if m.asked.Add(1) == 1 {
		return m.reluctantModel.Ask(ctx, req, on)
	}
	return m.recordingModel.Ask(ctx, req, on)
}

// reluctantAgents answers the session s at once, and is reluctant with agents.
type reluctantAgents struct {
	reluctantModel
	recordingModel
}

func (m *reluctantAgents) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if req.Session == "s" {
		return m.recordingModel.Ask(ctx, req, on)
	}
	return m.reluctantModel.Ask(ctx, req, on)
}

// A stop waits for what it has stopped, and not for what another session is still ending.
func TestAStopDoesNotWaitForTheCommandsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTaskEnder()
		b, _ := runningJob(t, e)
		v := b.Create("other", &session.Client{Permission: true, Tools: external("a")})
		b.Send("other", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
		v.Await(t, 0, event.PermissionAsked)
		first := make(chan error, 1)
		go func() {
			_, err := b.Host.Stop(t.Context(), "s", holdStop)
			first <- err
		}()
		<-e.asked
		began := time.Now()
		if stopped, err := b.Host.Stop(t.Context(), "other", holdStop); err != nil || !stopped.Turn {
			t.Errorf("%+v, %v", stopped, err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the stop was acknowledged after %v", waited)
		}
		close(e.free)
		if err := <-first; err != nil {
			t.Error(err)
		}
		b.Host.Close()
	})
}

// Whoever stops a session looks at the agents of all sessions. There may be more of them
// than fit into memory.
func TestAStopLeavesNoAgentInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := withAgents(t, &recordingModel{}, &taskTool{})
		b.Options.Tasks = newChores()
		b.Restart()
		for _, id := range []event.SessionID{"s", "other"} {
			v := b.Create(id, &session.Client{})
			b.Send(id, delegate("task", "Use job with value 'x'"))
			v.Await(t, 0, event.SessionIdle)
		}
		b.Restart()
		synctest.Wait()
		before := b.Host.Resident()
		stopped, err := b.Host.Stop(t.Context(), "s", holdStop)
		if err != nil || stopped.Background != 1 {
			t.Errorf("%+v, %v", stopped, err)
		}
		if n := b.Host.Resident() - before; n != 1 { // the session itself
			t.Errorf("%d sessions are in memory because of the stop, want 1", n)
		}
		b.Host.Close()
	})
}

// The next engine reads the agents that a dead one has left, one after the other.
func TestTheAgentsOfADeadEngineDoNotStayInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := leaveOrphan(t, &agentlessModel{})
		b.Open()
		if err := b.Host.Tasks.FinishStops(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory", n)
		}
		b.Host.Close()
	})
}

// A slowWriter is a tool that does not look at its context, and whose effect comes at its end.
type slowWriter struct {
	waitTool
	free    chan struct{}
	written atomic.Bool
}

func (w *slowWriter) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	w.begun <- ctx
	<-w.free
	w.written.Store(true)
	return tool.Result{Text: "written"}, nil
}

// What a tool is doing when it is stopped, such as writing a file, comes before the answer to
// whoever stops it, and not after it.
func TestAStopWaitsForTheToolThatItStops(t *testing.T) {
	for name, stop := range map[string]func(context.Context, *session.Host) error{
		"stop":      func(ctx context.Context, h *session.Host) error { _, err := h.Stop(ctx, "s", holdStop); return err },
		"abort":     func(ctx context.Context, h *session.Host) error { return h.Abort(ctx, "s", "test") },
		"interrupt": func(ctx context.Context, h *session.Host) error { _, err := h.Interrupt(ctx, "s", false); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slowWriter{waitTool: waitTool{make(chan context.Context, 8)}, free: make(chan struct{})}
				b := sessiontest.New(t, offline.Model{}, w)
				b.Create("s", &session.Client{})
				b.Send("s", event.InputAcceptedData{Prompt: "Use wait with value 'x'"})
				<-w.begun
				stopped := make(chan error, 2)
				for range 2 { // somebody stops what somebody else stops
					go func() {
						err := stop(t.Context(), b.Host)
						if !w.written.Load() {
							t.Error("it was acknowledged while the tool was still to write")
						}
						stopped <- err
					}()
				}
				synctest.Wait()
				close(w.free)
				if err := errors.Join(<-stopped, <-stopped); err != nil {
					t.Error(err)
				}
				b.Host.Close()
			})
		})
	}
}

// A startStore holds up whoever reads what was stored of an agent first, and does not look at
// the reader's context.
type startStore struct {
	eventlog.Store
	made         *atomic.Bool // true when something of the agent is stored
	begins, free chan struct{}
	once         *sync.Once
}

func (s startStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	end, err := s.Store.Append(ctx, id, batch)
	if id != "s" {
		s.made.Store(true)
	}
	return end, err
}

func (s startStore) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	if id != "s" && s.made.Load() {
		s.once.Do(func() { close(s.begins); <-s.free })
	}
	return s.Store.ReadFrom(context.WithoutCancel(ctx), id, after)
}

// An agent whose session was just made when its call is stopped is given no work any more.
func TestAnAgentThatStartsWhileItIsStoppedAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		m := tellingModel{offline.Model{}, func(id string) {
			if id != "s" {
				asked.Add(1)
			}
		}}
		b := withAgents(t, m)
		s := startStore{b.Store, new(atomic.Bool), make(chan struct{}), make(chan struct{}), new(sync.Once)}
		b.Store = s
		b.Restart()
		b.Create("s", &session.Client{})
		b.Send("s", delegate("task", "Reply with exactly: X"))
		<-s.begins
		stopped := make(chan error, 1)
		go func() {
			_, err := b.Host.Stop(t.Context(), "s", holdStop)
			stopped <- err
		}()
		synctest.Wait()
		close(s.free)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := asked.Load(); n > 0 {
			t.Errorf("the agent has made %d requests", n)
		}
		b.Host.Close()
	})
}

// A tellingModel tells of each request, with the session that it is for.
type tellingModel struct {
	model.Model
	asked func(session string)
}

func (m tellingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	m.asked(req.Session)
	return m.Model.Ask(ctx, req, on)
}
