package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// A hookClient answers hooks: it keeps what it was asked, and answers as
// the test says.
type hookClient struct {
	mu    sync.Mutex
	asked []string
	input map[string]string // the last of each kind
	says  map[string]string // answers by kind
	stuck map[string]bool   // the kinds that are not answered while the client is there
	fails error
	heard chan string // each kind, if not nil
}

func (e *hookClient) hook(ctx context.Context, _ event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
	e.mu.Lock()
	e.asked = append(e.asked, kind)
	if e.input == nil {
		e.input = map[string]string{}
	}
	e.input[kind] = string(input)
	say, stuck, fails, heard := e.says[kind], e.stuck[kind], e.fails, e.heard
	e.mu.Unlock()
	if heard != nil {
		heard <- kind
	}
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if say == "" || fails != nil {
		return nil, fails
	}
	return json.RawMessage(say), nil
}

func (e *hookClient) count(kind string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, k := range e.asked {
		if k == kind {
			n++
		}
	}
	return n
}

const useAct = "Use act with value 'x', then reply with the result"

// act runs one turn that calls act, and returns the log.
func act(t testing.TB, e *hookClient, c *countingTool) (*sessiontest.Fixture, []event.Event) {
	t.Helper()
	b := sessiontest.New(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	v.Await(t, 0, event.SessionIdle)
	return b, b.Verify("s")
}

func TestHooksAreAskedInOrderAndRecorded(t *testing.T) {
	e := &hookClient{}
	_, events := act(t, e, &countingTool{name: "act"})
	want := []string{
		event.HookPromptSubmitted, event.HookPromptTransformed, event.HookSessionStart,
		event.HookPreToolUse, event.HookPostToolUse, event.HookAgentStop, event.HookSessionEnd,
	}
	if !slices.Equal(e.asked, want) {
		t.Errorf("asked %v\nwant  %v", e.asked, want)
	}
	open := map[string]bool{}
	for _, ev := range events {
		switch ev.Type {
		case event.HookStart:
			d, _ := event.As[event.HookStartData](ev)
			open[d.ID] = true
		case event.HookEnd:
			d, _ := event.As[event.HookEndData](ev)
			if !open[d.ID] || !d.Success {
				t.Errorf("hook.end %+v", d)
			}
			delete(open, d.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("%d hooks have no end", len(open))
	}
	for kind, field := range map[string]string{event.HookPreToolUse: `"toolName":"act"`, event.HookPostToolUse: `"textResultForLlm":"ran"`, event.HookSessionStart: `"source":"new"`, event.HookSessionEnd: `"reason":"complete"`} {
		if !strings.Contains(e.input[kind], field) {
			t.Errorf("%s was told %s, want %s in it", kind, e.input[kind], field)
		}
	}
}

func TestWhatHooksSayOfACall(t *testing.T) {
	for _, test := range []struct {
		name   string
		says   map[string]string
		runs   int
		answer string
	}{
		{"allowed", map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`}, 1, "ran"},
		{"nothing said, and nobody else to ask", nil, 0, "could not request permission"},
		{"denied", map[string]string{event.HookPreToolUse: `{"permissionDecision":"deny"}`}, 0, "Denied by preToolUse hook: No reason provided"},
		{"denied with a reason", map[string]string{event.HookPreToolUse: `{"permissionDecision":"deny","permissionDecisionReason":"too late"}`}, 0, "Denied by preToolUse hook: too late"},
		{"a person is to be asked, and none is there", map[string]string{event.HookPreToolUse: `{"permissionDecision":"ask"}`}, 0, "could not request permission"},
		{"another result", map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`, event.HookPostToolUse: `{"modifiedResult":{"textResultForLlm":"other","resultType":"success"}}`}, 1, "other"},
		{"another result, as text", map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`, event.HookPostToolUse: `{"modifiedResult":"plain"}`}, 1, "plain"},
		{"more to read", map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow","additionalContext":"before"}`, event.HookPostToolUse: `{"additionalContext":"after"}`}, 1, "ran\n\nbefore\n\nafter"},
		{"what makes no sense says nothing", map[string]string{event.HookPreToolUse: `"allow"`}, 0, "could not request permission"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &countingTool{name: "act", ask: true}
			_, events := act(t, &hookClient{says: test.says}, c)
			if c.runs != test.runs {
				t.Errorf("the tool ran %d times, want %d", c.runs, test.runs)
			}
			if got := lastAnswer(t, events); !strings.Contains(got, test.answer) {
				t.Errorf("answer = %q, want %q in it", got, test.answer)
			}
		})
	}
}

func TestAHookIsAskedAboutToolsThatDoNotExist(t *testing.T) {
	e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"deny","permissionDecisionReason":"no"}`}}
	_, events := act(t, e, &countingTool{name: "other"})
	if got := lastAnswer(t, events); !strings.Contains(got, "Denied by preToolUse hook: no") {
		t.Errorf("answer = %q", got)
	}
	e = &hookClient{}
	act(t, e, &countingTool{name: "other"})
	if e.count(event.HookPostToolFailure) != 1 || !strings.Contains(e.input[event.HookPostToolFailure], "does not exist") {
		t.Errorf("asked %v with %q", e.asked, e.input[event.HookPostToolFailure])
	}
}

func TestAHookChangesTheArgumentsOfAClientsTool(t *testing.T) {
	m := &recordingModel{}
	b := sessiontest.New(t, m)
	e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow","modifiedArgs":{"value":"y"}}`}}
	v := b.Create("s", &session.Client{Hook: e.hook, Tools: external("act")})
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	asked, _ := v.Await(t, 0, event.ExternalAsked)
	d, _ := event.As[event.ExternalAskedData](asked)
	if string(d.Arguments) != `{"value":"y"}` {
		t.Errorf("arguments = %s", d.Arguments)
	}
	if _, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "done"}}); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if e.count(event.HookPostToolUse) != 1 || lastAnswer(t, b.Verify("s")) != "done" {
		t.Errorf("asked %v", e.asked)
	}
	checkArguments := func(when string) {
		t.Helper()
		if call := m.last().Messages[1].Calls[0]; string(call.Arguments) != `{"value":"y"}` {
			t.Errorf("%s the model reads that it called act with %s", when, call.Arguments)
		}
	}
	checkArguments("afterwards")
	b.Restart()
	v = b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OK"})
	v.Await(t, 0, event.SessionIdle)
	checkArguments("after a restart")
}

func TestHooksOfPrompts(t *testing.T) {
	run := func(says map[string]string) string {
		b := sessiontest.New(t, offline.Model{})
		v := b.Create("s", &session.Client{Hook: (&hookClient{says: says}).hook})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: PLAIN"})
		v.Await(t, 0, event.SessionIdle)
		return lastAnswer(t, b.Verify("s"))
	}
	for _, test := range []struct{ kind, say, want string }{
		{event.HookPromptSubmitted, `{"modifiedPrompt":"Reply with exactly: CHANGED"}`, "CHANGED"},
		{event.HookPromptTransformed, `{"modifiedTransformedPrompt":"Reply with exactly: READ"}`, "READ"},
		{event.HookPromptSubmitted, `{}`, "PLAIN"},
		{event.HookAgentStop, `{}`, "PLAIN"},
	} {
		if got := run(map[string]string{test.kind: test.say}); got != test.want {
			t.Errorf("%s %s: answer = %q, want %q", test.kind, test.say, got, test.want)
		}
	}
}

func TestAHookLetsTheTurnGoOn(t *testing.T) {
	e := &hookClient{says: map[string]string{event.HookAgentStop: `{"decision":"block","reason":"Reply with exactly: MORE"}`}}
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{Hook: func(ctx context.Context, id event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(input), `"stop_hook_active":true`) {
			return nil, nil
		}
		return e.hook(ctx, id, kind, input)
	}})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	events := b.Verify("s")
	if got := lastAnswer(t, events); got != "MORE" {
		t.Errorf("answer = %q", got)
	}
	var ids []string
	for _, ev := range events {
		if ev.Type == event.AssistantTurnStart {
			d, _ := event.As[event.AssistantTurnStartData](ev)
			ids = append(ids, d.TurnID)
		}
	}
	if !slices.Equal(ids, []string{"0", "1"}) {
		t.Errorf("turns = %v, want one turn of two steps", ids)
	}
}

// failingModel is a model that fails a number of times and then answers.
type failingModel struct {
	mu    sync.Mutex
	fails int
}

func (g *failingModel) Ask(_ context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails--; g.fails >= 0 {
		return nil, &model.Error{Kind: model.KindRequest, Message: "no"}
	}
	return &model.Reply{Text: "yes"}, nil
}

func TestAHookHasASayInGivingUp(t *testing.T) {
	for _, test := range []struct {
		say    string
		fails  int
		answer string
	}{
		{`{"errorHandling":"retry"}`, 1, "yes"},
		{`{"errorHandling":"retry"}`, 2, ""},
		{`{"errorHandling":"retry","retryCount":3}`, 3, "yes"},
		{`{"errorHandling":"retry","retryCount":1000}`, 1000, ""},
		{`{"errorHandling":"abort"}`, 1, ""},
	} {
		b := sessiontest.New(t, &failingModel{fails: test.fails})
		e := &hookClient{says: map[string]string{event.HookErrorOccurred: test.say}}
		v := b.Create("s", &session.Client{Hook: e.hook})
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		v.Await(t, 0, event.SessionIdle)
		events := b.Verify("s")
		if got := lastAnswer(t, events); got != test.answer {
			t.Errorf("%s: answer = %q, want %q", test.say, got, test.answer)
		}
		if failed := slices.Contains(kindsOf(events), event.SessionError); failed != (test.answer == "") {
			t.Errorf("%s: an error is recorded: %v", test.say, failed)
		}
	}
}

func TestARecordedDecisionIsNotAskedForAgain(t *testing.T) {
	began := make(chan struct{})
	c := &countingTool{name: "act", ask: true, replay: tool.Keyed, block: began}
	b := sessiontest.New(t, offline.Model{}, c)
	e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`}}
	b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	<-began
	b.Restart()
	again := &hookClient{}
	v := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: v, Hook: again.hook}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if n := e.count(event.HookPreToolUse) + again.count(event.HookPreToolUse); n != 1 {
		t.Errorf("preToolUse was asked %d times, want 1", n)
	}
	if got := lastAnswer(t, b.Verify("s")); got != "ran" {
		t.Errorf("answer = %q", got)
	}
}

func TestAResultIsKeptWhileAHookIsAskedAboutIt(t *testing.T) {
	c := &countingTool{name: "act"}
	b := sessiontest.New(t, offline.Model{}, c)
	heard := make(chan string, 16)
	e := &hookClient{stuck: map[string]bool{event.HookPostToolUse: true}, heard: heard}
	b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	for kind := range heard {
		if kind == event.HookPostToolUse {
			break
		}
	}
	b.Restart()
	again := &hookClient{says: map[string]string{event.HookPostToolUse: `{"additionalContext":"seen"}`}}
	v := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: v, Hook: again.hook}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if c.runs != 1 || again.count(event.HookPostToolUse) != 1 {
		t.Errorf("%d runs, asked %v", c.runs, again.asked)
	}
	if got := lastAnswer(t, b.Verify("s")); got != "ran\n\nseen" {
		t.Errorf("answer = %q", got)
	}
}

func TestAHookThatNobodyAnswersCountsAsAbsent(t *testing.T) {
	left := &hookClient{fails: session.ErrLeft}
	for _, test := range []struct {
		name  string
		ears  *hookClient
		leave bool          // the client vanishes
		least time.Duration // time that the call takes at least
	}{
		{"it never answers", &hookClient{stuck: map[string]bool{event.HookPreToolUse: true}}, false, time.Minute},
		{"it fails", &hookClient{fails: errors.New("broken")}, false, 0},
		{"its client is gone", left, false, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &countingTool{name: "act"}
				b := sessiontest.New(t, offline.Model{}, c)
				defer b.Host.Close()
				v := b.Create("s", &session.Client{Hook: test.ears.hook})
				started := time.Now()
				b.Send("s", event.InputAcceptedData{Prompt: useAct})
				synctest.Wait()
				time.Sleep(5 * time.Minute)
				v.Await(t, 0, event.SessionIdle)
				if c.runs != 1 {
					t.Errorf("the tool ran %d times, want 1", c.runs)
				}
				events := b.Verify("s")
				head, err := events[len(events)-1].Head()
				if took := head.Time.Sub(started); err != nil || took < test.least || took > test.least+time.Second {
					t.Errorf("it took %s, want %s", took, test.least)
				}
			})
		})
	}
}

func TestAHookWaitsForTheClientThatVanishedAndIsPutToItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingTool{name: "act", ask: true}
		b := sessiontest.New(t, offline.Model{}, c)
		defer b.Host.Close()
		lost := &session.Client{}
		vanish := func(ctx context.Context, _ event.SessionID, kind string, _ json.RawMessage) (json.RawMessage, error) {
			if kind == event.HookPreToolUse {
				return nil, session.ErrLeft
			}
			return nil, nil
		}
		lost.Hook = vanish
		b.Create("s", lost)
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		synctest.Wait()
		b.Host.Detach("s", lost, true)
		time.Sleep(time.Second) // within the grace time
		e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`}}
		v := sessiontest.NewViewer()
		view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: v, Hook: e.hook}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		v.Await(t, 0, event.SessionIdle)
		if e.count(event.HookPreToolUse) != 1 || c.runs != 1 {
			t.Errorf("asked %v, %d runs", e.asked, c.runs)
		}
		b.Verify("s")
	})
}

func TestAHookHoldsUpNobodyElse(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	heard := make(chan string, 16)
	b.Create("stuck", &session.Client{Hook: (&hookClient{stuck: map[string]bool{event.HookPromptSubmitted: true}, heard: heard}).hook})
	b.Send("stuck", event.InputAcceptedData{Prompt: "Reply with exactly: LATER"})
	<-heard
	v := b.Create("free", &session.Client{})
	b.Send("free", event.InputAcceptedData{Prompt: "Reply with exactly: NOW"})
	v.Await(t, 0, event.SessionIdle)
}

func TestAbortEndsOpenHooks(t *testing.T) {
	b := sessiontest.New(t, offline.Model{}, &countingTool{name: "act"})
	heard := make(chan string, 64)
	e := &hookClient{stuck: map[string]bool{event.HookPreToolUse: true}, heard: heard}
	v := b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	for kind := range heard {
		if kind == event.HookPreToolUse {
			break
		}
	}
	if err := b.Host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if !strings.Contains(e.input[event.HookSessionEnd], `"reason":"abort"`) {
		t.Errorf("sessionEnd was told %s", e.input[event.HookSessionEnd])
	}
	open := 0
	for _, ev := range b.Verify("s") {
		switch ev.Type {
		case event.HookStart:
			open++
		case event.HookEnd:
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d hooks have no end", open)
	}
}

func TestSeveralClientsAreHeardAndTheStrictestDecides(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := sessiontest.New(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Hook: (&hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"deny","permissionDecisionReason":"mine"}`}}).hook})
	other := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow","permissionDecisionReason":"fine"}`}}
	if _, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: sessiontest.NewViewer(), Hook: other.hook}, 0); err != nil {
		t.Fatal(err)
	}
	b.Send("s", event.InputAcceptedData{Prompt: useAct})
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); c.runs != 0 || !strings.Contains(got, "hook: mine") {
		t.Errorf("%d runs, answer = %q", c.runs, got)
	}
}

// A failingHookStore cannot store the first hook that is to be asked.
type failingHookStore struct {
	eventlog.Store
	stumbled bool
}

func (s *failingHookStore) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	for _, e := range b.Events {
		if e.Type == event.HookStart && !s.stumbled {
			s.stumbled = true
			return eventlog.End{}, errors.New("the disk is full")
		}
	}
	return s.Store.Append(ctx, id, b)
}

func TestAHookIsStoredBeforeItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		b.Host.Close()
		b.Store = &failingHookStore{Store: b.Store}
		b.Start()
		defer b.Host.Close()
		e := &hookClient{}
		v := b.Create("s", &session.Client{Hook: e.hook})
		if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "Reply with exactly: OK"}); err == nil {
			t.Fatal("what could not be stored was accepted")
		}
		synctest.Wait()
		if n := e.count(event.HookPromptSubmitted); n != 0 {
			t.Errorf("a hook was asked %d times that is not stored", n)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OK"})
		v.Await(t, 0, event.SessionIdle)
		if n := e.count(event.HookPromptSubmitted); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

func TestSessionStartIsOfTheFirstTurnAlone(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	e := &hookClient{}
	late := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: late, Hook: e.hook}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
	_, at := v.Await(t, 0, event.SessionIdle)
	v.Await(t, at, event.SessionIdle)
	if n := e.count(event.HookSessionStart); n != 0 || e.count(event.HookPromptSubmitted) != 1 {
		t.Errorf("asked %v", e.asked)
	}
}
