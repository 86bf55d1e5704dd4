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

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
)

// A viewer collects what a client is shown.
type viewer struct {
	mu     sync.Mutex
	events []event.Event
	notify chan struct{}
	room   int // how many more events fit; negative for any number
}

func newViewer() *viewer { return &viewer{notify: make(chan struct{}, 1), room: -1} }

func (v *viewer) Event(_ event.SessionID, e event.Event) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.room == 0 {
		return false
	}
	if faults := shapetest.Event(e.Bytes); len(faults) > 0 {
		panic(fmt.Sprintf("typed clients cannot read %s: %q", e.Bytes, faults))
	}
	v.room--
	v.events = append(v.events, e)
	select {
	case v.notify <- struct{}{}:
	default:
	}
	return true
}

// await waits until an event of a kind was shown that was not awaited before.
func (v *viewer) await(t *testing.T, from int, kind event.Type) (event.Event, int) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		v.mu.Lock()
		for i := from; i < len(v.events); i++ {
			if v.events[i].Type == kind {
				e := v.events[i]
				v.mu.Unlock()
				return e, i + 1
			}
		}
		v.mu.Unlock()
		select {
		case <-v.notify:
		case <-deadline:
			t.Fatalf("no %s after %d events: %v", kind, from, v.kinds())
		}
	}
}

func (v *viewer) kinds() []event.Type {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []event.Type
	for _, e := range v.events {
		list = append(list, e.Type)
	}
	return list
}

// A bench is a host on a memory store that can be stopped and started again.
type bench struct {
	t      *testing.T
	store  eventlog.Store
	opts   session.Options
	host   *session.Host
	memory eventlog.Store // the same without what checks appends, for events that no version would write
}

func newBench(t *testing.T, m model.Model, tools ...tool.Tool) *bench {
	memory := eventlog.NewMemory()
	b := &bench{t: t, memory: memory, store: eventlogtest.Watch(turntest.Check(t, memory))}
	b.opts = session.Options{
		Resolve: func(context.Context, event.SessionConfiguredData, string, []byte) (session.Endpoint, error) {
			return session.Endpoint{Model: m, Name: "test"}, nil
		},
		Tools: tools, Version: "test",
		ToolsOf: func(h *session.Host) turn.Catalog { return builtin.WithoutAgents(h.Skills) },
	}
	b.start()
	t.Cleanup(func() { b.host.Close() })
	return b
}

func (b *bench) start() {
	b.host = session.New(b.store, b.opts)
	if err := b.host.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// restart stops the host the way a crash would leave the log, and starts
// another.
func (b *bench) restart() {
	b.host.Close()
	b.start()
}

// stored waits until a session has stored an event of a kind after an end.
func (b *bench) stored(id event.SessionID, after eventlog.End, kind event.Type) {
	b.t.Helper()
	b.store.(*eventlogtest.Watched).Await(b.t, id, after, func(e event.Event) bool { return e.Type == kind })
}

// create makes a session with a client and starts its view.
func (b *bench) create(id event.SessionID, c *session.Client) *viewer {
	b.t.Helper()
	v := newViewer()
	c.Viewer = v
	view, err := b.host.Create(b.t.Context(), id, session.Spec{}, c)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := view.CatchUp(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// resume comes back to a session with another client.
func (b *bench) resume(id event.SessionID) *viewer {
	b.t.Helper()
	v := newViewer()
	view, err := b.host.Resume(b.t.Context(), id, session.Resume{}, &session.Client{Viewer: v})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := view.CatchUp(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *bench) send(id event.SessionID, in event.InputAcceptedData) string {
	b.t.Helper()
	got, err := b.host.Send(b.t.Context(), id, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// verify checks the chain and that every call has exactly one terminal record.
func (b *bench) verify(id event.SessionID) []event.Event {
	b.t.Helper()
	var events []event.Event
	open := map[string]int{}
	for e, err := range b.store.Read(context.Background(), id, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		events = append(events, e)
		switch e.Type {
		case event.AssistantMessage:
			d, _ := event.As[event.AssistantMessageData](e)
			for _, r := range d.ToolRequests {
				open[r.ToolCallID]++
			}
		case event.ToolComplete:
			d, _ := event.As[event.ToolCompleteData](e)
			open[d.ToolCallID]--
		}
	}
	for call, n := range open {
		if n != 0 {
			b.t.Errorf("call %s: %+d terminal records are missing", call, n)
		}
	}
	return events
}

func lastAnswer(t *testing.T, events []event.Event) string {
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
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{})
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	v.await(t, 0, event.SessionIdle)
	events := b.verify("s")
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

// counter is a tool that counts how often it ran.
type counter struct {
	name   string
	replay tool.Replay
	ask    bool
	block  chan struct{} // if not nil, the first run waits until it is cancelled

	mu   sync.Mutex
	runs int
	keys map[string]bool
}

func (c *counter) Spec() tool.Spec { return tool.Spec{Name: c.name, Replay: c.replay} }

func (c *counter) Permission(tool.Call) (*approval.Request, error) {
	if !c.ask {
		return nil, nil
	}
	return &approval.Request{Kind: approval.Shell, Subjects: []string{c.name}, Ask: json.RawMessage(`{"kind":"shell","fullCommandText":"act","intention":"","commands":[],"possiblePaths":[],"possibleUrls":[],"hasWriteFileRedirection":false,"canOfferSessionApproval":true}`)}, nil
}

func (c *counter) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
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
			c := &counter{name: "act", replay: test.replay, block: began}
			b := newBench(t, offline.Model{}, c)
			b.create("s", &session.Client{})
			b.send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
			<-began
			b.restart()
			v := newViewer()
			view, err := b.host.Attach(t.Context(), "s", &session.Client{Viewer: v}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			if err := view.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			v.await(t, 0, event.SessionIdle)
			events := b.verify("s")
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
	c := &counter{name: "act", ask: true}
	b := newBench(t, offline.Model{}, c)
	v := b.create("s", &session.Client{Permission: true})
	b.send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	asked, _ := v.await(t, 0, event.PermissionAsked)
	d, _ := event.As[event.PermissionAskedData](asked)
	b.restart() // the question outlives the engine
	answer := turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}
	var won int
	for range 2 {
		ok, err := b.host.Answer(t.Context(), "s", answer)
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
	b.verify("s")
	if c.runs != 1 {
		t.Errorf("the tool ran %d times, want 1", c.runs)
	}
}

// awaitIdle follows the log until the session is idle.
func awaitIdle(t *testing.T, b *bench, id event.SessionID) {
	t.Helper()
	v := newViewer()
	view, err := b.host.Attach(t.Context(), id, &session.Client{Viewer: v}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.await(t, 0, event.SessionIdle)
}

func TestNobodyToAskIsDeniedAtOnce(t *testing.T) {
	c := &counter{name: "act", ask: true}
	b := newBench(t, offline.Model{}, c)
	v := b.create("s", &session.Client{})
	b.send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); !strings.Contains(got, "could not request permission") {
		t.Errorf("answer = %q", got)
	}
	if c.runs != 0 {
		t.Errorf("the tool ran %d times without permission", c.runs)
	}
}

func TestExternalCallsAreAnsweredInAnyOrderByAnybody(t *testing.T) {
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{Permission: true, Tools: []event.ExternalTool{
		{Name: "a", SkipPermission: true}, {Name: "b", SkipPermission: true}}})
	b.send("s", event.InputAcceptedData{Prompt: "Call a with value 'x' and b with value 'y', then reply with both results"})
	first, at := v.await(t, 0, event.ExternalAsked)
	second, _ := v.await(t, at, event.ExternalAsked)
	b.restart()
	for _, e := range []event.Event{second, first} {
		d, _ := event.As[event.ExternalAskedData](e)
		ok, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "result of " + d.ToolName}})
		if err != nil || !ok {
			t.Fatalf("answer for %s: %v, %v", d.ToolName, ok, err)
		}
		b.restart()
	}
	awaitIdle(t, b, "s")
	if got := lastAnswer(t, b.verify("s")); got != "result of a\nresult of b" {
		t.Errorf("answer = %q", got)
	}
}

func TestAskUserSurvivesARestartAndIsPutToTheNextClient(t *testing.T) {
	b := newBench(t, offline.Model{})
	asked := make(chan string, 2)
	never := func(ctx context.Context, _ event.SessionID, q event.UserInputAskedData) (turn.UserReply, error) {
		asked <- q.Question
		<-ctx.Done()
		return turn.UserReply{}, ctx.Err()
	}
	b.create("s", &session.Client{AskUser: never})
	b.send("s", event.InputAcceptedData{Prompt: "Ask me: which colour?"})
	if q := <-asked; q != "which colour?" {
		t.Errorf("question = %q", q)
	}
	b.restart()
	v := newViewer()
	yes := true
	view, err := b.host.Resume(t.Context(), "s", session.Resume{Continue: &yes}, &session.Client{Viewer: v,
		AskUser: func(context.Context, event.SessionID, event.UserInputAskedData) (turn.UserReply, error) {
			return turn.UserReply{Answer: "blue", WasFreeform: true}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); !strings.Contains(got, "User responded: blue") {
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
				b := newBench(t, offline.Model{})
				c := &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}}
				v := b.create("s", c)
				b.send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
				synctest.Wait()
				asked, _ := v.await(t, 0, event.ExternalAsked)
				b.host.Detach("s", c, true)
				time.Sleep(test.pause)
				again := newViewer()
				view, err := b.host.Resume(t.Context(), "s", session.Resume{}, &session.Client{Viewer: again})
				if err != nil {
					t.Fatal(err)
				}
				if err := view.CatchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				resumed, _ := again.await(t, 0, event.SessionResume)
				r, _ := event.As[event.SessionResumeData](resumed)
				if r.SessionWasActive != test.warm {
					t.Errorf("sessionWasActive = %v, want %v", r.SessionWasActive, test.warm)
				}
				d, _ := event.As[event.ExternalAskedData](asked)
				ok, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "late"}})
				if err != nil || ok != test.answer {
					t.Errorf("answer won = %v, %v; want %v", ok, err, test.answer)
				}
				synctest.Wait()
				b.verify("s")
				b.host.Close()
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
			b := newBench(t, offline.Model{})
			v := b.create("s", &session.Client{Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}})
			b.send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
			asked, _ := v.await(t, 0, event.ExternalAsked)
			b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: SECOND", Mode: test.mode})
			b.restart() // accepted means stored
			if test.mode != event.ModeInterrupt {
				d, _ := event.As[event.ExternalAskedData](asked)
				if ok, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "one"}}); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			awaitIdle(t, b, "s")
			events := b.verify("s")
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
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{})
	in := event.InputAcceptedData{Prompt: "Reply with exactly: ONE", Key: "k"}
	first := b.send("s", in)
	v.await(t, 0, event.SessionIdle)
	b.restart()
	if second := b.send("s", in); second != first {
		t.Errorf("the second send has id %s, want %s", second, first)
	}
	n := 0
	for _, e := range b.verify("s") {
		if e.Type == event.UserMessage {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d user messages, want 1", n)
	}
}

func TestAbortEndsEverythingOpen(t *testing.T) {
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{Permission: true, Tools: external("a")})
	b.send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
	asked, _ := v.await(t, 0, event.PermissionAsked)
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEVER"})
	if err := b.host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Fatal(err)
	}
	idle, _ := v.await(t, 0, event.SessionIdle)
	if d, _ := event.As[event.SessionIdleData](idle); !d.Aborted {
		t.Error("session.idle does not say that the turn was aborted")
	}
	d, _ := event.As[event.PermissionAskedData](asked)
	if ok, _ := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}); ok {
		t.Error("a question of an aborted turn could be answered")
	}
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ALIVE"})
	_, at := v.await(t, 0, event.SessionIdle)
	v.await(t, at, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); got != "ALIVE" {
		t.Errorf("answer = %q, want ALIVE", got)
	}
}

func TestSlowViewerReadsWhatItMissed(t *testing.T) {
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{})
	slow := newViewer()
	slow.room = 3
	view, err := b.host.Attach(t.Context(), "s", &session.Client{Viewer: slow}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := 0
	for range 3 {
		b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: X"})
		_, at = v.await(t, at, event.SessionIdle)
	}
	var want []event.Seq
	for _, e := range b.verify("s") {
		if !e.Type.Hidden() {
			want = append(want, e.Seq)
		}
	}
	for {
		slow.mu.Lock()
		slow.room += 2
		slow.mu.Unlock()
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		slow.mu.Lock()
		var shown []event.Seq
		for _, e := range slow.events {
			if e.Seq > 0 {
				shown = append(shown, e.Seq)
			}
		}
		slow.mu.Unlock()
		if len(shown) == len(want) {
			if !slices.Equal(shown, want) {
				t.Errorf("shown = %v, want %v", shown, want)
			}
			return
		}
	}
}

func TestForkRewindAndDelete(t *testing.T) {
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{})
	for i := range 2 {
		b.send("s", event.InputAcceptedData{Prompt: fmt.Sprintf("Reply with exactly: ANSWER %d", i)})
		at := 0
		for range i + 1 {
			_, at = v.await(t, at, event.SessionIdle)
		}
	}
	child, err := b.host.Fork(t.Context(), "child", "s", 0, "copy")
	if err != nil {
		t.Fatal(err)
	}
	var second event.Event
	for _, e := range b.verify("s") {
		if e.Type == event.UserMessage {
			second = e
		}
	}
	head, _ := second.Head()
	if n, err := b.host.Rewind(t.Context(), "s", session.Rewind{EventID: head.ID}); err != nil || n.Events < 3 {
		t.Fatalf("rewind: %v, %v", n, err)
	}
	shown, err := b.host.Log.Messages(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := lastAnswer(t, shown); got != "ANSWER 0" {
		t.Errorf("after the rewind the last answer is %q", got)
	}
	if err := b.host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := lastAnswer(t, b.verify(child)); got != "ANSWER 1" {
		t.Errorf("the fork's last answer is %q", got)
	}
	if _, err := b.host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err == nil {
		t.Error("a deleted session takes input")
	}
	if got := b.send(child, event.InputAcceptedData{Prompt: "Reply with exactly: GOES ON"}); got == "" {
		t.Error("the fork takes no input")
	}
	awaitAnswer(t, b, child, "GOES ON")
}

func awaitAnswer(t *testing.T, b *bench, id event.SessionID, want string) {
	t.Helper()
	v := newViewer()
	view, err := b.host.Attach(t.Context(), id, &session.Client{Viewer: v}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at := 0; ; {
		var e event.Event
		e, at = v.await(t, at, event.AssistantMessage)
		if d, _ := event.As[event.AssistantMessageData](e); d.Content == want {
			return
		}
	}
}

func TestAnIdleSessionLeavesMemoryAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, offline.Model{})
		c := &session.Client{}
		v := b.create("s", c)
		b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
		synctest.Wait()
		b.host.Detach("s", c, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := b.host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory after an hour of rest", n)
		}
		again := newViewer()
		seen := v.events[len(v.events)-1].Seq
		b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
		view, err := b.host.Attach(t.Context(), "s", &session.Client{Viewer: again}, seen)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		again.await(t, 0, event.SessionIdle)
		for _, e := range again.events {
			if e.Seq > 0 && e.Seq <= seen {
				t.Errorf("event %d was shown again", e.Seq)
			}
		}
		if got := lastAnswer(t, b.verify("s")); got != "TWO" {
			t.Errorf("answer = %q, want TWO", got)
		}
		b.host.Close()
	})
}

func TestASessionThatWaitsForAnAnswerCanLeaveMemoryToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, offline.Model{})
		c := &session.Client{Tools: []event.ExternalTool{{Name: "a", SkipPermission: true}}}
		v := b.create("s", c)
		b.send("s", event.InputAcceptedData{Prompt: "Use a with value 'x', then reply with the result"})
		synctest.Wait()
		asked, _ := v.await(t, 0, event.ExternalAsked)
		b.host.Detach("s", c, true)
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		if n := b.host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory", n)
		}
		d, _ := event.As[event.ExternalAskedData](asked)
		if ok, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "at last"}}); !ok || err != nil {
			t.Errorf("the answer after a long rest: %v, %v", ok, err)
		}
		synctest.Wait()
		if got := lastAnswer(t, b.verify("s")); got != "at last" {
			t.Errorf("answer = %q", got)
		}
		b.host.Close()
	})
}
