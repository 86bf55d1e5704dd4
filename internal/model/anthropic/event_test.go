package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
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
	"more that is plain":   {`{"type":"content_block_delta","index":0,"extra":[],"delta":{"type":"text_delta","text":"a","more":null}}`, true},
	"more to send back":    {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","more":1}}`, false},
	"no text":              {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}`, true},
	"a text of a new kind": {`{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":"a"}}`, false},
	"a call":               {`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`, true},
	"a call's next block":  {`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{"}}`, true},
	"a thought":            {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}`, true},
	"a thought, no more":   {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta"}}`, false},
	"a text as a thought":  {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","text":"hm"}}`, false},
	"a thought as a call":  {`{"type":"content_block_delta","index":1,"delta":{"thinking":"hm","type":"input_json_delta"}}`, false},
	"two at once":          {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm","partial_json":"{"}}`, false},
	"none for another":     {`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm","text":null}}`, true},
	"a kind taken back":    {`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","type":"thinking_delta","thinking":"hm"}}`, true},
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

func TestTheFastReaderReadsOnlyPlainText(t *testing.T) {
	for name, test := range events {
		t.Run(name, func(t *testing.T) {
			if _, ok := newPlainReader().Append(nil, []byte(test.in)); ok != test.fast {
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
	p := newPlainReader()
	p.Append(nil, first)
	got, ok := p.Append([]byte(before), data)
	if !ok {
		return
	}
	var e event
	if err := decode(data, &e); err != nil {
		t.Fatalf("the fast way accepts %q, encoding/json says: %v", data, err)
	}
	if len(e.Block) > 0 && string(e.Block) == "null" {
		e.Block = nil
	}
	read := event{Type: "content_block_delta", Index: p.index, Delta: delta{Type: pieceKinds[p.piece]}}
	*map[piece]*string{textPiece: &read.Delta.Text, thoughtPiece: &read.Delta.Thinking, inputPiece: &read.Delta.PartialJSON}[p.piece] = strings.TrimPrefix(string(got), before)
	if diff := cmp.Diff(e, read); diff != "" {
		t.Errorf("the fast way does not read %q as encoding/json does:\n%s", data, diff)
	}
}

func FuzzTheFastReaderReadsWhatEncodingJSONReads(f *testing.F) {
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
	f.Add("data: " + events["a refusal"].in + "\n\ndata: " + events["a block"].in + "\n\ndata: " + events["a hidden thought"].in + "\n\n") // the last two events come too late
	for _, name := range []string{"a thought", "a block", "no block", "a refusal"} {                                                       // twice, and never closed
		f.Add("data: " + events["a block of thought"].in + "\n\ndata: " + events[name].in + "\n\ndata: " + events[name].in + "\n\n")
	}
	for _, pair := range [][]string{{"a block of thought", "a thought", "a call", "a text as a thought"}, {"a block", "a call", "a thought", "a call's next block"}} {
		stream := ""
		for _, name := range pair {
			stream += strings.Repeat("data: "+events[name].in+"\n\n", 2)
		}
		f.Add(stream + "data: " + events["an end"].in + "\n\n")
	}
	f.Fuzz(func(t *testing.T, stream string) {
		fast := func(on func(model.Delta)) remote.Decoder { return newBuilder(query(), on) }
		remotetest.CheckStream(t, stream, fast)
		remotetest.CheckFastStream(t, stream, fast, slowly)
		b := newBuilder(query(), nil)
		if remote.ReadStream(strings.NewReader(stream), b) == nil {
			checkBack(t, b.Reply())
		}
	})
}

// slowly is a builder without a fast way.
func slowly(on func(model.Delta)) remote.Decoder {
	b := newBuilder(query(), on)
	b.plain.Shape = func(*plainjson.Scanner) bool { return false }
	return b
}

func TestAStreamOfPiecesDoesNotAllocateForEachEvent(t *testing.T) {
	for name, test := range map[string]struct{ before, piece string }{
		"text":    {events["a text with a start"].in, plain},
		"thought": {events["a block of thought"].in, events["a thought"].in},
		"call":    {events["a block"].in, events["a call"].in},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(query(), func(model.Delta) {})
			if _, err := b.Event([]byte(test.before)); err != nil {
				t.Fatal(err)
			}
			remotetest.CheckAllocations(t, b, test.piece)
		})
	}
}

func BenchmarkStream(b *testing.B) {
	remotetest.BenchmarkStream(b, func() remote.Decoder { return newBuilder(query(), func(model.Delta) {}) }, func(int) string { return plain }, " word")
}
