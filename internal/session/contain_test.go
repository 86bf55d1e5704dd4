package session_test

import (
	"context"
	"iter"
	"slices"
	"strings"
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
			v.Await(t, at, event.SessionIdle)
			if got := lastAnswer(t, b.Verify("s")); got != "AGAIN" {
				t.Errorf("the next answer is %q", got)
			}
		})
	}
}

// breakingStore panics when one session is read.
type breakingStore struct{ eventlog.Store }

func (s breakingStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	if id == "s" {
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
	b.Host = session.New(breakingStore{b.Store}, b.Options)
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
