package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// plainChunkText is a chunk as the common providers send it.
const plainChunkText = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763000000,"model":"gpt-5","service_tier":"default",` +
	`"system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"a9"}`

var chunks = map[string]struct {
	in   string
	fast bool
}{
	"as usual":                 {plainChunkText, true},
	"with spaces":              {"\n { \"choices\" : [ { \"index\": 0, \"delta\" : { \"content\" : \"a\" } } ] , \"x\" : true } ", true},
	"simple escapes":           {`{"choices":[{"delta":{"content":"\"\\\/\b\f\n\r\t"}}]}`, true},
	"not only ASCII":           {`{"choices":[{"delta":{"content":"größer 世界 😀"}}]}`, true},
	"empty text":               {`{"choices":[{"delta":{"content":""}}]}`, true},
	"no text":                  {`{"choices":[{"delta":{"role":"assistant","content":null,"refusal":null}}]}`, true},
	"null everywhere":          {`{"id":null,"model":null,"error":null,"choices":[{"message":null,"delta":{"tool_calls":null}}]}`, true},
	"unknown plain members":    {`{"a":1,"b":false,"c":null,"choices":[{"d":"e","delta":{"f":null}}]}`, true},
	"a member of the provider": {`{"choices":[{"delta":{"content":"a","f":0}}]}`, false},
	"a member in a call":       {`{"choices":[{"delta":{"tool_calls":[{"index":0,"f":{"g":1},"function":{"arguments":"a"}}]}}]}`, false},
	"code point":               {`{"choices":[{"delta":{"content":"\u00e9"}}]}`, false},
	"half a surrogate":         {`{"choices":[{"delta":{"content":"\ud800"}}]}`, false},
	"not UTF-8":                {"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}", false},
	"control character":        {"{\"choices\":[{\"delta\":{\"content\":\"\n\"}}]}", false},
	"a string without end":     {`{"choices":[{"a":"0}]}`, false},
	"text after it":            {plainChunkText + "x", false},
	"cut":                      {plainChunkText[:len(plainChunkText)-1], false},
	"finish":                   {`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, true},
	"finish with text":         {`{"id":"x","model":"y","choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}`, true},
	"finish of another name":   {`{"choices":[{"delta":{},"finish_reason":"max_tokens"}]}`, true},
	"finish in capitals":       {`{"choices":[{"delta":{},"finish_reason":"STOP"}]}`, false},
	"finish without reason":    {`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, true},
	"finish taken back":        {`{"choices":[{"delta":{},"finish_reason":"stop","finish_reason":""}]}`, true},
	"finish by failure":        {`{"choices":[{"delta":{},"finish_reason":"error"}]}`, false},
	"unknown finish":           {`{"choices":[{"delta":{},"finish_reason":"tired"}]}`, false},
	"usage":                    {`{"choices":[],"usage":{"prompt_tokens":1}}`, true},
	"usage with a piece":       {`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, true},
	"usage with details":       {`{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2,"audio_tokens":0},"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":4,"x":null}}}`, true},
	"usage without details":    {`{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":null,"completion_tokens_details":null}}`, true},
	"details twice":            {`{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":3},"prompt_tokens_details":{"cache_write_tokens":2}}}`, true},
	"usage that is nothing":    {`{"choices":[],"usage":{}}`, true},
	"usage twice":              {`{"choices":[],"usage":{"prompt_tokens":1},"usage":null}`, false},
	"usage with a fraction":    {`{"choices":[],"usage":{"prompt_tokens":1.0}}`, false},
	"usage of null":            {`{"choices":[],"usage":{"prompt_tokens":null}}`, false},
	"usage with more":          {`{"choices":[],"usage":{"prompt_tokens":1,"cost_details":{}}}`, false},
	"usage is a number":        {`{"choices":[],"usage":1}`, false},
	"model twice":              {`{"model":"a","model":"b","id":"c","id":null,"choices":[]}`, true},
	"model with an escape":     {`{"model":"a\/b","choices":[]}`, false},
	"model is not UTF-8":       {"{\"model\":\"\xff\",\"choices\":[]}", false},
	"error":                    {`{"error":{"message":"x"}}`, false},
	"no choices":               {`{"id":"x"}`, false},
	"two choices":              {`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, false},
	"choices twice":            {`{"choices":[{"delta":{"content":"a"}}],"choices":[{"delta":{"content":"b"}}]}`, false},
	"text twice":               {`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, false},
	"delta twice":              {`{"choices":[{"delta":{"content":"a"},"delta":{}}]}`, false},
	"other spelling":           {`{"choices":[{"delta":{"content":"a","Content":"b"}}]}`, false},
	"thought":                  {`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, true},
	"thought and no text":      {`{"choices":[{"delta":{"content":"","reasoning":"hm"}}]}`, true},
	"text taken back":          {`{"choices":[{"delta":{"content":"a","content":""}}]}`, false},
	"thought and text":         {`{"choices":[{"delta":{"reasoning_text":"hm","content":"a"}}]}`, false},
	"two thoughts":             {`{"choices":[{"delta":{"reasoning":"hm","reasoning_text":"hm"}}]}`, false},
	"thought without any":      {`{"choices":[{"delta":{"reasoning":""}}]}`, true},
	"call":                     {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":""}}]}}]}`, false},
	"more of a call":           {`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}}]}`, true},
	"more of another call":     {`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"","type":"function","function":{"name":null,"arguments":"{"}}]}}]}`, true},
	"of another choice":        {`{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}`, true},
	"a call without index":     {`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`, false},
	"a call with an id":        {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{"}}]}}]}`, false},
	"a call with a name":       {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"n","arguments":"{"}}]}}]}`, false},
	"arguments as JSON":        {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":{}}}]}}]}`, false},
	"arguments twice":          {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a","arguments":"b"}}]}}]}`, false},
	"two calls":                {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}},{"index":1,"function":{"arguments":"b"}}]}}]}`, false},
	"calls taken back":         {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}],"tool_calls":null}}]}`, false},
	"a function taken back":    {`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"},"function":null}]}}]}`, false},
	"parts":                    {`{"choices":[{"delta":{"content":[{"text":"a"}]}}]}`, false},
	"index is no number":       {`{"choices":[{"index":"0","delta":{"content":"a"}}]}`, false},
	"leading zero":             {`{"created":01,"choices":[{"delta":{"content":"a"}}]}`, false},
	"id is a number":           {`{"id":1,"choices":[{"delta":{"content":"a"}}]}`, false},
}

func TestTheFastReaderReadsOnlyPlainText(t *testing.T) {
	for name, test := range chunks {
		t.Run(name, func(t *testing.T) {
			if _, ok := newPlainReader().Append(nil, []byte(test.in)); ok != test.fast {
				t.Errorf("fast = %v, want %v, for %s", ok, test.fast, test.in)
			}
			for _, before := range chunks {
				checkFast(t, []byte(before.in), []byte(test.in))
			}
		})
	}
}

// checkFast fails unless the fast way has the same result as encoding/json, or
// none, whatever chunk it read first.
func checkFast(t *testing.T, first, data []byte) {
	const before = "before "
	p := newPlainReader()
	p.Append(nil, first)
	got, ok := p.Append([]byte(before), data)
	if !ok {
		return
	}
	c, err := decodeChunk(data)
	if err != nil {
		t.Fatalf("the fast way accepts %q, encoding/json says: %v", data, err)
	}
	if len(c.Choices) == 0 {
		c.Choices = []choice{{}}
	}
	if len(c.Choices) != 1 || c.Choices[0].failed() != nil {
		t.Fatalf("the fast way accepts %q with %d choices", data, len(c.Choices))
	}
	c.Choices[0].Finish = finishOf(c.Choices[0].Finish)
	if thought, member := c.Choices[0].Delta.thinking(); thought != "" { // reasoning has several names
		c.Choices[0].Delta = part{Reasoning: thought}
		if p.thoughts != member {
			t.Errorf("the fast way finds the reasoning of %q in %q", data, p.thoughts)
		}
	}
	if diff := cmp.Diff(c, p.read(strings.TrimPrefix(string(got), before))); diff != "" {
		t.Errorf("the fast way does not read %q as encoding/json does:\n%s", data, diff)
	}
}

// read is the chunk that was read.
func (p *plainReader) read(said string) *chunk {
	var d part
	switch p.piece {
	case textPiece:
		d.Content.Text = said
	case thoughtPiece:
		d.Reasoning = said
	case callPiece:
		d.Calls = []callPart{{Index: &p.call}}
		d.Calls[0].Function.Arguments = arguments(said)
	}
	c := &chunk{ID: string(p.id), Model: string(p.model), Choices: []choice{{Index: p.choice, Delta: d, Finish: p.finish}}}
	if p.counted {
		c.Usage = &p.usage
	}
	return c
}

func FuzzTheFastReaderReadsWhatEncodingJSONReads(f *testing.F) {
	for _, c := range chunks {
		f.Add([]byte(plainChunkText), []byte(c.in))
		f.Add([]byte(c.in), []byte(strings.Replace(c.in, `"content":"`, `"content":"more `, 1)))
	}
	f.Fuzz(checkFast)
}

func FuzzAnyReplyIsReadOrRefused(f *testing.F) {
	for _, c := range chunks {
		f.Add([]byte(c.in))
		f.Add([]byte(strings.ReplaceAll(c.in, `"delta"`, `"message"`)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBuilder(query(), nil)
		if b.Whole(data) == nil {
			remotetest.CheckReply(t, b.Reply())
		}
	})
}

func FuzzAnyStreamIsReadOrRefused(f *testing.F) {
	all := ""
	for _, c := range chunks {
		all += "data: " + c.in + "\n\n"
		f.Add("data: " + c.in + "\n\ndata: [DONE]\n\n")
	}
	f.Add(all)
	names := []string{"call", "more of a call", "more of a call", "more of another call", "more of another call", "of another choice", "thought", "thought", "as usual", "finish"}
	stream := ""
	for _, name := range names {
		stream += "data: " + chunks[name].in + "\n\n"
	}
	f.Add("data: " + plainChunkText + "\n\n" + stream + "data: [DONE]\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		fast := func(on func(model.Delta)) remote.Decoder { return newBuilder(query(), on) }
		remotetest.CheckStream(t, stream, fast)
		remotetest.CheckFastStream(t, stream, fast, slowly)
	})
}

func query() *remote.Query { return &remote.Query{Request: &model.Request{Model: "m"}, Host: "h"} }

// slowly is a builder without a fast way.
func slowly(on func(model.Delta)) remote.Decoder {
	b := newBuilder(query(), on)
	b.plain.Shape = func(*plainjson.Scanner) bool { return false }
	return b
}

func TestAStreamOfPiecesDoesNotAllocateForEachChunk(t *testing.T) {
	for name, piece := range map[string]string{"text": plainChunkText, "thought": chunks["thought"].in, "call": chunks["more of a call"].in} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(query(), func(model.Delta) {})
			for _, first := range []string{plainChunkText, chunks["call"].in} {
				if _, err := b.Event([]byte(first)); err != nil {
					t.Fatal(err)
				}
			}
			remotetest.CheckAllocations(t, b, piece)
		})
	}
}

func BenchmarkStream(b *testing.B) {
	remotetest.BenchmarkStream(b, func() remote.Decoder { return newBuilder(query(), func(model.Delta) {}) }, func(int) string { return plainChunkText }, " word")
}
