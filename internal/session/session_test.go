package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

func lastAnswer(t testing.TB, events []event.Event) string {
	t.Helper()
	for _, e := range slices.Backward(events) {
		if e.Type == event.AssistantMessage {
			d, err := event.As[event.AssistantMessageData](e)
			if err != nil {
				t.Fatal(err)
			}
			return d.Content
		}
	}
	return ""
}

func kindsOf(events []event.Event) []event.Type {
	var list []event.Type
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list
}

func external(name string) []event.ExternalTool {
	return []event.ExternalTool{{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}}
}

func TestPlainTurnIsTwoAppendsInOrder(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	v.Await(t, 0, event.SessionIdle)
	events := b.Verify("s")
	want := []event.Type{
		event.SessionStart, event.SessionConfigured,
		event.InputAccepted, event.SystemMessage, event.UserMessage, event.AssistantTurnStart,
		event.SessionModelChange, event.AssistantUsage, event.AssistantMessage, event.AssistantTurnEnd, event.SessionIdle,
	}
	if got := kindsOf(events); !slices.Equal(got, want) {
		t.Errorf("log = %v\nwant %v", got, want)
	}
	if got := lastAnswer(t, events); got != "HELLO" {
		t.Errorf("answer = %q, want HELLO", got)
	}
}

// countingTool is a tool that counts how often it ran.
type countingTool struct {
	name   string
	replay tool.Replay
	ask    bool
	block  chan struct{} // if not nil, the first run waits until it is cancelled

	mu   sync.Mutex
	runs int
	keys map[string]bool
}

func (c *countingTool) Spec() tool.Spec { return tool.Spec{Name: c.name, Replay: c.replay} }

func (c *countingTool) Permission(context.Context, tool.Call) (*approval.Request, error) {
	if !c.ask {
		return nil, nil
	}
	return &approval.Request{Kind: approval.Shell, Subjects: []string{c.name}, Ask: json.RawMessage(`{"kind":"shell","fullCommandText":"act","intention":"","commands":[],"possiblePaths":[],"possibleUrls":[],"hasWriteFileRedirection":false,"canOfferSessionApproval":true}`)}, nil
}

func (c *countingTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	c.mu.Lock()
	c.runs++
	if c.keys == nil {
		c.keys = map[string]bool{}
	}
	c.keys[call.Key] = true
	block := c.block
	c.block = nil
	c.mu.Unlock()
	if block != nil {
		close(block)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Text: "ran"}, nil
}

func TestCallBegunBeforeAStopIsTreatedByItsReplayClass(t *testing.T) {
	for _, test := range []struct {
		replay   tool.Replay
		runs     int
		contains string
	}{
		{tool.Pure, 2, "ran"},
		{tool.Keyed, 2, "ran"},
		{tool.Once, 1, "outcome is unknown"},
	} {
		t.Run(fmt.Sprint(test.replay), func(t *testing.T) {
			began := make(chan struct{})
			c := &countingTool{name: "act", replay: test.replay, block: began}
			b := sessiontest.New(t, offline.Model{}, c)
			b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
			<-began
			b.Restart()
			v := sessiontest.NewViewer()
			view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: v}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			if err := view.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			v.Await(t, 0, event.SessionIdle)
			events := b.Verify("s")
			if c.runs != test.runs || len(c.keys) != 1 {
				t.Errorf("runs = %d with %d keys, want %d with 1", c.runs, len(c.keys), test.runs)
			}
			if got := lastAnswer(t, events); !strings.Contains(got, test.contains) {
				t.Errorf("answer = %q, want %q in it", got, test.contains)
			}
		})
	}
}

func TestPermissionIsAskedAndAnsweredOnce(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := sessiontest.New(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	asked, _ := v.Await(t, 0, event.PermissionAsked)
	d, _ := event.As[event.PermissionAskedData](asked)
	b.Restart() // the question outlives the engine
	answer := turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}
	var won int
	for range 2 {
		ok, err := b.Host.Answer(t.Context(), "s", answer)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d of two answers won, want 1", won)
	}
	awaitIdle(t, b, "s")
	b.Verify("s")
	if c.runs != 1 {
		t.Errorf("the tool ran %d times, want 1", c.runs)
	}
}

// awaitIdle follows the log until the session is idle.
func awaitIdle(t testing.TB, b *sessiontest.Fixture, id event.SessionID) {
	t.Helper()
	v := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), id, &session.Client{Viewer: v}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
}

func TestNobodyToAskIsDeniedAtOnce(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := sessiontest.New(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); !strings.Contains(got, "could not request permission") {
		t.Errorf("answer = %q", got)
	}
	if c.runs != 0 {
		t.Errorf("the tool ran %d times without permission", c.runs)
	}
}

func TestExternalCallsAreAnsweredInAnyOrderByAnybody(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{Permission: true, Tools: []event.ExternalTool{
		{Name: "a", SkipPermission: true}, {Name: "b", SkipPermission: true}}})
	b.Send("s", event.InputAcceptedData{Prompt: "Call a with value 'x' and b with value 'y', then reply with both results"})
	first, at := v.Await(t, 0, event.ExternalAsked)
	second, _ := v.Await(t, at, event.ExternalAsked)
	b.Restart()
	for _, e := range []event.Event{second, first} {
		d, _ := event.As[event.ExternalAskedData](e)
		ok, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "result of " + d.ToolName}})
		if err != nil || !ok {
			t.Fatalf("answer for %s: %v, %v", d.ToolName, ok, err)
		}
		b.Restart()
	}
	awaitIdle(t, b, "s")
	if got := lastAnswer(t, b.Verify("s")); got != "result of a\nresult of b" {
		t.Errorf("answer = %q", got)
	}
}

func TestAskUserSurvivesARestartAndIsPutToTheNextClient(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	asked := make(chan string, 2)
	never := func(ctx context.Context, _ event.SessionID, q event.UserInputAskedData) (turn.UserReply, error) {
		asked <- q.Question
		<-ctx.Done()
		return turn.UserReply{}, ctx.Err()
	}
	b.Create("s", &session.Client{AskUser: never})
	b.Send("s", event.InputAcceptedData{Prompt: "Ask me: which colour?"})
	if q := <-asked; q != "which colour?" {
		t.Errorf("question = %q", q)
	}
	b.Restart()
	v := sessiontest.NewViewer()
	yes := true
	view, err := b.Host.Resume(t.Context(), "s", session.Resume{Continue: &yes}, &session.Client{Viewer: v,
		AskUser: func(context.Context, event.SessionID, event.UserInputAskedData) (turn.UserReply, error) {
			return turn.UserReply{Answer: "blue", WasFreeform: true}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); !strings.Contains(got, "User responded: blue") {
		t.Errorf("answer = %q", got)
	}
}

func TestGraceTimeDecidesWhetherAResumeIsWarm(t *testing.T) {
	for _, test := range []struct {
		name   string
		pause  time.Duration
		warm   bool
		answer bool
	}{{"within", time.Second, true, true}, {"after", 3 * time.Second, false, false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := sessiontest.New(t, offline.Model{})
				c := &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}}
				v := b.Create("s", c)
				b.Send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
				synctest.Wait()
				asked, _ := v.Await(t, 0, event.ExternalAsked)
				b.Host.Detach("s", c, true)
				time.Sleep(test.pause)
				again := sessiontest.NewViewer()
				view, err := b.Host.Resume(t.Context(), "s", session.Resume{}, &session.Client{Viewer: again})
				if err != nil {
					t.Fatal(err)
				}
				if err := view.CatchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				resumed, _ := again.Await(t, 0, event.SessionResume)
				r, _ := event.As[event.SessionResumeData](resumed)
				if r.SessionWasActive != test.warm {
					t.Errorf("sessionWasActive = %v, want %v", r.SessionWasActive, test.warm)
				}
				d, _ := event.As[event.ExternalAskedData](asked)
				ok, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "late"}})
				if err != nil || ok != test.answer {
					t.Errorf("answer won = %v, %v; want %v", ok, err, test.answer)
				}
				synctest.Wait()
				b.Verify("s")
				b.Host.Close()
			})
		})
	}
}

func TestInputDuringATurn(t *testing.T) {
	for _, test := range []struct {
		mode string
		want string // delivery of the second input
	}{{event.ModeQueue, "queued"}, {event.ModeSteer, "steering"}, {event.ModeInterrupt, "queued"}} {
		t.Run(test.mode, func(t *testing.T) {
			b := sessiontest.New(t, offline.Model{})
			v := b.Create("s", &session.Client{Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}})
			b.Send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
			asked, _ := v.Await(t, 0, event.ExternalAsked)
			b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: SECOND", Mode: test.mode})
			b.Restart() // accepted means stored
			if test.mode != event.ModeInterrupt {
				d, _ := event.As[event.ExternalAskedData](asked)
				if ok, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "one"}}); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			awaitIdle(t, b, "s")
			events := b.Verify("s")
			var delivered []string
			for _, e := range events {
				if e.Type == event.UserMessage {
					d, _ := event.As[event.UserMessageData](e)
					delivered = append(delivered, d.Delivery)
				}
			}
			if want := []string{"idle", test.want}; !slices.Equal(delivered, want) {
				t.Errorf("deliveries = %v, want %v", delivered, want)
			}
			if got := lastAnswer(t, events); got != "SECOND" {
				t.Errorf("answer = %q, want SECOND", got)
			}
		})
	}
}

func TestTheSameKeyIsAcceptedOnce(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	in := event.InputAcceptedData{Prompt: "Reply with exactly: ONE", Key: "k"}
	first := b.Send("s", in)
	v.Await(t, 0, event.SessionIdle)
	b.Restart()
	if second := b.Send("s", in); second != first {
		t.Errorf("the second send has id %s, want %s", second, first)
	}
	n := 0
	for _, e := range b.Verify("s") {
		if e.Type == event.UserMessage {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d user messages, want 1", n)
	}
}

func TestAbortEndsEverythingOpen(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{Permission: true, Tools: external("a")})
	b.Send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
	asked, _ := v.Await(t, 0, event.PermissionAsked)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEVER"})
	if err := b.Host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Fatal(err)
	}
	idle, _ := v.Await(t, 0, event.SessionIdle)
	if d, _ := event.As[event.SessionIdleData](idle); !d.Aborted {
		t.Error("session.idle does not say that the turn was aborted")
	}
	d, _ := event.As[event.PermissionAskedData](asked)
	if ok, _ := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}); ok {
		t.Error("a question of an aborted turn could be answered")
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ALIVE"})
	_, at := v.Await(t, 0, event.SessionIdle)
	v.Await(t, at, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "ALIVE" {
		t.Errorf("answer = %q, want ALIVE", got)
	}
}

func TestSlowViewerReadsWhatItMissed(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	slow := sessiontest.NewViewer()
	slow.SetRoom(3)
	view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: slow}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := 0
	for range 3 {
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: X"})
		_, at = v.Await(t, at, event.SessionIdle)
	}
	var want []event.Seq
	for _, e := range b.Verify("s") {
		if !e.Type.Hidden() {
			want = append(want, e.Seq)
		}
	}
	for {
		slow.SetRoom(2)
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		var shown []event.Seq
		for _, e := range slow.Events() {
			if e.Seq > 0 {
				shown = append(shown, e.Seq)
			}
		}
		if len(shown) == len(want) {
			if !slices.Equal(shown, want) {
				t.Errorf("shown = %v, want %v", shown, want)
			}
			return
		}
	}
}

func TestForkRewindAndDelete(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	for i := range 2 {
		b.Send("s", event.InputAcceptedData{Prompt: fmt.Sprintf("Reply with exactly: ANSWER %d", i)})
		at := 0
		for range i + 1 {
			_, at = v.Await(t, at, event.SessionIdle)
		}
	}
	child, err := b.Host.Fork(t.Context(), "child", "s", 0, "copy")
	if err != nil {
		t.Fatal(err)
	}
	var second event.Event
	for _, e := range b.Verify("s") {
		if e.Type == event.UserMessage {
			second = e
		}
	}
	head, _ := second.Head()
	if n, err := b.Host.Rewind(t.Context(), "s", session.Rewind{EventID: head.ID}); err != nil || n.Events < 3 {
		t.Fatalf("rewind: %v, %v", n, err)
	}
	shown, err := b.Host.Log.Messages(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := lastAnswer(t, shown); got != "ANSWER 0" {
		t.Errorf("after the rewind the last answer is %q", got)
	}
	if err := b.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := lastAnswer(t, b.Verify(child)); got != "ANSWER 1" {
		t.Errorf("the fork's last answer is %q", got)
	}
	if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err == nil {
		t.Error("a deleted session takes input")
	}
	if got := b.Send(child, event.InputAcceptedData{Prompt: "Reply with exactly: GOES ON"}); got == "" {
		t.Error("the fork takes no input")
	}
	awaitAnswer(t, b, child, "GOES ON")
}

func awaitAnswer(t testing.TB, b *sessiontest.Fixture, id event.SessionID, want string) {
	t.Helper()
	v := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), id, &session.Client{Viewer: v}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		var e event.Event
		e, at = v.Await(t, at, event.AssistantMessage)
		if d, _ := event.As[event.AssistantMessageData](e); d.Content == want {
			return
		}
	}
}

func TestAnIdleSessionLeavesMemoryAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		c := &session.Client{}
		v := b.Create("s", c)
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
		synctest.Wait()
		b.Host.Detach("s", c, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory after an hour of rest", n)
		}
		again := sessiontest.NewViewer()
		shown := v.Events()
		seen := shown[len(shown)-1].Seq
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
		view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: again}, seen)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		again.Await(t, 0, event.SessionIdle)
		for _, e := range again.Events() {
			if e.Seq > 0 && e.Seq <= seen {
				t.Errorf("event %d was shown again", e.Seq)
			}
		}
		if got := lastAnswer(t, b.Verify("s")); got != "TWO" {
			t.Errorf("answer = %q, want TWO", got)
		}
		b.Host.Close()
	})
}

func TestASessionThatWaitsForAnAnswerCanLeaveMemoryToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		c := &session.Client{Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}}
		v := b.Create("s", c)
		b.Send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
		synctest.Wait()
		asked, _ := v.Await(t, 0, event.ExternalAsked)
		b.Host.Detach("s", c, true)
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory", n)
		}
		d, _ := event.As[event.ExternalAskedData](asked)
		if ok, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "at last"}}); !ok || err != nil {
			t.Errorf("the answer after a long rest: %v, %v", ok, err)
		}
		synctest.Wait()
		if got := lastAnswer(t, b.Verify("s")); got != "at last" {
			t.Errorf("answer = %q", got)
		}
		b.Host.Close()
	})
}
