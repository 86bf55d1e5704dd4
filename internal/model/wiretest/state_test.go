package wiretest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// An echo is a reply with what only its provider understands, and the texts of it that
// must be in the next request to the same provider and model.
type echo struct {
	wire, reply string
	stream      bool
	back        []string
}

// events returns a stream of events.
func events(data ...string) string {
	var s strings.Builder
	for _, d := range data {
		fmt.Fprintf(&s, "data: %s\n\n", d)
	}
	return s.String()
}

var echoes = map[string]echo{
	"items of Responses": {wire: replies, back: []string{
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"enc+/=","new":{"a":1}}`,
		`{"type":"compaction","id":"cmp_1","encrypted_content":"zip"}`,
		`"id":"msg_1"`, `"phase":"commentary"`, `"seal":"m"`, `"id":"fc_1"`, `"namespace":"n"`, `"caller":{"type":"direct"}`,
	}, reply: `{"id":"r","model":"m","status":"completed","output":[` +
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"enc+/=","new":{"a":1}},` +
		`{"type":"compaction","id":"cmp_1","encrypted_content":"zip"},` +
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","seal":"m","content":[{"type":"output_text","text":"hm","annotations":[]}]},` +
		`{"id":"fc_1","type":"function_call","status":"completed","call_id":"c","name":"view","arguments":"{}","namespace":"n","caller":{"type":"direct"}}]}`},
	"streamed items of Responses": {wire: replies, stream: true, back: []string{
		`"encrypted_content":"enc"`, `{"type":"compaction","id":"cmp_1","encrypted_content":"zip"}`, `"seal":"m"`, `"namespace":"n"`,
	}, reply: events(
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"enc"}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"compaction","id":"cmp_1"}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"compaction","id":"cmp_1","encrypted_content":"zip"}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":2,"delta":"hm"}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","seal":"m","content":[{"type":"output_text","text":"hm"}]}}`,
		`{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"c","name":"view","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{}"}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"c","name":"view","arguments":"{}","namespace":"n"}}`,
		`{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[]}}`,
	)},
	"blocks of Messages": {wire: messages, back: []string{
		`{"type":"thinking","thinking":"t","signature":"sig+/=","new":1}`, `{"type":"redacted_thinking","data":"hidden"}`,
		`{"type":"server_tool_use","id":"srv","name":"search","input":{"q":"x"}}`, `{"type":"text","text":"hm","seal":"m"}`,
		`{"type":"tool_use","id":"c","name":"view","input":{},"caller":{"type":"direct"}}`,
	}, reply: `{"model":"m","stop_reason":"tool_use","content":[` +
		`{"type":"thinking","thinking":"t","signature":"sig+/=","new":1},{"type":"redacted_thinking","data":"hidden"},` +
		`{"type":"server_tool_use","id":"srv","name":"search","input":{"q":"x"}},{"type":"text","text":"hm","seal":"m"},` +
		`{"type":"tool_use","id":"c","name":"view","input":{},"caller":{"type":"direct"}}]}`},
	"streamed blocks of Messages": {wire: messages, stream: true, back: []string{
		`{"type":"thinking","thinking":"t1t2","signature":"sig","new":1,"piece":"ab"}`, `{"type":"redacted_thinking","data":"hidden"}`,
		`{"id":"srv","input":{"q":"x"},"name":"search","type":"server_tool_use"}`, `{"content":"zipped","type":"compaction"}`,
		`{"type":"text","text":"hm","seal":"m"}`, `"caller":{"type":"direct"}`,
	}, reply: events(
		`{"type":"message_start","message":{"model":"m"}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","new":1}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t1","piece":"a"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t2","piece":"b"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"hidden"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srv","name":"search","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"compaction","content":null}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"compaction_delta","content":"zip"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"compaction_delta","content":"ped"}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"text","text":"","seal":"m"}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"hm"}}`, `{"type":"content_block_stop","index":4}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"c","name":"view","input":{},"caller":{"type":"direct"}}}`,
		`{"type":"content_block_stop","index":5}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`,
	)},
	"members of Chat Completions": {wire: chat, back: []string{`"seal":"m"`, `"extra_content":{"google":{"thought_signature":"s"}}`},
		reply: `{"model":"m","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"hm","seal":"m",` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"view","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}}]}`},
}

// continued asks for the reply of an echo, and then goes on with the conversation. change
// says what is different about the second request.
func continued(t *testing.T, e echo, change func(*model.Request, *remote.Config)) string {
	t.Helper()
	s := record(t, e.reply)
	var on func(model.Delta)
	if e.stream {
		s.contentType, on = "text/event-stream", func(model.Delta) {}
	}
	req := &model.Request{Model: "m", Messages: []*model.Message{{Role: model.User, Text: "go"}}}
	got, err := wires[e.wire].open(configOf(s, "other")).Ask(t.Context(), req, on)
	if err != nil || got.Text != "hm" || len(got.Calls) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	next := &model.Request{Model: "m", Messages: append(req.Messages,
		&model.Message{Role: model.Assistant, Text: got.Text, Calls: got.Calls, Reasoning: got.Reasoning},
		&model.Message{Role: model.ToolRole, CallID: "c", Text: "seen"})}
	config := configOf(s, "other")
	s.reply, s.contentType = wires[e.wire].x, ""
	if change != nil {
		change(next, &config)
	}
	if _, err := wires[e.wire].open(config).Ask(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	return string(s.raw)
}

func TestWhatOnlyTheProviderUnderstandsGoesBackToIt(t *testing.T) {
	for name, e := range echoes {
		t.Run(name, func(t *testing.T) {
			sent := continued(t, e, nil)
			for _, want := range e.back {
				if !strings.Contains(sent, want) {
					t.Errorf("the next request lacks %s:\n%s", want, sent)
				}
			}
		})
	}
}

func TestAnotherModelOrHostGetsNothingOfIt(t *testing.T) {
	for how, change := range map[string]func(*model.Request, *remote.Config){
		"another model": func(r *model.Request, _ *remote.Config) { r.Model = "m2" },
		"another host": func(_ *model.Request, c *remote.Config) {
			c.BaseURL = strings.Replace(c.BaseURL, "127.0.0.1", "localhost", 1)
		},
		"forgetting": func(r *model.Request, _ *remote.Config) { r.Forget = true },
	} {
		for name, e := range echoes {
			t.Run(name+" and "+how, func(t *testing.T) {
				sent := continued(t, e, change)
				for _, secret := range []string{"sig", "enc", "zip", "hidden", "srv", "seal", "thought_signature", "namespace", "caller", "msg_1", "fc_1", "rs_1"} {
					if strings.Contains(sent, `"`+secret) {
						t.Errorf("%q is in the request: %s", secret, sent)
					}
				}
				if !strings.Contains(sent, "hm") || !strings.Contains(sent, "view") || !strings.Contains(sent, "seen") {
					t.Errorf("the conversation is not whole: %s", sent)
				}
			})
		}
	}
}

func TestThinkingWithoutASignatureIsNotSentBack(t *testing.T) {
	unsigned := map[string]echo{
		"whole": {wire: messages, reply: `{"model":"m","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"cut"},{"type":"text","text":"hm"},{"type":"tool_use","id":"c","name":"view","input":{}}]}`},
		"streamed": {wire: messages, stream: true, reply: events(
			`{"type":"message_start","message":{"model":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"cut"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"hm"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"view","input":{}}}`, `{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`)},
	}
	for name, e := range unsigned {
		if sent := continued(t, e, nil); strings.Contains(sent, "thinking") {
			t.Errorf("%s: unsigned thinking is in the request: %s", name, sent)
		}
	}
}

func TestThinkingStaysOffInTheMiddleOfCallsThatHadNone(t *testing.T) {
	plain := echo{wire: messages, reply: `{"model":"m","stop_reason":"tool_use","content":[{"type":"text","text":"hm"},{"type":"tool_use","id":"c","name":"view","input":{},"caller":{"type":"direct"}}]}`}
	think := func(r *model.Request, _ *remote.Config) { r.ReasoningEffort, r.MaxOutput = "high", 64_000 }
	if sent := continued(t, plain, think); strings.Contains(sent, `"budget_tokens"`) || !strings.Contains(sent, `"caller":{"type":"direct"}`) {
		t.Errorf("the provider would refuse %s", sent)
	}
	if sent := continued(t, echoes["blocks of Messages"], think); !strings.Contains(sent, `"budget_tokens"`) {
		t.Errorf("thinking was turned off in %s", sent)
	}
}
