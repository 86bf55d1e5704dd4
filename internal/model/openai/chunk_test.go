package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
)

// plainChunk is a chunk as the common providers send it.
const plainChunk = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1763000000,"model":"gpt-5","service_tier":"default",` +
	`"system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"a9"}`

var chunks = map[string]struct {
	in   string
	fast bool
}{
	"as usual":              {plainChunk, true},
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
	"text after it":         {plainChunk + "x", false},
	"cut":                   {plainChunk[:len(plainChunk)-1], false},
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
			if _, ok := new(plainText).content(nil, []byte(test.in)); ok != test.fast {
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
	var p plainText
	p.content(nil, first)
	got, ok := p.content([]byte(before), data)
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
		f.Add([]byte(plainChunk), []byte(c.in))
		f.Add([]byte(c.in), []byte(strings.Replace(c.in, `"content":"`, `"content":"more `, 1)))
	}
	f.Fuzz(checkFast)
}

func TestChunksThatDifferOnlyInTheirTextAreReadByIt(t *testing.T) {
	with := func(text string) []byte { return []byte(strings.Replace(plainChunk, `" word"`, `"`+text+`"`, 1)) }
	var p plainText
	if _, ok := p.sameAgain(nil, with("a")); ok {
		t.Error("the first chunk was taken for one seen before")
	}
	p.content(nil, with("a"))
	for text, want := range map[string]string{"b": "b", "": "", `\"\n`: "\"\n", "世": "世"} {
		if got, ok := p.sameAgain(nil, with(text)); !ok || string(got) != want {
			t.Errorf("%s was read as %q, %v", text, got, ok)
		}
	}
	same := string(with("b"))
	for _, other := range []string{
		strings.Replace(same, `"finish_reason":null`, `"finish_reason":"stop"`, 1),
		strings.Replace(same, `"choices"`, `"chances"`, 1),
		same + "x",
		same[:50],
	} {
		if got, ok := p.content(nil, []byte(other)); ok {
			t.Errorf("%s was read as plain text %q", other, got)
		}
	}
}

func FuzzAnyReplyIsReadOrRefused(f *testing.F) {
	for _, c := range chunks {
		f.Add([]byte(c.in))
		f.Add([]byte(strings.ReplaceAll(c.in, `"delta"`, `"message"`)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeChunk(data)
		if err != nil {
			return
		}
		b := newBuilder(&model.Request{Model: "m"}, nil)
		if b.whole(c) == nil {
			checkReply(t, b.reply())
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
		var told strings.Builder
		b := newBuilder(&model.Request{Model: "m"}, func(d model.Delta) { told.WriteString(d.Text) })
		events := newEvents(strings.NewReader(stream))
		for {
			data, err := events.next()
			if err != nil || b.event(data) != nil {
				break
			}
		}
		r := b.reply()
		checkReply(t, r)
		if told.String() != r.Text {
			t.Errorf("the pieces are %q, the text is %q", told.String(), r.Text)
		}
	})
}

// checkReply fails if a reply could not be used.
func checkReply(t *testing.T, r *model.Reply) {
	ids := make(map[string]bool)
	for _, c := range r.Calls {
		if c.ID == "" || ids[c.ID] {
			t.Errorf("a call has the id %q, which is empty or not its own", c.ID)
		}
		ids[c.ID] = true
	}
}

func TestAStreamOfPlainTextDoesNotAllocateForEachChunk(t *testing.T) {
	const n = 1000
	data := []byte(plainChunk)
	b := newBuilder(&model.Request{}, func(model.Delta) {})
	if err := b.event(data); err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(10, func() {
		for range n {
			if err := b.event(data); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations > 10 { // the text grows
		t.Errorf("%d chunks cost %.0f allocations", n, allocations)
	}
}

func BenchmarkChunk(b *testing.B) {
	data := []byte(plainChunk)
	b.Run("fast", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			dst, _ = new(plainText).content(dst[:0], data)
		}
	})
	b.Run("same again", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var dst []byte
		var p plainText
		for b.Loop() {
			dst, _ = p.content(dst[:0], data)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var c chunk
			_ = json.Unmarshal(data, &c)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	const n = 20_000
	stream := strings.Repeat("data: "+plainChunk+"\n\n", n)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		build := newBuilder(&model.Request{}, func(model.Delta) {})
		events := newEvents(strings.NewReader(stream))
		for {
			data, err := events.next()
			if err == io.EOF {
				break
			}
			if err := build.event(data); err != nil {
				b.Fatal(err)
			}
		}
		events.release()
		if got := len(build.reply().Text); got != n*len(" word") {
			b.Fatal(fmt.Sprint(got, " bytes of text"))
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
}
