package rpc_test

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

// TestAMisshapenEventIsShownMendedEverywhere lets one client give a result that
// others could not read. All ways to be shown it have it mended.
func TestAMisshapenEventIsShownMendedEverywhere(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, object{"tools": []object{{"name": "act", "skipPermission": true}}})
	result := object{"textResultForLlm": "done", "resultType": "success", "contents": []object{{"type": "terminal"}}}
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": p.calling(t), "result": result}, nil)
	p.await(event.SessionIdle) // live events are checked when they arrive

	var all struct{ Events []json.RawMessage }
	var log api.LogReadResult
	p.must(api.SessionGetMessages, object{"sessionId": "s"}, &all)
	p.must(api.EventLogRead, object{"sessionId": "s", "max": 1000}, &log)
	terminals := 0
	for _, raw := range append(all.Events, log.Events...) {
		if faults := shapetest.Event(raw); len(faults) > 0 {
			t.Errorf("typed clients cannot read %s: %q", raw, faults)
		}
		var e struct {
			Data struct {
				Result struct{ Contents []struct{ Text *string } }
			}
		}
		if err := json.Unmarshal(raw, &e); err == nil && len(e.Data.Result.Contents) == 1 && e.Data.Result.Contents[0].Text != nil {
			terminals++
		}
	}
	if terminals != 2 {
		t.Errorf("%d terminals are shown, want one of each", terminals)
	}
	late := r.connect(rpc.Door{})
	late.must(api.SessionResume, object{"sessionId": "s"}, nil)
	late.await(event.SessionResume)
}
