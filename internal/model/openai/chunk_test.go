package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
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
	"as usual":              {plainChunkText, true},
	"with spaces":           {"\n { \"choices\" : [ { \"index\": 0, \"delta\" : { \"content\" : \"a\" } } ] , \"x\" : true } ", true},
	"simple escapes":        {`{"choices":[{"delta":{"content":"\"\\\/\b\f\n\r\t"}}]}`, true},
	"not only ASCII":        {`{"choices":[{"delta":{"content":"größer 世界 😀"}}]}`, true},
	"empty text":            {`{"choices":[{"delta":{"content":""}}]}`, true},
	"no text":               {`{"choices":[{"delta":{"role":"assistant","content":null,"refusal":null}}]}`, true},
	"null everywhere":       {`{"id":null,"model":null,"error":null,"choices":[{"message":null,"delta":{"tool_calls":null}}]}`, true},
	"unknown plain members": {`{"a":1,"b":false,"c":null,"choices":[{"d":"e","delta":{"f":0}}]}`, true},
	"code point":            {`{"choices":[{"delta":{"content":"\u00e9"}}]}`, false},
	"half a surrogate":      {`{"choices":[{"delta":{"content":"\ud800"}}]}`, false},
	"not UTF-8":             {"{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}", false},
	"control character":     {"{\"choices\":[{\"delta\":{\"content\":\"\n\"}}]}", false},
	"a string without end":  {`{"choices":[{"a":"0}]}`, false},
	"text after it":         {plainChunkText + "x", false},
	"cut":                   {plainChunkText[:len(plainChunkText)-1], false},
	"finish":                {`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, false},
	"usage":                 {`{"choices":[],"usage":{"prompt_tokens":1}}`, false},
	"error":                 {`{"error":{"message":"x"}}`, false},
	"no choices":            {`{"id":"x"}`, false},
	"two choices":           {`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, false},
	"choices twice":         {`{"choices":[{"delta":{"content":"a"}}],"choices":[{"delta":{"content":"b"}}]}`, false},
	"text twice":            {`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, false},
	"delta twice":           {`{"choices":[{"delta":{"content":"a"},"delta":{}}]}`, false},
	"other spelling":        {`{"choices":[{"delta":{"content":"a","Content":"b"}}]}`, false},
	"thought":               {`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, false},
	"call":                  {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a"}]}}]}`, false},
	"parts":                 {`{"choices":[{"delta":{"content":[{"text":"a"}]}}]}`, false},
	"index is no number":    {`{"choices":[{"index":"0","delta":{"content":"a"}}]}`, false},
	"leading zero":          {`{"created":01,"choices":[{"delta":{"content":"a"}}]}`, false},
	"id is a number":        {`{"id":1,"choices":[{"delta":{"content":"a"}}]}`, false},
}

func TestTheFastWayIsTakenOnlyForPlainText(t *testing.T) {
	for name, test := range chunks {
		t.Run(name, func(t *testing.T) {
			if _, ok := plainText().Append(nil, []byte(test.in)); ok != test.fast {
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
	p := plainText()
	p.Append(nil, first)
	got, ok := p.Append([]byte(before), data)
	if !ok {
		return
	}
	c, err := decodeChunk(data)
	if err != nil {
		t.Fatalf("the fast way accepts %q, encoding/json says: %v", data, err)
	}
	if len(c.Choices) != 1 {
		t.Fatalf("the fast way accepts %q with %d choices", data, len(c.Choices))
	}
	content := c.Choices[0].Delta.Content
	if want := before + string(content); string(got) != want {
		t.Errorf("the fast way reads %q, encoding/json %q", got, want)
	}
	c.ID, c.Model, c.Choices[0].Index, c.Choices[0].Delta.Content = "", "", 0, ""
	if diff := cmp.Diff(&chunk{Choices: make([]choice, 1)}, c); diff != "" {
		t.Errorf("the fast way does not see what else is in %q:\n%s", data, diff)
	}
}

func FuzzTheFastWayReadsWhatEncodingJSONReads(f *testing.F) {
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
	f.Fuzz(func(t *testing.T, stream string) {
		remotetest.CheckStream(t, stream, func(on func(model.Delta)) remote.Decoder { return newBuilder(query(), on) })
	})
}

func query() *remote.Query { return &remote.Query{Request: &model.Request{Model: "m"}, Host: "h"} }

func TestAStreamOfPlainTextDoesNotAllocateForEachChunk(t *testing.T) {
	remotetest.CheckAllocations(t, newBuilder(query(), func(model.Delta) {}), plainChunkText)
}

func BenchmarkStream(b *testing.B) {
	remotetest.BenchmarkStream(b, func() remote.Decoder { return newBuilder(query(), func(model.Delta) {}) }, func(int) string { return plainChunkText }, " word")
}
