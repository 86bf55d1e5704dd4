package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

func TestADeletionEndsTheRewindUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, from, _ := rewindable(t, &recordingUndo{})
		begun, goOn := make(chan struct{}), make(chan struct{})
		b.Options.Undo = func(context.Context, event.SessionID, func(string) bool, bool) ([]event.RestoredFile, error) {
			close(begun)
			<-goOn
			return nil, nil
		}
		b.Restart()
		done := make(chan error, 1)
		go func() {
			_, err := b.Host.Rewind(context.Background(), "s", session.Rewind{EventID: from})
			done <- err
		}()
		<-begun
		if err := b.Host.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		synctest.Wait()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "deleted") {
				t.Errorf("err = %v, want one that says that the session was deleted", err)
			}
		default:
			t.Error("whoever rewinds a deleted session still waits")
		}
	})
}

// A client is asked to rewrite the system prompt, and the session is deleted before
// the client answers. The answer is not for a new session of the same name.
func TestANewSessionHasNoPromptOfADeletedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &recordingModel{}
		b := sessiontest.New(t, m)
		create := func(c *session.Client) *sessiontest.Viewer {
			v := sessiontest.NewViewer()
			c.Viewer = v
			custom := json.RawMessage(`{"mode":"customize","sections":{"tone":{"action":"transform"}}}`)
			view, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{SystemMessage: custom}}, c)
			if err == nil {
				err = view.CatchUp(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		answerWhen := func(answer string, begun chan<- struct{}, goOn <-chan struct{}) session.Transform {
			return func(context.Context, event.SessionID, map[string]string) (map[string]string, error) {
				close(begun)
				<-goOn
				return map[string]string{"tone": answer}, nil
			}
		}
		oldBegun, oldGoOn := make(chan struct{}), make(chan struct{})
		create(&session.Client{Transform: answerWhen("OLD", oldBegun, oldGoOn)})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
		<-oldBegun
		if err := b.Host.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		newBegun, newGoOn := make(chan struct{}), make(chan struct{})
		v := create(&session.Client{Transform: answerWhen("NEW", newBegun, newGoOn)})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
		<-newBegun
		close(oldGoOn)
		synctest.Wait()
		close(newGoOn)
		v.Await(t, 0, event.SessionIdle)
		if system := m.last().System; !strings.Contains(system, "NEW") || strings.Contains(system, "OLD") {
			t.Errorf("the system prompt of the new session is %q", system)
		}
	})
}

// A turn is interrupted, and its queue kept, while a hook of the turn is asked. Nobody
// waits for the hook any more.
func TestAnInterruptionStopsTheHooksOfTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{}, &countingTool{name: "act", replay: tool.Keyed})
		e := &hookClient{stuck: map[string]bool{event.HookPreToolUse: true}, heard: make(chan string, 10)}
		stopped := make(chan time.Time, 1)
		v := b.Create("s", &session.Client{Hook: func(ctx context.Context, id event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
			output, err := e.hook(ctx, id, kind, input)
			if kind == event.HookPreToolUse {
				stopped <- time.Now()
			}
			return output, err
		}})
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x'"})
		for <-e.heard != event.HookPreToolUse {
		}
		began := time.Now()
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO", Mode: event.ModeInterrupt})
		if at := <-stopped; at.Sub(began) > 0 {
			t.Errorf("the hook was stopped %s after the turn", at.Sub(began))
		}
		v.Await(t, 0, event.SessionIdle)
		b.Verify("s")
	})
}
