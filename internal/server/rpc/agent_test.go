package rpc_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// agents are what a client describes.
var agents = object{
	"tools": []object{{"name": "one", "skipPermission": true}, {"name": "two", "skipPermission": true}},
	"customAgents": []object{
		{"name": "pirate", "displayName": "The Pirate", "description": "Speaks so", "prompt": "You are a pirate.", "tools": []string{"one"}, "model": "offline"},
		{"name": "plain", "prompt": "You are plain.", "infer": false},
	},
}

func (p *peer) toolNames() (names []string) {
	p.t.Helper()
	var r api.ToolsResult
	p.must(api.CurrentTools, object{"sessionId": "s"}, &r)
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// told is the system prompt of the next turn.
func (p *peer) told(t *testing.T) string {
	t.Helper()
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
	text := data[event.SystemMessageData](t, p.await(event.SystemMessage)).Content
	p.await(event.SessionIdle)
	return text
}

func TestAgentsThatAClientDescribes(t *testing.T) {
	r := newTestServerWith(t, session.Options{ToolsOf: withAgents})
	p := r.open(api.SessionCreate, agents)
	var list api.AgentsResult
	p.must(api.AgentList, object{"sessionId": "s"}, &list)
	if len(list.Agents) != 2 || list.Agents[0].DisplayName != "The Pirate" || *list.Agents[0].Tools == nil || list.Agents[0].Prompt != "" || list.Agents[1].DisplayName != "plain" || list.Agents[1].Tools != nil || !list.Agents[1].NoInference {
		t.Errorf("the agents are %+v", list.Agents)
	}
	p.must(api.AgentList, object{"sessionId": "s", "includeBuiltInAgents": true, "includePrompt": true}, &list)
	if len(list.Agents) != 8 || list.Agents[0].Prompt != "You are a pirate." || list.Agents[2].Source != "builtin" || list.Agents[2].Description == "" {
		t.Errorf("all agents are %+v", list.Agents)
	}
	current := func() string {
		var r api.AgentResult
		p.must(api.AgentGetCurrent, object{"sessionId": "s"}, &r)
		if r.Agent == nil {
			return ""
		}
		return r.Agent.Name
	}
	if got := p.told(t); current() != "" || strings.Contains(got, "pirate") {
		t.Errorf("%s answers, and is told %q", current(), got)
	}
	p.must(api.AgentSelect, object{"sessionId": "s", "name": "pirate"}, nil)
	if d := data[event.SubagentSelectedData](t, p.await(event.SubagentSelected)); d.Name != "pirate" || d.DisplayName != "The Pirate" || !slices.Equal(d.Tools, []string{"one"}) {
		t.Errorf("selected is %+v", d)
	}
	if got := p.told(t); current() != "pirate" || !strings.Contains(got, "You are a pirate.") || !slices.Equal(p.toolNames(), []string{"one"}) {
		t.Errorf("%s answers with %v, and is told %q", current(), p.toolNames(), got)
	}
	p.must(api.AgentSetPrompt, object{"sessionId": "s", "id": "pirate", "prompt": "You are a parrot."}, nil)
	if got := p.told(t); !strings.Contains(got, "You are a parrot.") {
		t.Errorf("it is told %q", got)
	}
	p.must(api.AgentDeselect, object{"sessionId": "s"}, nil)
	p.await(event.SubagentDeselected)
	if got := p.told(t); current() != "" || strings.Contains(got, "parrot") || !slices.Contains(p.toolNames(), "two") {
		t.Errorf("%s answers with %v, and is told %q", current(), p.toolNames(), got)
	}
	p.must(api.AgentReload, object{"sessionId": "s"}, &list)
	if d := data[event.CustomAgentsUpdatedData](t, p.await(event.CustomAgentsUpdated)); len(list.Agents) != 2 || len(d.Agents) != 2 {
		t.Errorf("reloaded are %+v, told is %+v", list.Agents, d)
	}
}

func TestAChosenAgentHasItsModelUntilItIsLetGo(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, object{"model": "offline", "reasoningEffort": "low", "customAgents": []object{
		{"name": "a", "prompt": "A", "model": "of a", "reasoningEffort": "high"}, {"name": "b", "prompt": "B", "model": "of b"}, {"name": "c", "prompt": "C"},
	}})
	model := func() string {
		var r api.ModelResult
		p.must(api.ModelGetCurrent, object{"sessionId": "s"}, &r)
		return r.ModelID + " " + r.ReasoningEffort
	}
	for _, test := range []struct{ name, want string }{{"a", "of a high"}, {"b", "of b low"}, {"a", "of a high"}, {"c", "offline low"}} {
		p.must(api.AgentSelect, object{"sessionId": "s", "name": test.name}, nil)
		if got := model(); got != test.want {
			t.Errorf("the model of %s is %s, want %s", test.name, got, test.want)
		}
	}
	p.must(api.AgentSelect, object{"sessionId": "s", "name": "a"}, nil)
	p.must(api.AgentDeselect, object{"sessionId": "s"}, nil)
	if got := model(); got != "offline low" {
		t.Errorf("in the end the model is %s", got)
	}
}

func TestWorkIsGivenToAgentsOfClients(t *testing.T) {
	r := newTestServerWith(t, session.Options{ToolsOf: withAgents})
	p := r.open(api.SessionCreate, agents)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use task with {"description":"d","prompt":"Use one with value 'x', then reply with the result","agent_type":"pirate","name":"n"}, then reply with the result`}, nil)
	if d := data[event.SubagentData](t, p.await(event.SubagentStarted)); d.Name != "pirate" {
		t.Errorf("started is %+v", d)
	}
	call := data[event.ExternalAskedData](t, p.await(event.ExternalAsked))
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": call.RequestID, "result": "ARR"}, nil)
	if d := data[event.AssistantMessageData](t, lastBefore(p, event.SessionIdle)); d.Content != "ARR" {
		t.Errorf("the answer is %q", d.Content)
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use task with {"description":"d","prompt":"x","agent_type":"plain","name":"n"}, then reply with the result`}, nil)
	if d := data[event.AssistantMessageData](t, lastBefore(p, event.SessionIdle)); !strings.Contains(d.Content, "Unknown agent_type: plain") || !strings.Contains(d.Content, "pirate") {
		t.Errorf("an agent that the model may not start: %q", d.Content)
	}
}

// lastBefore is the last answer before an event.
func lastBefore(p *peer, kind event.Type) (last event.Event) {
	for e := range p.events {
		switch e.Type {
		case event.AssistantMessage:
			last = e
		case kind:
			return last
		}
	}
	return last
}

func TestAgentsOutliveAResumeThatDoesNotNameThem(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, object{"customAgents": agents["customAgents"], "agent": "pirate"})
	p.told(t)
	p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	q := r.open(api.SessionResume, nil)
	var none json.RawMessage
	newTestServer(t).open(api.SessionCreate, nil).must(api.AgentGetCurrent, object{"sessionId": "s"}, &none)
	if string(none) != `{"agent":null}` {
		t.Errorf("without an agent the answer is %s", none)
	}
	var now api.AgentResult
	q.must(api.AgentGetCurrent, object{"sessionId": "s"}, &now)
	if now.Agent == nil || now.Agent.Name != "pirate" {
		t.Errorf("%+v answers", now.Agent)
	}
	for want, test := range map[string]struct {
		method string
		params object
	}{
		"Agent not found: x":       {api.AgentSelect, object{"sessionId": "s", "name": "x"}},
		"Agent not found: y":       {api.AgentSetPrompt, object{"sessionId": "s", "id": "y", "prompt": ""}},
		"prompt: it is missing":    {api.AgentSetPrompt, object{"sessionId": "s", "id": "y"}},
		"name: it is empty":        {api.AgentSelect, object{"sessionId": "s"}},
		"customAgents[0].name":     {api.SessionCreate, object{"customAgents": []object{{}}}},
		"customAgents[1].name":     {api.SessionCreate, object{"customAgents": []object{{"name": "a"}, {"name": "a"}}}},
		`agent: there is no "who"`: {api.SessionCreate, object{"agent": "who"}},
	} {
		if fault := q.refused(test.method, test.params); !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %s, want %q", test.method, fault.Message, want)
		}
	}
}

// In autopilot mode the model says when it is done, and is not asked again.
func TestAModelThatWorksAloneSaysWhenItIsDone(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	if slices.Contains(p.toolNames(), "task_complete") {
		t.Error("it can be done while somebody looks after it")
	}
	p.must(api.ModeSet, object{"sessionId": "s", "mode": "autopilot"}, nil)
	if !slices.Contains(p.toolNames(), "task_complete") {
		t.Errorf("it is offered %v", p.toolNames())
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use task_complete with {"summary":"all done"}, then reply with the result`}, nil)
	if d := data[event.ToolCompleteData](t, p.await(event.ToolComplete)); !d.Success || d.Result.Content != "all done" {
		t.Errorf("the result is %+v", d)
	}
	p.await(event.TaskDone)
	for e := range p.events {
		if e.Type == event.AssistantTurnStart {
			t.Error("the model is asked again")
		}
		if e.Type == event.SessionIdle {
			break
		}
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use task_complete with {"summary":""}, then reply with the result`}, nil)
	if d := data[event.AssistantMessageData](t, lastBefore(p, event.SessionIdle)); !strings.Contains(d.Content, `"summary": Required`) {
		t.Errorf("the answer is %q", d.Content)
	}
}
