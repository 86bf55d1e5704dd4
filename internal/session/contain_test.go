package session_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

// breakingTool panics when its call is judged, inside the session's transaction or beside
// it.
type breakingTool struct{ looks bool }

func (b breakingTool) Spec() tool.Spec { return tool.Spec{Name: "act", Looks: b.looks} }

func (breakingTool) Permission(context.Context, tool.Call) (*approval.Request, error) { panic("a bug") }

func (breakingTool) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// breakingModel panics when it is asked to break.
type breakingModel struct{ offline.Model }

func (m breakingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; strings.Contains(last.Text, "break") {
		panic("a bug")
	}
	return m.Model.Ask(ctx, req, on)
}

func TestAPanicEndsTheTurnAndNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		tools  []tool.Tool
		prompt string
		fails  bool
	}{
		"in a transaction": {[]tool.Tool{breakingTool{}}, useAct, true},
		"in a look":        {[]tool.Tool{breakingTool{looks: true}}, useAct, false}, // only the call fails
		"in a request":     {nil, "break", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := sessiontest.New(t, breakingModel{}, test.tools...)
			other := b.Create("other", &session.Client{})
			v := b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: test.prompt})
			_, at := v.Await(t, 0, event.SessionIdle)
			events := b.Verify("s")
			failed := slices.ContainsFunc(events, func(e event.Event) bool {
				return e.Type == event.SessionError && strings.Contains(string(e.Bytes), "abide broke")
			})
			if failed != test.fails {
				t.Errorf("the log says %v", kindsOf(events))
			}
			b.Send("other", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
			other.Await(t, 0, event.SessionIdle)
			b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: AGAIN"})
			_, at = v.Await(t, at, event.SessionIdle)
			if got := lastAnswer(t, b.Verify("s")); got != "AGAIN" {
				t.Errorf("the next answer is %q", got)
			}
			b.Send("s", event.InputAcceptedData{Prompt: test.prompt})
			v.Await(t, at, event.SessionIdle) // the next panic is contained as well
		})
	}
}

// breakingStore panics when one session is read.
type breakingStore struct {
	eventlog.Store
	reads *atomic.Int64 // number of times that it has panicked
}

func (s breakingStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	if id == "s" {
		s.reads.Add(1)
		panic("a bug")
	}
	return s.Store.Read(ctx, id, after)
}

// A session that breaks whenever it is read ends neither the engine nor the next one.
func TestASessionThatAlwaysBreaksIsLeftAlone(t *testing.T) {
	hold := make(chan struct{})
	b := sessiontest.New(t, heldModel{hold: hold})
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	b.AwaitStored("s", eventlog.End{}, event.AssistantTurnStart)
	b.Host.Close()
	var reads atomic.Int64
	b.Host = session.New(breakingStore{b.Store, &reads}, b.Options)
	if err := b.Host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.Host.Status(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "abide broke") {
			t.Errorf("the session is asked for, and the error is %v", err)
		}
	}
	close(hold)
	other := b.Create("other", &session.Client{})
	b.Send("other", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	other.Await(t, 0, event.SessionIdle)
	if n := reads.Load(); n > 20 {
		t.Errorf("the session was read %d times, although nobody has asked for more", n)
	}
	b.Restart()
	b.AwaitStored("s", eventlog.End{}, event.SessionIdle)
}

// heldModel answers when it is let.
type heldModel struct {
	offline.Model
	hold chan struct{}
}

func (m heldModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	select {
	case <-m.hold:
		return m.Model.Ask(ctx, req, on)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What waits in the queue would break in the same way, or was meant for what has failed.
func TestAPanicHoldsTheQueue(t *testing.T) {
	hold := make(chan struct{})
	b := sessiontest.New(t, heldAndBreakingModel{heldModel{hold: hold}})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "break"})
	b.AwaitStored("s", eventlog.End{}, event.AssistantTurnStart)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: LATER"})
	close(hold)
	_, at := v.Await(t, 0, event.SessionIdle)
	delivered := func() (n int) {
		for _, e := range b.Verify("s") {
			if e.Type == event.UserMessage {
				n++
			}
		}
		return n
	}
	if n := delivered(); n != 1 {
		t.Errorf("%d messages were delivered", n)
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NOW"})
	v.Await(t, at, event.SessionIdle)
	if n := delivered(); n != 3 {
		t.Errorf("after somebody spoke, %d messages were delivered", n)
	}
}

// heldAndBreakingModel breaks when it is let.
type heldAndBreakingModel struct{ heldModel }

func (m heldAndBreakingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	<-m.hold
	return breakingModel{}.Ask(ctx, req, on)
}

// breakingTasks panic when they are watched.
type breakingTasks struct{ *testTasks }

func (breakingTasks) Watch(context.Context, event.SessionID, string, string) (event.TaskReportedData, error) {
	panic("a bug")
}

// A task that cannot be watched or ended without a panic ends neither the engine nor the
// next one, which watches it again.
func TestAPanicInATaskIsContained(t *testing.T) {
	j := &taskTool{}
	b := sessiontest.New(t, offline.Model{}, j)
	b.Options.Tasks = breakingTasks{newChores()}
	b.Options.StopTask = func(context.Context, event.SessionID, string) error { panic("a bug") }
	b.Restart()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'x'"})
	v.Await(t, 0, event.SessionIdle)
	b.AwaitStored("s", eventlog.End{}, event.TaskReported)
	lost := slices.ContainsFunc(b.Verify("s"), func(e event.Event) bool {
		return e.Type == event.TaskReported && strings.Contains(string(e.Bytes), "abide broke")
	})
	if !lost {
		t.Errorf("the log says %v", kindsOf(b.Verify("s")))
	}
	begun := make(chan struct{})
	j.mu.Lock()
	j.begun = begun
	j.mu.Unlock()
	b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'y'"})
	<-begun
	if err := b.Host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Error(err)
	}
}
