package rpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
)

// TestAnAnswerNamesWhatWasShown: an answer with the digest of another question answers
// nothing, also where an agent asks, and one with the right digest does, once.
func TestAnAnswerNamesWhatWasShown(t *testing.T) {
	r := newTestServerWith(t, session.Options{ToolsOf: withAgents})
	p := r.connect(rpc.Door{})
	p.serve = func(string, json.RawMessage) (any, error) { <-t.Context().Done(); return nil, t.Context().Err() }
	p.open(api.SessionCreate, object{"requestPermission": true, "requestUserInput": true, "customAgents": agents["customAgents"], "tools": []object{{"name": "one"}}})
	for method, ask := range map[string]struct {
		prompt string
		kind   event.Type
		answer object
	}{
		api.AnswerPermission: {
			`Use task with {"description":"d","prompt":"Use one with value 'x', then reply with the result","agent_type":"pirate","name":"n"}, then reply with the result`,
			event.PermissionAsked, object{"result": object{"kind": "reject"}},
		},
		api.AnswerUserInput: {"Ask me: which colour?", event.UserInputAsked, object{"response": object{"answer": "blue"}}},
	} {
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": ask.prompt}, nil)
		asked := p.await(ask.kind)
		answer := object{"sessionId": "s", "requestId": data[event.UserInputAskedData](t, asked).RequestID, "abideDigest": strings.Repeat("0", 64)}
		for name, value := range ask.answer {
			answer[name] = value
		}
		if fault := p.refused(method, answer); fault.Code != api.CodeChanged || !strings.Contains(fault.Message, "nothing was answered") {
			t.Errorf("%s with another digest: %v", method, fault)
		}
		answer["abideDigest"] = asked.Digest()
		visitor := r.connect(rpc.Door{})
		for _, want := range []bool{true, false} {
			var won api.Success
			visitor.must(method, answer, &won)
			if won.Success != want {
				t.Errorf("%s with the digest of the question: won is %v, want %v", method, won.Success, want)
			}
		}
		p.await(event.SessionIdle)
	}
}

// unusedTasks are commands that nobody reaches.
type unusedTasks struct{ rpc.Tasks }

// TestWhatIsWrongWithTheInputOfATask is named, before any command is looked for.
func TestWhatIsWrongWithTheInputOfATask(t *testing.T) {
	r := newTestServer(t)
	r.srv = rpc.New(r.host, rpc.Options{Version: "test", Tasks: unusedTasks{}})
	p := r.open(api.SessionCreate, nil)
	for _, c := range []struct {
		method string
		params object
		names  string
	}{
		{api.TaskInput, object{"taskId": "x", "data": "eA=="}, "sessionId"},
		{api.TaskInput, object{"sessionId": "none", "taskId": "x", "data": "eA=="}, "Session not found"},
		{api.TaskInput, object{"sessionId": "s", "taskId": "x"}, "data: it is missing"},
		{api.TaskInput, object{"sessionId": "s", "taskId": "x", "data": make([]byte, 1<<20+1)}, "1048577 bytes are more"},
		{api.TaskResize, object{"sessionId": "s", "taskId": "x", "rows": 0, "cols": 80}, "no size of a terminal"},
		{api.TaskResize, object{"sessionId": "s", "taskId": "x", "rows": 24, "cols": 401}, "no size of a terminal"},
	} {
		if fault := p.refused(c.method, c.params); !strings.Contains(fault.Message, c.names) {
			t.Errorf("%s: %q does not say %q", c.method, fault.Message, c.names)
		}
	}
}
