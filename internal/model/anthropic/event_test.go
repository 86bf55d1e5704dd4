package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

const plain = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`

var events = map[string]struct {
	in   string
	fast bool
}{
	"as usual":             {plain, true},
	"with spaces":          {` { "type" : "content_block_delta" , "index" : 12 , "delta" : { "type" : "text_delta" , "text" : "a\n" } } `, true},
	"the other way round":  {`{"delta":{"text":"é","type":"text_delta"},"index":0,"type":"content_block_delta"}`, true},
	"more that is plain":   {`{"type":"content_block_delta","index":0,"extra":[],"delta":{"type":"text_delta","text":"a","more":1}}`, true},
	"no text":              {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}`, true},
	"a text of a new kind": {`{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":"a"}}`, false},
	"a call":               {`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`, false},
	"a thought":            {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}`, false},
	"a signature":          {`{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"x"}}`, false},
	"a thought in a text":  {`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","thinking":"hm"}}`, false},
	"a start":              {`{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":1}}}`, false},
	"a block":              {`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"a":1}}}`, false},
	"a block of thought":   {`{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"a","signature":"b"}}`, false},
	"a hidden thought":     {`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b"}}`, false},
	"a text with a start":  {`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"begin"}}`, false},
	"no block":             {`{"type":"content_block_start","index":2}`, false},
	"the end of a block":   {`{"type":"content_block_stop","index":1}`, false},
	"an end":               {`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, false},
	"a refusal":            {`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":null},"usage":{"output_tokens":1}}`, false},
	"the very end":         {`{"type":"message_stop"}`, false},
	"a ping":               {`{"type":"ping"}`, false},
	"an error":             {`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, false},
	"an error without any": {`{"type":"error"}`, false},
	"text twice":           {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","text":"b"}}`, false},
	"delta twice":          {`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"},"delta":{"type":"text_delta"}}`, false},
	"another type as well": {`{"type":"content_block_delta","type":"ping","delta":{"type":"text_delta","text":"a"}}`, false},
	"an error beside it":   {`{"type":"content_block_delta","error":{},"delta":{"type":"text_delta","text":"a"}}`, false},
	"a large index":        {`{"type":"content_block_delta","index":99999999999999999999,"delta":{"type":"text_delta","text":"a"}}`, false},
	"no delta":             {`{"type":"content_block_delta","index":0}`, false},
}

func TestTheFastWayIsTakenOnlyForPlainText(t *testing.T) {
	for name, test := range events {
		t.Run(name, func(t *testing.T) {
			if _, ok := plainText().Append(nil, []byte(test.in)); ok != test.fast {
				t.Errorf("fast = %v, want %v, for %s", ok, test.fast, test.in)
			}
			for _, before := range events {
				checkFast(t, []byte(before.in), []byte(test.in))
			}
		})
	}
}

// checkFast fails unless the fast way has the same result as encoding/json, or
// none, whatever event it read first.
func checkFast(t *testing.T, first, data []byte) {
	const before = "before "
	p := plainText()
	p.Append(nil, first)
	got, ok := p.Append([]byte(before), data)
	if !ok {
		return
	}
	var e event
	if err := decode(data, &e); err != nil {
		t.Fatalf("the fast way accepts %q, encoding/json says: %v", data, err)
	}
	if want := before + e.Delta.Text; string(got) != want {
		t.Errorf("the fast way reads %q, encoding/json %q", got, want)
	}
	e.Index, e.Delta.Text = 0, ""
	if len(e.Block) > 0 && string(e.Block) == "null" {
		e.Block = nil
	}
	if diff := cmp.Diff(event{Type: "content_block_delta", Delta: delta{Type: "text_delta"}}, e); diff != "" {
		t.Errorf("the fast way does not see what else is in %q:\n%s", data, diff)
	}
}

func FuzzTheFastWayReadsWhatEncodingJSONReads(f *testing.F) {
	for _, e := range events {
		f.Add([]byte(plain), []byte(e.in))
		f.Add([]byte(e.in), []byte(strings.Replace(e.in, `"text":"`, `"text":"more `, 1)))
	}
	f.Fuzz(checkFast)
}

func query() *remote.Query {
	return &remote.Query{Request: &model.Request{Model: "m"}, Host: "h"}
}

// checkBack fails if a reply could not be used, or not be given back.
func checkBack(t *testing.T, r *model.Reply) {
	remotetest.CheckReply(t, r)
	q := query()
	q.Messages = []*model.Message{{Role: model.Assistant, Text: r.Text, Calls: r.Calls, Reasoning: r.Reasoning}}
	bodyOf(t, q)
	if r.Reasoning != nil && r.Reasoning.Opaque != "" && kept(q, q.Messages[0]) == nil {
		t.Errorf("what was kept does not fit the reply: %+v", r.Reasoning)
	}
}

func FuzzAnyReplyIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"type":"message","content":[{"type":"thinking","thinking":"a","signature":"b"},{"type":"text","text":"c"},{"type":"tool_use","id":"d","name":"e","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1}}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"redacted_thinking","data":"a"},7],"stop_reason":"refusal"}`))
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use"},{"type":"text","text":"b"},{"type":"thinking"}],"stop_reason":"end_turn"}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBuilder(query(), nil)
		if b.Whole(data) == nil {
			checkBack(t, b.Reply())
		}
	})
}

func FuzzAnyStreamIsReadOrRefused(f *testing.F) {
	all := ""
	for _, e := range events {
		all += "data: " + e.in + "\n\n"
		f.Add("data: " + e.in + "\n\ndata: {\"type\":\"message_stop\"}\n\n")
	}
	f.Add(all)
	f.Add("data: " + events["a refusal"].in + "\n\ndata: " + events["a block"].in + "\n\ndata: " + events["a hidden thought"].in + "\n\n") // too late
	for _, name := range []string{"a thought", "a block", "no block", "a refusal"} {                                                       // twice, and never closed
		f.Add("data: " + events["a block of thought"].in + "\n\ndata: " + events[name].in + "\n\ndata: " + events[name].in + "\n\n")
	}
	f.Fuzz(func(t *testing.T, stream string) {
		remotetest.CheckStream(t, stream, func(on func(model.Delta)) remote.Decoder { return newBuilder(query(), on) })
		b := newBuilder(query(), nil)
		if remote.ReadStream(strings.NewReader(stream), b) == nil {
			checkBack(t, b.Reply())
		}
	})
}

func TestAStreamOfPlainTextDoesNotAllocateForEachEvent(t *testing.T) {
	remotetest.CheckAllocations(t, newBuilder(query(), func(model.Delta) {}), plain)
}

func BenchmarkStream(b *testing.B) {
	remotetest.BenchmarkStream(b, func() remote.Decoder { return newBuilder(query(), func(model.Delta) {}) }, func(int) string { return plain }, " word")
}
