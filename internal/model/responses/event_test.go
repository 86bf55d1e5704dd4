package responses

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

const plain = `{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"a9"}`

var events = map[string]struct {
	in   string
	fast bool
}{
	"as usual":               {plain, true},
	"with spaces":            {` { "type" : "response.output_text.delta" , "delta" : "a\n" , "logprobs" : [ ] } `, true},
	"not only ASCII":         {`{"delta":"größer 世界 😀","type":"response.output_text.delta"}`, true},
	"probabilities":          {`{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"a"}]}`, false},
	"a refusal":              {`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, false},
	"arguments":              {`{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{"}`, true},
	"arguments of nobody":    {`{"type":"response.function_call_arguments.delta","output_index":9,"delta":"{"}`, true},
	"a summary":              {`{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":1,"delta":"hm"}`, true},
	"the next summary":       {`{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":2,"delta":"hm"}`, true},
	"a kind taken back":      {`{"type":"error","type":"response.output_text.delta","delta":"a"}`, true},
	"a thought":              {`{"type":"response.reasoning_text.delta","output_index":2,"delta":"hm"}`, false},
	"a start":                {`{"type":"response.created","response":{"id":"r","model":"m"}}`, false},
	"a start without any":    {`{"type":"response.created"}`, false},
	"a message":              {`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","phase":"commentary"}}`, false},
	"a call":                 {`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"n"}}`, false},
	"reasoning":              {`{"type":"response.output_item.added","output_index":2,"item":{"type":"reasoning","id":"rs"}}`, false},
	"something else":         {`{"type":"response.output_item.added","output_index":3,"item":{"type":"web_search_call","id":"ws"}}`, false},
	"no item":                {`{"type":"response.output_item.added","output_index":4}`, false},
	"a whole message":        {`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"all"}]}}`, false},
	"a whole call":           {`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"n","arguments":"{}"}}`, false},
	"whole reasoning":        {`{"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","id":"rs","summary":[{"text":"a"},{"text":"b"}],"encrypted_content":"x"}}`, false},
	"another thing at last":  {`{"type":"response.output_item.done","output_index":2,"item":{"type":"message","content":[{"refusal":"no"}]}}`, false},
	"an end":                 {`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"all"}]}],"usage":{"input_tokens":1}}}`, false},
	"an end without any":     {`{"type":"response.completed"}`, false},
	"an early end":           {`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`, false},
	"a failure":              {`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`, false},
	"an error":               {`{"type":"error","code":"server_error","message":"x"}`, false},
	"an error in an error":   {`{"type":"error","error":{"message":"x"}}`, false},
	"an error on the way":    {`{"error":{"message":"x"}}`, false},
	"another server's end":   {`[DONE]`, false},
	"text twice":             {`{"type":"response.output_text.delta","delta":"a","delta":"b"}`, false},
	"another type as well":   {`{"type":"response.output_text.delta","type":"error","delta":"a"}`, false},
	"an error beside it":     {`{"type":"response.output_text.delta","error":{},"delta":"a"}`, false},
	"a large index":          {`{"type":"response.output_text.delta","output_index":99999999999999999999,"delta":"a"}`, false},
	"a delta that is a list": {`{"type":"response.output_text.delta","delta":[1]}`, false},
	"no delta":               {`{"type":"response.output_text.delta"}`, false},
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
	if string(e.Item) == "null" {
		e.Item = nil
	}
	read := event{Type: p.kind, OutputIndex: p.index, SummaryIndex: p.summary, Delta: delta(strings.TrimPrefix(string(got), before))}
	if diff := cmp.Diff(e, read); diff != "" {
		t.Errorf("the fast way does not read %q as encoding/json does:\n%s", data, diff)
	}
}

func FuzzTheFastReaderReadsWhatEncodingJSONReads(f *testing.F) {
	for _, e := range events {
		f.Add([]byte(plain), []byte(e.in))
		f.Add([]byte(e.in), []byte(strings.Replace(e.in, `"delta":"`, `"delta":"more `, 1)))
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
	if r.Reasoning != nil && r.Reasoning.Encrypted != "" && remote.Parts(r.Reasoning.Encrypted, "h", "m", q.Messages[0]) == nil {
		t.Errorf("what was kept does not fit the reply: %+v", r.Reasoning)
	}
}

func FuzzAnyReplyIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"status":"completed","output":[{"type":"reasoning","id":"a","summary":[{"text":"b"}],"encrypted_content":"c"},{"type":"message","phase":"d","content":[{"text":"e"}]},{"type":"function_call","call_id":"f"}],"usage":{"input_tokens":1}}`))
	f.Add([]byte(`{"status":"incomplete","output":[{"type":"message","content":[{"text":"a"}]},{"type":"message","content":[{"refusal":"b"}]},7],"incomplete_details":{"reason":"x"}}`))
	f.Add([]byte(`{"error":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBuilder(query(), nil)
		if b.Whole(data) == nil {
			checkBack(t, b.Reply())
		}
	})
}

func FuzzAnyStreamIsReadOrRefused(f *testing.F) {
	all, end := "", "data: "+events["an end"].in+"\n\n"
	for _, e := range events {
		all += "data: " + e.in + "\n\n"
		f.Add("data: " + e.in + "\n\n" + end)
	}
	f.Add(all)
	for _, names := range [][]string{
		{"a message", "as usual", "a call", "as usual", "reasoning", "a summary", "whole reasoning", "a whole message"},
		{"whole reasoning", "whole reasoning", "a whole message", "another thing at last"},
		{"reasoning", "a message", "a whole message", "as usual"},
		{"reasoning", "a summary", "a summary", "the next summary", "a thought", "a summary", "arguments", "a call", "arguments", "arguments", "arguments of nobody"},
	} {
		stream := ""
		for _, name := range names {
			stream += "data: " + events[name].in + "\n\n"
		}
		f.Add(stream + end)
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
		"text":    {events["a message"].in, plain},
		"summary": {events["reasoning"].in, events["a summary"].in},
		"call":    {events["a call"].in, events["arguments"].in},
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
	remotetest.BenchmarkStream(b, func() remote.Decoder { return newBuilder(query(), func(model.Delta) {}) }, func(n int) string {
		return strings.Replace(plain, `"sequence_number":7`, fmt.Sprintf(`"sequence_number":%d`, n), 1)
	}, " word")
}
