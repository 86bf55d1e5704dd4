package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

// recordingUndo remembers what it was told to take back.
type recordingUndo struct {
	mu    sync.Mutex
	calls []string
	fail  error
}

func (u *recordingUndo) undo(_ context.Context, id event.SessionID, undone func(string) bool, look bool) ([]event.RestoredFile, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls = append(u.calls, fmt.Sprintf("%s look=%v", id, look))
	return []event.RestoredFile{{Path: "/w/f", Outcome: event.FileRestored}}, u.fail
}

// rewindable is a session with two turns, the second of which made a call.
func rewindable(t testing.TB, u *recordingUndo) (*sessiontest.Fixture, *sessiontest.Viewer, string, *countingTool) {
	c := &countingTool{name: "act", replay: tool.Keyed}
	b := sessiontest.New(t, offline.Model{}, c)
	b.Options.Undo = u.undo
	b.Restart()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	n := len(v.Kinds())
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x'"})
	v.Await(t, n, event.SessionIdle)
	for _, e := range b.Verify("s") {
		if d, _ := event.As[event.UserMessageData](e); e.Type == event.UserMessage && strings.HasPrefix(d.Content, "Use") {
			head, _ := e.Head()
			return b, v, head.ID, c
		}
	}
	t.Fatal("no second message")
	return nil, nil, "", nil
}

func TestRewindTakesFilesBack(t *testing.T) {
	u := &recordingUndo{}
	b, _, from, c := rewindable(t, u)
	var keys []string
	b.Options.Undo = func(ctx context.Context, id event.SessionID, undone func(string) bool, look bool) ([]event.RestoredFile, error) {
		for key := range c.keys {
			if undone(key) {
				keys = append(keys, key)
			}
		}
		return u.undo(ctx, id, undone, look)
	}
	b.Restart()
	for _, r := range []session.Rewind{{EventID: from, Look: true}, {EventID: from, Look: true, KeepFiles: true}, {EventID: from}, {EventID: from}} {
		done, err := b.Host.Rewind(t.Context(), "s", r)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v: %+v", r, done)
	}
	if want := []string{"s look=true", "s look=false"}; !slices.Equal(u.calls, want) {
		t.Errorf("undone: %v, want %v", u.calls, want)
	}
	if len(keys) != 2 || len(c.keys) != 1 {
		t.Errorf("of %v, %v were taken back", c.keys, keys)
	}
	restored := 0
	for _, e := range b.Verify("s") {
		if e.Type == event.FilesRestored {
			restored++
		}
	}
	if restored != 1 {
		t.Errorf("%d records of restored files, want 1", restored)
	}
}

// TestFilesAreTakenBackAfterACrash: what the log says is due is done, whoever
// recorded it.
func TestFilesAreTakenBackAfterACrash(t *testing.T) {
	u := &recordingUndo{}
	b, _, _, _ := rewindable(t, u)
	b.Host.Close()
	info, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.HistoryHiddenData{From: 2, To: info.End.Seq, Files: true})
	if err != nil {
		t.Fatal(err)
	}
	hidden.Seq = info.End.Seq + 1
	active := info.Info
	active.Active = true
	end, err := b.Store.Append(t.Context(), "s", eventlog.Batch{After: info.End, Events: []event.Event{hidden}, Info: &active})
	if err != nil {
		t.Fatal(err)
	}
	b.Start()
	b.AwaitStored("s", end, event.FilesRestored)
	if want := []string{"s look=false"}; !slices.Equal(u.calls, want) {
		t.Errorf("undone: %v, want %v", u.calls, want)
	}
}

func TestARewindThatCannotRestoreSaysSo(t *testing.T) {
	u := &recordingUndo{fail: errors.New("the disk is gone")}
	b, _, from, _ := rewindable(t, u)
	_, err := b.Host.Rewind(t.Context(), "s", session.Rewind{EventID: from})
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("error = %v", err)
	}
	if shown, _ := b.Host.Log.Messages(t.Context(), "s"); lastAnswer(t, shown) != "ONE" {
		t.Errorf("answer = %q, want that of the first turn", lastAnswer(t, shown))
	}
}

// slowToStopTool is a tool whose calls take a moment to end when they are stopped.
type slowToStopTool struct {
	begun, leave chan struct{}
}

func (slowToStopTool) Spec() tool.Spec { return tool.Spec{Name: "act", Replay: tool.Keyed} }
func (slowToStopTool) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}

func (r slowToStopTool) Run(ctx context.Context, _ tool.Call) (tool.Result, error) {
	close(r.begun)
	<-ctx.Done()
	<-r.leave
	return tool.Result{}, ctx.Err()
}

// TestFilesAreTakenBackAfterTheLastWrite: a call that was stopped must not write
// over what a rewind has restored.
func TestFilesAreTakenBackAfterTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, r := &recordingUndo{}, slowToStopTool{make(chan struct{}), make(chan struct{})}
		b := sessiontest.New(t, offline.Model{}, r)
		b.Options.Undo = u.undo
		b.Restart()
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x'"})
		<-r.begun
		shown, err := b.Host.Log.Messages(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		head, err := shown[0].Head()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := b.Host.Rewind(t.Context(), "s", session.Rewind{EventID: head.ID})
			done <- err
		}()
		synctest.Wait()
		if len(u.calls) != 0 {
			t.Error("files were taken back while a call could still write")
		}
		close(r.leave)
		if err := <-done; err != nil || len(u.calls) != 1 {
			t.Errorf("undone: %v, %v", u.calls, err)
		}
		b.Host.Close()
	})
}
