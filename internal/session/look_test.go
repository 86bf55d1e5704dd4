package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
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
	"github.com/abide-run/abide/internal/workspace"
)

// slowLook is a tool whose permission request takes as long as the test wants.
type slowLook struct {
	looks chan tool.Call // gets each call that is looked at
	found chan error     // results of the looks
	runs  int

	cancelled atomic.Int32 // number of looks that nobody needed any more
}

func newSlowLook() *slowLook {
	return &slowLook{looks: make(chan tool.Call, 8), found: make(chan error)}
}

func (*slowLook) Spec() tool.Spec { return tool.Spec{Name: "act", Replay: tool.Pure, Looks: true} }

func (l *slowLook) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	l.looks <- call
	select {
	case err := <-l.found:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		l.cancelled.Add(1)
		return nil, context.Cause(ctx)
	}
	return &approval.Request{Kind: approval.Write, Details: []string{"/f"}, Allowed: len(call.Scope.Allow) > 0, Ask: json.RawMessage(`{"kind":"write"}`)}, nil
}

func (l *slowLook) Run(context.Context, tool.Call) (tool.Result, error) {
	l.runs++
	return tool.Result{Text: "done"}, nil
}

// While the files that a call is about cannot be read, everything else goes on: other
// sessions, questions about the session, messages, an abort.
func TestNothingWaitsForALookThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSlowLook()
		b := sessiontest.New(t, offline.Model{}, l)
		v := b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		<-l.looks
		synctest.Wait()
		other := b.Create("other", &session.Client{})
		b.Send("other", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
		other.Await(t, 0, event.SessionIdle)
		if st, err := b.Host.Status(t.Context(), "s"); err != nil || !st.Active {
			t.Errorf("the session is %+v, %v", st, err)
		}
		if err := b.Host.Abort(t.Context(), "s", "enough"); err != nil {
			t.Fatal(err)
		}
		v.Await(t, 0, event.SessionIdle)
		synctest.Wait()
		if l.cancelled.Load() != 1 {
			t.Error("the look goes on, and nobody needs it")
		}
		if kinds := kindsOf(b.Verify("s")); l.runs > 0 || kinds[len(kinds)-1] != event.SessionIdle {
			t.Errorf("the call was made %d times: %v", l.runs, kinds)
		}
		b.Host.Close()
	})
}

// What the look depended on has changed when it is found: somebody has to look again.
func TestALookIsRepeatedIfWhatItIsAboutHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSlowLook()
		b := sessiontest.New(t, offline.Model{}, l)
		b.Create("s", &session.Client{Permission: true})
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		<-l.looks
		synctest.Wait()
		err := b.Host.Configure(t.Context(), "s", func(c *event.SessionConfiguredData) error {
			c.Scope.Allow = []event.ScopeRule{{Target: "/f", Permission: approval.Write}}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if again := <-l.looks; len(again.Scope.Allow) != 1 {
			t.Errorf("looked again with %+v", again.Scope)
		}
		synctest.Wait()
		if l.cancelled.Load() != 1 {
			t.Error("the first look goes on, and nobody needs it")
		}
		l.found <- nil
		b.AwaitStored("s", eventlog.End{}, event.SessionIdle)
		if l.runs != 1 {
			t.Errorf("the call was made %d times", l.runs)
		}
		b.Host.Close()
	})
}

// An engine that ends does not wait for a look, and what the look has not found is no
// reason to refuse the call: the next engine looks again.
func TestAnEngineThatEndsDoesNotWaitForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSlowLook()
		b := sessiontest.New(t, offline.Model{}, l)
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		<-l.looks
		synctest.Wait()
		began := time.Now()
		b.Host.Close()
		if l.cancelled.Load() != 1 || time.Since(began) > 0 {
			t.Errorf("the engine has waited for %v", time.Since(began))
		}
		if kinds := kindsOf(b.Verify("s")); slices.Contains(kinds, event.ToolComplete) {
			t.Errorf("the call was refused: %v", kinds)
		}
	})
}

// What the model is told of the project is read beside the session, too.
func TestAProjectThatCannotBeReadStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		begun, goOn := make(chan struct{}, 1), make(chan struct{})
		b.Options.Instructions = func(context.Context, workspace.Projects, string, ...string) (string, []event.InstructionSource, error) {
			select {
			case begun <- struct{}{}:
				<-goOn
			default: // the second turn
			}
			return "Be kind.", nil, nil
		}
		b.Restart()
		v := b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
		<-begun
		synctest.Wait()
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: SECOND"})
		if kinds := kindsOf(b.Verify("s")); slices.Contains(kinds, event.UserMessage) {
			t.Errorf("the turn has begun without the instructions: %v", kinds)
		}
		close(goOn)
		v.Await(t, 0, event.SessionIdle)
		if got := deliveries(t, b.Verify("s")); len(got) != 2 || !slices.Contains(kindsOf(b.Verify("s")), event.InstructionsLoaded) {
			t.Errorf("delivered are %q", got)
		}
		b.Host.Close()
	})
}

// What was known of a project stays, while its workspace cannot be reached.
func TestAProjectThatIsAwayIsWhatItWas(t *testing.T) {
	for _, why := range []error{workspace.ErrAway, workspace.ErrLost, workspace.ErrToken, workspace.ErrOther} {
		b := sessiontest.New(t, offline.Model{})
		turns := 0
		b.Options.Instructions = func(context.Context, workspace.Projects, string, ...string) (string, []event.InstructionSource, error) {
			if turns++; turns > 1 {
				return "", nil, fmt.Errorf("instructions: %w", why)
			}
			return "Be kind.", nil, nil
		}
		b.Restart()
		v := b.Create("s", &session.Client{})
		at := 0
		for _, word := range []string{"HELLO", "SECOND"} {
			b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: " + word})
			_, at = v.Await(t, at, event.SessionIdle)
		}
		loaded := 0
		for _, kind := range kindsOf(b.Verify("s")) {
			if kind == event.InstructionsLoaded {
				loaded++
			}
		}
		if turns < 2 || loaded != 1 {
			t.Errorf("%v: %d turns have recorded other instructions %d times, want once", why, turns, loaded)
		}
		b.Host.Close()
	}
}

// Instructions on disks of this machine are read without a limit, after the first time. On
// others the time of each reading is limited.
func TestInstructionsOnThisMachineAreReadWithoutALimit(t *testing.T) {
	for name, onDisk := range map[string]bool{"disk": true, "network": false} {
		t.Run(name, func(t *testing.T) {
			b := sessiontest.New(t, offline.Model{})
			var looks []bool
			b.Options.Instructions = func(ctx context.Context, _ workspace.Projects, _ string, _ ...string) (string, []event.InstructionSource, error) {
				_, limited := ctx.Deadline()
				looks = append(looks, limited)
				return fmt.Sprintf("Text %d.", len(looks)), nil, nil
			}
			b.Options.OnDisk = func(string) bool { return onDisk }
			b.Restart()
			b.Create("s", &session.Client{})
			for range 3 {
				runTurn(b, "s", "hello")
			}
			if want := []bool{true, !onDisk, !onDisk}; !slices.Equal(looks, want) {
				t.Errorf("looks are %v, want %v", looks, want)
			}
			loaded := 0
			for _, kind := range kindsOf(b.Verify("s")) {
				if kind == event.InstructionsLoaded {
					loaded++
				}
			}
			if loaded != 3 {
				t.Errorf("the instructions were loaded %d times, want 3", loaded)
			}
		})
	}
}

// A folder on a disk of this machine need not stay one: a link in it may lead to a network, or
// one may be mounted there. The session can be used while that does not answer.
func TestInstructionsThatAreNoLongerOnThisMachineStopNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		read, goOn := 0, make(chan struct{})
		b.Options.Instructions = func(context.Context, workspace.Projects, string, ...string) (string, []event.InstructionSource, error) {
			if read++; read == 3 {
				<-goOn
			}
			return fmt.Sprintf("Text %d.", read), nil, nil
		}
		asked := 0
		b.Options.OnDisk = func(string) bool { asked++; return true }
		b.Restart()
		b.Create("s", &session.Client{})
		runTurn(b, "s", "hello")
		runTurn(b, "s", "hello")
		if asked != 1 {
			t.Errorf("the folder was looked at %d times before it was slow", asked)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if err := b.Host.Abort(t.Context(), "s", ""); err != nil {
			t.Error(err)
		}
		close(goOn)
		synctest.Wait()
		runTurn(b, "s", "hello")
		if asked != 2 {
			t.Errorf("the folder was looked at %d times after it was slow", asked)
		}
		b.Host.Close()
	})
}

// What a rewind would do to files is found out beside the session, and only for as long
// as somebody wants to know.
func TestNothingWaitsForTheFilesOfARewindThatIsOnlyLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, from, _ := rewindable(t, &recordingUndo{})
		begun := make(chan struct{})
		b.Options.Undo = func(ctx context.Context, _ event.SessionID, _ func(string) bool, _ bool) ([]event.RestoredFile, error) {
			close(begun)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		b.Restart()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := b.Host.Rewind(ctx, "s", session.Rewind{EventID: from, Look: true})
			done <- err
		}()
		<-begun
		if err := b.Host.Abort(t.Context(), "s", "enough"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("the files were looked at")
		}
		b.Host.Close()
	})
}
