package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
)

// TestEveryOpenQuestionIsListed: questions of agents whose parents ask nothing, plans, and
// forms of sessions without a message are in the list of all, and can be answered where
// the list says.
func TestEveryOpenQuestionIsListed(t *testing.T) {
	r := newTestServerWith(t, session.Options{ToolsOf: withAgents})
	p := r.open(api.SessionCreate, object{"requestPermission": true, "customAgents": agents["customAgents"], "tools": []object{{"name": "one"}}})
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use task with {"description":"d","prompt":"Use one with value 'x', then reply with the result","agent_type":"pirate","name":"n"}, then reply with the result`}, nil)
	p.await(event.PermissionAsked)
	planner := r.connect(rpc.Door{})
	planner.serve = func(string, json.RawMessage) (any, error) { <-t.Context().Done(); return nil, t.Context().Err() }
	planner.must(api.SessionCreate, object{"sessionId": "planned", "requestExitPlanMode": true}, nil)
	planner.must(api.SessionSend, object{"sessionId": "planned", "prompt": `Use exit_plan_mode with {"summary":"dig"}, then reply with the result`, "agentMode": "plan"}, nil)
	planner.await(event.ExitPlanAsked)

	visitor := r.connect(rpc.Door{})
	list := func() map[event.Type]api.Question {
		var all api.QuestionsResult
		visitor.must(api.Questions, object{}, &all)
		found := make(map[event.Type]api.Question)
		for _, q := range all.Questions {
			e, err := event.Parse(0, q.Event)
			if err != nil {
				t.Fatal(err)
			}
			found[e.Type] = q
		}
		if len(found) != len(all.Questions) {
			t.Errorf("a question is listed twice: %s", all.Questions)
		}
		return found
	}
	found := list()
	if len(found) != 2 || found[event.PermissionAsked].SessionID != "s" || found[event.ExitPlanAsked].SessionID != "planned" {
		t.Fatalf("listed are %v", found)
	}
	id := func(kind event.Type) string {
		e, _ := event.Parse(0, found[kind].Event)
		return data[event.PermissionDoneData](t, e).RequestID
	}
	var won api.Success
	visitor.must(api.AnswerPermission, object{"sessionId": "s", "requestId": id(event.PermissionAsked), "result": object{"kind": "reject"}}, &won)
	if !won.Success {
		t.Error("the question of the agent cannot be answered where it is listed")
	}
	visitor.must(api.AnswerExitPlan, object{"sessionId": "planned", "requestId": id(event.ExitPlanAsked), "response": object{"approved": false}}, &won)
	if left := list(); !won.Success || len(left) > 0 {
		t.Errorf("won is %v, and listed are %v", won.Success, left)
	}
}
