package rpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

func TestAnOutputSchemaIsCheckedBeforeTheMessageIsStored(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	send := func(schema any) object {
		return object{"sessionId": "s", "prompt": `Reply with exactly: {"n":1}`, "abideOutputSchema": schema}
	}
	for name, test := range map[string]struct {
		schema any
		why    string
	}{
		"a text": {"object", "abideOutputSchema: it is not the schema of an object"},
		"a file": {object{"type": "object", "$ref": "file:///etc/passwd"}, "leads out of the schema"},
	} {
		if fault := p.refused(api.SessionSend, send(test.schema)); !strings.Contains(fault.Message, test.why) {
			t.Errorf("%s: %v", name, fault)
		}
	}
	p.must(api.SessionSend, send(nil), nil)
	p.await(event.SessionIdle)
	p.must(api.SessionSend, send(json.RawMessage(`{"type":"object","required":["n"]}`)), nil)
	p.await(event.SessionIdle)
	var all api.EventsResult
	p.must(api.Events, object{"sessionId": "s"}, &all)
	var schemas []string
	for _, raw := range all.Events {
		e, err := event.Parse(0, raw)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.InputAccepted {
			d, _ := event.As[event.InputAcceptedData](e)
			schemas = append(schemas, string(d.OutputSchema))
		}
	}
	if len(schemas) != 2 || schemas[0] != "" || schemas[1] != `{"type":"object","required":["n"]}` {
		t.Errorf("accepted with %q", schemas)
	}
}
