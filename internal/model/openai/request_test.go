package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
)

func bodyOf(t testing.TB, req *model.Request, stream bool) string {
	t.Helper()
	parts := fragments(req, stream)
	data, err := io.ReadAll(newBody(parts))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != size(parts) {
		t.Errorf("the body has %d bytes, but its size is said to be %d", len(data), size(parts))
	}
	if !json.Valid(data) {
		t.Fatalf("the body is no JSON: %s", data)
	}
	return string(data)
}

func TestTheBodyIsWhatTheWireAsksFor(t *testing.T) {
	user := &model.Message{Role: model.User, Text: "say \"hi\"\n"}
	calls := &model.Message{Role: model.Assistant, Calls: []model.Call{
		{ID: "a", Name: "one", Arguments: json.RawMessage(`{"x":"y"}`)},
		{ID: "b", Name: "two"},
	}}
	result := &model.Message{Role: model.ToolRole, CallID: "a", Text: "done"}
	picture := &model.Message{Role: model.User, Text: "what is it?", Images: []model.Image{{MediaType: "image/png", Data: []byte("png")}}}
	const (
		userWire    = `{"role":"user","content":"say \"hi\"\n"}`
		callsWire   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{\"x\":\"y\"}"}},{"id":"b","type":"function","function":{"name":"two","arguments":"{}"}}],"content":null}`
		resultWire  = `{"role":"tool","tool_call_id":"a","content":"done"}`
		imageWire   = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
		pictureWire = `{"role":"user","content":[{"type":"text","text":"what is it?"},` + imageWire + `]}`
	)
	for name, test := range map[string]struct {
		req    model.Request
		stream bool
		want   string
	}{
		"nothing": {model.Request{Model: "m"}, false, `{"model":"m","messages":[]}`},
		"system and history": {
			model.Request{Model: "m", System: "be kind", Messages: []*model.Message{user, calls, result}}, false,
			`{"model":"m","messages":[{"role":"system","content":"be kind"},` + userWire + `,` + callsWire + `,` + resultWire + `]}`,
		},
		"no system": {
			model.Request{Model: "m", Messages: []*model.Message{user, result}}, false,
			`{"model":"m","messages":[` + userWire + `,` + resultWire + `]}`,
		},
		"stream, effort and limit": {
			model.Request{Model: "m", Messages: []*model.Message{user}, ReasoningEffort: "high", MaxOutput: 99}, true,
			`{"model":"m","messages":[` + userWire + `],"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"high","max_completion_tokens":99}`,
		},
		"tools": {
			model.Request{Model: "m", Tools: &model.Tools{List: []model.Tool{
				{Name: "one", Description: "1", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "two"},
			}}}, false,
			`{"model":"m","tools":[{"type":"function","function":{"name":"one","description":"1","parameters":{"type":"object"}}},` +
				`{"type":"function","function":{"name":"two","description":"","parameters":{"type":"object","properties":{}}}}],"messages":[]}`,
		},
		"an empty set of tools is none":    {model.Request{Model: "m", Tools: new(model.Tools)}, false, `{"model":"m","messages":[]}`},
		"an assistant who said nothing":    {model.Request{Messages: []*model.Message{{Role: model.Assistant}}}, false, `{"model":"","messages":[{"role":"assistant","content":""}]}`},
		"a picture":                        {model.Request{Messages: []*model.Message{picture}}, false, `{"model":"","messages":[` + pictureWire + `]}`},
		"a picture without words":          {model.Request{Messages: []*model.Message{{Role: model.User, Images: picture.Images}}}, false, `{"model":"","messages":[{"role":"user","content":[` + imageWire + `]}]}`},
		"tail, nothing else":               {model.Request{Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail after the system prompt":     {model.Request{System: "s", Tail: "t"}, false, `{"model":"","messages":[{"role":"system","content":"s"},{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail in the user's last message":  {model.Request{Messages: []*model.Message{user}, Tail: "a\nb"}, false, `{"model":"","messages":[{"role":"user","content":"say \"hi\"\n\n\n<system_reminder>a\nb</system_reminder>"}]}`},
		"tail in an empty message":         {model.Request{Messages: []*model.Message{{Role: model.User}}, Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail after a tool result":         {model.Request{Messages: []*model.Message{user, result}, Tail: "t"}, false, `{"model":"","messages":[` + userWire + `,` + resultWire + `,{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail in a message with a picture": {model.Request{Messages: []*model.Message{picture}, Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},` + imageWire + `,{"type":"text","text":"<system_reminder>t</system_reminder>"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from what was kept
				if diff := cmp.Diff(test.want, bodyOf(t, &test.req, test.stream)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestHistoryIsNeverEncodedTwice(t *testing.T) {
	req := history(100)
	req.Tail = "volatile"
	first, second := fragments(req, true), fragments(req, true)
	const tools, history = 1, 3
	for i := history; i < len(first)-2; i++ {
		if &first[i][0] != &second[i][0] {
			t.Fatalf("piece %d of the history was encoded again", i-history)
		}
	}
	if &first[tools][0] != &second[tools][0] {
		t.Error("the tools were encoded again")
	}
}

func TestAHistoryOfAnyLengthIsWhole(t *testing.T) {
	for n := range 200 {
		req := &model.Request{Model: "m", Tail: "t"}
		want := "{\"model\":\"m\",\"messages\":["
		for i := range n {
			text := fmt.Sprint("message ", i)
			req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: text})
			if i < n-1 {
				want += fmt.Sprintf(`{"role":"user","content":%q},`, text)
			} else {
				want += fmt.Sprintf(`{"role":"user","content":"%s\n\n`, text)
			}
		}
		if n == 0 {
			want += `{"role":"user","content":"`
		}
		want += `<system_reminder>t</system_reminder>"}]}`
		for range 2 {
			if diff := cmp.Diff(want, bodyOf(t, req, false)); diff != "" {
				t.Fatalf("%d messages (-want +got):\n%s", n, diff)
			}
		}
	}
}

func TestTheTailDoesNotStickToAMessage(t *testing.T) {
	req := history(1)
	before := bodyOf(t, req, false)
	with := *req
	with.Tail = "for this request only"
	bodyOf(t, &with, false)
	if after := bodyOf(t, req, false); after != before {
		t.Errorf("after a request with a tail the message is\n%s\nbefore it was\n%s", after, before)
	}
}

func TestABodyCanBeReadInPiecesOfAnySize(t *testing.T) {
	parts := fragments(history(20), true)
	if err := iotest.TestReader(newBody(parts), bytes.Join(parts, nil)); err != nil {
		t.Error(err)
	}
}

func TestReadsOfABodyAreFull(t *testing.T) {
	parts := fragments(history(500), true)
	buf := make([]byte, 32<<10)
	if n, err := newBody(parts).Read(buf); n != len(buf) || err != nil {
		t.Errorf("Read = %d, %v, want %d bytes: short reads become short writes", n, err, len(buf))
	}
}

func FuzzStringsAreQuotedForEveryJSONReader(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\b\f\x00\x1f\x7f", "ünï\u2028", "\xff\xc3", "</script>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q became %q: %v", s, appendString(nil, s), err)
		}
		if want := strings.ToValidUTF8(s, string(utf8.RuneError)); got != want {
			t.Errorf("%q was read as %q", s, got)
		}
	})
}

// history is a conversation of so many plain turns, about 450 bytes each.
func history(turns int) *model.Request {
	req := &model.Request{
		Model:  "m",
		System: strings.Repeat("You are an agent. ", 200),
		Tools:  &model.Tools{List: []model.Tool{{Name: "bash", Description: "runs a command", Parameters: json.RawMessage(`{"type":"object"}`)}}},
	}
	for i := range turns {
		req.Messages = append(req.Messages,
			&model.Message{Role: model.User, Text: fmt.Sprintf("%d. ", i) + strings.Repeat("a question; ", 16)},
			&model.Message{Role: model.Assistant, Text: fmt.Sprintf("%d. ", i) + strings.Repeat("an answer; ", 18)})
	}
	req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: "and now?"})
	return req
}

func BenchmarkRequest(b *testing.B) {
	for _, turns := range []int{20, 1000} {
		req := history(turns)
		b.Run(fmt.Sprintf("build/%d turns", turns), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size(fragments(req, true)))
			for b.Loop() {
				fragments(req, true)
			}
		})
		b.Run(fmt.Sprintf("build and copy/%d turns", turns), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size(fragments(req, true)))
			buf := make([]byte, 32<<10)
			for b.Loop() {
				r := newBody(fragments(req, true))
				for {
					if _, err := r.Read(buf); err != nil {
						break
					}
				}
			}
		})
	}
}
