package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool/todo"
)

func TestTheModelsListIsRead(t *testing.T) {
	p := newTestServerWith(t, session.Options{Tools: todo.New()}).open(api.SessionCreate, nil)
	for _, prompt := range []string{
		`Call task_create with {"subject":"one","description":"more"} and task_create with {"subject":"two"} and task_create with {"subject":"three"}`,
		`Call task_update with {"id":1,"status":"in_progress"} and task_update with {"id":2,"status":"completed"} and task_update with {"id":3,"status":"cancelled"}`,
	} {
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": prompt}, nil)
		p.await(event.TodosChanged)
	}
	for method, want := range map[string]string{
		api.PlanReadTodos:     `{"rows":[{"id":"1","title":"one","description":"more","status":"in_progress"},{"id":"2","title":"two","status":"done"}]}`,
		api.PlanReadTodosDeps: `{"rows":[{"id":"1","title":"one","description":"more","status":"in_progress"},{"id":"2","title":"two","status":"done"}],"dependencies":[]}`,
	} {
		var got json.RawMessage
		if p.must(method, object{"sessionId": "s"}, &got); string(got) != want {
			t.Errorf("%s: %s\nwant %s", method, got, want)
		}
	}
}
