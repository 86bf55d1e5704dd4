package builtin_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/tool/builtin"
)

// A host has one skill and runs agents that repeat their prompt.
type host struct{}

func (host) Run(_ context.Context, _ tool.Call, work tool.AgentWork) (tool.Result, error) {
	return tool.Result{Text: work.Type + " was told: " + work.Prompt + " " + strings.Join(work.Tools, ",")}, nil
}

func (host) Usable(context.Context, event.SessionID) ([]event.Skill, error) {
	return []event.Skill{{Name: "dance"}}, nil
}

func (host) Read(_ context.Context, _ event.SessionID, k event.Skill) (event.SkillInvokedData, error) {
	return event.SkillInvokedData{Name: k.Name, Content: "Turn around."}, nil
}

// A state is the state of a session, as far as the tools use it.
type state struct {
	mode   string
	can    event.ClientDeclaredData
	config event.SessionConfiguredData
	skills []event.Skill
}

func (s state) Mode() string                          { return s.mode }
func (s state) Can() event.ClientDeclaredData         { return s.can }
func (s state) Settings() event.SessionConfiguredData { return s.config }
func (s state) UsableSkills() []event.Skill           { return s.skills }

// all returns a state in which every tool is offered, except those of other modes.
func all(mode string) state {
	return state{mode: mode, can: event.ClientDeclaredData{UserInput: true, ExitPlan: true}, skills: []event.Skill{{Name: "dance"}}}
}

// conditional are the tools that TestToolsAreOfferedByState is about.
var conditional = []string{"skill", "task", "ask_user", "exit_plan_mode", "task_complete"}

// offered returns the names of those of them that are offered in a state.
func offered(s tool.State) []string {
	var names []string
	for _, t := range builtin.New(host{}, host{}) {
		o, ok := t.(tool.Offerer)
		if !ok {
			continue
		}
		if spec, ok := o.Offer(s); ok && slices.Contains(conditional, spec.Name) {
			names = append(names, spec.Name)
		}
	}
	return names
}

func TestToolsAreOfferedByState(t *testing.T) {
	for _, test := range []struct {
		name  string
		state tool.State
		want  []string
	}{
		{"nothing is known", nil, nil},
		{"nobody can answer", state{}, []string{"task"}},
		{"a person, a skill", all(event.ModeInteractive), []string{"skill", "task", "ask_user"}},
		{"plan mode", all(event.ModePlan), []string{"skill", "task", "ask_user", "exit_plan_mode"}},
		{"nobody looks after it", all(event.ModeAutopilot), []string{"skill", "task", "ask_user", "task_complete"}},
		{"an agent", state{config: event.SessionConfiguredData{Agent: &event.AgentOf{}}}, nil},
		{"no agents", state{config: event.SessionConfiguredData{ExcludedAgents: agent.Names()}}, nil},
	} {
		if got := offered(test.state); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v are offered, want %v", test.name, got, test.want)
		}
	}
}

func TestCalls(t *testing.T) {
	const work = `"description":"d","prompt":"look","name":"n"`
	for _, test := range []struct {
		tool, args string
		want       string // part of the result, or of the recorded events
		open       bool
	}{
		{"ask_user", `{"question":"why?","choices":["a","b"]}`, `"question":"why?","choices":["a","b"]`, true},
		{"ask_user", `{"question":""}`, `"question": Required`, false},
		{"ask_user", `{"question":1}`, `"question": Expected string, received number`, false},
		{"exit_plan_mode", `{"summary":"s","showFleet":true}`, `"autopilot_fleet"`, true},
		{"exit_plan_mode", `{}`, `"summary": Required`, false},
		{"task_complete", `{"summary":"all of it"}`, "all of it", false},
		{"task_complete", `{"summary":""}`, `"summary": Required`, false},
		{"skill", `{"skill":"dance"}`, `"content":"Turn around."`, false},
		{"skill", `{"skill":"sing"}`, "Available skills: dance", false},
		{"task", `{` + work + `,"agent_type":"explore"}`, "explore was told: look view,grep,glob", false},
		{"task", `{` + work + `,"agent_type":"bogus"}`, "Unknown agent_type: bogus. Valid types are: explore,", false},
	} {
		r := call(t, test.tool, tool.Call{ID: "c", Arguments: json.RawMessage(test.args), State: all(event.ModeInteractive)})
		recorded, err := json.Marshal(append(r.Record, r.Then...))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Text + string(recorded); !strings.Contains(got, test.want) || r.Open != test.open {
			t.Errorf("%s %s: %q, open %v; want %q in it", test.tool, test.args, got, r.Open, test.want)
		}
	}
}

// call makes a call as a session does: a refused call is not run.
func call(t *testing.T, name string, c tool.Call) tool.Result {
	t.Helper()
	for _, b := range builtin.New(host{}, host{}) {
		if b.Spec().Name != name {
			continue
		}
		if _, err := b.Permission(t.Context(), c); err != nil {
			return tool.Fail(err.Error())
		}
		r, err := b.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("there is no tool %s", name)
	return tool.Result{}
}
