package session_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

// withAgents is a bench whose models can start agents.
func withAgents(t *testing.T, m model.Model, tools ...tool.Tool) *bench {
	b := newBench(t, m, tools...)
	b.opts.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
	b.restart()
	return b
}

// delegate is what makes the offline model start an agent.
func delegate(kind, prompt string) event.InputAcceptedData {
	args, _ := json.Marshal(map[string]string{"description": "d", "prompt": prompt, "agent_type": kind, "name": "n"})
	return event.InputAcceptedData{Prompt: "Use task with " + string(args)}
}

// child returns the id of the agent's session that the log tells of.
func child(t *testing.T, events []event.Event) event.SessionID {
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
	v := b.create("s", &session.Client{})
	b.send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
	v.await(t, 0, event.SessionIdle)
	events := b.verify("s")
	if got := lastAnswer(t, events); !strings.Contains(got, "CHILD") {
		t.Errorf("answer = %q", got)
	}
	v.await(t, 0, event.SubagentStarted)
	v.await(t, 0, event.SubagentCompleted)
	agent := child(t, events)
	b.verify(agent)
	for s, err := range b.host.List(t.Context()) {
		if err != nil || s.ID == agent {
			t.Errorf("the agent's session is listed: %v, %v", s.ID, err)
		}
	}
	fork, err := b.host.Fork(t.Context(), "f", "s", 0, "")
	if err == nil {
		err = b.host.Delete(t.Context(), fork)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.verify(agent) // the fork only shares the events that tell of it
	if err := b.host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.host.Info(t.Context(), agent); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the agent's session outlives the one that started it: %v", err)
	}
}

func TestAnAgentsQuestionIsAnsweredWhereItWasStartedAlsoAfterAStop(t *testing.T) {
	c := &counter{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, c)
	v := b.create("s", &session.Client{Permission: true})
	b.send("s", delegate("task", useAct))
	asked, _ := v.await(t, 0, event.PermissionAsked)
	if !strings.Contains(string(asked.Bytes), `"agentId":"`) {
		t.Errorf("the question does not say whose it is: %s", asked.Bytes)
	}
	d, err := event.As[event.PermissionAskedData](asked)
	if err != nil {
		t.Fatal(err)
	}
	b.restart()
	v = b.resumeWith("s", &session.Client{Permission: true}, true)
	if st, err := b.host.Status(t.Context(), "s"); err != nil || len(st.Questions) != 1 {
		t.Errorf("questions = %v, %v", st.Questions, err)
	}
	won, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	v.await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); c.runs != 1 || !strings.Contains(got, "ran") {
		t.Errorf("%d runs, answer = %q", c.runs, got)
	}
}

// resumeWith comes back to a session with a client that can do something.
func (b *bench) resumeWith(id event.SessionID, c *session.Client, goOn bool) *viewer {
	b.t.Helper()
	v := newViewer()
	c.Viewer = v
	view, err := b.host.Resume(b.t.Context(), id, session.Resume{Continue: &goOn}, c)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := view.CatchUp(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func TestHooksAreAskedAboutTheCallsOfAgents(t *testing.T) {
	b := withAgents(t, offline.Model{}, &counter{name: "act", ask: true})
	e := &ears{says: map[string]string{event.HookPreToolUse: `{"permissionDecision":"allow"}`}}
	v := b.create("s", &session.Client{Hook: e.hook})
	b.send("s", delegate("task", useAct))
	v.await(t, 0, event.SessionIdle)
	events := b.verify("s")
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
		v := newViewer()
		view, err := b.host.Create(t.Context(), id, session.Spec{Config: event.SessionConfiguredData{ExcludedAgents: test.excluded}}, &session.Client{Viewer: v})
		if err != nil {
			t.Fatal(err)
		}
		if err := view.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.send(id, event.InputAcceptedData{Prompt: "Use task with " + test.args})
		v.await(t, 0, event.SessionIdle)
		if got := lastAnswer(t, b.verify(id)); !strings.Contains(got, test.want) {
			t.Errorf("%s without %v: answer = %q, want %q in it", test.args, test.excluded, got, test.want)
		}
	}
}

func TestAnAgentStopsWithItsCall(t *testing.T) {
	c := &counter{name: "act", ask: true}
	b := withAgents(t, offline.Model{}, c)
	v := b.create("s", &session.Client{Permission: true})
	b.send("s", delegate("task", useAct))
	v.await(t, 0, event.PermissionAsked)
	if err := b.host.Abort(t.Context(), "s", "user_initiated"); err != nil {
		t.Fatal(err)
	}
	v.await(t, 0, event.SessionIdle)
	agent := child(t, b.verify("s"))
	awaitIdle(t, b, agent)
	if !slices.Contains(kindsOf(b.verify(agent)), event.Abort) {
		t.Error("the agent was not stopped")
	}
}
