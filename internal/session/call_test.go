package session_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

// environmentTool is a tool that tells the environment it is called with, and keeps the one
// that it was judged with.
type environmentTool struct{ judged *[]string }

func (environmentTool) Spec() tool.Spec {
	return tool.Spec{Name: "environs", Replay: tool.Pure, Looks: true}
}

func (e environmentTool) Permission(_ context.Context, call tool.Call) (*approval.Request, error) {
	*e.judged = append(*e.judged, strings.Join(call.Env, " "))
	return nil, nil
}

func (environmentTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Text: strings.Join(call.Env, " ")}, nil
}

// A call has the environment that a client brought last, in this process and in
// the next. It is judged with the same: which program a name stands for depends on it.
func TestACallHasTheLastEnvironmentOfItsSession(t *testing.T) {
	var judged []string
	b := sessiontest.New(t, offline.Model{}, environmentTool{&judged})
	b.Options.LookTime = time.Minute // each call is looked at once
	b.Restart()
	v := sessiontest.NewViewer()
	c := &session.Client{Viewer: v}
	view, err := b.Host.Create(t.Context(), "s", session.Spec{Env: []string{"A=1"}}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	call := func() {
		t.Helper()
		from := len(v.Kinds())
		b.Send("s", event.InputAcceptedData{Prompt: "Use environs with value 'x'"})
		v.Await(t, from, event.SessionIdle)
		for _, e := range slices.Backward(b.Verify("s")) {
			if e.Type == event.ToolComplete {
				d, _ := event.As[event.ToolCompleteData](e)
				got = append(got, d.Result.Content)
				return
			}
		}
	}
	call()
	call()
	if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: session.Spec{Env: []string{"B=2"}}, Quiet: true}, nil); err != nil {
		t.Fatal(err)
	}
	call()
	b.Restart()
	v = b.Resume("s", session.Resume{}, &session.Client{})
	call()
	if want := []string{"A=1", "A=1", "B=2", "B=2"}; !slices.Equal(got, want) {
		t.Errorf("calls had %q, want %q", got, want)
	}
	if !slices.Equal(judged, got) {
		t.Errorf("calls were judged with %q, and had %q", judged, got)
	}
}
