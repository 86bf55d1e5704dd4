package session_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

// stopAgain stops the session s, and returns a channel that gets the result when the stop is
// answered.
func stopAgain(t *testing.T, b *sessiontest.Fixture) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := b.Host.Stop(t.Context(), "s", holdStop)
		done <- err
	}()
	return done
}

// An engine that stored an abort may end before the task has. Whoever stops the session
// once more is answered when the engine after it has ended the task.
func TestAStopWaitsForWhatTheLastEngineBeganToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTaskEnder()
		b, j := runningJob(t, e)
		defer func() { b.Host.Close() }()
		go func() { _, _ = b.Host.Stop(t.Context(), "s", holdStop) }() // the engine ends under it
		<-e.asked
		b.Restart()
		done := stopAgain(t, b)
		if key := <-e.asked; key != j.key(1) {
			t.Errorf("the next engine ends %s", key)
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("the stop is answered before the task has ended: %v", err)
		default:
		}
		close(e.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The children of a task may outlive its command. The end of the command is not recorded
// while they are being ended: if the engine ends meanwhile, the next stop waits for them.
func TestAStopWaitsForTheChildrenOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTaskEnder()
		b, j := runningJob(t, e)
		defer func() { b.Host.Close() }()
		go func() { _, _ = b.Host.Stop(t.Context(), "s", holdStop) }() // the engine ends under it
		<-e.asked
		b.Options.Tasks.(*testTasks).of(j.key(1)) <- event.TaskReportedData{Key: j.key(1), Status: event.TaskKilled, Ended: true, Text: "it was killed"}
		time.Sleep(time.Second) // more than the time for which news is gathered
		synctest.Wait()
		if slices.Contains(kindsOf(b.Verify("s")), event.TaskReported) {
			t.Error("the end of the task is recorded before its children have ended")
		}
		b.Restart()
		done := stopAgain(t, b)
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the stop is answered before the children have ended: %v", err)
		default:
		}
		close(e.free)
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		b.Resume("s", session.Resume{}, &session.Client{})
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Contains(kindsOf(b.Verify("s")), event.TaskReported) {
			t.Error("the end of the task is not recorded")
		}
	})
}

// The call that has an agent is stopped also if the agent's session is gone.
func TestAStopNeedsNoAgentThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := withAgents(t, offline.Model{})
		defer func() { b.Host.Close() }()
		v := b.Create("s", &session.Client{Permission: true, Tools: external("a")})
		b.Send("s", delegate("task", "Use a with value 'x', then reply with the result"))
		v.Await(t, 0, event.PermissionAsked)
		agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
		if err := b.Host.Delete(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		stopped, err := b.Host.Stop(t.Context(), "s", holdStop)
		if err != nil || !stopped.Turn {
			t.Errorf("%+v, %v", stopped, err)
		}
		if !slices.Contains(kindsOf(b.Verify("s")), event.Abort) {
			t.Error("no abort is stored")
		}
	})
}

// A client that leaves says that nobody can answer. The question stays open for the next
// one.
func TestAClientThatHasLeftAnswersNoQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		defer func() { b.Host.Close() }()
		asked, left := make(chan struct{}), make(chan struct{})
		c := &session.Client{AskUser: func(context.Context, event.SessionID, event.UserInputAskedData) (turn.UserReply, error) {
			close(asked)
			<-left
			return turn.UserReply{Answer: "nobody is here", Unable: true}, nil
		}}
		b.Create("s", c)
		other := b.Resume("s", session.Resume{}, &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Ask me: which colour?"})
		<-asked
		b.Host.Detach("s", c, true)
		close(left)
		synctest.Wait()
		if slices.Contains(other.Kinds(), event.UserInputDone) {
			t.Error("the question is answered by a client that has left")
		}
	})
}
