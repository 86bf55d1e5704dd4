package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

// withAgents is a fixture whose models can start agents.
func withAgents(t testing.TB, m model.Model, tools ...tool.Tool) *sessiontest.Fixture {
	b := sessiontest.New(t, m, tools...)
	b.Options.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
	b.Restart()
	return b
}

// delegate is what makes the offline model start an agent.
func delegate(kind, prompt string) event.InputAcceptedData {
	args, _ := json.Marshal(map[string]string{"description": "d", "prompt": prompt, "agent_type": kind, "name": "n"})
	return event.InputAcceptedData{Prompt: "Use task with " + string(args)}
}

// child returns the id of the agent's session that the log tells of.
func child(t testing.TB, events []event.Event) event.SessionID {
	t.Helper()
	for _, e := range events {
		if e.Type == event.ToolBegun {
			d, _ := event.As[event.ToolBegunData](e)
			return event.SessionID(d.Key)
		}
	}
	t.Fatal("no call was begun")
	return ""
}

func TestAnAgentAnswersItsCall(t *testing.T) {
	b := withAgents(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
	v.Await(t, 0, event.SessionIdle)
	events := b.Verify("s")
	if got := lastAnswer(t, events); !strings.Contains(got, "CHILD") {
		t.Errorf("answer = %q", got)
	}
	v.Await(t, 0, event.SubagentStarted)
	v.Await(t, 0, event.SubagentCompleted)
	agent := child(t, events)
	b.Verify(agent)
	for s, err := range b.Host.List(t.Context(), eventlog.Query{Listed: true}) {
		if err != nil || s.ID == agent {
			t.Errorf("the agent's session is listed: %v, %v", s.ID, err)
		}
	}
	fork, err := b.Host.Fork(t.Context(), "f", "s", 0, "")
	if err == nil {
		err = b.Host.Delete(t.Context(), fork)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Verify(agent) // the fork only shares the events that tell of it
	if err := b.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Host.Info(t.Context(), agent); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the agent's session outlives the one that started it: %v", err)
	}
}

func TestAnAgentsQuestionIsAnsweredWhereItWasStartedAlsoAfterAStop(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", delegate("task", useAct))
	asked, _ := v.Await(t, 0, event.PermissionAsked)
	if !strings.Contains(string(asked.Bytes), `"agentId":"`) {
		t.Errorf("the question does not say whose it is: %s", asked.Bytes)
	}
	d, err := event.As[event.PermissionAskedData](asked)
	if err != nil {
		t.Fatal(err)
	}
	b.Restart()
	v = resumeWith(b, "s", &session.Client{Permission: true}, true)
	if st, err := b.Host.Status(t.Context(), "s"); err != nil || len(st.Questions) != 1 {
		t.Errorf("questions = %v, %v", st.Questions, err)
	}
	won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); c.runs != 1 || !strings.Contains(got, "ran") {
		t.Errorf("%d runs, answer = %q", c.runs, got)
	}
}

// resumeWith comes back to a session with a client that can do something.
func resumeWith(b *sessiontest.Fixture, id event.SessionID, c *session.Client, goOn bool) *sessiontest.Viewer {
	b.T.Helper()
	return b.Resume(id, session.Resume{Continue: &goOn}, c)
}

func TestHooksAreAskedAboutTheCallsOfAgents(t *testing.T) {
	b := withAgents(t, offline.Model{}, &countingTool{name: "act", ask: true})
	e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`}}
	v := b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", delegate("task", useAct))
	v.Await(t, 0, event.SessionIdle)
	events := b.Verify("s")
	if got := lastAnswer(t, events); !strings.Contains(got, "ran") {
		t.Errorf("answer = %q", got)
	}
	if e.count(event.HookPreToolUse) != 2 || e.count(event.HookSessionEnd) != 1 {
		t.Errorf("asked %v", e.asked)
	}
}

func TestAgentsThatCannotBeStarted(t *testing.T) {
	b := withAgents(t, offline.Model{})
	for _, test := range []struct {
		excluded []string
		args     string
		want     string
	}{
		{nil, `{"description":"d","prompt":"p","agent_type":"bogus","name":"n"}`, "Unknown agent_type: bogus. Valid types are: explore, "},
		{[]string{"explore"}, `{"description":"d","prompt":"p","agent_type":"explore","name":"n"}`, "Unknown agent_type: explore. Valid types are: task, "},
		{nil, `{"description":"d","agent_type":"task","name":"n"}`, `Invalid input: "prompt": Required`},
		{agent.Names(), `{"description":"d"}`, "Tool 'task' does not exist."},
	} {
		id := event.SessionID(event.NewID())
		v := sessiontest.NewViewer()
		view, err := b.Host.Create(t.Context(), id, session.Spec{Config: event.SessionConfiguredData{ExcludedAgents: test.excluded}}, &session.Client{Viewer: v})
		if err != nil {
			t.Fatal(err)
		}
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Send(id, event.InputAcceptedData{Prompt: "Use task with " + test.args})
		v.Await(t, 0, event.SessionIdle)
		if got := lastAnswer(t, b.Verify(id)); !strings.Contains(got, test.want) {
			t.Errorf("%s without %v: answer = %q, want %q in it", test.args, test.excluded, got, test.want)
		}
	}
}

func TestAnAgentStopsWithItsCall(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", delegate("task", useAct))
	v.Await(t, 0, event.PermissionAsked)
	if err := b.Host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	agent := child(t, b.Verify("s"))
	awaitIdle(t, b, agent)
	if !slices.Contains(kindsOf(b.Verify(agent)), event.Abort) {
		t.Error("the agent was not stopped")
	}
}

// What a client denies to a session is denied to the agents that the session starts, and to
// those that work already.
func TestWhatASessionMayNotDoItsAgentsMayNotDo(t *testing.T) {
	act := &countingTool{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, act)
	v := b.Create("s", &session.Client{Permission: true})
	deny := func(name string) {
		t.Helper()
		err := b.Host.Permissions.ChangeRules(t.Context(), "s", func(r *event.ClientRules) error {
			r.Deny = append(r.Deny, event.Rule{Kind: approval.CustomTool, Argument: &name})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Send("s", delegate("task", useAct))
	v.Await(t, 0, event.PermissionAsked)
	agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	deny("act")
	told := b.AwaitStored(agent, eventlog.End{}, event.ClientRules{}.Type())
	if rules, err := event.As[event.ClientRules](told); err != nil || len(rules.Deny) != 1 {
		t.Errorf("the agent that works may still act: %+v, %v", rules, err)
	}
	if err := errors.Join(b.Host.Abort(t.Context(), "s", "test"), b.Host.Permissions.AllowAll(t.Context(), "s", true)); err != nil {
		t.Fatal(err)
	}
	_, at := v.Await(t, 0, event.SessionIdle)
	b.Send("s", delegate("task", useAct))
	v.Await(t, at, event.SessionIdle)
	if act.runs > 0 {
		t.Errorf("an agent has acted %d times", act.runs)
	}
}

// An agent whose session is no longer one that allows everything asks, too.
func TestAnAgentAsksAgainWithItsSession(t *testing.T) {
	act := &countingTool{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, act)
	v := sessiontest.NewViewer()
	view, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Approve: approval.All}}, &session.Client{Permission: true, Viewer: v})
	if err == nil {
		err = view.CatchUp(t.Context())
	}
	if err == nil {
		err = b.Host.Permissions.AllowAll(t.Context(), "s", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Send("s", delegate("task", useAct))
	v.Await(t, 0, event.PermissionAsked)
	if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
		t.Fatal(err)
	}
}

// An agent that works when its session stops to allow everything asks from then on, too.
func TestAnAgentThatWorksAsksAgainWithItsSession(t *testing.T) {
	began := make(chan struct{})
	act := &countingTool{name: "act", ask: true, block: began}
	b := withAgents(t, offline.Model{}, act)
	if _, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Approve: approval.All}}, &session.Client{Permission: true, Viewer: sessiontest.NewViewer()}); err != nil {
		t.Fatal(err)
	}
	b.Send("s", delegate("task", useAct))
	<-began
	agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	if err := b.Host.Permissions.AllowAll(t.Context(), "s", false); err != nil {
		t.Fatal(err)
	}
	told, err := event.As[event.PermissionsChangedData](b.AwaitStored(agent, eventlog.End{}, event.PermissionsChanged))
	if err != nil || told.Mode != turn.PermissionMode(false) {
		t.Errorf("the agent is told %+v, %v", told, err)
	}
	if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
		t.Fatal(err)
	}
}

// Somebody speaks to an agent whose call is over, and the new turn waits for an answer. An
// abort of the session that started it stops that turn, too: the answer must not continue it.
func TestAnAbortReachesAFormerAgentThatWaitsForAnAnswer(t *testing.T) {
	c := &countingTool{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, c)
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", delegate("task", "Reply with exactly: CHILD"))
	v.Await(t, 0, event.SessionIdle)
	agent := child(t, b.Verify("s"))
	b.Send(agent, event.InputAcceptedData{Prompt: useAct})
	asked, err := event.As[event.PermissionAskedData](b.AwaitStored(agent, eventlog.End{}, event.PermissionAsked))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Host.Stop(t.Context(), "s", holdStop); err != nil {
		t.Fatal(err)
	}
	won, err := b.Host.Answer(t.Context(), agent, turn.Answer{RequestID: asked.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}})
	if err != nil || won {
		t.Errorf("the question is still open: %v, %v", won, err)
	}
	if st, err := b.Host.Status(t.Context(), agent); err != nil || st.Active {
		t.Errorf("the agent works on: %v, %v", st.Active, err)
	}
	if c.runs != 0 {
		t.Errorf("the tool ran %d times after the stop", c.runs)
	}
}

// What a client restricts when it comes back holds for the agents that work already.
func TestARestrictionReachesAnAgentThatWorks(t *testing.T) {
	b := withAgents(t, offline.Model{}, &countingTool{name: "act", ask: true})
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", delegate("task", useAct))
	v.Await(t, 0, event.PermissionAsked)
	agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	restricted := func(rule string) session.Spec {
		return session.Spec{Config: event.SessionConfiguredData{Managed: &event.ManagedRules{Deny: []string{rule}}}}
	}
	goOn := true
	b.Resume("s", session.Resume{Continue: &goOn, Keep: true, Spec: restricted("act")}, &session.Client{Permission: true})
	if _, err := b.Host.Create(t.Context(), "s", restricted("bash"), nil); err != nil {
		t.Fatal(err)
	}
	st, err := b.Host.Status(t.Context(), agent)
	if err != nil || st.Config.Managed == nil || !slices.Equal(st.Config.Managed.Deny, []string{"act", "bash"}) {
		t.Errorf("the agent is restricted by %+v, %v", st.Config.Managed, err)
	}
	if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
		t.Fatal(err)
	}
}

// What a person revokes is revoked for the agents that work already, too.
func TestRevokedGrantsAreRevokedForAnAgentThatWorks(t *testing.T) {
	running := make(chan struct{})
	b := withAgents(t, offline.Model{}, &countingTool{name: "act", ask: true, block: running})
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", delegate("task", useAct))
	asked, _ := v.Await(t, 0, event.PermissionAsked)
	d, err := event.As[event.PermissionAskedData](asked)
	if err != nil {
		t.Fatal(err)
	}
	won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveForSession}})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	<-running
	agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
	if err := errors.Join(b.Host.Permissions.ResetGrants(t.Context(), "s", true), b.Host.Abort(t.Context(), "s", "test")); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	if !slices.Contains(kindsOf(b.Verify(agent)), event.GrantsResetData{}.Type()) {
		t.Error("the agent keeps what it was granted")
	}
}

// A client with hooks vanishes while an agent works. The agent waits for it as the session
// would, and asks it about that call and about the next ones.
func TestAnAgentWaitsForTheHooksOfAClientThatVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingTool{name: "act"}
		b := withAgents(t, offline.Model{}, c)
		defer b.Host.Close()
		lost := &session.Client{}
		asked := 0
		lost.Hook = func(_ context.Context, _ event.SessionID, kind string, _ json.RawMessage) (json.RawMessage, error) {
			if kind == event.HookPreToolUse {
				if asked++; asked == 2 { // the first one is about the call that starts the agent
					return nil, session.ErrLeft
				}
			}
			return nil, nil
		}
		b.Create("s", lost)
		b.Send("s", delegate("task", useAct))
		synctest.Wait()
		b.Host.Detach("s", lost, true)
		time.Sleep(time.Second) // within the grace time
		e := &hookClient{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"deny"}`}}
		v := sessiontest.NewViewer()
		view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: v, Hook: e.hook}, 0)
		if err == nil {
			err = view.CatchUp(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		v.Await(t, 0, event.SessionIdle)
		if e.count(event.HookPreToolUse) != 1 || c.runs != 0 {
			t.Errorf("asked %v, %d runs", e.asked, c.runs)
		}
	})
}
