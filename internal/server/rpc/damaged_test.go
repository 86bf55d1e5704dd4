package rpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// newDamaged is a testServer with a session that has a question, and one that cannot be
// read and says that it has one.
func newDamaged(t *testing.T) *testServer {
	store := eventlog.NewMemory()
	host := session.New(store, session.Options{Version: "test", Resolve: sessiontest.Always(session.Endpoint{Model: offline.Model{}, Name: offline.Name})})
	t.Cleanup(host.Close)
	text := fmt.Sprintf(`{"type":%q,"id":"i","timestamp":%q,"parentId":null,"data":{"model":7}}`, event.SessionConfigured, event.FormatTime(time.Now()))
	_, err := store.Append(t.Context(), "broken", eventlog.Batch{
		Events: []event.Event{{Type: event.SessionConfigured, Bytes: []byte(text)}}, Info: &eventlog.Info{Listed: true, Active: true, Questions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &testServer{t: t, host: host, srv: rpc.New(host, rpc.Options{Version: "test"})}
}

func TestADamagedSessionHidesNoOther(t *testing.T) {
	r := newDamaged(t)
	p := r.connect(rpc.Door{})
	p.must(api.SessionCreate, map[string]any{"sessionId": "s", "tools": []map[string]any{{"name": "ask"}}, "requestPermission": true}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HI"}, nil)
	p.await(event.SessionIdle)
	var questions api.QuestionsResult
	p.must(api.Questions, map[string]any{}, &questions)
	if len(questions.Questions) != 0 {
		t.Errorf("questions = %s", questions.Questions)
	}
	if e := p.refused(api.Questions, map[string]any{"sessionId": "broken"}); !strings.Contains(e.Message, "damaged") {
		t.Errorf("the questions of the damaged one: %v", e)
	}
	if e := r.connect(rpc.Door{Faults: true}).refused(api.Questions, map[string]any{"sessionId": "broken"}); string(e.Data) != `{"kind":"damaged"}` {
		t.Errorf("where kinds of errors are told: %v %s", e, e.Data)
	}
	p.must(api.Questions, map[string]any{}, &questions) // it is quarantined by now
	var list api.ListResult
	p.must(api.SessionList, map[string]any{}, &list)
	if len(list.Sessions) != 2 {
		t.Errorf("list = %+v", list)
	}
}

func TestWhatIsNestedTooDeeplyIsRefusedByName(t *testing.T) {
	p := newTestServer(t).connect(rpc.Door{})
	p.must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	for _, levels := range []int{event.MaxDepth - 1, 9000, 9990} {
		deep := json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		if e := p.refused(api.SessionSend, map[string]any{"sessionId": "s", "prompt": "x", "attachments": json.RawMessage("[" + string(deep) + "]")}); !strings.Contains(e.Message, "attachments: it is nested deeper") {
			t.Errorf("%d levels: %v", levels, e)
		}
	}
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HI"}, nil)
	p.await(event.SessionIdle)
}
